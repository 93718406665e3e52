# SPDX-License-Identifier: Apache-2.0
"""Chemistry and weather as their user meets them: every model learns, on one rank and on two, and bad data is named."""

import array
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark-train")
ERA5 = pathlib.Path(os.environ["JOULEMARK_SOURCE"]) / "tests/fixtures/train/era5"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--quiet"]
MOLECULES = "--samples 128 --local-batch 8 --lr 5e-3"
WEATHER = "--samples 64 --local-batch 4 --lr 3e-3 --set channels=2 --set height=16 --set width=32"
# What makes each model small, and how many epochs it then needs to halve its loss.
MODELS = {
    "schnet": (
        "--samples 256 --local-batch 8 --lr 3e-3 --set hidden=16 --set filters=16 --set interactions=1"
        " --set gaussians=10 --set cutoff=4",
        10,
    ),
    "dimenet": (f"{MOLECULES} --set hidden=16 --set blocks=1 --set bilinear=4 --set radial=4 --set cutoff=3", 8),
    "pna": (f"{MOLECULES} --set hidden=20 --set layers=2 --set cutoff=3", 6),
    "nnconv": (f"{MOLECULES} --set dim=16 --set edge_hidden=8 --set steps=2 --set set2set_steps=2", 8),
    "fourcastnet": (f"{WEATHER} --set patch=4 --set embed=32 --set depth=2 --set blocks=4", 3),
}


def run(*words, ranks=1):
    launcher = [*MPIRUN, "-np", str(ranks)] if ranks > 1 else []
    command = [*launcher, PROGRAM, *words, "--device", "cpu", "--threads", "1"]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def gradients(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = array.array("f", content[8 + length + begin : 8 + length + end])
    return tensors


def relative_l2(a, b):
    difference = sum((x - y) ** 2 for name in a for x, y in zip(a[name], b[name], strict=True))
    return (difference / sum(x**2 for name in a for x in a[name])) ** 0.5


def write_molecules(folder, count):
    """Files in QM9's format whose first property is the number of atoms."""
    folder.mkdir(parents=True)
    chance = random.Random(5)
    for number in range(count):
        atoms = chance.randint(3, 9)
        properties = "\t".join(f"{value}.25" for value in (1, 1, 1, atoms, *range(11)))
        lines = [str(atoms), f"gdb {number}\t{properties}\t"]
        lines += [
            f"{chance.choice('HCNO')}\t{1.1 * atom:.4f}\t{chance.random():.6f}\t{chance.randint(1, 9)}.5*^-2\t0.1"
            for atom in range(atoms)
        ]
        lines += ["100.5\t200.5", "C\tC\t", "InChI=1S/x\tInChI=1S/x"]
        (folder / f"dsgdb9nsd_{number + 1:06}.xyz").write_text("\n".join(lines) + "\n")


class Science(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)

    def train(self, *words, ranks=1):
        result = run(*words, ranks=ranks)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_every_model_learns(self):
        for model, (words, epochs) in MODELS.items():
            with self.subTest(model=model):
                result = self.train(model, *words.split(), "--epochs", str(epochs))
                losses = [float(value) for value in re.findall(r"  loss (\S+)", result.stderr)]
                self.assertEqual(len(losses), epochs)
                # The best constant is the mean: a loss of 1 for a normalised property, and for normalised fields.
                self.assertLess(min(losses), 0.5, losses)

    def test_every_model_trains_on_two_ranks_as_on_one(self):
        for model, (words, _) in MODELS.items():
            with self.subTest(model=model):
                results = []
                for ranks in (1, 2):
                    path = self.scratch / f"{model}{ranks}"
                    batch = ["--global-batch", "8", "--dump-gradients", str(path), "--steps", "3", "--seed", "3"]
                    words_left = re.sub(r"--local-batch \d ", "", words)
                    losses = self.scratch / f"losses{model}{ranks}"
                    self.train(model, *words_left.split(), *batch, "--log-losses", str(losses), ranks=ranks)
                    self.assertEqual(len(losses.read_text().splitlines()), 3)
                    results.append(gradients(path))
                self.assertEqual(results[0].keys(), results[1].keys())
                if model != "pna":  # its batch norm sees other batches
                    self.assertLess(relative_l2(*results), 1e-4)

    def test_two_steps_of_weather_and_bf16(self):
        words, _ = MODELS["fourcastnet"]
        extra = "--set steps=2 --set channel=1 --precision bf16 --epochs 1 --eval-samples 4"
        result = self.train("fourcastnet", *words.split(), *extra.split())
        self.assertRegex(result.stderr, r"val loss \S+  channel1_rmse \d")

    def test_reads_era5_files(self):
        small = "--set patch=4 --set embed=8 --set depth=1 --set blocks=2 --local-batch 2 --epochs 1".split()
        result = self.train("fourcastnet", "--dataset", str(ERA5), *small)
        self.assertIn("6 samples an epoch", result.stderr)
        self.assertRegex(result.stderr, r"val loss \S+  channel1_rmse \d")

    def test_reads_qm9_files_and_names_a_broken_one(self):
        folder = self.scratch / "qm9"
        write_molecules(folder, 60)
        broken = folder / "dsgdb9nsd_000007.xyz"
        text = broken.read_text()
        broken.write_text("9" + text if text[0] != "9" else "8" + text[1:])
        words = "--local-batch 5 --epochs 4 --lr 1e-2 --set hidden=16 --set filters=16 --set interactions=1".split()
        result = self.train("schnet", "--dataset", str(folder), "--set", "validation=10", *words)
        self.assertIn("50 samples an epoch", result.stderr)
        self.assertEqual(result.stderr.count(str(broken)), 1, result.stderr)
        self.assertRegex(result.stderr, r"train mae \d.* mae \d")
        errors = [float(value) for value in re.findall(r"train mae (\S+)", result.stderr)]
        self.assertLess(errors[-1], errors[0])

    def test_refuses_bad_input_with_one_sentence(self):
        molecules = self.scratch / "qm9"
        write_molecules(molecules, 20)
        empty = self.scratch / "empty"
        empty.mkdir()
        no_fields = self.scratch / "era5"
        no_fields.mkdir()
        shutil.copy(ERA5 / "no_fields.h5", no_fields / "1979.h5")
        cut = self.scratch / "cut"
        cut.mkdir()
        (cut / "1979.h5").write_bytes((ERA5 / "train/1979.h5").read_bytes()[:3000])
        other = self.scratch / "other"
        other.mkdir()
        (other / "1979.h5").write_text("no such format")
        refused = [
            (["schnet", "--dataset", str(self.scratch / "none")], "there is no QM9 folder"),
            (["schnet", "--dataset", str(empty)], "holds no .xyz file"),
            (["schnet", "--dataset", str(molecules), "--set", "target=12"], "targets 0 to 11"),
            (["schnet", "--dataset", str(molecules), "--set", "validation=20"], "leaves none of the 20 molecules"),
            (["dimenet", "--set", "spherical=1"], "spherical"),
            (["pna", "--set", "hidden=7"], "not a multiple of towers=5"),
            (["nnconv", "--set", "cutoff=5"], "it has target, validation, dim"),
            (["fourcastnet", "--dataset", str(self.scratch / "none")], "there is no weather folder"),
            (["fourcastnet", "--dataset", str(empty)], "holds no HDF5 file"),
            (["fourcastnet", "--dataset", str(no_fields)], "1979.h5 has no data set 'fields': it holds t2m"),
            (["fourcastnet", "--dataset", str(cut)], "1979.h5 cannot be opened as an HDF5 file"),
            (["fourcastnet", "--dataset", str(other)], "1979.h5 cannot be opened as an HDF5 file"),
            (["fourcastnet", "--dataset", str(ERA5), "--set", "channel=2"], "channels 0 to 1"),
            (["fourcastnet", "--dataset", str(ERA5), "--set", "steps=4"], "1980.h5 holds 4 time steps"),
            (["fourcastnet", "--dataset", str(ERA5), "--set", "patch=100"], "fields of 9 x 16 points"),
            (["fourcastnet", "--set", "height=721"], "not made of patches of 8 x 8"),
            (["fourcastnet", "--set", "blocks=7"], "not a multiple of blocks=7"),
        ]
        for words, part in refused:
            with self.subTest(words=words):
                result = run(*words)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
                self.assertIn(part, result.stderr)


if __name__ == "__main__":
    unittest.main()

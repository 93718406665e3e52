# SPDX-License-Identifier: Apache-2.0
"""A run that is cut and goes on ends as one that was not, bit by bit; and what a checkpoint or weights refuse."""

import json
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark-train")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--quiet"]
CPU = ["--device", "cpu", "--threads", "1"]
COMMON = [*CPU, "--classes", "3", "--samples", "48", "--eval-samples", "6"]
RESNET = ["resnet50", *COMMON, "--image-size", "32", "--set", "width=4", "--set", "blocks=1,1,1,1"]
# Dropout, Adam, clipping, accumulation, a curve that depends on the run's length.
VGG = ["vgg16", *COMMON, "--image-size", "32", "--set", "width=2", "--set", "hidden=8", "--optimizer", "adamw"]
VGG += ["--lr", "1e-3", "--accumulate", "2", "--clip-norm", "1", "--lr-schedule", "cosine"]
SCHNET = ["schnet", *CPU, "--samples", "64", "--set", "hidden=8", "--set", "filters=8", "--set", "interactions=1"]


def run(*words, ranks=1):
    launcher = [*MPIRUN, "-n", str(ranks)] if ranks > 1 else []
    return subprocess.run([*launcher, PROGRAM, *words], capture_output=True, text=True, timeout=120)


def tensor(path, name):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    begin, end = json.loads(content[8 : 8 + length])[name]["data_offsets"]
    return content[8 + length + begin : 8 + length + end]


class Resume(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def train(self, *words, ranks=1):
        result = run(*words, ranks=ranks)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def outputs(self, name):
        return ["--save-weights", str(self.scratch / f"{name}.weights"), "--log-losses", str(self.scratch / f"{name}.losses")]

    def assert_continues(self, model, cut_after, resumed_from, *, ranks=1):
        """`cut_after` updates, then the rest, against all at once; `resumed_from`: the first update whose loss is told."""
        checkpoint = ["--checkpoint", str(self.scratch / "checkpoint")]
        self.train(*model, *self.outputs("whole"), ranks=ranks)
        self.train(*model, *self.outputs("first"), *checkpoint, "--steps", str(cut_after), ranks=ranks)
        result = self.train(*model, *self.outputs("second"), "--resume", checkpoint[1], ranks=ranks)
        self.assertIn(f"goes on after update {cut_after} ", result.stderr)
        whole, second = ((self.scratch / f"{name}.losses").read_text().splitlines() for name in ("whole", "second"))
        self.assertEqual(second, whole[resumed_from:])
        whole, first, second = ((self.scratch / f"{name}.weights").read_bytes() for name in ("whole", "first", "second"))
        self.assertEqual(second, whole)
        self.assertNotEqual(first, whole)

    def test_goes_on_bit_by_bit_at_the_end_of_an_epoch(self):
        self.assert_continues([*RESNET, "--local-batch", "8", "--epochs", "4"], cut_after=12, resumed_from=12)

    def test_goes_on_bit_by_bit_inside_an_epoch_with_dropout_and_adam(self):
        self.assert_continues([*VGG, "--local-batch", "4", "--epochs", "3"], cut_after=8, resumed_from=6)

    def test_two_ranks_go_on_bit_by_bit(self):
        self.assert_continues([*RESNET, "--local-batch", "4", "--epochs", "3"], cut_after=8, resumed_from=6, ranks=2)

    def mllog(self, *words):
        lines = self.train(*words, "--mllog").stdout.splitlines()
        return [json.loads(line.removeprefix(":::MLLOG ")) for line in lines]

    def test_a_part_of_an_epoch_is_not_marked_as_an_epoch(self):
        model = [*SCHNET, "--local-batch", "16", "--epochs", "3", "--checkpoint", str(self.scratch / "checkpoint")]

        def regions(*words):
            lines = self.mllog(*model, *words)
            return [(line["key"], line["metadata"]["epoch_num"]) for line in lines if "epoch_st" in line["key"]]

        cut = [("epoch_start", 0), ("epoch_stop", 0), ("partial_epoch_start", 1), ("partial_epoch_stop", 1)]
        self.assertEqual(regions("--steps", "6"), cut)
        rest = [("partial_epoch_start", 1), ("partial_epoch_stop", 1), ("epoch_start", 2), ("epoch_stop", 2)]
        self.assertEqual(regions("--resume", model[-1]), rest)

    def test_a_plateau_goes_by_the_evaluations_that_are_due(self):
        # Nothing is learnt at this rate, so that no loss improves: six evaluations after the first halve it.
        model = [*SCHNET, "--local-batch", "64", "--eval-samples", "32", "--lr-schedule", "plateau", "--lr", "1e-30"]
        model += ["--epochs", "18"]

        def rates(*words):
            return [line["metadata"]["lr"] for line in self.mllog(*model, *words) if line["key"] == "epoch_stop"]

        self.assertEqual(rates("--eval-every", "0"), 7 * [1e-30] + 6 * [5e-31] + 5 * [2.5e-31])
        model += ["--eval-every", "2"]
        whole = rates()
        self.assertEqual(whole, 14 * [1e-30] + 4 * [5e-31])
        checkpoint = str(self.scratch / "checkpoint")
        first = rates("--checkpoint", checkpoint, "--steps", "9")  # which is evaluated, but not due
        self.assertEqual(first + rates("--resume", checkpoint), whole)

    def test_another_number_of_ranks_goes_on_with_the_losses_of_the_epoch(self):
        model = [*SCHNET, "--global-batch", "16", "--epochs", "2"]
        whole, cut = self.scratch / "whole", self.scratch / "cut"
        self.train(*model, "--log-losses", str(whole))
        expected = [float(line) for line in whole.read_text().splitlines()]
        for before, after in ((2, 1), (1, 2)):
            checkpoint = str(self.scratch / f"checkpoint{before}")
            self.train(*model, "--steps", "2", "--checkpoint", checkpoint, ranks=before)
            result = self.train(*model, "--resume", checkpoint, "--log-losses", str(cut), "--mllog", ranks=after)
            losses = [float(line) for line in cut.read_text().splitlines()]
            self.assertEqual(len(losses), len(expected))
            for loss, other in zip(losses, expected, strict=True):
                self.assertAlmostEqual(loss / other, 1, delta=1e-5)
            (told,) = re.findall(r'epoch_stop.*"epoch_num":0.*"loss":([0-9.]+)', result.stdout)
            self.assertAlmostEqual(float(told) / (sum(expected[:4]) / 4), 1, delta=1e-5)

    def test_a_default_that_is_written_out_is_no_other_run(self):
        model = [*SCHNET, "--local-batch", "16", "--epochs", "1", "--checkpoint", str(self.scratch / "checkpoint")]
        self.train(*model, "--steps", "2")
        other = run(*model, "--set", "cutoff=9", "--resume", model[-1])
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertIn("--set cutoff 10 instead of 9", other.stderr)
        self.train(*model, "--set", "cutoff=10.0", "--resume", model[-1])

    def test_a_killed_run_goes_on(self):
        model = [*RESNET, "--local-batch", "8", "--epochs", "400"]
        checkpoint = self.scratch / "checkpoint"
        process = subprocess.Popen([PROGRAM, *model, "--checkpoint", str(checkpoint), "--checkpoint-every", "1", "-q"])
        deadline = time.monotonic() + 60
        while not (checkpoint / "checkpoint.safetensors").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        self.assertEqual(process.wait(), -signal.SIGKILL)
        content = (checkpoint / "checkpoint.safetensors").read_bytes()
        done = int(re.search(rb'\\"step\\":(\d+)', content)[1])
        result = self.train(*model, "--resume", str(checkpoint), "--steps", str(done + 6))
        self.assertIn(f"goes on after update {done} of {done + 6}", result.stderr)

    def test_a_checkpoint_that_cannot_be_written_leaves_the_last_one(self):
        model = [*RESNET, "--local-batch", "8", "--epochs", "3"]
        folder = self.scratch / "checkpoint"
        file = folder / "checkpoint.safetensors"
        words = ["--checkpoint", str(folder)]
        self.train(*model, *words, "--steps", "6")
        last = file.read_bytes()
        half = len(last) // 2
        go_on = [PROGRAM, *model, *words, "--resume", str(folder)]
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (half, half))  # noqa: E731
        refused = subprocess.run(go_on, preexec_fn=limit, capture_output=True, text=True, timeout=120)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("checkpoint.safetensors: File too large", refused.stderr.splitlines()[-1])
        self.assertEqual(file.read_bytes(), last)
        self.assertEqual(list(folder.iterdir()), [file])
        # What a kill in the middle of writing leaves.
        (folder / "checkpoint.safetensors.1234567.tmp").write_bytes(last[:half])
        result = self.train(*model, *words, "--resume", str(folder))
        self.assertIn("goes on after update 6 of 18", result.stderr)
        self.assertNotEqual(file.read_bytes(), last)
        self.assertEqual(list(folder.iterdir()), [file])

    def test_refuses_positions_that_cannot_be(self):
        model = [*SCHNET, "--local-batch", "16", "--epochs", "4"]
        folder = self.scratch / "checkpoint"
        self.train(*model, "--checkpoint", str(folder))
        file = folder / "checkpoint.safetensors"
        content = file.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        for step in ("-1", "1.5", "1e18", "15", "17", "1000000000000000000"):
            header = json.loads(content[8 : 8 + length])
            position = header["__metadata__"]["position"]
            header["__metadata__"]["position"] = position.replace('"step":16', f'"step":{step}')
            self.assertNotEqual(header["__metadata__"]["position"], position)
            changed = json.dumps(header).encode()
            file.write_bytes(struct.pack("<Q", len(changed)) + changed + content[8 + length :])
            result = run(*model, "--resume", str(folder))
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertRegex(result.stderr, "is damaged|is of update 10+, and this run ends after update 16")
        file.write_bytes(content)
        result = run(*model, "--resume", str(folder), "--steps", "12")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("is of update 16, and this run ends after update 12", result.stderr)

    def test_refuses_what_does_not_fit(self):
        folder = self.scratch / "checkpoint"
        model = [*RESNET, "--local-batch", "8", "--epochs", "1"]
        self.train(*model, "--checkpoint", str(folder), *self.outputs("a"))
        file = folder / "checkpoint.safetensors"
        self.assertEqual(os.listdir(folder), [file.name])

        def refused(*words):
            result = run(*words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            return result.stderr

        resume = ["--resume", str(folder)]
        other = refused(*VGG, "--local-batch", "4", "--epochs", "1", *resume)
        self.assertIn("missing: model.features.0.weight, ", other)
        self.assertIn("not part of this model: model.bn1.bias", other)
        wider = ["width=8" if word == "width=4" else word for word in model]
        self.assertIn("model.conv1.weight is [4, 3, 7, 7] instead of [8, 3, 7, 7]", refused(*wider, *resume))
        differs = refused(*model, *resume, "--seed", "7", "--lr", "0.5")
        self.assertIn("--seed 42 instead of 7", differs)
        self.assertIn("--lr ", differs)
        self.assertIn("there is no checkpoint in", refused(*model, "--resume", str(self.scratch)))
        self.assertIn("either --resume or --weights", refused(*model, *resume, "--weights", str(file)))
        self.assertIn("--checkpoint DIR", refused(*model, "--checkpoint-every", "3"))
        content = file.read_bytes()
        file.write_bytes(content.replace(b"joulemark-train checkpoint 2", b"joulemark-train checkpoint 1"))
        self.assertIn("is of format 1, and this joulemark-train reads format 2", refused(*model, *resume))
        file.write_bytes(content[: len(content) // 2])
        self.assertIn("the file was cut", refused(*model, *resume))
        file.write_bytes((self.scratch / "a.weights").read_bytes())
        self.assertIn("is not a checkpoint", refused(*model, *resume))

    def test_refuses_other_data_and_other_evaluations(self):
        images = self.scratch / "images"
        made = run("make-images", str(images), "--classes", "3", "--per-class", "16", "--val-per-class", "2", "--size", "40")
        self.assertEqual(made.returncode, 0, made.stderr)
        common = ["resnet50", "--device", "cpu", "--threads", "1", "--image-size", "32", "--set", "width=4"]
        model = [*common, "--set", "blocks=1,1,1,1", "--local-batch", "8", "--dataset", str(images)]
        folder = self.scratch / "checkpoint"
        once = ["--epochs", "1"]
        self.train(*model, *once, "--checkpoint", str(folder))

        def refused(*words):
            result = run(*model, "--resume", str(folder), *words)
            self.assertEqual(result.returncode, 2, result.stderr)
            return result.stderr

        self.assertIn("--eval-every 1 instead of 2", refused(*once, "--eval-every", "2"))
        longer = refused("--epochs", "2")
        self.assertIn("--epochs 1 instead of 2", longer)
        self.assertIn("--lr-warmup-epochs 0.05 instead of 0.1", longer)
        self.train(*model, "--resume", str(folder), "--epochs", "2", "--lr-warmup-epochs", "0.05")
        moved = self.scratch / "moved"
        images.rename(moved)
        model[-1] = str(moved)
        self.train(*model, *once, "--resume", str(folder))
        (moved / "train/class001").rename(moved / "train/other")
        (moved / "val/class001").rename(moved / "val/other")
        self.assertIn("contents of --dataset ", refused(*once))

    def test_losses_are_continued(self):
        model = [*RESNET, "--local-batch", "8", "--epochs", "2"]
        folder = self.scratch / "checkpoint"
        whole, cut = self.scratch / "whole", self.scratch / "cut"
        self.train(*model, "--log-losses", str(whole))
        self.train(*model, "--log-losses", str(cut), "--checkpoint", str(folder), "--steps", "8")
        before = cut.read_text()
        self.assertEqual(run(*model, "--log-losses", str(cut), "--resume", str(folder), "--seed", "1").returncode, 2)
        self.assertEqual(cut.read_text(), before)
        self.train(*model, "--log-losses", str(cut), "--resume", str(folder))
        self.assertEqual(cut.read_text(), whole.read_text())

    def test_weights_are_read_by_name(self):
        model = [*RESNET, "--local-batch", "8", "--epochs", "1"]
        self.train(*model, *self.outputs("a"))
        weights = self.scratch / "a.weights"
        self.train(*model, "--weights", str(weights), "--lr", "0", "--seed", "1", *self.outputs("b"))
        # With no learning rate only batch norm's statistics change.
        for name in ("conv1.weight", "layer4.0.bn3.bias", "fc.weight"):
            self.assertEqual(tensor(weights, name), tensor(self.scratch / "b.weights", name))
        wider = ["width=8" if word == "width=4" else word for word in model]
        result = run(*wider, "--weights", str(weights))
        self.assertEqual(result.returncode, 2)
        self.assertIn("conv1.weight is [4, 3, 7, 7] instead of [8, 3, 7, 7]", result.stderr)


if __name__ == "__main__":
    unittest.main()

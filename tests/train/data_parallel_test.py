# SPDX-License-Identifier: Apache-2.0
"""Two ranks with half the batch train as one does; a missing or a summing reduction would be noticed."""

import array
import json
import math
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark-train")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--quiet"]
# fp32, a small rate, residual branches that start at zero, synchronised batch norm: what is left is rounding.
RUN = [
    "resnet50",
    "--device",
    "cpu",
    "--threads",
    "1",
    "--samples",
    "160",
    "--classes",
    "10",
    "--image-size",
    "32",
    "--global-batch",
    "8",
    "--epochs",
    "1",
    "--set",
    "width=8",
    "--set",
    "blocks=1,1,1,1",
    "--set",
    "zero_init_residual=true",
    "--sync-bn",
    "--lr",
    "1e-3",
    "--lr-scaling",
    "none",
    "--quiet",
]


def gradients(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + length]).items():
        begin, end = entry["data_offsets"]
        tensors[name] = array.array("f", content[8 + length + begin : 8 + length + end])
    return tensors


def relative_l2(a, b):
    difference = sum((x - y) ** 2 for name in a for x, y in zip(a[name], b[name], strict=True))
    return math.sqrt(difference / sum(x * x for tensor in a.values() for x in tensor))


class DataParallel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.one = cls.train(1, "mean")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def train(cls, ranks, reduction):
        gradients_file = pathlib.Path(cls.folder.name) / f"gradients-{ranks}-{reduction}"
        losses_file = pathlib.Path(cls.folder.name) / f"losses-{ranks}-{reduction}"
        launcher = [*MPIRUN, "-n", str(ranks)] if ranks > 1 else []
        subprocess.run(
            [
                *launcher,
                PROGRAM,
                *RUN,
                "--reduction",
                reduction,
                "--dump-gradients",
                str(gradients_file),
                "--log-losses",
                str(losses_file),
            ],
            check=True,
            timeout=120,
        )
        return gradients(gradients_file), [float(line) for line in losses_file.read_text().split()]

    def differences(self, reduction):
        one_gradients, one_losses = self.one
        two_gradients, two_losses = self.train(2, reduction)
        self.assertEqual(len(one_losses), 20)
        losses = max(abs(a - b) / abs(a) for a, b in zip(one_losses, two_losses, strict=True))
        return relative_l2(one_gradients, two_gradients), losses

    def test_two_ranks_agree_with_one(self):
        gradient, loss = self.differences("mean")
        self.assertLess(gradient, 1e-5)
        self.assertLess(loss, 1e-4)

    def test_a_missing_reduction_is_noticed(self):
        gradient, loss = self.differences("none")
        self.assertGreater(gradient, 0.1)
        self.assertGreater(loss, 1e-3)

    def test_summing_instead_of_averaging_is_noticed(self):
        gradient, loss = self.differences("sum")
        self.assertAlmostEqual(gradient, 1, places=4)  # twice the gradient is one gradient away
        self.assertGreater(loss, 1e-3)


class Failures(unittest.TestCase):
    def refused(self, *words, launcher=(*MPIRUN, "-n", "2")):
        return subprocess.run([*launcher, PROGRAM, *words], capture_output=True, text=True, timeout=60)

    def test_a_mistake_is_said_once_by_all_ranks_together(self):
        for words, sentence in (
            (["resnet50", "--global-batch", "9"], "cannot be divided among 2 ranks"),
            (["resnet50", "--dataset", "/none"], "no image folder"),
        ):
            result = self.refused(*words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stderr.count("joulemark-train: rank 0: "), 1, result.stderr)
            self.assertNotIn("rank 1:", result.stderr)
            self.assertIn(sentence, result.stderr)

    def test_a_rank_that_fails_alone_while_setting_up_ends_both(self):
        # Only rank 1 is given a folder that does not exist.
        tiny = ["resnet50", "--local-batch", "4", "--samples", "16", "--image-size", "32", "--set", "width=4"]
        tiny += ["--epochs", "1"]
        result = self.refused(*tiny, launcher=())
        self.assertEqual(result.returncode, 0, result.stderr)
        command = [*MPIRUN, "-n", "1", PROGRAM, *tiny, ":", "-n", "1", PROGRAM, *tiny, "--dataset", "/none"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("rank 1: there is no image folder /none", result.stderr)

    def test_a_rank_that_fails_while_training_ends_both(self):
        # Files of the same names and sizes, which only rank 1 cannot read.
        tiny = ["resnet50", "--local-batch", "1", "--image-size", "32", "--set", "width=4", "--epochs", "1"]
        with tempfile.TemporaryDirectory() as folder:
            good, bad = pathlib.Path(folder, "good"), pathlib.Path(folder, "bad")
            subprocess.run([PROGRAM, "make-images", good, "--classes", "2", "--per-class", "8"], check=True, timeout=60)
            shutil.copytree(good, bad)
            for image in bad.rglob("*.jpg"):
                image.write_bytes(bytes(image.stat().st_size))
            command = [*MPIRUN, "-n", "1", PROGRAM, *tiny, "--dataset", good, ":", "-n", "1", PROGRAM, *tiny]
            result = subprocess.run([*command, "--dataset", bad], capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("rank 1: none of the 16 samples", result.stderr)

    def test_ranks_that_were_told_different_things_are_refused(self):
        common = ["schnet", "--device", "cpu", "--threads", "1", "--samples", "64", "--set", "hidden=8"]
        common += ["--set", "filters=8", "--set", "interactions=1"]
        different = [
            (["--seed", "2"], [], "--seed is 42 here and 2 on rank 0"),
            ([], ["--lr", "2e-3"], "--lr is 0.002 here and 0.001 on rank 0"),
            ([], ["--precision", "bf16"], "--precision is bf16 here and fp32 on rank 0"),
            (["--accumulate", "2"], [], "--accumulate is 1 here and 2 on rank 0"),
            ([], ["--local-batch", "4"], "--local-batch is 4 here and 8 on rank 0"),
            (["--eval-samples", "8"], [], "validation samples is 0 here and 8 on rank 0"),
            ([], ["--steps", "2"], "--steps is 2 here and not given on rank 0"),
            ([], ["--checkpoint", "c"], "--checkpoint is given here and not given on rank 0"),
            (["--set", "gaussians=9"], [], "--set gaussians is 50 here and 9 on rank 0"),
            (["--eval-every", "2"], [], "--eval-every is 1 here and 2 on rank 0"),
            (["--epochs", "1"], ["--epochs", "2"], "--epochs is 2 here and 1 on rank 0"),
            (["--help"], [], "--help is not given here and given on rank 0"),
            ([], ["--help"], "--help is given here and not given on rank 0"),
        ]
        with tempfile.TemporaryDirectory() as folder:
            for first, second, sentence in different:
                with self.subTest(sentence):
                    run = [PROGRAM, *common] + ([] if "--local-batch" in second else ["--local-batch", "8"])
                    zero = [PROGRAM, *common, "--local-batch", "8"]
                    command = [*MPIRUN, "-n", "1", *zero, *first, ":", "-n", "1", *run, *second]
                    result = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertEqual(result.stderr.count("joulemark-train: rank 1: "), 1, result.stderr)
                    self.assertIn(sentence, result.stderr)
            command = [*MPIRUN, "-n", "1", PROGRAM, "pna", ":", "-n", "1", PROGRAM, "nnconv"]
            result = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("MODEL is nnconv here and pna on rank 0", result.stderr)

    def torchrun(self, *options):
        """Two ranks that find each other as torchrun's do, with these further options each: exit statuses, messages."""
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port = probe.getsockname()[1]
        common = {**os.environ, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}
        ranks = [
            subprocess.Popen(
                [PROGRAM, "resnet50", "--device", "cpu", *options[rank]],
                env={**common, "MASTER_PORT": str(port), "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        outputs = [rank.communicate(timeout=60)[1] for rank in ranks]
        return [rank.returncode for rank in ranks], outputs

    def test_cpu_ranks_of_torchrun_are_told_to_use_mpirun(self):
        statuses, outputs = self.torchrun([], [])
        self.assertEqual(statuses, [3, 3], outputs)
        self.assertIn("start them with mpirun or srun", outputs[0])
        self.assertEqual(outputs[1], "")

    def test_ranks_of_torchrun_that_were_told_different_things_are_refused(self):
        statuses, outputs = self.torchrun([], ["--help"])
        self.assertEqual(statuses, [2, 2], outputs)
        self.assertEqual(outputs[0], "")
        self.assertIn("rank 1: --help is given here and not given on rank 0", outputs[1])


if __name__ == "__main__":
    unittest.main()

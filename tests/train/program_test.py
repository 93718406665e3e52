# SPDX-License-Identifier: Apache-2.0
"""joulemark-train as its user meets it: generated JPEGs, marks, and one sentence for every mistake."""

import json
import math
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark-train")
TINY = ["--image-size", "32", "--set", "width=4", "--set", "blocks=1,1,1,1", "--threads", "1"]
SCHNET = ["schnet", "--device", "cpu", "--threads", "1", "--set", "hidden=8", "--set", "filters=8"]
SCHNET += ["--set", "interactions=1"]


def run(*words, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=environment, timeout=120)


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.images = pathlib.Path(cls.folder.name) / "images"
        made = run(
            "make-images",
            str(cls.images),
            "--classes",
            "3",
            "--per-class",
            "16",
            "--val-per-class",
            "4",
            "--size",
            "40",
        )
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(dir=self.folder.name))

    def assert_refused(self, result, code, *parts):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("joulemark-train: "), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def train(self, *words, **variables):
        result = run("resnet50", *TINY, *words, **variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_help_list_and_version_answer_without_training(self):
        self.assertIn("--local-batch", run("--help").stdout)
        self.assertIn("Examples:", run("--help").stdout)
        self.assertEqual(run().stdout, run("--help").stdout)
        self.assertIn("25557032", run("--list").stdout)
        self.assertIn("square-wave is no model but a load", run("--list").stdout)
        self.assertIn("--high-s", run("square-wave", "--help").stdout)
        self.assertIn("libtorch", run("--version").stdout)

    def test_learns_the_generated_images(self):
        result = self.train("--dataset", str(self.images), "--local-batch", "8", "--epochs", "20", "--lr", "1")
        losses = [float(value) for value in re.findall(r"  loss (\S+)", result.stderr)]
        self.assertEqual(len(losses), 20)
        # Half the loss of the best constant predictor of three equally frequent classes.
        self.assertLess(min(losses[-5:]), 0.5 * math.log(3))
        self.assertEqual(len(re.findall(r"val loss \S+  top1_error 0\.\d{4}", result.stderr)), 20)

    def test_two_runs_are_bit_identical_whatever_the_loader_threads(self):
        logs = []
        for threads in ("1", "3"):
            losses = self.scratch / f"losses{threads}"
            weights = self.scratch / f"weights{threads}"
            self.train(
                "--dataset",
                str(self.images),
                "--local-batch",
                "8",
                "--epochs",
                "2",
                "--loader-threads",
                threads,
                "--log-losses",
                str(losses),
                "--save-weights",
                str(weights),
            )
            logs.append((losses.read_text(), weights.read_bytes()))
        self.assertEqual(len(logs[0][0].splitlines()), 12)
        self.assertEqual(logs[0], logs[1])
        self.train(
            "--dataset",
            str(self.images),
            "--local-batch",
            "8",
            "--epochs",
            "2",
            "--seed",
            "7",
            "--log-losses",
            str(self.scratch / "other"),
        )
        self.assertNotEqual((self.scratch / "other").read_text(), logs[0][0])

    def test_names_skips_and_counts_a_damaged_image(self):
        images = self.scratch / "images"
        shutil.copytree(self.images, images)
        for name in ("train/class001/00003.jpg", "val/class002/00001.jpg"):
            content = (images / name).read_bytes()
            (images / name).write_bytes(content[: len(content) // 2])
        (images / "train/class000/notes.txt").write_text("not an image")
        result = self.train("--dataset", str(images), "--local-batch", "8", "--epochs", "2")
        self.assertEqual(result.stderr.count("train/class001/00003.jpg"), 1, result.stderr)
        self.assertEqual(result.stderr.count("1 damaged sample skipped so far"), 2, result.stderr)
        self.assertIn("val/class002/00001.jpg", result.stderr)

    def test_marks_epochs_and_evaluations(self):
        address = str(self.scratch / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as meter:
            meter.bind(address)
            meter.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            self.train(
                "--dataset",
                str(self.images),
                "--local-batch",
                "10",
                "--epochs",
                "2",
                JOULEMARK_SOCKET=address,
            )
            meter.setblocking(False)
            messages = []
            while True:
                try:
                    messages.append(json.loads(meter.recv(65536)))
                except BlockingIOError:
                    break
        config = messages[0]
        self.assertEqual(config["event"], "config")
        self.assertEqual(config["data"]["workload"], "resnet50")
        self.assertEqual(config["data"]["global_batch"], 10)
        self.assertEqual(config["data"]["dataset_samples"], 48)
        edges = [(m["event"], m["name"], m["index"]) for m in messages if m["event"] in ("begin", "end")]
        self.assertEqual(
            edges,
            [
                (event, name, index)
                for index in (0, 1)
                for name in ("epoch", "eval")
                for event in ("begin", "end")
            ],
        )
        times = [m["t"] for m in messages if m["event"] in ("begin", "end")]
        self.assertEqual(times, sorted(times))
        epoch = next(m for m in messages if m["event"] == "end" and m["name"] == "epoch")
        self.assertEqual((epoch["samples"], epoch["updates"], epoch["rank"]), (40, 4, 0))
        self.assertGreater(epoch["loss"], 0)
        evaluation = next(m for m in messages if m["event"] == "end" and m["name"] == "eval")
        self.assertEqual(evaluation["samples"], 12)
        self.assertEqual(
            (evaluation["quality"]["name"], evaluation["quality"]["direction"]), ("top1_error", "lower")
        )

    def test_mlperf_lines(self):
        result = self.train(
            "--samples",
            "16",
            "--classes",
            "4",
            "--local-batch",
            "8",
            "--epochs",
            "1",
            "--eval-samples",
            "4",
            "--mllog",
        )
        lines = [json.loads(line.removeprefix(":::MLLOG ")) for line in result.stdout.splitlines()]
        keys = [line["key"] for line in lines]
        for key in (
            "run_start",
            "epoch_start",
            "epoch_stop",
            "eval_start",
            "eval_stop",
            "eval_accuracy",
            "run_stop",
        ):
            self.assertEqual(keys.count(key), 1, key)

    def test_every_precision_of_the_cpu_and_channels_last(self):
        for extra in (["--precision", "bf16"], ["--precision", "fp16"], ["--channels-last"]):
            result = self.train(
                "--samples", "16", "--classes", "4", "--local-batch", "8", "--epochs", "1", *extra
            )
            self.assertRegex(result.stderr, r"epoch 1/1 .* loss [0-9.]+ ")

    def test_ends_inside_an_epoch_after_the_given_updates(self):
        self.train(
            "--samples",
            "64",
            "--classes",
            "4",
            "--local-batch",
            "8",
            "--epochs",
            "3",
            "--steps",
            "10",
            "--log-losses",
            str(self.scratch / "losses"),
        )
        self.assertEqual(len((self.scratch / "losses").read_text().splitlines()), 10)

    def test_refuses_bad_input_with_one_sentence(self):
        one_class = self.scratch / "one"
        shutil.copytree(self.images / "train/class000", one_class / "class000")
        empty = self.scratch / "empty"
        empty.mkdir()
        broken = self.scratch / "broken"
        for name in ("a", "b"):
            (broken / name).mkdir(parents=True)
            (broken / name / "x.jpg").write_text("no image")
        refused = [
            (["resnet51"], "the models are resnet50"),
            (["resnet50", "--precision", "fp64"], "fp64"),
            (["resnet50", "--local-batch", "0"], "--local-batch"),
            (["resnet50", "--set", "widht=3"], "it has blocks, width, zero_init_residual"),
            (["resnet50", "--dataset", str(self.scratch / "none")], "no image folder"),
            (["resnet50", "--dataset", str(empty)], "0 class folders"),
            (["resnet50", "--dataset", str(one_class)], "1 class folder:"),
            (["resnet50", "--dataset", str(self.images), "--samples", "1000"], "more than the 48 samples"),
            (
                ["resnet50", "--dataset", str(self.images), "--local-batch", "64"],
                "less than one global batch of 64",
            ),
            (["resnet50", "--dataset", str(self.images), "--classes", "2"], "fewer than the 3 class folders"),
            (["make-images", str(self.scratch / "x"), "--classes", "1"], "--classes"),
            (["make-images", str(one_class)], "is not empty"),
            (["square-wave", "--high-s", "0"], "--high-s"),
            (["resnet50", "--dataset", ""], "--dataset is empty"),
            (["square-wave", "--repeats", "none"], "--repeats"),
        ]
        for words, part in refused:
            with self.subTest(words=words):
                self.assert_refused(run(*words), 2, part)
        with self.subTest("nothing readable"):
            result = run("resnet50", "--dataset", str(broken), "--local-batch", "2", "--quiet", *TINY)
            self.assertEqual(result.returncode, 2)
            self.assertIn("none of the 2 samples", result.stderr.splitlines()[-1])

    def test_refuses_empty_paths_and_pipes(self):
        for option in ("--dataset", "--vocab", "--weights", "--resume", "--save-weights", "--log-losses", "--checkpoint"):
            self.assert_refused(run(*SCHNET, option, ""), 2, f"{option} is empty")
        pipe = str(self.scratch / "pipe")
        os.mkfifo(pipe)
        for words in (["bert", "--dataset"], ["bert", "--vocab"], ["schnet", "--weights"], ["make-vocab"]):
            self.assert_refused(run(*words, pipe), 2, f"{pipe} is neither a file nor a folder")
        text = self.scratch / "text"
        text.mkdir()
        os.mkfifo(text / "train.txt")
        (text / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
        self.assert_refused(run("bert", "--dataset", str(text)), 2, "train.txt")

    def test_files_that_may_not_grow_are_a_sentence(self):
        for option in ("--save-weights", "--log-losses", "--checkpoint"):
            folder = self.scratch / option
            folder.mkdir()
            words = [*SCHNET, "--samples", "512", "--local-batch", "1", "--epochs", "1", option]
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
            command = [PROGRAM, *words, str(folder / "out")]
            result = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, timeout=120)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("File too large", result.stderr.splitlines()[-1])
            self.assertEqual([path.name for path in folder.rglob("*.tmp")], [])

    def test_refuses_what_64_bits_cannot_count(self):
        saved = self.scratch / "weights"
        words = [*SCHNET, "--samples", "8388608", "--local-batch", "1", "--save-weights", str(saved)]
        self.assert_refused(run(*words, "--epochs", "1099511627776"), 2, "lower --epochs")
        self.assertFalse(saved.exists())

    def test_sizes_beyond_the_machine_are_a_sentence(self):
        for words in (
            ["schnet", "--set", "hidden=1099511627776"],
            ["schnet", "--set", "interactions=100000000"],
            ["dimenet", "--set", "spherical=1000000000"],
            ["bert", "--set", "vocabulary=99999999999999"],
            ["fourcastnet", "--set", "height=9223372036854775800"],
        ):
            self.assert_refused(run(*words), 2, words[-1], "at most")

        def little_memory():
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

        for words in (["bert", "--set", "hidden=49152"], ["schnet", "--samples", "4000000000", "--local-batch", "1000000"]):
            command = [PROGRAM, *words, "--threads", "1", "--loader-threads", "1", "--quiet"]
            result = subprocess.run(command, preexec_fn=little_memory, capture_output=True, text=True, timeout=60)
            self.assert_refused(result, 3, "the memory does not suffice: lower --local-batch")

    def test_threads_that_cannot_be_started_are_a_sentence(self):
        def few_threads():
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

        command = [PROGRAM, *SCHNET, "--samples", "64", "--local-batch", "8", "--epochs", "1", "--loader-threads", "1024"]
        result = subprocess.run(command, preexec_fn=few_threads, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("of 1024 loader threads can be started", result.stderr.splitlines()[-1])
        self.assertIn("lower --loader-threads", result.stderr.splitlines()[-1])

    def test_threads_wait_without_spinning_unless_told_otherwise(self):
        # OpenMP calls the policy passive also where nothing is set, but spins then: the count tells.
        for given, spins in (({}, "0"), ({"OMP_WAIT_POLICY": "active"}, "[1-9][0-9]+"), ({"GOMP_SPINCOUNT": "77"}, "77")):
            environment = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
            environment.update(given, OMP_DISPLAY_ENV="verbose")
            result = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, env=environment, timeout=60)
            self.assertRegex(result.stderr, f"GOMP_SPINCOUNT = '{spins}'")
            self.assertIn("libtorch", result.stdout)

    def on_full_disk(self, stream, *words):
        with open("/dev/full", "w") as full:
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
            return subprocess.run([PROGRAM, *words], **streams, text=True, timeout=120)

    def test_output_that_is_not_taken_is_said(self):
        tiny = ["resnet50", *TINY, "--samples", "8", "--local-batch", "8", "--epochs", "1"]
        for words in (["--list"], ["--help"], [*tiny, "--mllog"]):
            self.assert_refused(self.on_full_disk("stdout", *words), 3, "cannot write to standard output: No space")
        result = run(*tiny, "--log-losses", "/dev/full", "-q")
        self.assert_refused(result, 3, "cannot write /dev/full: No space")

    def test_messages_that_are_not_taken_do_not_end_a_training(self):
        tiny = ["resnet50", *TINY, "--samples", "8", "--local-batch", "8", "--epochs", "2"]
        self.assertEqual(self.on_full_disk("stderr", *tiny).returncode, 0)
        reader, writer = os.pipe()
        os.close(reader)
        self.assertEqual(subprocess.run([PROGRAM, *tiny], stderr=writer, timeout=120).returncode, 0)
        os.close(writer)

    def test_files_do_not_take_the_numbers_of_closed_streams(self):
        losses = self.scratch / "losses"
        command = [PROGRAM, "resnet50", *TINY, "--samples", "8", "--local-batch", "8", "--epochs", "1", "--mllog"]
        command += ["--log-losses", str(losses)]
        closed = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], timeout=120)
        self.assertEqual(closed.returncode, 0)
        self.assertEqual(len(losses.read_text().splitlines()), 1)
        float(losses.read_text())

    def test_outputs_are_checked_before_training(self):
        tiny = ["resnet50", *TINY, "--samples", "8", "--local-batch", "8", "--epochs", "1"]
        self.assert_refused(run(*tiny, "--save-weights", str(self.scratch)), 3, "it is a folder")
        self.assert_refused(run(*tiny, "--dump-gradients", str(self.scratch / "none/g")), 3, "none/g", "its folder")
        self.assert_refused(run(*tiny, "--log-losses", str(self.scratch)), 3, "Is a directory")
        kept = self.scratch / "kept"
        kept.write_text("1.5\n")
        refused = run(*tiny, "--log-losses", str(kept), "--resume", str(self.scratch))
        self.assert_refused(refused, 2, "there is no checkpoint")
        self.assertEqual(kept.read_text(), "1.5\n")

    def test_a_training_that_diverges_ends_with_a_sentence(self):
        checkpoint = self.scratch / "checkpoint"
        tiny = ["resnet50", *TINY, "--samples", "32", "--local-batch", "8", "--epochs", "50", "--quiet"]
        result = run(*tiny, "--lr", "1e9", "--lr-warmup-epochs", "0", "--checkpoint", str(checkpoint))
        self.assert_refused(result, 1, "has diverged: the training loss of epoch ", "lower --lr")

    def test_a_square_wave_marks_each_burst(self):
        path = str(self.scratch / "s")
        meter = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(meter.close)
        meter.bind(path)
        wave = ["--device", "cpu", "--size", "128", "--high-s", "0.05", "--low-s", "0.02", "--repeats", "5"]
        result = run("square-wave", *wave, JOULEMARK_SOCKET=path, OMP_NUM_THREADS="1")
        self.assertEqual(result.returncode, 0, result.stderr)
        meter.setblocking(False)
        messages = []
        try:
            while True:
                messages.append(json.loads(meter.recv(65536)))
        except BlockingIOError:
            pass
        self.assertEqual(messages[0]["data"], {"workload": "square-wave", "device": "cpu", "size": 128})
        edges = [(m["event"], m["name"], m["index"]) for m in messages[1:]]
        self.assertEqual(edges, [(event, "square", i) for i in range(5) for event in ("begin", "end")])
        times = [m["t"] for m in messages[1:]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(len(set(times)), len(times))

    def test_says_when_the_environment_cannot(self):
        self.assert_refused(run("resnet50", "--device", "cpu", "--precision", "tf32"), 3, "NVIDIA GPU")
        self.assert_refused(
            run(
                "resnet50",
                "--samples",
                "16",
                "--local-batch",
                "8",
                "--log-losses",
                "/proc/none/losses",
                *TINY,
            ),
            3,
            "/proc/none/losses",
        )
        self.assert_refused(run("make-images", "/proc/none"), 3, "/proc/none")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""BERT and DistilBERT from a text to a trained model: they learn, on one rank and on two, and mistakes are said."""

import collections
import json
import math
import os
import pathlib
import random
import re
import socket
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark-train")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--quiet"]
NARROW = "hidden=32 layers=1 heads=2 length=16 positions=16"
MODELS = ("bert", "distilbert")


def settings(text):
    return [word for setting in text.split() for word in ("--set", setting)]


def run(*words, launcher=(), **variables):
    command = [*launcher, PROGRAM, *map(str, words)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def topics(seed, lines):
    """Each line keeps to one of twelve topics, which have two words each: what is masked follows from the rest."""
    draw = random.Random(seed)
    words = [(f"{a}{b}a", f"{a}{b}o") for a in "klmr" for b in "aei"]
    return "".join(" ".join(draw.choices(draw.choice(words), k=14)) + "\n" for _ in range(lines))


def entropy(text):
    """The loss of the best constant predictor of a word."""
    counts = collections.Counter(text.split())
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values())


def numbers(path):
    """All tensors of a file, one after the other, in the order of their names."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = json.loads(content[8 : 8 + length])
    return [
        number
        for name in sorted(tensors)
        for (number,) in struct.iter_unpack("<f", content[8 + length :][slice(*tensors[name]["data_offsets"])])
    ]


def as_first_published(content):
    """Weights as the first releases have them: other names in the norms, and a head that is of no use here."""
    (length,) = struct.unpack("<Q", content[:8])
    tensors, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    for old, new in (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")):
        tensors = {name.replace(old, new): entry for name, entry in tensors.items()}
    offsets = [len(data), len(data) + 4]
    tensors["bert.pooler.dense.bias"] = {"dtype": "F32", "shape": [1], "data_offsets": offsets}
    header = json.dumps(tensors).encode()
    return struct.pack("<Q", len(header)) + header + data + bytes(4)


class Language(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.text = topics(1, 1280)
        (cls.folder / "wiki.train.raw").write_text(cls.text)
        (cls.folder / "wiki.valid.raw").write_text(topics(2, 64))
        made = run("make-vocab", cls.folder / "wiki.train.raw", "--size", 200, "-o", cls.folder / "vocab.txt")
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def train(self, model, *words, launcher=(), setting="", **variables):
        common = ["--device", "cpu", "--threads", 1, "--dataset", self.folder]
        result = run(
            model, *common, *settings(NARROW + " " + setting), *words, launcher=launcher, **variables
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_both_models_learn_what_a_masked_word_depends_on(self):
        for model in MODELS:
            words = ["--local-batch", 16, "--epochs", 6, "--lr", "3e-3", "--lr-warmup-epochs", 0.5]
            result = self.train(model, *words, setting="packed=false dropout=0 masked=0.3")
            losses = [float(value) for value in re.findall(r"val loss (\S+)", result.stderr)]
            self.assertEqual(len(losses), 6)
            self.assertLess(losses[-1], 0.5 * entropy(self.text), model)
            accuracies = [float(value) for value in re.findall(r"  masked_accuracy (\S+)", result.stderr)]
            self.assertGreater(accuracies[-1], 0.4)  # of two words; the best constant is right once in 24

    def test_two_ranks_with_half_the_batch_train_as_one_does(self):
        for model in MODELS:
            losses = []
            for ranks in (1, 2):
                log = self.scratch / f"{model}{ranks}"
                launcher = [*MPIRUN, "-n", str(ranks)] if ranks > 1 else ()
                words = ["--global-batch", 16, "--steps", 12, "--log-losses", log]
                self.train(model, *words, launcher=launcher, setting="dropout=0")
                losses.append([float(line) for line in log.read_text().split()])
            self.assertEqual(len(losses[0]), 12)
            self.assertNotEqual(losses[0][0], losses[0][1])
            for one, two in zip(*losses, strict=True):
                self.assertAlmostEqual(one, two, delta=1e-4 * one)

    def test_an_update_is_the_mean_over_all_its_masked_tokens(self):
        # Lines of very different length: passes and ranks count different numbers of tokens.
        text = self.scratch / "text"
        draw = random.Random(5)
        words = self.text.split()
        text.write_text("".join(" ".join(draw.choices(words, k=draw.choice((1, 14)))) + "\n" for _ in range(64)))
        losses, gradients = [], []
        for ranks, accumulate in ((1, 1), (1, 4), (2, 1), (2, 2)):
            log, dump = (self.scratch / f"{kind}{ranks}{accumulate}" for kind in ("losses", "gradients"))
            launcher = [*MPIRUN, "-n", str(ranks)] if ranks > 1 else ()
            given = ["--global-batch", 8, "--steps", 6, "--accumulate", accumulate, "--log-losses", log]
            given += ["--dump-gradients", dump, "--dataset", text, "--vocab", self.folder / "vocab.txt"]
            narrow = settings(NARROW + " dropout=0 packed=false masked=0.3")
            result = run("bert", "--device", "cpu", "--threads", 1, *narrow, *given, launcher=launcher)
            self.assertEqual(result.returncode, 0, result.stderr)
            losses.append([float(line) for line in log.read_text().split()])
            gradients.append(numbers(dump))
        for others, also in zip(losses[1:], gradients[1:], strict=True):
            for one, other in zip(losses[0], others, strict=True):
                self.assertAlmostEqual(one, other, delta=1e-4 * one)
            off = math.dist(gradients[0], also) / math.hypot(*gradients[0])
            self.assertLess(off, 1e-5)

    def test_two_ranks_make_one_token_cache(self):
        cache = self.scratch / "cache"
        words = ["--steps", 1, "--local-batch", 2]
        self.train("distilbert", *words, launcher=[*MPIRUN, "-n", "2"], setting=f"cache={cache}")
        made = sorted(path.name for path in cache.iterdir())
        self.assertEqual([name.split(".")[:3] for name in made], [["wiki", "train", "raw"], ["wiki", "valid", "raw"]])
        times = [path.stat().st_mtime_ns for path in sorted(cache.iterdir())]
        self.train("distilbert", *words, setting=f"cache={cache}")
        self.assertEqual([path.stat().st_mtime_ns for path in sorted(cache.iterdir())], times)

    def test_where_the_token_cache_is_makes_no_other_run(self):
        checkpoint = self.scratch / "checkpoint"
        words = ["--local-batch", 16, "--epochs", 1]
        first, second = (f"cache={self.scratch / name}" for name in ("a", "b"))
        self.train("distilbert", *words, "--steps", 2, "--checkpoint", checkpoint, setting=first)
        result = self.train("distilbert", *words, "--steps", 4, "--resume", checkpoint, setting=second)
        self.assertIn("goes on after update 2 of 4", result.stderr)

    def test_marks_carry_tokens_and_the_quality_with_its_direction(self):
        address = str(self.scratch / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as meter:
            meter.bind(address)
            words = ["--samples", 32, "--local-batch", 8, "--epochs", 1]
            self.train("bert", *words, JOULEMARK_SOCKET=address)
            meter.setblocking(False)
            messages = []
            while True:
                try:
                    messages.append(json.loads(meter.recv(65536)))
                except BlockingIOError:
                    break
        ends = {message["name"]: message for message in messages if message["event"] == "end"}
        self.assertEqual(ends["epoch"]["samples"], 32)
        self.assertEqual(ends["epoch"]["tokens"], 32 * 16)
        self.assertEqual(ends["eval"]["quality"]["name"], "masked_accuracy")
        self.assertEqual(ends["eval"]["quality"]["direction"], "higher")

    def test_mlperf_lines_count_the_tokens_and_samples_of_all_ranks(self):
        counts = []
        for launcher in ((), [*MPIRUN, "-n", "2"]):
            # Lines of unequal length: no rank's tokens are half of all.
            text = self.scratch / "uneven.txt"
            text.write_text("".join(" ".join(["kaa"] * (1 + i % 11)) + "\n" for i in range(35)))
            words = ["--device", "cpu", "--threads", 1, "--dataset", text, "--vocab", self.folder / "vocab.txt"]
            words += ["--mllog", "--global-batch", 8, "--epochs", 1, *settings(NARROW + " packed=false")]
            result = run("bert", *words, launcher=launcher)
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = [json.loads(line.removeprefix(":::MLLOG ")) for line in result.stdout.splitlines()]
            counts.append({line["key"]: line["metadata"] for line in lines})
        one, two = (each["epoch_stop"] for each in counts)
        for name in ("samples", "tokens", "updates"):
            self.assertEqual(one[name], two[name], name)
        self.assertEqual((one["samples"], one["updates"]), (32, 4))
        self.assertGreater(one["tokens"], 32 * 3)

    def test_weights_go_out_and_come_back_and_those_of_another_model_do_not(self):
        saved, published, again = (self.scratch / f"{name}.safetensors" for name in ("saved", "published", "again"))
        self.train("bert", "--steps", 1, "--local-batch", 2, "--save-weights", saved)
        published.write_bytes(as_first_published(saved.read_bytes()))
        self.train(
            *("bert", "--steps", 1, "--local-batch", 2, "--lr", 0),
            *("--weights", published, "--save-weights", again),
        )
        self.assertEqual(again.read_bytes(), saved.read_bytes())
        self.assert_refused("distilbert", "--weights", saved, parts=("missing: distilbert.embeddings",))

    def assert_refused(self, model, *words, dataset=None, setting="", parts=()):
        common = ["--device", "cpu", "--dataset", dataset or self.folder, *settings(NARROW + " " + setting)]
        result = run(model, *common, *words)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def test_says_what_is_wrong_with_a_text_or_a_vocabulary(self):
        vocab = ["--vocab", self.folder / "vocab.txt"]
        text = self.scratch / "text.txt"
        for content, parts in (
            ("fine\ncaf\u00e9\n".encode("latin-1"), (str(text), "not UTF-8", "0xE9 at offset 8")),
            ("kaa kao".encode("utf-16"), ("is in UTF-16, not in UTF-8", "iconv -f UTF-16 ")),
            ("kaa kao".encode("utf-16-be"), ("is in UTF-16BE", "iconv -f UTF-16BE ")),
            ("kaa kao".encode("utf-16-le"), ("is in UTF-16LE", "iconv -f UTF-16LE ")),
            ("kaa \u6f22".encode()[:-1], ("cut off inside a character, at offset 4",)),
            (b"kaa kaa kaa\0kao", ("a byte 0 at offset 11",)),
            (b"", ("is empty",)),
            (b"kaa kao\n", ("less than one sequence of 16",)),
        ):
            text.write_bytes(content)
            self.assert_refused("bert", *vocab, dataset=text, parts=parts)
        text.write_text(self.text)
        self.assert_refused("bert", dataset=text, parts=("needs a vocabulary", "make-vocab"))
        self.assert_refused("bert", *vocab, dataset=self.scratch / "none", parts=("there is no text",))
        self.assert_refused("bert", *vocab, dataset=self.scratch, parts=("holds no text",))
        without_mask = self.scratch / "vocab.txt"
        without_mask.write_text((self.folder / "vocab.txt").read_text().replace("[MASK]\n", ""))
        self.assert_refused("bert", "--vocab", without_mask, parts=(str(without_mask), "has no [MASK]"))

    def test_says_what_is_wrong_with_a_setting(self):
        self.assert_refused("bert", setting="width=3", parts=("no setting 'width'",))
        result = run("bert", *settings("hidden=32 heads=3"))
        self.assertIn("hidden=32 cannot be divided among heads=3", result.stderr)
        result = run("distilbert", *settings("length=600"))
        self.assertIn("longer than the model's 512 positions", result.stderr)
        self.assert_refused("distilbert", setting="vocabulary=20", parts=("vocabulary=20",))
        result = run("distilbert", "--vocab", self.folder / "vocab.txt")
        self.assertIn("of no use without a text", result.stderr)

    def test_refuses_a_vocabulary_size_below_the_texts_characters(self):
        result = run("make-vocab", self.folder / "wiki.train.raw", "--size", 16, "-o", self.scratch / "v")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, "cannot hold the text's 8 characters")


if __name__ == "__main__":
    unittest.main()

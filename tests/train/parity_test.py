# SPDX-License-Identifier: Apache-2.0
"""joulemark-parity notices what it is there to notice, and names what does not fit."""

import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["JOULEMARK_BUILD"]) / "tests" / "joulemark-parity"
FIXTURE = pathlib.Path(os.environ["JOULEMARK_SOURCE"]) / "tests/reference/fixtures/unet.safetensors"

CAPTURED = {"capture_output": True, "text": True, "timeout": 60}


class Parity(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name) / "fixture.safetensors"
        content = FIXTURE.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        self.header = json.loads(content[8 : 8 + length])
        self.data = bytearray(content[8 + length :])

    def check(self, *options, **variables):
        header = json.dumps(self.header).encode()
        self.path.write_bytes(struct.pack("<Q", len(header)) + header + self.data)
        return subprocess.run([PROGRAM, self.path, *options], env={**os.environ, **variables}, **CAPTURED)

    def scale(self, name, factor):
        """Multiplies the first number of a tensor."""
        code = {"F32": "<f", "F64": "<d"}[self.header[name]["dtype"]]
        begin = self.header[name]["data_offsets"][0]
        (value,) = struct.unpack_from(code, self.data, begin)
        struct.pack_into(code, self.data, begin, value * factor)

    def assert_differs(self, *options, name):
        result = self.check(*options)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("DIFFERS", result.stdout)
        self.assertIn(name, result.stdout)

    def test_the_fixture_agrees(self):
        result = self.check()
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("agrees", result.stdout)

    def test_a_gradient_that_is_off_is_found(self):
        self.scale("gradient.down.1.conv2.weight", 1 + 1e-5)
        self.assert_differs(name="(down.1.conv2.weight)")
        self.assertEqual(self.check("--dtype", "fp32").returncode, 0)  # within fp32's limit
        self.scale("gradient.down.1.conv2.weight", 1.5)
        self.assert_differs("--dtype", "fp32", name="(down.1.conv2.weight)")

    def test_a_gradient_that_is_no_number_stays_the_worst(self):
        names = [name for name in self.header if name.startswith("gradient.")]
        for name in (names[0], names[-1]):
            with self.subTest(name):
                self.setUp()
                self.scale(name, math.nan)
                self.assert_differs(name="worst gradient nan (" + name.removeprefix("gradient.") + ")")

    def test_a_weight_or_an_input_that_is_off_is_found(self):
        self.scale("weight.up.0.weight", 1.001)
        self.assert_differs(name="worst gradient")
        self.scale("weight.up.0.weight", 1 / 1.001)
        self.scale("input.seen", 1.001)
        self.assert_differs(name="worst gradient")

    def test_a_gpu_that_is_not_there_is_said(self):
        result = self.check("--device", "cuda", CUDA_VISIBLE_DEVICES="")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("no GPU is usable here", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_every_name_and_shape_must_match(self):
        for rename, sentence in (
            ("weight.head.bias", "missing: head.bias; not part of this model: no.such"),
            ("gradient.head.bias", "has no gradient of head.bias"),
        ):
            self.setUp()
            self.header[rename.partition(".")[0] + ".no.such"] = self.header.pop(rename)
            result = self.check()
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(sentence, result.stderr)
        self.setUp()
        self.header["__metadata__"]["settings"] = "inputs=3 outputs=2 width=8 depth=2"
        self.assertIn("down.0.conv1.weight is [4, 3, 3, 3] instead of [8, 3, 3, 3]", self.check().stderr)
        self.header["__metadata__"]["model"] = "unknown"
        self.assertIn("'unknown', which is not in the table", self.check().stderr)


if __name__ == "__main__":
    unittest.main()

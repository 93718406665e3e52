# SPDX-License-Identifier: Apache-2.0
"""`joulemark report`: one file from a results directory, and one sentence where there can be none."""

import base64
import gzip
import json
import os
import re
import subprocess
import tempfile
import unittest

JOULEMARK = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark")


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.results = os.path.join(cls.folder.name, "results")
        for name in ("plain", "</script><b>"):
            subprocess.run([JOULEMARK, "run", "-o", cls.results, "--name", name, "--rate", "20", "--", "sleep", "0.5"],
                           check=True, capture_output=True)

    def report(self, *words):
        return subprocess.run([JOULEMARK, "report", *words], capture_output=True, text=True, timeout=60)

    def refused(self, code, *words):
        done = self.report(*words)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def written(self):
        path = os.path.join(self.folder.name, "report.html")
        done = self.report(self.results, "-f", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), path)
        with open(path) as file:
            return file.read()

    def element(self, page, name):
        return re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', page, re.DOTALL)[1]

    def test_the_document_in_the_page_is_the_analysis(self):
        page = self.written()
        model = json.loads(self.element(page, "joulemark-model"))
        analysis = json.loads(subprocess.run([JOULEMARK, "analyze", self.results, "--json"], check=True,
                                             capture_output=True, text=True).stdout)
        self.assertEqual(model["analysis"], analysis)
        self.assertEqual(len(model["analysis"]["runs"]), 2)
        self.assertEqual(len(model["environment"]["machines"]), 1)
        self.assertEqual(model["generated"]["source"], "results")
        self.assertIsNone(model["study"])
        self.assertNotIn("</script><b>", page)

    def test_every_run_brings_its_traces(self):
        page = self.written()
        model = json.loads(self.element(page, "joulemark-model"))
        self.assertEqual({index["run"] for index in model["traces"]}, {run["run"] for run in model["analysis"]["runs"]})
        for index in model["traces"]:
            series = json.loads(gzip.decompress(base64.b64decode(self.element(page, index["block"]))))
            self.assertEqual(len(series), len(index["series"]))
            for one in series:
                self.assertEqual(len(one["time_s"]), len(one["mean"]))
                self.assertEqual(one["time_s"], sorted(one["time_s"]))

    def test_the_page_can_ask_for_nothing(self):
        page = self.written()
        self.assertIn("default-src 'none'", page)
        self.assertIsNone(re.search(r"<(link|iframe|img|object|embed)\b[^>]*(src|href)=", page.split("<body>")[0]))

    def test_refusals_are_one_sentence(self):
        self.assertIn("DIR", self.refused(2))
        self.refused(2, os.path.join(self.folder.name, "nowhere"))
        self.assertIn("no such folder", self.refused(2, self.results, "-f", "/no such folder/report.html"))
        self.refused(2, self.results, "-f", self.folder.name)
        self.assertIn("/proc/report.html", self.refused(3, self.results, "-f", "/proc/report.html"))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""A whole study from the outside: sweep on simulated GPUs, analyze, report, export. What was put in must come out."""
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["JOULEMARK_BIN"])

TRUTH = {"gpu_exponent": 0.85, "cap_exponent": 0.6, "clock_exponent": 0.5}
STUDY = f"""
study: chain
repeats: 4
order: random
seed: 5
workload: {{model: simulated, epochs: 3, warmup_epochs: 1, samples: 1281167}}
factors:
  gpus: [2, 4, 8, 16]
  power_cap_w: [100, 150, 200, 250]
  sm_clock_mhz: [375, 885, 1380]
  local_batch: [128]
design: one-factor
baseline: {{gpus: 4, power_cap_w: 250, sm_clock_mhz: 1380}}
launcher: local
simulation: {{accelerator: V100, gpus_per_node: 2, seed: 11, truth: {json.dumps(TRUTH)}}}
rate_hz: 0.2
"""


def joulemark(*words, status=0):
    result = subprocess.run([BIN / "joulemark", *map(str, words)], text=True, capture_output=True, timeout=200)
    if result.returncode != status:
        raise AssertionError(f"joulemark {words} gave {result.returncode}: {result.stderr}")
    return result


class Chain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.temporary.name)
        cls.out = folder / "out"
        (folder / "study.yaml").write_text(STUDY)
        joulemark("sweep", folder / "study.yaml", "-o", cls.out, "--quiet")
        cls.document = json.loads(joulemark("analyze", cls.out, "--json").stdout)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def law(self, factor):
        (law,) = [law for law in self.document["laws"]
                  if law["response"] == "epoch_time_s" and law["factor"] == factor and law["form"] == "power"]
        return law

    def test_every_injected_exponent_lies_in_its_interval(self):
        for factor, key in (("gpus", "gpu_exponent"), ("power_cap_w", "cap_exponent"), ("sm_clock_mhz", "clock_exponent")):
            exponent = self.law(factor)["parameters"]["b"]
            low, high = exponent["ci95"]
            self.assertLessEqual(low, -TRUTH[key], factor)
            self.assertGreaterEqual(high, -TRUTH[key], factor)
            self.assertLess(high - low, 0.25 * TRUTH[key], factor)

    def test_prefactors_have_intervals_around_them(self):
        for law in self.document["laws"]:
            for name, parameter in law["parameters"].items():
                if parameter["ci95"] is not None:
                    low, high = parameter["ci95"]
                    self.assertTrue(low <= parameter["value"] <= high, (law["form"], name, parameter))

    def test_all_runs_are_ok_simulated_and_complete(self):
        runs = self.document["runs"]
        self.assertEqual(len(runs), 4 * (4 + 3 + 2))
        for run in runs:
            self.assertEqual(run["status"], "ok")
            self.assertTrue(run["simulated"])
            self.assertAlmostEqual(run["energy_counter_j"] / run["energy_integrated_j"], 1, delta=0.03)
            # The identity that the report states: kWh per GPU hour is the mean total power per GPU.
            self.assertAlmostEqual(run["energy_per_gpu_hour_kwh"] * 1000,
                                   run["energy_j"] / (run["gpu_hours"] * 3600), delta=1e-6)

    def test_three_gpu_levels_make_a_law_and_two_do_not(self):
        few = [law for law in self.document["laws"] if law["n_levels"] < 3]
        for law in few:
            self.assertIsNone(law["form"])
        self.assertEqual(self.law("sm_clock_mhz")["n_levels"], 3)
        forms = {law["form"] for law in self.document["laws"] if law["factor"] == "gpus"}
        self.assertNotIn("power_floor", forms, "four levels are too few for three parameters")

    def test_the_protocols_output_is_exported(self):
        folder = self.out / "exported"
        joulemark("export", self.out, "--format", "csv", "-d", folder)
        with open(folder / "epochs.csv", newline="") as file:
            epochs = list(csv.DictReader(file))
        self.assertEqual(len(epochs), 36 * 3)
        with open(folder / "timeseries.csv", newline="") as file:
            row = next(csv.DictReader(file))
        for column in ("time_s", "power_w", "gpu_memory_util_pct", "gpu_busy_pct", "sm_util_pct"):
            self.assertIn(column, row)

    def test_a_second_call_has_nothing_to_do(self):
        again = joulemark("sweep", self.out.parent / "study.yaml", "-o", self.out)
        self.assertIn("36 of 36 runs done", again.stderr)


class Cut(unittest.TestCase):
    def test_a_killed_meter_leaves_a_run_that_analyze_calls_cut(self):
        with tempfile.TemporaryDirectory() as folder:
            metered = subprocess.Popen([BIN / "joulemark", "run", "-o", folder, "--", sys.executable, "-c",
                                        "import time; time.sleep(4)"], stderr=subprocess.DEVNULL)
            time.sleep(2.5)
            metered.send_signal(signal.SIGKILL)
            metered.wait()
            document = json.loads(joulemark("analyze", folder, "--json").stdout)
            (run,) = document["runs"]
            self.assertEqual(run["status"], "cut")
            self.assertIn("cut", {warning["code"] for warning in document["warnings"]})
            self.assertEqual(document["configurations"], [])
            shown = joulemark("show", folder).stdout
            self.assertIn("cut", shown)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""joulemark show, export and analyze say the same of every run, or all of them nothing."""

import csv
import glob
import json
import math
import os
import shutil
import subprocess
import tempfile
import unittest

BIN = os.environ["JOULEMARK_BIN"]
JOULEMARK = os.path.join(BIN, "joulemark")
SIMULATOR = os.path.join(BIN, "joulemark-sim")
FIXTURE = os.path.join(os.environ["JOULEMARK_SOURCE"], "tests", "fixtures", "store", "runs")
SHARED = ("energy_j", "mean_power_w", "wall_time_s", "joule_per_sample")
EXPORTED = ("gpu_hours", "training_speed_s")
NO_SENSOR = [word for sensor in ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage",
                                 "NVML_FI_DEV_POWER_INSTANT") for word in ("--fault", f"not-supported:{sensor}#1")]


class Agreement(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="joulemark-e2e-")
        self.addCleanup(self.folder.cleanup)
        self.dir = os.path.join(self.folder.name, "results")
        self.state = os.path.join(self.folder.name, "gpus.sim")
        self.environment = {
            **os.environ,
            "JOULEMARK_NVML": os.path.join(os.environ["JOULEMARK_BUILD"], "sim", "libnvidia-ml.so.1"),
            "JOULEMARK_CONTROL_DIR": os.path.join(self.folder.name, "control"),
        }
        for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "JOULEMARK_SIM"):
            self.environment.pop(name, None)

    def good(self, *words, **variables):
        done = subprocess.run(words, capture_output=True, text=True, timeout=100, env={**self.environment, **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def simulated(self, name, *faults):
        """A run of three epochs, the first of them warm-up, on two GPUs; returns what the meter said at its end."""
        self.good(SIMULATOR, "create", self.state, "--gpus", "2", *faults)
        told = self.good(JOULEMARK, "run", "-o", self.dir, "--run-id", name, "--", SIMULATOR, "train", "--epochs", "3",
                         JOULEMARK_SIM=self.state).stderr
        with self.document(name) as document:
            document["factors"] = {"warmup_epochs": 1}
        return told

    def fixture(self, name):
        shutil.copytree(os.path.join(FIXTURE, "pair"), os.path.join(self.dir, "runs", name))
        for host in ("node-a", "node-b"):
            with self.document(name, host) as document:
                document.update(run=name, boot_id=f"{name} {host}")  # else it were a copy

    def document(self, run, host="*"):
        path, = glob.glob(os.path.join(self.dir, "runs", run, host, "run.json"))
        return Document(path)

    def agreed(self):
        """What all three say of each run, by its name; each number is there in all of them or in none."""
        shown = json.loads(self.good(JOULEMARK, "show", self.dir, "--json").stdout)["runs"]
        analysed = json.loads(self.good(JOULEMARK, "analyze", self.dir, "--json").stdout)["runs"]
        self.good(JOULEMARK, "export", self.dir)
        with open(os.path.join(self.dir, "export", "runs.csv"), newline="") as file:
            exported = {row["run"]: row for row in csv.DictReader(file)}
        self.analysed = {run["run"]: run for run in analysed}
        self.assertEqual({run["run"] for run in shown}, set(self.analysed))
        self.assertEqual(set(exported), set(self.analysed))
        for run in shown:
            name, command = run["run"], run.get("command", {})
            for key in SHARED + EXPORTED:
                expected = self.analysed[name].get(key)
                with self.subTest(run=name, key=key):
                    self.same(expected, float(exported[name][key]) if exported[name][key] else None)
                    if key in SHARED:
                        self.same(expected, command.get(key))
            with self.subTest(run=name, key="bound"):
                for bound in (command.get("energy_bound_j"), exported[name]["energy_bound_j"] or None):
                    self.assertTrue(bound is None or command.get("energy_j") is not None, "a bound of no energy")
            self.assertEqual(run["epochs"], int(exported[name]["epochs"]))
        filled = {name: {key: cell for key, cell in row.items() if cell} for name, row in exported.items()}
        return {run["run"]: {**filled[run["run"]], **run.get("command", {})} for run in shown}

    def same(self, expected, found):
        self.assertEqual(expected is None, found is None, f"{expected} and {found}")
        self.assertTrue(expected is None or math.isclose(expected, found, rel_tol=1e-9), f"{expected} and {found}")

    def text(self, name):
        return self.good(JOULEMARK, "show", self.dir, name).stdout

    def test_gpus_with_and_without_energy(self):
        self.simulated("whole")
        self.assertIn("GPU (gpu1 told none)", self.simulated("partly", *NO_SENSOR))
        runs = self.agreed()
        self.assertGreater(runs["whole"]["energy_j"], 0)
        self.assertGreater(runs["whole"]["joule_per_sample"], 0)
        self.assertNotIn("energy_j", runs["partly"])
        self.assertGreater(float(runs["partly"]["gpu_energy_j"]), 0)
        self.assertEqual(runs["partly"]["gpus_without_energy"], "1")
        self.assertRegex(self.text("partly"), r"no total: partly measured: gpu")
        self.assertRegex(self.good(JOULEMARK, "show", self.dir).stdout, r"(?m)^partly .* partly measured: gpu")

    def test_a_sweep_says_that_it_knows_a_part(self):
        self.good(SIMULATOR, "create", self.state, "--gpus", "2", *NO_SENSOR)
        path = os.path.join(self.folder.name, "study.yaml")
        with open(path, "w") as file:
            file.write(f"study: s\nlauncher: local\nfactors: {{gpus: [2]}}\nworkload: {{command: [{SIMULATOR}, train]}}\n")
        told = self.good(JOULEMARK, "sweep", path, "-o", self.dir, JOULEMARK_SIM=self.state).stderr
        self.assertRegex(told, r"\[1/1\] .*, at least [0-9.]+ Wh \(simulated\); 1 of 1 runs done\n")
        (run,) = self.agreed().values()
        self.assertNotIn("energy_j", run)

    def test_an_estimated_processor(self):
        self.good(JOULEMARK, "run", "-o", self.dir, "--run-id", "estimate", "--estimate", "cpu", "--", "sleep", "0.5",
                  JOULEMARK_CPU_RATED_W="100")
        run = self.agreed()["estimate"]
        self.assertEqual((run["energy_components"], run["energy_method"]), ("cpu", "estimated"))

    def test_a_missing_host(self):
        self.fixture("both")
        self.fixture("one")
        self.fixture("unmarked")
        shutil.rmtree(os.path.join(self.dir, "runs", "one", "node-b"))
        os.remove(os.path.join(self.dir, "runs", "unmarked", "node-b", "regions.csv"))
        runs = self.agreed()
        self.assertEqual((runs["both"]["energy_j"], runs["unmarked"]["energy_j"]), (3500, 3500))
        self.assertNotIn("energy_j", runs["one"])
        self.assertIn("gpu_energy_j", runs["one"])
        self.assertIn("no total: a host is missing; measured: ", self.text("one"))
        for name, why, regions in (("one", "a host is missing", 3), ("unmarked", "not on every host", 2)):
            found = json.loads(self.good(JOULEMARK, "show", self.dir, name, "--json").stdout)["regions"]
            lacking = [region for region in found if region.get("no_total") == why]
            self.assertEqual(len(lacking), regions)
            for region in lacking:
                self.assertFalse({"energy_j", "energy_bound_j", "mean_power_w", "joule_per_sample"} & set(region))
            self.assertRegex(self.text(name), f"epoch 0 .*{why}")

    def test_a_module_contains_its_processor(self):
        self.fixture("module")
        with self.document("module", "node-a") as document:
            for source in document["sources"]:
                source["scope"] = source["scope"].replace("gpu board", "gpu module")
        run = self.agreed()["module"]
        self.assertEqual(run["energy_j"], float(run["gpu_energy_j"]))
        self.assertGreater(float(run["cpu_energy_j"]), 0)
        self.assertEqual(run["energy_components"], "gpu")

    def test_damaged_and_cut_runs(self):
        shutil.copytree(FIXTURE, os.path.join(self.dir, "runs"))
        self.agreed()

    def test_rows_of_a_table(self):
        path = os.path.join(self.folder.name, "table.csv")
        with open(path, "w") as file:
            file.write("gpus,epochs,samples,energy_kwh,gpu_hours,epoch_time_s,mean_power_w\n"
                       "4,90,1000,2.5,8,,\n"    # gives a wall time
                       "1,,1000,2.5,,,\n"       # does not
                       "2,,1000,,,100,300\n"    # is of an epoch
                       "2,10,1000,,,100,300\n"
                       ",10,,,3,,300\n")
        self.good(JOULEMARK, "import", path, "-o", self.dir)
        runs = list(self.agreed().values())
        self.assertEqual([run.get("wall_time_s") for run in runs], [7200, None, 100, 1000, None])
        self.assertEqual(runs[3]["energy_j"], 300 * 1000)


class Document:
    """A JSON file to change in a with statement."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        with open(self.path) as file:
            self.content = json.load(file)
        return self.content

    def __exit__(self, *_):
        with open(self.path, "w") as file:
            json.dump(self.content, file)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""joulemark doctor on fixture trees: chosen and refused sources with reasons and remedies, and no zero."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

JOULEMARK = pathlib.Path(os.environ["JOULEMARK_BIN"]) / "joulemark"
SIMULATOR = pathlib.Path(os.environ["JOULEMARK_BIN"]) / "joulemark-sim"
LOOK_ALIKE = pathlib.Path(os.environ["JOULEMARK_BUILD"]) / "sim" / "libnvidia-ml.so.1"
TREES = pathlib.Path(os.environ["JOULEMARK_SOURCE"]) / "tests" / "fixtures" / "sysfs"


def doctor(*options, tree=None, **environment):
    environment = {"PATH": os.environ["PATH"], "JOULEMARK_NVML": "/nonexistent/libnvidia-ml.so.1", **environment}
    root = ["--root", str(TREES / tree)] if tree else []
    return subprocess.run([JOULEMARK, "doctor", *options, *root], env=environment, capture_output=True, text=True)


def document(tree=None, **environment):
    result = doctor("--json", tree=tree, **environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def by_status(report, status):
    return {(s["name"], s["quantity"]): s for s in report["sensors"] if s["status"] == status}


class Doctor(unittest.TestCase):
    def test_every_tree_gives_reasons_and_keys_of_the_contract(self):
        keys = {"name", "quantity", "scope", "method", "unit", "status", "reason", "remedy", "update_period_s",
                "read_latency_s"}
        for tree in sorted(path.name for path in TREES.iterdir()):
            with self.subTest(tree):
                report = document(tree)
                self.assertTrue(report["sensors"])
                for sensor in report["sensors"]:
                    self.assertEqual(keys, set(sensor))
                    self.assertIn(sensor["status"], ("used", "available", "unavailable"))
                    self.assertTrue(sensor["reason"], sensor)
                    self.assertNotIn(0, (sensor["update_period_s"],))
                    if sensor["status"] == "used":
                        self.assertGreater(sensor["read_latency_s"], 0)
                    else:
                        self.assertIsNone(sensor["read_latency_s"])

    def test_packages_and_dram_are_used_and_what_they_contain_is_not(self):
        report = document("intel_psys")
        used = by_status(report, "used")
        self.assertIn(("rapl cpu0", "energy"), used)
        self.assertIn(("rapl dram0", "energy"), used)
        refused = by_status(report, "available")
        self.assertIn("contained", refused["rapl core of package-0", "energy"]["reason"])
        self.assertIn("contains", refused["rapl psys", "energy"]["reason"])

    def test_a_broken_zone_is_named_and_the_others_are_used(self):
        report = document("one_zone_broken")
        self.assertIn("intel-rapl:0/energy_uj", by_status(report, "unavailable")["rapl package-0", "energy"]["reason"])
        self.assertIn(("rapl cpu1", "energy"), by_status(report, "used"))
        self.assertTrue(any("package-0" in warning for warning in report["warnings"]))

    def test_no_gpu_and_no_sensor_is_not_an_error(self):
        report = document("nothing")
        self.assertEqual({}, by_status(report, "used"))
        unavailable = by_status(report, "unavailable")
        self.assertIn("cannot be loaded", unavailable["nvml", "energy"]["reason"])
        self.assertTrue(unavailable["nvml", "energy"]["remedy"])
        self.assertEqual([], report["controls"])

    def test_people_read_not_available_and_no_zero(self):
        result = doctor(tree="virtual_machine")
        self.assertEqual(0, result.returncode)
        self.assertIn("N/A: this is a virtual machine", result.stdout)
        self.assertNotRegex(result.stdout, r"\b0(\.0+)? ?(W|J|kWh)\b")
        self.assertEqual("", result.stderr)

    def test_launchers_are_listed(self):
        launchers = {launcher["name"]: launcher for launcher in document("nothing")["launchers"]}
        self.assertEqual({"local", "mpirun", "slurm"}, set(launchers))
        self.assertEqual("available", launchers["local"]["status"])
        without = {launcher["name"]: launcher for launcher in document("nothing", PATH="/nonexistent")["launchers"]}
        self.assertEqual("unavailable", without["mpirun"]["status"])

    def test_bad_options_are_one_sentence(self):
        for options in (["--root", "/nonexistent"], ["--what"]):
            result = doctor(*options)
            self.assertEqual(2, result.returncode)
            self.assertEqual(1, len(result.stderr.splitlines()), result.stderr)

    def test_help_has_an_example(self):
        result = doctor("--help")
        self.assertEqual(0, result.returncode)
        self.assertIn("Example:", result.stdout)


class SimulatedGpus(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def document(self, *options, **environment):
        state = pathlib.Path(self.directory.name) / "gpus.sim"
        subprocess.run([SIMULATOR, "create", state, *options], check=True, capture_output=True)
        return document("nothing", JOULEMARK_NVML=str(LOOK_ALIKE), JOULEMARK_SIM=str(state), **environment)

    def test_every_number_is_marked_and_the_refresh_is_found(self):
        report = self.document("--accelerator", "H200", "--gpus", "2")
        self.assertTrue(report["simulated"])
        used = by_status(report, "used")
        for sensor in used.values():
            self.assertEqual("simulated", sensor["method"])
        for gpu in ("gpu0", "gpu1"):
            self.assertAlmostEqual(0.1, used[f"nvml.energy {gpu}", "energy"]["update_period_s"], delta=0.02)
        controls = {control["name"]: control for control in report["controls"]}
        self.assertEqual((200, 700), (controls["power_cap_w gpu1"]["minimum"], controls["power_cap_w gpu1"]["maximum"]))

    def test_a_lost_gpu_costs_only_itself(self):
        report = self.document("--accelerator", "H200", "--gpus", "4", "--fault", "gpu-lost#2")
        used = by_status(report, "used")
        self.assertEqual({"gpu0", "gpu1", "gpu3"}, {name.split()[1] for name, _ in used})
        self.assertTrue(any("gpu2" in warning for warning in report["warnings"]))

    def test_a_gpu_without_a_counter_says_that_power_is_integrated(self):
        report = self.document("--fault", "not-supported:nvmlDeviceGetTotalEnergyConsumption")
        self.assertIn("integral", by_status(report, "unavailable")["nvml.energy gpu0", "energy"]["reason"])
        self.assertIn(("nvml gpu0", "power"), by_status(report, "used"))

    def test_mig_is_flagged(self):
        report = self.document("--accelerator", "A100", "--fault", "mig")
        self.assertTrue(any("MIG" in warning for warning in report["warnings"]))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""`joulemark run` on simulated GPUs, whose true energy is known."""

import csv
import glob
import json
import os
import resource
import signal
import subprocess
import tempfile
import unittest

BIN = os.environ["JOULEMARK_BIN"]
JOULEMARK = os.path.join(BIN, "joulemark")
SIMULATOR = os.path.join(BIN, "joulemark-sim")


def table(path):
    with open(path, newline="") as file:
        text = file.read()
    return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))


class SimulatedRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.state = os.path.join(self.folder.name, "gpus.sim")
        self.results = os.path.join(self.folder.name, "results")
        self.environment = {
            **os.environ,
            "JOULEMARK_NVML": os.path.join(os.environ["JOULEMARK_BUILD"], "sim", "libnvidia-ml.so.1"),
            "JOULEMARK_SIM": self.state,
            "JOULEMARK_CONTROL_DIR": os.path.join(self.folder.name, "control"),
        }
        for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
            self.environment.pop(name, None)

    def create(self, *options):
        subprocess.run([SIMULATOR, "create", self.state, *options], check=True, capture_output=True)

    def metered(self, *words, options=(), **variables):
        return subprocess.run(
            [JOULEMARK, "run", "-o", self.results, *options, "--", *words],
            capture_output=True, text=True, timeout=100, env={**self.environment, **variables})

    def file(self, name):
        (path,) = glob.glob(os.path.join(self.results, "runs", "*", "*", name))
        return path

    def document(self, name):
        with open(self.file(name)) as file:
            return json.load(file)

    def truth(self, start_ns, end_ns):
        """True energy of each GPU between two instants, by the simulator."""
        words = [SIMULATOR, "show", self.state, "--json", "--from-ns", str(start_ns), "--to-ns", str(end_ns)]
        shown = subprocess.run(words, check=True, capture_output=True, text=True)
        return [gpu["energy_j"] for gpu in json.loads(shown.stdout)["gpus"]]

    def edges(self, name):
        return [int(r["time_ns"]) for r in table(self.file("regions.csv")) if r["name"] == name]

    def counter(self, device):
        return [(int(r["time_ns"]), float(r["energy_j"]))
                for r in table(self.file("gpu.csv")) if r["device"] == device and r["energy_j"]]

    @unittest.skipIf(os.environ.get("JOULEMARK_SANITIZED") == "ON", "a sanitizer maps more than any limit allows")
    def test_a_meter_without_room_says_so_and_starts_nothing(self):
        self.create("--gpus", "2")
        ran = os.path.join(self.folder.name, "ran")
        statuses = set()
        for mib in range(0, 1200, 40):
            def limit():
                resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.RLIM_INFINITY))  # each thread's
                resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

            try:
                subprocess.run([JOULEMARK, "--version"], capture_output=True, preexec_fn=limit, check=True)
            except (OSError, subprocess.CalledProcessError):
                continue  # the program itself does not fit
            done = subprocess.run([JOULEMARK, "run", "-q", "-o", self.results, "--run-id", str(mib), "--", "touch", ran],
                                  capture_output=True, text=True, timeout=100, env=self.environment, preexec_fn=limit)
            with self.subTest(mib=mib):
                self.assertIn(done.returncode, (0, 125), done.stderr)
                self.assertEqual(os.path.exists(ran), done.returncode == 0)
                if done.returncode == 125:
                    self.assertRegex(done.stderr, r"\Ajoulemark: the meter cannot start: [^\n]+\n\Z")
            statuses.add(done.returncode)
            if os.path.exists(ran):
                os.remove(ran)
        if statuses:
            self.assertEqual(statuses, {0, 125})

    def test_as_many_gpus_as_can_be_made_have_room_at_the_clock(self):
        for gpus in ("256", "512"):
            self.create("--accelerator", "H100", "--gpus", gpus)
            done = self.metered("true")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_hours_pass_in_seconds_and_the_counter_agrees(self):
        self.create("--accelerator", "H100", "--gpus", "2")
        done = self.metered(SIMULATOR, "work", "--seconds", "7200", "--power-w", "500", options=["--rate", "1"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("simulated", done.stderr)
        start, end = self.edges("joulemark.command")
        self.assertEqual(end - start, 7200 * 10**9)
        true = self.truth(start, end)
        for gpu in range(2):
            readings = self.counter(f"gpu{gpu}")
            self.assertLessEqual(readings[0][0], start)
            self.assertGreaterEqual(readings[-1][0], end)
            self.assertAlmostEqual((readings[-1][1] - readings[0][1]) / true[gpu], 1, delta=1e-3)
        self.assertTrue(self.document("run.json")["simulated"])
        self.assertEqual(self.document("run.json")["clock"], "simulated")
        end_json = self.document("end.json")
        self.assertEqual(end_json["meter"]["lost"], 0)
        self.assertEqual(end_json["meter"]["late"], 0)

    def test_a_dead_counter_and_a_lost_gpu_are_not_told_as_the_energy(self):
        self.create("--accelerator", "H100", "--gpus", "2",
                    "--fault", "counter-freeze@20#0", "--fault", "gpu-lost@100#1")
        done = self.metered(SIMULATOR, "work", "--seconds", "300", "--power-w", "500")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the counter of gpu0 stood still", done.stderr)
        self.assertRegex(done.stderr, r"GPU +at least \S+ Wh")
        (warning,) = [w for w in self.document("end.json")["warnings"] if w.startswith("gpu1 was read for ")]
        self.assertIn(f"warning  {warning}\n", done.stderr)

    def test_edges_are_the_very_instants_of_the_marks(self):
        self.create("--accelerator", "A100", "--gpus", "1")
        done = self.metered(SIMULATOR, "train", "--epochs", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        edges = self.edges("epoch")
        self.assertEqual(len(edges), 6)
        self.assertEqual(edges[2], edges[1])
        self.assertEqual(edges[4], edges[3])
        # A sample of the fast and of the slow sources at each of them.
        rows = table(self.file("gpu.csv"))
        power = {int(r["time_ns"]) for r in rows if r["power_w"]}
        energy = {int(r["time_ns"]) for r in rows if r["energy_j"]}
        for edge in edges:
            self.assertIn(edge, power)
            self.assertIn(edge, energy)
        self.assertIn("epochs   3, mean", done.stderr)

    def test_samples_stand_on_the_grid_of_simulated_time(self):
        self.create("--accelerator", "V100", "--gpus", "1")
        self.metered(SIMULATOR, "work", "--seconds", "100", "--power-w", "200", options=["--rate", "10"])
        times = [int(r["time_ns"]) for r in table(self.file("gpu.csv")) if r["power_w"]]
        ticks = times[1:-1]
        self.assertGreaterEqual(len(ticks), 999)
        self.assertEqual({b - a for a, b in zip(ticks, ticks[1:])}, {10**8})

    def test_idle_time_passes_without_work(self):
        self.create("--accelerator", "V100", "--gpus", "1")
        done = self.metered("true", options=["--idle-s", "600"])
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("joulemark.idle_before", "joulemark.idle_after"):
            start, end = self.edges(name)
            self.assertEqual(end - start, 600 * 10**9)

    def test_only_the_devices_the_job_may_use(self):
        self.create("--accelerator", "V100", "--gpus", "4")
        self.metered("true", CUDA_VISIBLE_DEVICES="2,1")
        devices = [d["device"] for d in self.document("run.json")["devices"] if d["component"] == "gpu"]
        self.assertEqual(devices, ["gpu1", "gpu2"])
        allocation = self.document("run.json")["allocation"]
        self.assertEqual(allocation["gpus_on_node"], 4)
        self.assertEqual(allocation["gpus_visible"], ["gpu1", "gpu2"])
        self.assertIn("CUDA_VISIBLE_DEVICES", allocation["visibility_source"])

    def test_a_power_cap_holds_while_the_command_runs_and_no_longer(self):
        self.create("--accelerator", "V100", "--gpus", "1")
        show = f"{SIMULATOR} show {self.state} --json"
        limit = lambda text: json.loads(text)["gpus"][0]["power_limit_w"]
        before = limit(subprocess.run(show.split(), capture_output=True, text=True).stdout)
        done = self.metered("sh", "-c", show, options=["--power-cap-w", "150"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(limit(done.stdout), 150)
        self.assertEqual(limit(subprocess.run(show.split(), capture_output=True, text=True).stdout), before)
        run = self.document("run.json")
        self.assertEqual(run["factors"]["power_cap_w"], 150)
        self.assertEqual(run["controls"]["power_cap_w"]["gpu0"]["enforced"], 150)
        self.assertEqual(run["controls"]["power_cap_w"]["gpu0"]["previous"], before)

    def test_a_cap_that_is_not_permitted_is_3_and_starts_nothing(self):
        self.create("--accelerator", "V100", "--gpus", "1", "--deny-controls")
        ran = os.path.join(self.folder.name, "ran")
        done = self.metered("touch", ran, options=["--power-cap-w", "150"])
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"\Ajoulemark: [^\n]+\n\Z")
        self.assertFalse(os.path.exists(ran))

    def test_a_killed_command_lets_time_stand(self):
        self.create("--accelerator", "V100", "--gpus", "1")
        done = self.metered("sh", "-c", f"{SIMULATOR} work --seconds 10 --power-w 200; kill -9 $$")
        self.assertEqual(done.returncode, 128 + signal.SIGKILL)
        start, end = self.edges("joulemark.command")
        self.assertEqual(end - start, 10 * 10**9)


if __name__ == "__main__":
    unittest.main()

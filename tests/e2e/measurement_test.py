#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases from the field that need the whole path from simulated sensor to analysis, and docs/measurement-cases.md."""

import csv
import glob
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import time
import unittest

BIN = os.environ["JOULEMARK_BIN"]
BUILD = os.environ["JOULEMARK_BUILD"]
SOURCE = pathlib.Path(os.environ["JOULEMARK_SOURCE"])
JOULEMARK = os.path.join(BIN, "joulemark")
SIMULATOR = os.path.join(BIN, "joulemark-sim")
NS = 10**9


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Simulated(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="joulemark-e2e-")
        self.addCleanup(self.folder.cleanup)
        self.results = os.path.join(self.folder.name, "results")
        self.state = os.path.join(self.folder.name, "gpus.sim")
        self.environment = {
            **os.environ,
            "JOULEMARK_NVML": os.path.join(BUILD, "sim", "libnvidia-ml.so.1"),
            "JOULEMARK_SIM": self.state,
            "JOULEMARK_CONTROL_DIR": os.path.join(self.folder.name, "control"),
            "JOULEMARK_CALIBRATION": os.path.join(self.folder.name, "state", "calibration.json"),
        }
        for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
            self.environment.pop(name, None)

    def create(self, *options):
        subprocess.run([SIMULATOR, "create", self.state, *options], check=True, capture_output=True)

    def joulemark(self, *words, timeout=300, **variables):
        return subprocess.run([JOULEMARK, *words], capture_output=True, text=True, timeout=timeout,
                              env={**self.environment, **variables})

    def metered(self, *words, options=(), **variables):
        done = self.joulemark("run", "-o", self.results, *options, "--", *words, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def analysis(self):
        done = self.joulemark("analyze", self.results, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def document(self, name):
        (path,) = glob.glob(os.path.join(self.results, "runs", "*", "*", name))
        with open(path) as file:
            return json.load(file)


class ShortRegions(Simulated):
    def test_two_unequal_regions_back_to_back(self):
        self.create("--accelerator", "H200")
        self.metered(SIMULATOR, "bursts", "--burst", "forward=600:0.3", "--burst", "backward=250:0.2", "--repeats",
                     "40", "--vary", "0.1", options=["--energy-rate", "100"])
        document = self.analysis()
        for name, power in (("forward", 600), ("backward", 250)):
            regions = [r for r in document["regions"] if r["name"] == name]
            self.assertEqual(len(regions), 40)
            true = [power * (r["end_ns"] - r["start_ns"]) / NS for r in regions]
            self.assertAlmostEqual(sum(r["energy_j"] for r in regions) / sum(true), 1, delta=0.03)
            attributed = [r["provenance"]["method"] == "attributed" for r in regions]
            self.assertGreaterEqual(sum(attributed), 38)
            inside = [abs(r["energy_j"] - t) <= r["energy_bound_j"] for r, t in zip(regions, true)]
            self.assertGreaterEqual(sum(inside), 36)
            (kind,) = [k for k in document["attributed"] if k["name"] == name]
            self.assertEqual(kind["n"], 40)
            self.assertAlmostEqual(kind["mean_energy_j"] * 40 / sum(true), 1, delta=0.03)
            self.assertAlmostEqual(kind["refresh_s"], 0.1, delta=1e-3)
            self.assertEqual(kind["timing"], "fitted")
        self.assertIn("attributed", self.joulemark("analyze", self.results).stdout)

    def test_calibration_recovers_the_sensor_and_serves_later_runs(self):
        self.create("--accelerator", "H200")
        done = self.joulemark("doctor", "--calibrate", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {row["reading"]: row for row in json.loads(done.stdout)["calibrations"]}["energy_j"]
        self.assertAlmostEqual(found["refresh_s"], 0.1, delta=1e-3)
        self.assertAlmostEqual(found["lag_s"], 0.05, delta=5e-3)
        self.assertAlmostEqual(found["window_s"], 0, delta=1e-2)
        self.metered(SIMULATOR, "bursts", "--burst", "a=500:0.2", "--gap-s", "0.3", "--repeats", "20",
                     options=["--energy-rate", "100"])
        (counter,) = [s for s in self.document("run.json")["sources"] if s["source"] == "nvml.energy"]
        self.assertEqual(counter["calibration"]["energy_j"]["lag_s"], found["lag_s"])
        (kind,) = self.analysis()["attributed"]
        self.assertEqual(kind["timing"], "calibrated")
        self.assertAlmostEqual(kind["mean_energy_j"] / 100, 1, delta=0.03)

    def test_calibration_tells_each_reading_of_each_gpu_apart(self):
        truth = {"energy_j": (0.08, 0.15), "power_w": (0.12, 1.0), "power_instant_w": (0.03, 0.06)}
        self.create("--accelerator", "H200", "--gpus", "2", "--sensors", json.dumps({
            "refresh_s": 0.1, "counter_lag_s": 0.08, "counter_window_s": 0.15, "average_lag_s": 0.12,
            "instant_lag_s": 0.03, "instant_window_s": 0.06}))
        done = self.joulemark("doctor", "--calibrate", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertTrue(document["simulated"])
        found = {row["reading"]: row for row in document["calibrations"]}
        self.assertEqual(found.keys(), truth.keys())
        for reading, (lag_s, window_s) in truth.items():
            with self.subTest(reading=reading):
                row = found[reading]
                self.assertTrue(row["simulated"])
                self.assertEqual(row["device"], "gpu0")
                self.assertAlmostEqual(row["refresh_s"], 0.1, delta=1e-4)
                for name, true in (("lag", lag_s), ("window", window_s)):
                    self.assertAlmostEqual(row[f"{name}_s"], true, delta=5e-4)
                    if reading != "energy_j":
                        self.assertLess(row[f"{name}_bound_s"], 5e-4)
        # The other GPU stood idle: nothing is made up for it.
        self.assertEqual({(row["device"], row["reading"]) for row in document["refused"]},
                         {("gpu1", reading) for reading in truth})
        self.assertTrue(all(row["reason"] for row in document["refused"]))
        with open(self.environment["JOULEMARK_CALIBRATION"]) as file:
            (kept,) = json.load(file).values()
        self.assertEqual(kept.keys(), truth.keys())
        self.metered(SIMULATOR, "work", "--seconds", "5", "--power-w", "300")
        noted = {source["source"]: source["calibration"] for source in self.document("run.json")["sources"]
                 if source["device"] == "gpu0" and "calibration" in source}
        self.assertEqual(noted["nvml.energy"], {"energy_j": kept["energy_j"]})
        self.assertEqual(noted["nvml"], {name: kept[name] for name in ("power_w", "power_instant_w")})
        table = self.joulemark("doctor", "--calibrate")
        self.assertIn("simulated", table.stdout)
        self.assertRegex(table.stdout, r"gpu0 +power_w +100\.00 ")

    def test_sensors_that_cannot_be_simulated_are_refused(self):
        for sensors, part in (('{"counter": 1}', '"counter"'), ('{"instant_window_s": 0}', '"instant_window_s"'),
                              ("no json", "--sensors")):
            done = subprocess.run([SIMULATOR, "create", self.state, "--sensors", sensors], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"\Ajoulemark-sim: [^\n]+\n\Z")
            self.assertIn(part, done.stderr)

    def test_calibration_without_a_load_is_one_sentence(self):
        self.create("--accelerator", "H200")
        done = self.joulemark("doctor", "--calibrate", "--", "true")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"\Ajoulemark: [^\n]+\n\Z")
        done = self.joulemark("doctor", "--calibrate", JOULEMARK_SIM="", JOULEMARK_NVML="/nonexistent")
        self.assertIn(done.returncode, (2, 3))
        self.assertRegex(done.stderr, r"\Ajoulemark: [^\n]+\n\Z")


class Imported(Simulated):
    def write(self, name, header, rows):
        with open(os.path.join(self.folder.name, "log", name), "w", newline="") as file:
            csv.writer(file).writerows([header, *rows])

    def test_a_recording_of_another_tool_takes_the_same_path(self):
        idle_w, busy_w, lag_s, refresh_s = 120, 600, 0.02, 0.1
        rng = random.Random(3)
        bursts, now = [], 2.0
        for nominal in [0.3] * 30 + [1.0] * 12:
            bursts.append((now, now + nominal))
            now += nominal + rng.uniform(0.7, 1.0)
        end = now + 2

        def energy_j(until):
            return 50 + idle_w * until + sum((busy_w - idle_w) * min(max(until - a, 0), b - a) for a, b in bursts)

        os.mkdir(os.path.join(self.folder.name, "log"))
        polls = [i * 0.0071 for i in range(int(end / 0.0071))]
        shown = [energy_j((t // refresh_s) * refresh_s - lag_s) for t in polls]
        ns = lambda t: 10**10 + round(t * NS)
        self.write("slow.csv", ["begin_ns", "end_ns", "energy_mj"],
                   [(ns(t), ns(t + 0.003), round(1e3 * e)) for t, e in zip(polls, shown)])
        self.write("fast.csv", ["begin_ns", "end_ns", "power_instant_mw"],
                   [(ns(t), ns(t), 10**5) for t in polls[::2]])
        self.write("marks.csv", ["kind", "nominal_s", "begin_ns", "end_ns", "count"],
                   [("burst", 0, ns(a), ns(b), 1) for a, b in bursts] + [("train", 0, ns(0), ns(end), 1)])
        done = self.joulemark("import", os.path.join(self.folder.name, "log"), "-o", self.results)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = self.analysis()
        regions = [r for r in document["regions"] if r["name"] == "burst"]
        self.assertEqual({r["provenance"]["method"] for r in regions}, {"attributed"})
        for region, (a, b) in zip(regions, bursts):
            self.assertAlmostEqual(region["energy_j"] / (busy_w * (b - a)), 1, delta=0.03)
            self.assertLess(region["energy_bound_j"], 0.15 * region["energy_j"])
        short, long = sorted(document["attributed"], key=lambda kind: kind["mean_duration_s"])
        self.assertEqual((short["n"], long["n"]), (30, 12))
        self.assertAlmostEqual(short["lag_s"], lag_s, delta=5e-3)


class Faults(Simulated):
    """Energies of one H200 whose sensors fail, against the truth."""

    COUNTER = "nvmlDeviceGetTotalEnergyConsumption"

    def measured(self, name, loads, *faults, options=(), before=(), clock="virtual"):
        """The run of these loads, (seconds, watts) one after the other, after it was checked against the truth."""
        self.state = os.path.join(self.folder.name, f"{name}.sim")
        self.results = os.path.join(self.folder.name, name)
        self.environment["JOULEMARK_SIM"] = self.state
        self.create("--accelerator", "H200", "--clock", clock, *(word for fault in faults for word in ("--fault", fault)))
        work = lambda seconds, watts: [SIMULATOR, "work", "--seconds", str(seconds), "--power-w", str(watts)]
        for load in before:
            subprocess.run(work(*load), check=True, env=self.environment)
        self.metered("sh", "-c", "; ".join(" ".join(work(*load)) for load in loads), options=options)
        document = self.analysis()
        (run,) = document["runs"]
        (path,) = glob.glob(os.path.join(self.results, "runs", "*", "*", "regions.csv"))
        start, end = (row["time_ns"] for row in table(path) if row["name"] == "joulemark.command")
        shown = subprocess.run([SIMULATOR, "show", self.state, "--json", "--from-ns", start, "--to-ns", end], check=True,
                               capture_output=True, text=True)
        run["true_j"] = json.loads(shown.stdout)["gpus"][0]["energy_j"]
        run["gpu_j"] = run["energy_by_component_j"]["gpu"]
        run["bound_j"] = run["provenance"]["components"]["gpu"]["bound_j"]
        run["codes"] = {warning["code"] for warning in [*document["warnings"], *run["warnings"]]}
        self.assertLessEqual(abs(run["gpu_j"] - run["true_j"]), run["bound_j"] + 0.1,
                             {key: run[key] for key in ("gpu_j", "true_j", "bound_j", "codes")})
        return run

    def test_failed_reads_of_one_sensor_are_no_gaps_of_another(self):
        lost = f"not-supported:{self.COUNTER}"
        for name, seconds, faults, options in (
                ("lost", 300, [f"{lost}@20"], []),
                ("fast", 60, ["counter-freeze@20"], ["--energy-rate", "50"]),
                ("alike", 60, ["counter-freeze@20"], ["--rate", "10", "--energy-rate", "10"]),
                ("slow", 300, [], ["--rate", "1"])):
            with self.subTest(name):
                run = self.measured(name, [(seconds, 600)], *faults, options=options)
                self.assertAlmostEqual(run["energy_integrated_j"] / run["true_j"], 1, delta=0.01)
                self.assertAlmostEqual(run["gpu_j"] / run["true_j"], 1, delta=0.01)
                self.assertFalse(run["codes"] & ({"coverage", "out_of_order"} if faults else
                                                 {"coverage", "out_of_order", "counter_vs_integral"}))
        with self.subTest("real clock"):
            run = self.measured("real", [(10, 600)], f"{lost}@3", options=["--energy-rate", "10"], clock="real")
            self.assertAlmostEqual(run["gpu_j"] / run["true_j"], 1, delta=0.1)

    def test_a_frozen_power_overrules_no_counter(self):
        loads = [(20, 600), (600, 80)]
        run = self.measured("flat", loads, "power-frozen@10")
        self.assertAlmostEqual(run["gpu_j"] / run["true_j"], 1, delta=0.01)
        self.assertIn("stuck_sensor", run["codes"])
        moves = [(2, 500 + 10 * i) for i in range(15)]
        run = self.measured("moving", [*moves, *loads], "power-frozen@35")
        self.assertAlmostEqual(run["gpu_j"] / run["true_j"], 1, delta=0.01)
        self.assertIn("stuck_sensor", run["codes"])
        self.measured("alone", [*moves, *loads], "power-frozen@35", f"not-supported:{self.COUNTER}")
        self.measured("low", [(20, 80), (100, 600)], "power-frozen@10")

    def test_what_was_not_measured_is_in_the_bound(self):
        self.measured("pulses", [(5, 80), (5, 600)] * 34, f"not-supported:{self.COUNTER}", options=["--rate", "0.1"])
        self.measured("lost", [(100, 80), (217, 600)], "gpu-lost@100")

    def test_a_counter_that_freezes_late_is_not_believed(self):
        run = self.measured("late", [(15.2, 600)], "counter-freeze@8")
        self.assertAlmostEqual(run["gpu_j"] / run["true_j"], 1, delta=0.01)
        self.measured("later", [(15.2, 600)], "counter-freeze@13.5")

    def test_a_reset_before_the_counters_first_rise_is_seen(self):
        run = self.measured("reset", [(10, 600)], "counter-reset@100.9", before=[(100, 600)])
        self.assertAlmostEqual(run["gpu_j"] / run["true_j"], 1, delta=0.01)
        self.assertIn("counter_reset", run["codes"])


class OwnCost(Simulated):
    def test_rate_jitter_losses_and_own_cost_are_told(self):
        self.create("--accelerator", "H100")
        self.metered(SIMULATOR, "work", "--seconds", "100", "--power-w", "300", options=["--rate", "20"])
        meter = self.document("end.json")["meter"]
        self.assertAlmostEqual(meter["achieved_hz"]["nvml.gpu0"], 20, delta=0.01)
        self.assertEqual(meter["jitter_s"]["nvml.gpu0"], 0)
        self.assertEqual(meter["lost"], 0)
        self.assertGreater(meter["max_rss_bytes"], 0)
        self.assertGreater(meter["cpu_s"], 0)
        (run,) = self.analysis()["runs"]
        self.assertAlmostEqual(run["provenance"]["components"]["gpu"]["achieved_hz"], 1, delta=0.1)  # the counter's
        self.assertEqual(run["provenance"]["meter"][0]["lost"], 0)

    def test_rates_from_a_tenth_to_a_thousand_hertz(self):
        for rate, seconds in ((0.1, 1000), (1000, 10)):
            with self.subTest(rate=rate):
                self.create("--accelerator", "V100")
                self.results = os.path.join(self.folder.name, f"at-{rate}")
                self.metered(SIMULATOR, "work", "--seconds", str(seconds), "--power-w", "200",
                             options=["--rate", str(rate)])
                meter = self.document("end.json")["meter"]
                self.assertAlmostEqual(meter["achieved_hz"]["nvml.gpu0"] / rate, 1, delta=0.001)
                self.assertEqual((meter["lost"], meter["late"]), (0, 0))

    def test_the_meter_sleeps_between_ticks(self):
        environment = {**self.environment, "JOULEMARK_NVML": "/nonexistent"}
        subprocess.run([JOULEMARK, "run", "-q", "-o", self.results, "--rate", "10", "--", "sleep", "2"],
                       check=True, env=environment)
        self.assertLess(self.document("end.json")["meter"]["cpu_s"], 1)  # a busy one would take all of two seconds

    def test_idle_power_and_steady_state_are_told(self):
        self.create("--accelerator", "H100")
        self.metered(SIMULATOR, "train", "--epochs", "5", options=["--rate", "1", "--idle-s", "120"])
        (run,) = self.analysis()["runs"]
        self.assertAlmostEqual(run["idle_power_w"]["before"], 70, delta=2)
        self.assertGreater(run["idle_power_w"]["after"], 60)
        self.assertIsNotNone(run["thermal"]["change_k"])

    def test_no_clock_is_ever_set(self):
        for program in ("joulemark", "joulemark-guard"):
            symbols = subprocess.run(["nm", "-D", "--undefined-only", os.path.join(BIN, program)], check=True,
                                     capture_output=True, text=True).stdout
            self.assertNotRegex(symbols, r"\b(clock_settime|settimeofday|adjtimex?|clock_adjtime|stime)\b")


class Controls(Simulated):
    def test_only_allocated_gpus_are_changed(self):
        self.create("--accelerator", "V100", "--gpus", "3")
        done = self.metered(SIMULATOR, "show", self.state, "--json", options=["--power-cap-w", "150"],
                            CUDA_VISIBLE_DEVICES="1")
        limits = [gpu["power_limit_w"] for gpu in json.loads(done.stdout)["gpus"]]
        self.assertEqual(limits, [250, 150, 250])


class Crashes(Simulated):
    def killed_runs(self, number, seed):
        """Kills meters at random moments of real time while simulated training goes on."""
        rng = random.Random(seed)
        self.create("--accelerator", "V100", "--gpus", "2", "--clock", "real")
        for i in range(number):
            name = f"run{i}"
            process = subprocess.Popen(
                [JOULEMARK, "run", "-q", "-o", self.results, "--run-id", name, "--rate", "100", "--", SIMULATOR,
                 "bursts", "--burst", "step=200:0.05", "--repeats", "1000"],
                env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(rng.uniform(0.1, 2.5))
            killed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            process.send_signal(signal.SIGKILL)
            process.wait()
            try:
                os.killpg(process.pid, signal.SIGKILL)  # the work that it left behind
            except ProcessLookupError:
                pass
            yield name, killed_ns

    def check(self, name, killed_ns):
        (folder,) = glob.glob(os.path.join(self.results, "runs", name, "*")) or [None]
        if folder is None:
            return 0  # killed before it began
        for path in glob.glob(os.path.join(folder, "*.json")):
            with open(path) as file:
                json.load(file)
        newest = 0
        for path in glob.glob(os.path.join(folder, "*.csv")):
            with open(path) as file:
                whole = file.read()
            lines = whole.splitlines()[: None if whole.endswith("\n") else -1]  # a torn last line is dropped
            width = lines[0].count(",") if lines else 0
            for line in lines[1:]:
                if not path.endswith("regions.csv"):
                    self.assertEqual(line.count(","), width, path)
                newest = max(newest, int(line.split(",")[0]))
        if newest:
            self.assertLess(killed_ns - newest, 1.5 * NS, "more than the last second is lost, and half for a busy machine")
        return newest

    def test_kill_9_at_random_moments_of_simulated_runs(self):
        runs = int(os.environ.get("JOULEMARK_KILLED_RUNS", "20"))
        with_data = sum(self.check(*killed) > 0 for killed in self.killed_runs(runs, seed=1))
        self.assertGreater(with_data, runs / 2)
        self.create("--accelerator", "V100")
        whole = self.joulemark("run", "-q", "-o", self.results, "--run-id", "whole", "--", SIMULATOR, "work", "--seconds",
                               "100", "--power-w", "200")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        status = {run["run"]: run["status"] for run in self.analysis()["runs"]}
        self.assertEqual(status.pop("whole"), "ok")
        self.assertGreaterEqual(len(status), with_data)
        self.assertLessEqual(set(status.values()), {"cut", "incomplete"})


class Days(Simulated):
    def test_seven_days_of_eight_gpus(self):
        rate = float(os.environ.get("JOULEMARK_DAYS_HZ", "1"))
        day_s, range_j = 86400, 1e7
        self.create("--accelerator", "V100", "--gpus", "8", "--fault", f"counter-wrap={range_j:.0f}")
        gpus = [word for gpu in range(8) for word in ("--gpu", str(gpu))]
        work = f"{SIMULATOR} work --power-w 200 {' '.join(gpus)} --seconds"
        resident = "grep VmRSS /proc/$PPID/status"
        done = self.metered("sh", "-c", f"{work} {day_s}; {resident}; {work} {6 * day_s}; {resident}",
                            options=["--rate", str(rate), "--energy-rate", "0.1"])
        first_kb, last_kb = (int(kb) for kb in re.findall(r"VmRSS:\s+(\d+) kB", done.stdout))
        if os.environ.get("JOULEMARK_SANITIZED") != "ON":  # a sanitizer keeps what was freed
            self.assertLess(last_kb - first_kb, 1024)
        end = self.document("end.json")
        self.assertEqual((end["meter"]["lost"], end["meter"]["late"]), (0, 0))
        # Every wrap is accounted for: a counter without a known range that falls is told as a reset.
        wraps = int(200 * 7 * day_s // range_j)
        for counter in end["counters"]:
            if counter["source"] == "nvml.energy":
                self.assertAlmostEqual(counter["resets"] + counter["wraps"], wraps, delta=1)
                self.assertEqual(counter["unknowable"], 0)
        (path,) = glob.glob(os.path.join(self.results, "runs", "*", "*", "gpu.csv"))
        period = round(NS / rate)
        first = last = None
        ticks = 0
        with open(path) as file:
            columns = next(file).rstrip("\n").split(",")
            device, power = columns.index("device"), columns.index("power_w")
            for line in file:
                cells = line.rstrip("\n").split(",")
                if cells[device] == "gpu3" and cells[power]:
                    now = int(cells[0])
                    if last is not None and now - last == period:
                        ticks += 1
                    first = now if first is None else first
                    last = now
        self.assertEqual(last - first, 7 * day_s * NS)
        self.assertGreaterEqual(ticks, 7 * day_s * rate - 4)


class CasesTable(unittest.TestCase):
    """docs/measurement-cases.md names every case, and tests that exist."""

    def rows(self):
        text = (SOURCE / "docs" / "measurement-cases.md").read_text()
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith("|") and len(cells) == 3 and not set(cells[0]) <= set("-: ") and cells[0] != "case":
                yield cells

    def test_every_named_test_exists(self):
        listed = subprocess.run(["ctest", "--show-only=json-v1", "-L", "unit"], check=True, capture_output=True, text=True,
                                cwd=BUILD)
        known = {test["name"] for test in json.loads(listed.stdout)["tests"]}
        scripts = {}
        for path in (SOURCE / "tests").glob("*/*_test.py"):
            names = set(re.findall(r"def (test_\w+)", path.read_text()))
            scripts[f"{path.parent.name}.{path.stem.removesuffix('_test')}"] = names
        missing = []
        for _, _, tests in self.rows():
            names = re.findall(r"`([^`]+)`", tests)
            self.assertTrue(names, tests)
            for name in names:
                script, _, method = name.partition("/")
                if name not in known and not (script in known and method in scripts.get(script, ())):
                    missing.append(name)
        self.assertEqual(missing, [])

    def test_every_case_is_there(self):
        cases = [case for case, _, _ in self.rows()]
        self.assertEqual(len(cases), len(set(cases)))
        self.assertEqual(len(cases), 45)
        self.assertTrue(all(expected for _, expected, _ in self.rows()))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two published studies, rehearsed on simulated GPUs with injected values. `KINDS` lists each kind of table and figure in
the papers with the test that rebuilds it from `analyze --json` and checks its values against what was injected."""
import csv
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["JOULEMARK_BIN"])
STUDIES = pathlib.Path(os.environ["JOULEMARK_SOURCE"]) / "studies"

KINDS = {
    "Frey: models, data sets and the grid (table)": "Frey.test_models_and_grid",
    "Frey: epoch time over GPUs, per model and constraint (figure)": "Frey.test_time_over_gpus",
    "Frey: epoch time over power caps (figure)": "Frey.test_time_over_caps",
    "Frey: epoch time over clocks (figure)": "Frey.test_time_over_clocks",
    "Frey: parameters of the power laws (table)": "Frey.test_parameters_of_the_laws",
    "Frey: training speed, warm-up included (protocol)": "Frey.test_training_speed",
    "Frey: energy per epoch under constraints (figure)": "Frey.test_energy_per_epoch",
    "Frey: speed-up and efficiency (figure)": "Frey.test_efficiency",
    "Frey: GPU and memory utilisation (figure)": "Frey.test_utilisation",
    "Frey: effects of each constraint alone (text)": "Frey.test_main_effects",
    "Huber: runs, GPUs, batches, samples (table)": "Huber.test_grid",
    "Huber: top-1 error over the global batch (figure)": "Huber.test_error_over_batch",
    "Huber: energy over GPU hours, per series and pooled (figure)": "Huber.test_energy_over_gpu_hours",
    "Huber: energy per GPU hour over GPUs (figure)": "Huber.test_energy_per_gpu_hour_over_gpus",
    "Huber: energy per sample (figure)": "Huber.test_energy_per_sample",
    "Huber: power over samples and updates per GPU hour (figure)": "Huber.test_power_over_throughput",
    "Huber: time and efficiency over GPUs, FourCastNet (figure)": "Huber.test_fourcastnet_scales",
    "Huber: A100 against H100 (table)": "Huber.test_hardware",
    "Huber: power over time (figure)": "Huber.test_power_profile",
}

# The part of each published grid that is rehearsed here: all series, models of two kinds, fewer GPUs and repeats.
FREY = [("repeats: 5", "repeats: 3"), ("[2, 4, 8, 16, 32, 64, 128, 256, 424]", "[2, 4, 8, 16]"), ("rate_hz: 10", "rate_hz: 0.2"),
        ("idle_s: 30\n", ""), ("epochs: 10\n", "epochs: 2\n")]
FREY_MODELS = ("resnet50", "schnet")
HUBER = [("epochs: 100", "epochs: 3"), ("epochs: 80", "epochs: 3"), ("repeats: 5", "repeats: 3"), ("rate_hz: 1\n", "rate_hz: 0.2\n"),
         ("idle_s: 30\n", ""), ("gpus: [1, 2, 4, 8, 16, 32, 64, 128, 256]", "gpus: [1, 2, 4, 8, 16, 64, 256]")]

V100 = {"idle": 25, "full": 240, "clock": 1380, "cap": 250}
A100 = {"idle": 52, "full": 390, "clock": 1410, "cap": 400}
FREY_TRUTH = {"epoch_time_s": 900, "samples": 1281167, "gpu_exponent": 0.9, "cap_exponent": 0.7, "clock_exponent": 0.6,
              "batch_exponent": 0, "noise_pct": 0.5}
EXPONENTS = {"gpus": "gpu_exponent", "power_cap_w": "cap_exponent", "sm_clock_mhz": "clock_exponent"}
HUBER_TRUTH = {"epoch_time_s": 400, "samples": 80073, "gpu_exponent": 0.92, "batch_exponent": 0.1, "noise_pct": 0.5,
               "power_noise_pct": 0.2, "batch_error": 0.2}


def joulemark(*words):
    result = subprocess.run([BIN / "joulemark", *map(str, words)], text=True, capture_output=True, timeout=500)
    if result.returncode != 0:
        raise AssertionError(f"joulemark {words} gave {result.returncode}: {result.stderr}")
    return result.stdout


def replaced(text, pairs):
    for old, new in pairs:
        if old not in text:
            raise AssertionError(f"the study no longer says {old!r}")
        text = text.replace(old, new)
    return text


def with_models(text, names):
    head, rest = text.split("workloads:\n")
    body, tail = rest.split("\nfactors:")
    models = ["  - model:" + one for one in body.split("  - model:")[1:]]
    anchor = re.search(r"&slower\n((?: {8}.*\n)+)", body).group(1)
    kept = "".join(one for one in models if one.split()[2] in names)
    return head + "workloads:\n" + kept.replace("relative_time: *slower", "relative_time:\n" + anchor.rstrip()) + "\nfactors:" + tail


def powers(gpu, factors, truth):
    """Watts of one GPU by phase, with the phase's share of the epoch (docs/simulation.md)."""
    gpus = factors["gpus"]
    clock = factors.get("sm_clock_mhz", gpu["clock"])
    natural = (gpu["full"] - gpu["idle"]) * (clock / gpu["clock"]) ** 1.2 * gpus ** -truth.get("power_gpu_exponent", 0.05)
    communicating = 0.12 * (1 - 1 / gpus)
    for share, fraction in ((1, 1 - communicating - 0.06), (0.75, communicating), (0.6, 0.06)):
        yield min(gpu["idle"] + share * natural, factors.get("power_cap_w", gpu["cap"])), fraction


def mean_power(gpu, factors, truth):
    return sum(watts * fraction for watts, fraction in powers(gpu, factors, truth))


def epoch_time(gpu, factors, truth):
    return (truth["epoch_time_s"] * factors["dataset_samples"] / truth["samples"] * factors["gpus"] ** -truth["gpu_exponent"]
            * (factors["local_batch"] / 128) ** -truth["batch_exponent"]
            * (factors.get("power_cap_w", gpu["cap"]) / gpu["cap"]) ** -truth.get("cap_exponent", 0)
            * (factors.get("sm_clock_mhz", gpu["clock"]) / gpu["clock"]) ** -truth.get("clock_exponent", 0))


class Rehearsed:
    """A study's results, made once; mixed into the test cases below."""

    @classmethod
    def rehearse(cls, study, text, gpu, truth, out):
        path = cls.folder / f"{study}.yaml"
        path.write_text(text)
        joulemark("sweep", path, "--simulate", gpu, "--truth", json.dumps(truth), "-o", out, "--quiet")

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="joulemark-published-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.out = cls.folder / "results"
        cls.make()
        cls.document = json.loads(joulemark("analyze", cls.out, "--json"))
        cls.configurations = cls.document["configurations"]

    def near(self, value, wanted, relative, about=""):
        self.assertAlmostEqual(value / wanted, 1, delta=relative, msg=f"{about} {value} {wanted}")

    def test_everything_says_that_it_is_simulated(self):
        self.assertTrue(all(run["simulated"] and run["status"] == "ok" for run in self.document["runs"]))
        for part in ("configurations", "laws", "scaling", "energy_per_gpu_hour", "regressions"):
            self.assertTrue(all(entry["simulated"] for entry in self.document[part]), part)


class Frey(Rehearsed, unittest.TestCase):
    @classmethod
    def make(cls):
        text = with_models((STUDIES / "frey2022.yaml").read_text(), FREY_MODELS)
        cls.rehearse("frey", replaced(text, FREY), "V100", FREY_TRUTH, cls.out)

    def laws(self, factor, response="epoch_time_s"):
        found = [law for law in self.document["laws"]
                 if (law["factor"], law["response"], law["form"]) == (factor, response, "power")]
        self.assertEqual(len(found), {"gpus": 2 * 9, "power_cap_w": 2 * 12, "sm_clock_mhz": 2 * 12}[factor])
        return found

    def assert_exponents(self, factor, key):
        exponents = [law["parameters"]["b"]["value"] for law in self.laws(factor)]
        for exponent in exponents:
            self.assertAlmostEqual(exponent, -FREY_TRUTH[key], delta=0.02)
        self.assertAlmostEqual(statistics.mean(exponents), -FREY_TRUTH[key], delta=0.004)

    def test_models_and_grid(self):
        models = {c["factors"]["workload"] for c in self.configurations}
        self.assertEqual(models, set(FREY_MODELS))
        self.assertEqual({c["n"] for c in self.configurations}, {3})
        self.assertEqual(len(self.configurations), 2 * 4 * 3 * 3)
        samples = {c["factors"]["workload"]: c["factors"]["dataset_samples"] for c in self.configurations}
        self.assertEqual(samples, {"resnet50": 1281167, "schnet": 130831})

    def test_time_over_gpus(self):
        self.assert_exponents("gpus", "gpu_exponent")
        for c in self.configurations:
            self.near(c["epoch_time_s"]["mean"], epoch_time(V100, c["factors"], FREY_TRUTH), 0.02, c["factors"])

    def test_time_over_caps(self):
        self.assert_exponents("power_cap_w", "cap_exponent")

    def test_time_over_clocks(self):
        self.assert_exponents("sm_clock_mhz", "clock_exponent")

    def test_parameters_of_the_laws(self):
        for law in self.laws("gpus"):
            one_gpu = epoch_time(V100, {**law["group"], "gpus": 1, "local_batch": 128}, FREY_TRUTH)
            self.near(law["parameters"]["a"]["value"], one_gpu, 0.03)
            self.assertGreater(law["r2"], 0.999)
        inside = [law["parameters"]["b"]["ci95"][0] <= -FREY_TRUTH[key] <= law["parameters"]["b"]["ci95"][1]
                  for factor, key in EXPONENTS.items() for law in self.laws(factor)]
        self.assertGreaterEqual(statistics.mean(inside), 0.85, "95 % intervals, of 66 laws")

    def test_training_speed(self):
        # Two epochs, the first with the warm-up factor: wall time over epochs is more than the epoch time.
        for run in self.document["runs"]:
            self.near(run["training_speed_s"] / run["epoch_time_s"], (1.15 + 1) / 2, 0.03, run["run"])

    def test_energy_per_epoch(self):
        for c in self.configurations:
            factors = c["factors"]
            watts = factors["gpus"] * mean_power(V100, factors, FREY_TRUTH)
            self.near(c["epoch_energy_j"]["mean"], watts * epoch_time(V100, factors, FREY_TRUTH), 0.03, factors)

    def test_efficiency(self):
        tables = self.document["scaling"]
        self.assertEqual(len(tables), 2 * 9)
        for table in tables:
            self.assertEqual(table["baseline"]["gpus"], 2)
            for row in table["rows"]:
                self.near(row["efficiency"], (row["gpus"] / 2) ** (FREY_TRUTH["gpu_exponent"] - 1), 0.02)

    def test_utilisation(self):
        for run in self.document["runs"]:
            self.assertGreater(run["gpu_busy_pct"], 80)
            self.assertLess(run["gpu_memory_util_pct"], 100)
            self.assertIsNone(run["sm_util_pct"], "a V100 has no SM activity")

    def test_main_effects(self):
        for regression in self.document["regressions"]:
            if regression["response"] != "log epoch_time_s":
                continue
            effects = {term["name"]: term for term in regression["terms"]}
            for name, key in EXPONENTS.items():
                self.assertAlmostEqual(effects[name]["value"], -FREY_TRUTH[key], delta=0.02)
            for name, term in effects.items():
                if " x " in name:
                    self.assertAlmostEqual(term["value"], 0, delta=0.02, msg="no interaction was injected")


class Huber(Rehearsed, unittest.TestCase):
    @classmethod
    def make(cls):
        text = replaced((STUDIES / "huber2025.yaml").read_text(), HUBER)
        cls.rehearse("huber", text, "A100", HUBER_TRUTH, cls.out)
        # FourCastNet again on the other accelerator, a quarter faster, beside the first: runs of other names.
        cls.h100 = cls.folder / "h100"
        series = text[text.index("  - name: fourcastnet\n"):text.index("  - name: fourcastnet-repeated")]
        other = text[:text.index("\nseries:")] + "\nseries:\n" + series.replace("repeats: 1", "repeats: 3") + text[text.index("\nlauncher:"):]
        for gpu, truth in (("A100", HUBER_TRUTH), ("H100", {**HUBER_TRUTH, "epoch_time_s": 300, "full_power_w": 480})):
            cls.rehearse(f"hardware-{gpu}", other, gpu, truth, cls.folder / gpu)
        cls.h100.mkdir()
        for gpu in ("A100", "H100"):
            for run in (cls.folder / gpu / "runs").iterdir():
                shutil.copytree(run, cls.h100 / "runs" / f"{gpu}-{run.name}")

    def series(self, name):
        return [c for c in self.configurations if c["factors"]["series"] == name]

    def test_grid(self):
        table = {(c["factors"]["series"], c["factors"]["gpus"], c["factors"]["local_batch"]): c for c in self.configurations}
        for gpus, local in ((1, 256), (2, 128), (4, 64), (8, 32), (16, 16)):
            self.assertEqual(table["gbs256", gpus, local]["factors"]["dataset_samples"], int(80072.9375 * gpus))
        for gpus, local in ((32, 256), (64, 128), (128, 64), (256, 32)):
            self.assertEqual(table["gbs8192", gpus, local]["n"], 3)
        self.assertEqual(table["fourcastnet", 4, 1]["preliminary"], True)
        self.assertEqual(table["fourcastnet-repeated", 16, 1]["n"], 3)

    def test_error_over_batch(self):
        error = {}
        for run in self.document["runs"]:
            self.assertEqual((run["quality"]["name"], run["quality"]["direction"]), ("top1_error", "lower"))
            if run["factors"]["series"] == "lbs256":
                error.setdefault(run["factors"]["global_batch"], []).append(run["quality"]["value"])
        means = {batch: statistics.mean(values) for batch, values in error.items()}
        # 65536 is three doublings beyond the knee of 8192, each worth 0.2 of what is learned (docs/simulation.md).
        learned = (0.999 - means[256]) / (0.999 - 0.24)
        self.assertAlmostEqual((means[65536] - means[256]) / learned, 3 * 0.2, delta=0.05)
        self.assertAlmostEqual((means[4096] - means[256]) / learned, 0, delta=0.04)

    def line(self, name):
        (line,) = [one for one in self.document["energy_per_gpu_hour"] if one["group"].get("series") == name]
        return line

    def test_energy_over_gpu_hours(self):
        for name in ("gbs256", "gbs8192", "lbs256"):
            line, members = self.line(name), self.series(name)
            # What ordinary least squares makes of the injected powers and times.
            x, y = [], []
            for c in members:
                hours = epoch_time(A100, c["factors"], HUBER_TRUTH) * (1.15 + 2) / 3600 * c["factors"]["gpus"]
                x.append(hours)
                y.append(hours * mean_power(A100, c["factors"], HUBER_TRUTH) / 1000)
            wanted = statistics.linear_regression(x, y).slope
            self.near(line["slope_kwh"]["value"], wanted, 0.02, name)
            self.assertGreater(line["r2"], 0.999)
        (pooled,) = [one for one in self.document["energy_per_gpu_hour"] if one["pooled"]]
        self.assertEqual(pooled["n"], len(self.configurations))
        self.assertIn("mean total power per GPU", self.document["energy_per_gpu_hour_identity"])

    def test_energy_per_gpu_hour_over_gpus(self):
        for c in self.configurations:
            self.near(c["energy_per_gpu_hour_kwh"]["mean"], mean_power(A100, c["factors"], HUBER_TRUTH) / 1000, 0.03, c["factors"])
        codes = {warning["code"] for warning in self.document["warnings"]}
        self.assertNotIn("node_billed_whole", codes, "boards are metered one by one; the published rows were whole nodes")

    def test_energy_per_sample(self):
        (line,) = [one for one in self.document["energy_per_sample"] if one["group"]["series"] == "lbs256"]
        x = [c["factors"]["dataset_samples"] for c in self.series("lbs256")]
        y = [epoch_time(A100, c["factors"], HUBER_TRUTH) * 3.15 / 3600 * c["factors"]["gpus"]
             * mean_power(A100, c["factors"], HUBER_TRUTH) for c in self.series("lbs256")]
        self.near(line["slope_wh"]["value"], statistics.linear_regression(x, y).slope, 0.02)
        self.assertFalse([law for law in self.document["laws"] if law["form"] and law["group"]["series"] == "lbs256"],
                         "the data set grows, so there is no scaling law")

    def test_power_over_throughput(self):
        by_series = {r["group"]["series"]: r for r in self.document["regressions"] if r["response"] == "power_per_gpu_w"}
        self.assertEqual(by_series["lbs256"]["refused"][0]["terms"], ["samples_per_gpu_hour", "updates_per_gpu_hour"])
        self.assertFalse(by_series["gbs256"]["refused"], "the local batch varies there")
        for c in self.series("gbs256"):
            self.near(c["samples_per_gpu_hour"]["mean"] / c["updates_per_gpu_hour"]["mean"], c["factors"]["local_batch"], 0.01)

    def test_fourcastnet_scales(self):
        (law,) = [law for law in self.document["laws"]
                  if law["group"]["series"] == "fourcastnet" and law["response"] == "epoch_time_s" and law["form"] == "power"]
        self.assertAlmostEqual(law["parameters"]["b"]["value"], -HUBER_TRUTH["gpu_exponent"], delta=0.02)
        (table,) = [one for one in self.document["scaling"] if one["group"]["series"] == "fourcastnet"]
        self.assertTrue(all(row["preliminary"] for row in table["rows"]), "single runs, as published")

    def test_hardware(self):
        document = json.loads(joulemark("analyze", self.h100, "--json"))
        (comparison,) = [one for one in document["hardware"] if one["factor"] == "gpus"]
        for row in comparison["rows"]:
            ratio = row["time_ratio"]["value"]
            self.near(ratio if "A100" in comparison["first"] else 1 / ratio, 400 / 300, 0.03)

    def test_power_profile(self):
        joulemark("export", self.out, "-d", self.folder / "tables")
        run = "gbs256-resnet50-g4-gb256-r1"
        with open(self.folder / "tables" / "timeseries.csv", newline="") as file:
            watts = [float(row["power_w"]) for row in csv.DictReader(file) if row["run"] == run and row["power_w"]]
        wanted = [power for power, _ in powers(A100, {"gpus": 4}, HUBER_TRUTH)]
        self.near(max(watts), max(wanted), 0.03)
        self.near(statistics.median(watts), wanted[0], 0.05)


class Coverage(unittest.TestCase):
    def test_every_kind_names_a_test_that_exists_and_none_is_left_out(self):
        tests = {f"{c.__name__}.{name}" for c in (Frey, Huber) for name in dir(c) if name.startswith("test_")}
        inherited = {f"{c.__name__}.test_everything_says_that_it_is_simulated" for c in (Frey, Huber)}
        self.assertEqual(set(KINDS.values()), tests - inherited)


if __name__ == "__main__":
    unittest.main()

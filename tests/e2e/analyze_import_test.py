#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""joulemark import and analyze on the tables and logs of tests/fixtures/import, and analyze on run folders."""

import csv
import json
import os
import shutil
import subprocess
import tempfile
import unittest

JOULEMARK = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark")
FIXTURES = os.path.join(os.environ["JOULEMARK_SOURCE"], "tests", "fixtures")
TABLES = os.path.join(FIXTURES, "import")
MEANS = os.path.join(TABLES, "means.csv")
MEANS_MAP = "series=series,gpus=gpus,samples=samples,energy_kwh=energy_kwh,gpu_hours=gpu_hours"
CAPS_MAP = "power_cap_w=power_limit,epoch_time_s=time_per_epoch,mean_power_w=average_power"


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="joulemark-e2e-")
        self.addCleanup(self.folder.cleanup)
        self.dir = os.path.join(self.folder.name, "results")

    def joulemark(self, *words):
        return subprocess.run([JOULEMARK, *words], capture_output=True, text=True, timeout=60)

    def good(self, *words):
        done = self.joulemark(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, sentence, *words):
        done = self.joulemark(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, "one sentence: " + done.stderr)

    def analysis(self):
        return json.loads(self.good("analyze", self.dir, "--json").stdout)

    def table(self, text):
        path = os.path.join(self.folder.name, "table.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Tables(Results):
    def test_published_means_give_published_slopes(self):
        self.good("import", MEANS, "-o", self.dir, "--map", MEANS_MAP, "--set", "gpus_per_node=4,epochs=100")
        document = self.analysis()
        self.assertEqual(len(document["runs"]), 8)
        series = [line for line in document["energy_per_gpu_hour"] if not line["pooled"]]
        self.assertEqual([line["group"] for line in series], [{"series": "lbs256"}])
        self.assertAlmostEqual(series[0]["slope_kwh"]["value"], 0.2652, places=4)
        self.assertGreater(series[0]["r2"], 0.999)
        self.assertAlmostEqual(document["energy_per_sample"][0]["slope_wh"]["value"], 0.0236, places=4)
        self.assertTrue(all(law["form"] is None for law in document["laws"]))
        self.assertTrue(any("data set grows" in law["reason"] for law in document["laws"]))
        self.assertIn("node_billed_whole", [warning["code"] for warning in document["warnings"]])
        self.assertIn("preliminary", [warning["code"] for warning in document["warnings"]])
        text = self.good("analyze", self.dir).stdout
        self.assertIn("mean total power per GPU", text)

    def test_a_mean_of_repeats_is_no_single_run(self):
        told = self.good("import", MEANS, "-o", self.dir, "--map", MEANS_MAP, "--set",
                         "epochs=100,workload=resnet50,hardware=A100,repeats=5,component=cpu+dram+gpu").stderr
        self.assertIn("not used: energy_kwh_sd", told)
        document = self.analysis()
        self.assertEqual({(c["n"], c["preliminary"]) for c in document["configurations"]}, {(5, False)})
        self.assertNotIn("preliminary", [warning["code"] for warning in document["warnings"]])
        self.assertEqual(document["runs"][0]["provenance"]["energy_j"]["contains"], ["cpu", "dram", "gpu"])
        self.assertIn("imported from means.csv", document["runs"][0]["provenance"]["energy_j"]["text"])
        compared = [one for one in document["published"] if one["metric"] == "energy_per_gpu_hour_kwh"]
        self.assertTrue(compared and all(one["comparable"] for one in compared))
        text = self.good("analyze", self.dir).stdout
        self.assertIn("(mean of 5)", text)
        self.assertNotIn("(1 run)", text)

    def test_a_given_standard_deviation_makes_an_interval(self):
        path = self.table("gpus,energy_kwh,energy_kwh_sd,gpu_hours,n\n4,6.9,0.05,22,5\n8,15,,48,5\n")
        self.good("import", path, "-o", self.dir, "--map",
                  "gpus=gpus,energy_kwh=energy_kwh,energy_kwh_sd=energy_kwh_sd,gpu_hours=gpu_hours,repeats=n")
        with_sd, without = sorted(self.analysis()["configurations"], key=lambda c: c["factors"]["gpus"])
        energy = with_sd["energy_j"]
        self.assertAlmostEqual(energy["sd"], 0.05 * 3.6e6)
        self.assertAlmostEqual(energy["ci95"][1] - energy["mean"], 2.776445 * 0.05 * 3.6e6 / 5**0.5, delta=1)
        self.assertIsNone(with_sd["gpu_hours"]["ci95"])
        self.assertEqual((without["n"], without["energy_j"]["ci95"]), (5, None))

    def test_a_standard_deviation_needs_its_repeats(self):
        path = self.table("gpus,energy_kwh,energy_kwh_sd\n4,6.9,0.05\n")
        self.assertIn("--set repeats=5", self.good("import", path, "-o", self.dir).stderr)
        self.assertIsNone(self.analysis()["configurations"][0]["energy_j"]["ci95"])
        self.refused("component is 'gpu+fan'", "import", path, "-o", self.dir, "--set", "component=gpu+fan")

    def test_footprint_stands_in_the_tables(self):
        self.good("import", self.table("gpus,energy_kwh,epochs\n4,2.5,1\n"), "-o", self.dir)
        text = self.good("analyze", self.dir, "--carbon", "400", "--price", "0.3").stdout
        self.assertRegex(text, r"CO2e g +cost")
        self.assertRegex(text, r" 1000 +0\.750\n")
        self.assertNotIn("CO2e", self.good("analyze", self.dir).stdout)

    def test_energies_that_do_not_fit_are_told(self):
        path = self.table("gpus,energy_j,wall_time_s,mean_power_w\n1,5000,100,100\n1,10000,100,100\n")
        told = self.good("import", path, "-o", self.dir).stderr
        self.assertIn("line 2: energy_j is 5000, mean_power_w x wall_time_s is 1e+04 joules", told)
        self.assertNotIn("line 3: energy_j", told)

    def test_carbon_and_price_are_numbers_from_0_up(self):
        self.good("import", MEANS, "-o", self.dir, "--map", MEANS_MAP)
        for value in ("nan", "-1", "inf"):
            self.refused("from 0 up", "analyze", self.dir, "--price", value)
            self.refused("from 0 up", "analyze", self.dir, "--carbon", value)

    def test_importing_twice_changes_nothing(self):
        for _ in range(2):
            self.good("import", MEANS, "-o", self.dir, "--map", MEANS_MAP)
        self.assertEqual(len(self.analysis()["runs"]), 8)

    def test_law_of_epoch_time_over_caps_bends(self):
        self.good("import", os.path.join(TABLES, "caps.csv"), "-o", self.dir, "--map", CAPS_MAP, "--set",
                  "gpus=1,workload=resnet50,hardware=V100,local_batch=256")
        laws = {law["form"]: law for law in self.analysis()["laws"]
                if law["response"] == "epoch_time_s" and law["factor"] == "power_cap_w"}
        selected = [form for form, law in laws.items() if law["selected"]]
        self.assertEqual(len(selected), 1)
        self.assertNotEqual(selected[0], "power")
        self.assertLess(laws[selected[0]]["aicc"], laws["power"]["aicc"])
        self.assertLess(laws[selected[0]]["loo_rmse"], laws["power"]["loo_rmse"])
        self.assertAlmostEqual(laws["power"]["r2"], 0.89, places=2)

    def test_no_law_contradicts_the_least_energy_beside_it(self):
        self.good("import", os.path.join(TABLES, "caps.csv"), "-o", self.dir, "--map", CAPS_MAP, "--set",
                  "gpus=1,workload=resnet50,hardware=V100,local_batch=256")
        document = self.analysis()
        energy = [law for law in document["laws"] if law["response"] == "epoch_energy_j"]
        self.assertTrue(energy)
        for law in energy:
            self.assertFalse(law["selected"], law["form"])
            self.assertTrue(law["reason"].startswith("no form fits"), law["reason"])
        least, = document["least_energy"]
        self.assertTrue(140 < least["value"] < 150)
        self.assertEqual(least["measured"]["level"], 150)
        self.assertLess(abs(least["measured"]["epoch_energy_j"]["mean"] / least["epoch_energy_j"] - 1), 0.02)
        text = self.good("analyze", self.dir).stdout
        self.assertEqual(text.count("no form fits"), 1, text)
        self.assertIn("measured least at", text)

    def test_separators_byte_order_marks_and_columns_by_name(self):
        path = self.table("\ufeffgpus;energy_j;wall_time_s;note\n1;100;10;x\n2; 90 ;6;\n\n")
        self.good("import", path, "-o", self.dir)
        runs = {run["factors"]["gpus"]: run for run in self.analysis()["runs"]}
        self.assertEqual(runs[2]["energy_j"], 90)
        self.assertEqual(runs[1]["mean_power_w"], 10)

    def test_show_and_export_have_what_the_table_said(self):
        path = self.table("gpus,epochs,energy_kwh,gpu_hours\n4,90,2.5,8\n")
        self.good("import", path, "-o", self.dir)
        shown, = json.loads(self.good("show", self.dir, "--json").stdout)["runs"]
        self.assertEqual(shown["epochs"], 90)
        self.assertEqual(shown["command"]["wall_time_s"], 7200)
        self.assertEqual(shown["command"]["energy_j"], 9e6)
        self.assertEqual(shown["command"]["energy_method"], "imported")
        self.assertIn("1250", self.good("show", self.dir).stdout)
        self.good("export", self.dir)
        with open(os.path.join(self.dir, "export", "runs.csv"), newline="") as file:
            row, = csv.DictReader(file)
        self.assertEqual((float(row["energy_j"]), row["energy_method"], float(row["gpu_hours"])),
                         (9e6, "imported", 8))

    def test_rows_without_a_result_are_named(self):
        path = self.table("gpus,energy_j\n1,100\n2,\n")
        self.assertIn("line 3 has no result", self.good("import", path, "-o", self.dir).stderr)
        self.assertEqual(len(self.analysis()["runs"]), 1)

    def test_what_a_user_can_get_wrong(self):
        out = ("-o", self.dir)
        self.refused("there is no", "import", "nowhere.csv", *out)
        self.refused("-o", "import", MEANS)
        self.refused("no such column", "import", MEANS, *out, "--map", "gpus=cards")
        self.refused("no such field", "import", MEANS, *out, "--map", "cards=gpus,gpu_hours=gpu_hours")
        self.refused("no such field", "import", MEANS, *out, "--map", MEANS_MAP, "--set", "colour=red")
        self.refused("is not FIELD=COLUMN", "import", MEANS, *out, "--map", "gpus")
        self.refused("twice", "import", MEANS, *out, "--map", "gpus=gpus,gpus=samples")
        self.refused("gives no result", "import", MEANS, *out, "--map", "gpus=gpus")
        self.refused("its columns are series, gpus, samples", "import", MEANS, *out, "--map", "gpus=gpus")
        self.refused("line 3: gpus is 'two'", "import", self.table("gpus,energy_j\n1,5\ntwo,5\n"), *out)
        for gpus in ("0", "1.5", "-2", "1e400"):
            self.refused("line 2: gpus is", "import", self.table(f"gpus,energy_j\n{gpus},5\n"), *out)
        for epochs in ("1e19", "9007199254740994"):
            self.refused("line 2: epochs is", "import", self.table(f"epochs,energy_j\n{epochs},5\n"), *out)
        for energy in ("1e308", "1e22", "1e-300"):
            self.refused("line 2: energy_kwh is", "import", self.table(f"energy_kwh\n{energy}\n"), *out)
        self.refused("the column gpus more than once", "import", self.table("gpus,gpus,energy_j\n1,2,5\n"), *out)
        self.refused("never closed", "import", self.table('gpus,energy_j\n"1,5\n'), *out)
        self.refused("line 2 has 1 cells", "import", self.table("gpus,energy_j\n1\n"), *out)
        self.refused("is empty", "import", self.table(""), *out)
        self.refused("is no number", "import", self.table("gpus,energy_j\n1,-5\n"), *out)
        self.refused("without fast.csv", "import", self.folder.name, *out)
        self.assertFalse(os.path.exists(self.dir), "nothing is written before all is understood")


class Logs(Results):
    def test_nvidia_smi(self):
        self.good("import", os.path.join(TABLES, "smi.csv"), "-o", self.dir, "--set", "hardware=A100")
        run, = self.analysis()["runs"]
        self.assertEqual(run["factors"]["gpus"], 2)
        self.assertEqual(run["factors"]["hardware"], "A100")
        self.assertEqual(run["wall_time_s"], 2)
        self.assertEqual(run["status"], "ok")
        self.assertEqual(run["provenance"]["components"]["gpu"]["sources"], ["nvidia-smi"])

    def log(self, header, rows, end="\n"):
        path = os.path.join(self.folder.name, "log.csv")
        with open(path, "w") as file:
            file.write("\n".join(["timestamp, " + header] + ["2023/07/14 " + row for row in rows]) + end)
        return path

    def test_rows_of_two_gpus_need_a_column_that_tells_them_apart(self):
        for second in (0, 3):  # ms after the first
            rows = [f"10:10:{s:02}.{ms:03}, {w}" for s in range(10) for ms, w in ((0, 100), (second, 300))]
            path = self.log("power.draw [W]", rows)
            self.refused("--query-gpu=timestamp,index", "import", path, "-o", self.dir)
            self.assertFalse(os.path.exists(self.dir))

    def test_one_gpu_needs_no_column(self):
        path = self.log("power.draw [W]", [f"10:10:{s:02}.{s % 3:03}, 100" for s in range(11)])
        self.assertEqual(self.good("import", path, "-o", self.dir).stderr.count("note"), 0)
        run, = self.analysis()["runs"]
        self.assertAlmostEqual(run["energy_j"], 1000, delta=1)

    def test_a_clock_that_steps_back_loses_no_rows(self):
        times = [f"10:{m:02}:{s:02}.000" for m, s in [(20, s) for s in range(31)] + [(5, s) for s in range(31)]]
        path = self.log("index, power.draw [W]", [f"{time}, {gpu}, 100" for time in times for gpu in (0, 1)])
        self.assertIn("line 64: the clock stepped back by 930 s",
                      self.good("import", path, "-o", self.dir).stderr)
        run, = self.analysis()["runs"]
        self.assertAlmostEqual(run["wall_time_s"], 61)
        bound = run["provenance"]["energy_j"]["bound_j"]
        self.assertLessEqual(abs(run["energy_j"] - 2 * 100 * 61), bound)
        self.assertAlmostEqual(run["energy_j"], 2 * 100 * 60, delta=201)

    def test_a_torn_last_line_is_dropped_and_told(self):
        rows = [f"10:10:{s:02}.000, 0, 100.00 W" for s in range(5)] + ["10:10:05.000, 0, 1"]
        told = self.good("import", self.log("index, power.draw [W]", rows, end=""), "-o", self.dir).stderr
        self.assertIn("line 7 has no end and was dropped", told)
        run, = self.analysis()["runs"]
        self.assertAlmostEqual(run["wall_time_s"], 4)
        self.assertAlmostEqual(run["energy_j"], 400, delta=1)

    def test_marks_become_regions(self):
        self.good("import", os.path.join(TABLES, "bursts"), "-o", self.dir)
        document = self.analysis()
        bursts = [region for region in document["regions"] if region["name"] == "burst"]
        self.assertEqual(len(bursts), 1)
        self.assertFalse(any(region["name"] == "train" for region in document["regions"]))
        self.assertEqual(bursts[0]["start_ns"], 2_000_000_000)
        self.assertAlmostEqual(bursts[0]["energy_counter_j"], 200, delta=2)
        self.assertAlmostEqual(bursts[0]["energy_integrated_j"], 175, delta=26)


class RunFolders(Results):
    def test_every_status_is_listed_and_only_good_runs_count(self):
        shutil.copytree(os.path.join(FIXTURES, "store"), self.dir)
        document = self.analysis()
        status = {run["run"]: run["status"] for run in document["runs"]}
        self.assertEqual(status["half"], "incomplete")
        self.assertEqual(status["cut"], "cut")
        half = next(run for run in document["runs"] if run["run"] == "half")
        self.assertIsNone(half["energy_j"])
        counted = {name for configuration in document["configurations"] for name in configuration["runs"]}
        self.assertIn("pair", counted)
        self.assertFalse(counted & {name for name, state in status.items() if state != "ok"})
        codes = {warning["code"] for warning in document["warnings"]}
        self.assertLessEqual({"cut", "incomplete", "failed", "simulated", "preliminary"}, codes)
        text = self.good("analyze", self.dir).stdout
        for words in ("Runs", "Configurations", "Warnings", "incomplete"):
            self.assertIn(words, text)

    def test_a_result_that_cannot_be_written_is_told(self):
        shutil.copytree(os.path.join(FIXTURES, "store"), self.dir)
        with open("/dev/full", "w") as full:
            done = subprocess.run([JOULEMARK, "analyze", self.dir, "--json"], stdout=full, stderr=subprocess.PIPE,
                                  text=True)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr, "joulemark: the result could not be written to standard output: "
                                      "No space left on device\n")

    def test_quiet_keeps_notes_away(self):
        shutil.copytree(os.path.join(FIXTURES, "store"), self.dir)
        os.mkdir(os.path.join(self.dir, "runs", "nothing"))
        self.assertIn("the first is nothing", self.good("analyze", self.dir).stderr)
        self.assertEqual(self.good("analyze", "--quiet", self.dir).stderr, "")

    def test_no_results_directory(self):
        self.refused(self.dir, "analyze", self.dir)


if __name__ == "__main__":
    unittest.main()

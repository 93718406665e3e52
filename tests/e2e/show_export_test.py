#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""joulemark show and export on the run folders of tests/fixtures/store."""

import csv
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

JOULEMARK = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark")
FIXTURE = os.path.join(os.environ["JOULEMARK_SOURCE"], "tests", "fixtures", "store")


def joulemark(*words):
    return subprocess.run([JOULEMARK, *words], capture_output=True, text=True, timeout=60)


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="joulemark-e2e-")
        self.addCleanup(self.folder.cleanup)
        self.dir = os.path.join(self.folder.name, "results")
        shutil.copytree(FIXTURE, self.dir)

    def good(self, *words):
        done = joulemark(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, code, sentence, *words):
        done = joulemark(*words)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, "one sentence: " + done.stderr)


class Show(Results):
    def test_lists_runs(self):
        text = self.good("show", self.dir).stdout
        rows = {line.split()[0]: line for line in text.splitlines()[2:]}
        self.assertEqual(sorted(rows), ["cut", "damaged", "half", "pair", "simulated"])
        self.assertIn("3500 J  gpu+cpu", rows["pair"])
        self.assertIn("2/2", rows["pair"])
        self.assertIn("incomplete", rows["half"])
        self.assertIn("1/2", rows["half"])
        self.assertIn("failed, simulated", rows["simulated"])

    def test_one_run_by_the_beginning_of_its_name(self):
        text = self.good("show", self.dir, "pa").stdout
        for words in ("pair: ok", "python train.py --lr 0.1", "Tesla V100", "epoch 1", "0.700", "top1_error 0.300",
                      "this processor has no DRAM domain", "chmod o+r", "power_w"):
            self.assertIn(words, text)

    def test_simulated_and_cut_are_said(self):
        self.assertIn("counter, simulated", self.good("show", self.dir, "simulated").stdout)
        cut = self.good("show", self.dir, "cut").stdout
        self.assertIn("it was killed, or is still running", cut)
        self.assertIn("epoch 1 (open)", cut)

    def test_warnings_name_file_and_line(self):
        self.assertIn("gpu.csv: 3 lines skipped that are no sample, the first is line 7",
                      self.good("show", self.dir, "damaged").stdout)

    def test_json_is_one_document(self):
        runs = {run["run"]: run for run in json.loads(self.good("show", self.dir, "--json").stdout)["runs"]}
        self.assertEqual(runs["pair"]["command"]["energy_j"], 3500)
        self.assertEqual(runs["pair"]["factors"]["workload"], "resnet50")
        one = json.loads(self.good("show", self.dir, "pair", "--json").stdout)
        epoch = [region for region in one["regions"] if region["name"] == "epoch"][0]
        self.assertAlmostEqual(epoch["joule_per_sample"], 0.7)
        self.assertEqual(epoch["energy_components"], "gpu+cpu")
        self.assertNotIn("sm_util_pct", epoch)

    def test_bad_input_is_one_sentence(self):
        self.refused(2, "there is no directory", "show", self.dir + "-nowhere")
        self.refused(2, "has no folder runs", "show", self.folder.name)
        self.refused(2, "there is no directory", "show", os.path.join(self.dir, "runs", "pair", "node-a", "run.json"))
        self.refused(2, "there is no run 'nothing'", "show", self.dir, "nothing")
        self.refused(2, "see joulemark show --help", "show", self.dir, "--colour")
        shutil.copytree(os.path.join(self.dir, "runs", "cut"), os.path.join(self.dir, "runs", "cute"))
        self.refused(2, "write more of the name", "show", self.dir, "cu")

    def test_a_directory_that_cannot_be_written_is_read_all_the_same(self):
        os.mkdir(os.path.join(self.dir, "joulemark.sqlite"))
        done = self.good("show", self.dir)
        self.assertIn("pair", done.stdout)
        self.assertIn("note: ", done.stderr)
        self.assertIn("the merge is a temporary one", done.stderr)

    def test_no_runs_yet(self):
        empty = os.path.join(self.folder.name, "empty")
        os.makedirs(os.path.join(empty, "runs"))
        self.assertEqual(self.good("show", empty).stdout, "no runs yet\n")
        self.assertEqual(json.loads(self.good("show", empty, "--json").stdout), {"runs": []})


class Export(Results):
    def table(self, name, out=None):
        with open(os.path.join(out or os.path.join(self.dir, "export"), name), newline="") as file:
            return list(csv.DictReader(file))

    def test_csv_holds_the_protocols_output(self):
        self.good("export", self.dir)
        samples = [row for row in self.table("timeseries.csv") if (row["run"], row["host"]) == ("pair", "node-b")]
        self.assertEqual(len(samples), 26)
        first = samples[0]
        self.assertEqual(float(first["time_s"]), -1)
        self.assertEqual([float(first[key]) for key in ("gpu_memory_util_pct", "gpu_busy_pct", "power_w")], [25, 40, 100])
        self.assertEqual(first["sm_util_pct"], "", "what was not measured is empty, not 0")
        self.assertEqual(samples[1]["power_w"], "")
        epoch = [row for row in self.table("epochs.csv") if row["run"] == "pair"][1]
        self.assertEqual(float(epoch["wall_time_s"]), 4)
        self.assertEqual(float(epoch["gpu_energy_j"]), 1200)
        self.assertEqual(float(epoch["cpu_energy_j"]), 200)
        self.assertEqual(epoch["dram_energy_j"], "")
        self.assertEqual(float(epoch["samples"]), 2000)
        runs = {row["run"]: row for row in self.table("runs.csv")}
        self.assertEqual(runs["pair"]["factor_power_cap_w"], "250")
        self.assertEqual(float(runs["pair"]["training_speed_s"]), 5)
        self.assertAlmostEqual(float(runs["pair"]["gpu_hours"]), 20 / 3600)
        self.assertEqual(runs["simulated"]["simulated"], "true")
        self.assertEqual(runs["half"]["status"], "incomplete")

    def test_jsonl_says_the_same_as_csv(self):
        out = os.path.join(self.folder.name, "deep", "tables")
        self.good("export", self.dir, "--format", "jsonl", "-d", out)
        self.good("export", self.dir, "-d", out)
        for name in ("timeseries", "epochs", "runs"):
            with open(os.path.join(out, name + ".jsonl")) as file:
                objects = [json.loads(line) for line in file]
            rows = self.table(name + ".csv", out)
            self.assertEqual(len(objects), len(rows))
            for found, row in zip(objects, rows):
                filled = {key: value for key, value in row.items() if value != ""}
                self.assertEqual(sorted(found), sorted(filled))
                for key, value in found.items():
                    if isinstance(value, bool):
                        self.assertEqual(str(value).lower(), filled[key])
                    elif isinstance(value, (int, float)):
                        self.assertEqual(value, float(filled[key]))
                    else:
                        self.assertEqual(value, filled[key])

    def test_bad_input_is_one_sentence(self):
        self.refused(2, "has no folder runs", "export", self.folder.name)
        self.refused(2, "--format", "export", self.dir, "--format", "xml")
        file = os.path.join(self.folder.name, "file")
        open(file, "w").close()
        self.refused(3, "cannot create the directory", "export", self.dir, "-d", file)

    def test_a_full_disk_leaves_no_half_table(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        out = os.path.join(self.folder.name, "out")
        os.mkdir(out)
        os.symlink("/dev/full", os.path.join(out, "timeseries.csv.tmp"))
        self.refused(3, "No space left on device", "export", self.dir, "-d", out)
        self.assertEqual(os.listdir(out), [])


class Copies(Results):
    def test_a_copied_host_counts_once_everywhere(self):
        runs = os.path.join(self.dir, "runs", "pair")
        shutil.copytree(os.path.join(runs, "node-a"), os.path.join(runs, "another-a"))
        self.assertIn("3500 J  gpu+cpu", self.good("show", self.dir).stdout)
        one = json.loads(self.good("show", self.dir, "pair", "--json").stdout)
        self.assertEqual((one["hosts"], one["command"]["energy_j"]), (["node-a", "node-b"], 3500))
        self.assertIn("copied_host", [warning["code"] for warning in one["warnings"]])
        self.good("export", self.dir)
        with open(os.path.join(self.dir, "export", "runs.csv"), newline="") as file:
            row, = [row for row in csv.DictReader(file) if row["run"] == "pair"]
        self.assertEqual((float(row["energy_j"]), row["received_hosts"]), (3500, "2"))
        analysis = json.loads(self.good("analyze", self.dir, "--json").stdout)
        self.assertEqual({run["run"]: run["energy_j"] for run in analysis["runs"]}["pair"], 3500)
        self.assertIn("copied_host", [warning["code"] for warning in analysis["warnings"]])


def places(value, path=()):
    """The path of every value inside a JSON document."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield path + (key,)
        yield from places(member, path + (key,))


class Damage(Results):
    def test_a_value_of_the_wrong_kind_stops_nothing(self):
        """Each value of run.json and end.json in turn replaced by others: a run per value, a host per replacement."""
        replacements = (1, "x", None, [], {}, [1], [None], {"x": [1]})
        original = os.path.join(self.dir, "runs", "pair", "node-a")
        documents = {}
        for name in ("run.json", "end.json"):
            with open(os.path.join(original, name)) as file:
                documents[name] = json.load(file)
        documents["run.json"].update(
            tags={"seed": 1}, study={"name": "s", "repeat": 0, "position": 1}, warnings=["one"],
            hardware={"cpu_model": "cpu", "cpus": 2, "memory_bytes": 8e9}, imported={"metrics": {"energy_j": 5.0}},
            controls={"power_cap_w": {"gpu0": {"requested": 200, "enforced": 100, "previous": 250}}},
            anchor={"monotonic_ns": 1, "realtime_ns": 2})
        documents["end.json"].update(
            warnings=["two"], signal=None, failed_ranks=[{"rank": 1, "exit_status": 3}],
            meter={"rows": 3, "lost": 0, "cpu_s": 0.1, "achieved_hz": {"nvml.gpu0": 9.9}, "jitter_s": {"nvml.gpu0": 0.1}})
        shutil.rmtree(os.path.join(self.dir, "runs"))
        runs = []
        for name, document in documents.items():
            for path in places(document):
                runs.append(f"{name}-{len(runs)}")
                for number, replacement in enumerate(replacements):
                    host = os.path.join(self.dir, "runs", runs[-1], f"host{number}")
                    os.makedirs(host)
                    damaged = json.loads(json.dumps(documents))
                    if path[0] != "imported":
                        del damaged["run.json"]["imported"]
                    damaged["run.json"]["boot_id"] = f"{runs[-1]} {number}"  # else it were a copy
                    inner = damaged[name]
                    for key in path[:-1]:
                        inner = inner[key]
                    inner[path[-1]] = replacement
                    for written, content in damaged.items():
                        with open(os.path.join(host, written), "w") as file:
                            json.dump(content, file)
        self.assertGreater(len(runs), 80)
        self.assertEqual(len(json.loads(self.good("analyze", self.dir, "--json").stdout)["runs"]), len(runs))
        self.good("analyze", self.dir)
        self.good("show", self.dir)
        self.good("show", self.dir, "--json")
        self.good("export", self.dir)
        for run in runs:
            self.good("show", self.dir, run)

    def test_the_damaged_member_is_named_and_the_rest_counts(self):
        path = os.path.join(self.dir, "runs", "pair", "node-a", "run.json")
        with open(path) as file:
            document = json.load(file)
        document["warnings"] = [1]
        with open(path, "w") as file:
            json.dump(document, file)
        shutil.rmtree(os.path.join(self.dir, "runs", "damaged"))  # its warning would be the one that names the code
        told = "run.json: warnings[0] is not of the kind it should be: taken as missing"
        self.assertIn(told, self.good("show", self.dir, "pair").stdout)
        analysis = json.loads(self.good("analyze", self.dir, "--json").stdout)
        self.assertIn(("damaged_file", f"pair: node-a: {told}"),
                      [(warning["code"], warning["text"]) for warning in analysis["warnings"]])
        self.assertEqual({run["run"]: run["energy_j"] for run in analysis["runs"]}["pair"], 3500)


class Database(Results):
    def test_the_documented_queries_work(self):
        self.good("show", self.dir)
        with open(os.path.join(os.environ["JOULEMARK_SOURCE"], "docs", "schema.md")) as file:
            queries = [block.split("```")[0] for block in file.read().split("```sql\n")[1:]]
        self.assertGreaterEqual(len(queries), 4)
        connection = sqlite3.connect(os.path.join(self.dir, "joulemark.sqlite"))
        self.addCleanup(connection.close)
        for query in queries:
            self.assertTrue(connection.execute(query).fetchall(), "gives rows: " + query)


if __name__ == "__main__":
    unittest.main()

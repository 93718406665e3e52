# SPDX-License-Identifier: Apache-2.0
"""`joulemark sweep` and `joulemark train` from the outside: the real binaries, real runs."""
import json
import os
import pathlib
import pty
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["JOULEMARK_BIN"])
# These studies are of CPUs and simulated GPUs; a real one of this machine would limit them.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
STUDIES = pathlib.Path(os.environ["JOULEMARK_SOURCE"]) / "studies"


def joulemark(*words, **options):
    return subprocess.run([BIN / "joulemark", *map(str, words)], text=True, capture_output=True, timeout=100,
                          **options)


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.out = self.folder / "out"

    def study(self, text):
        path = self.folder / "study.yaml"
        path.write_text(text)
        return path

    def sweep(self, text, *words):
        return joulemark("sweep", self.study(text), "-o", self.out, *words)

    def runs(self):
        return sorted(path.name for path in (self.out / "runs").iterdir())

    def end(self, run):
        (host,) = (self.out / "runs" / run).iterdir()
        return json.loads((host / "end.json").read_text())

    def command(self, script, more=""):
        return ("study: s\nworkload: {name: work, command: [sh, -c, " + json.dumps(script) + ", \"{x}\"]}\n"
                "factors: {x: [1, 2, 3]}\norder: as-listed\n" + more)

    def assert_one_sentence(self, result, status, *parts):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)


class Mistakes(Folder):
    def test_in_the_study_file_are_named_with_line_and_column(self):
        self.assert_one_sentence(self.sweep("study: s\nrepeet: 3\n"), 2, "study.yaml:2:1", "'repeats'")
        self.assert_one_sentence(self.sweep("study: s\nseed: 1\nseed: 2\n"), 2, "study.yaml:3:1", "twice")
        self.assert_one_sentence(self.sweep("study: [\n"), 2, "no valid YAML")
        self.assertFalse(self.out.exists())

    def test_on_the_command_line_are_named(self):
        self.assert_one_sentence(joulemark("sweep"), 2, "study")
        self.assert_one_sentence(joulemark("sweep", self.folder / "none.yaml"), 2, "none.yaml")
        self.assert_one_sentence(self.sweep(self.command("true"), "--budget", "40"), 2, "40kWh")
        self.assert_one_sentence(self.sweep(self.command("true"), "--json"), 2, "--dry-run")

    def test_a_directory_that_cannot_be_written_is_named(self):
        blocked = self.folder / "file"
        blocked.write_text("")
        result = joulemark("sweep", self.study(self.command("true")), "-o", blocked / "out")
        self.assert_one_sentence(result, 3, str(blocked))

    def test_a_missing_data_folder_stops_before_the_first_run(self):
        program = self.folder / "joulemark-train"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        environment = dict(os.environ, PATH=f"{self.folder}:/usr/bin:/bin")
        text = "study: s\nworkload: {model: resnet50, dataset: /nonexistent/data}\n"
        result = joulemark("sweep", self.study(text), "-o", self.out, env=environment)
        self.assert_one_sentence(result, 2, "/nonexistent/data", "docs/workloads.md")
        text = text.replace("}", ", make_dataset: make-data /nonexistent/data}")
        result = joulemark("sweep", self.study(text), "-o", self.out, env=environment)
        self.assert_one_sentence(result, 2, "/nonexistent/data", "make it with: make-data /nonexistent/data")


class Unheard(Folder):
    """Nobody reads the messages: the work and its exit status are the same."""
    def status(self, *words):
        with open("/dev/full", "w") as full:
            return subprocess.run([BIN / "joulemark", *map(str, words)], stderr=full, stdout=subprocess.DEVNULL,
                                  timeout=100).returncode

    def test_messages_leave_the_exit_status_as_it_is(self):
        self.assertEqual(self.status("run", "-o", "/proc/x", "--", "true"), 125)
        self.assertEqual(self.status("run", "--nope", "--", "true"), 2)
        self.assertEqual(self.status("run", "-o", self.out, "--", self.folder / "nosuch"), 127)
        self.assertEqual(self.status("run", "-o", self.out, "--", "sh", "-c", "exit 7"), 7)
        self.assertEqual(self.status("show", self.folder / "nodir"), 2)
        self.assertEqual(self.status("sweep", self.study(self.command("true")), "-o", self.folder / "swept"), 0)
        self.assertEqual(len(list((self.folder / "swept/runs").iterdir())), 3)

    def test_a_reader_that_went_away_does_not_end_a_sweep(self):
        reading, writing = os.pipe()
        os.close(reading)
        result = subprocess.run([BIN / "joulemark", "sweep", self.study(self.command("true")), "-o", self.out],
                                stderr=writing, timeout=100)
        os.close(writing)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(len(self.runs()), 3)


class DryRun(Folder):
    def dry_run(self, name):
        result = joulemark("sweep", STUDIES / name, "--dry-run", "--json", "-o", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(self.out.exists())
        return json.loads(result.stdout)

    def test_lists_the_complete_grids_with_their_gpu_hours(self):
        frey = self.dry_run("frey2022.yaml")
        self.assertEqual(len(frey["runs"]), 10 * 9 * 3 * 3 * 5)
        huber = self.dry_run("huber2025.yaml")
        self.assertEqual(len(huber["runs"]), (5 + 4 + 9) * 5 + 4 + 3)
        for run in frey["runs"] + huber["runs"]:
            self.assertGreater(run["gpu_hours"], 0, run["run"])
            self.assertTrue(run["gpu_hours_source"])
        # Published: 113.976 GPU hours at 256 GPUs and global batch 8192, so 30.8 to 35.3 kWh (33.257 measured).
        (largest,) = (run for run in huber["runs"] if run["run"] == "gbs8192-resnet50-g256-gb8192-r1")
        self.assertEqual(largest["factors"]["local_batch"], 32)
        self.assertLess(largest["energy_kwh"][0], 33.257)
        self.assertGreater(largest["energy_kwh"][1], 33.257)

    def test_tells_what_a_sweep_would_run_into(self):
        path = self.study("study: s\nlauncher: mpirun\ngpus_per_node: 4\n"
                          "workload: {model: resnet50, dataset: /nonexistent/data, make_dataset: make it so}\n"
                          "factors: {power_cap_w: [100, 200]}\n")
        words = ["sweep", path, "--dry-run", "-o", self.out]
        text = joulemark(*words, env=dict(os.environ, PATH="/nonexistent"))
        self.assertEqual(text.returncode, 0, text.stderr)
        problems = [line for line in text.stdout.splitlines() if line.startswith("problem: ")]
        for part in ("make it with: make it so", "'mpirun'", "2 of 2 runs set power caps"):
            self.assertEqual(len([line for line in problems if part in line]), 1, (part, problems))
        document = json.loads(joulemark(*words, "--json", env=dict(os.environ, PATH="/nonexistent")).stdout)
        self.assertEqual(["problem: " + problem for problem in document["problems"]], problems)

    def test_of_a_changed_study_is_refused_by_nobody(self):
        self.assertEqual(self.sweep(self.command("true")).returncode, 0)
        result = self.sweep(self.command("false"), "--dry-run")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, "problem: .*has changed since")

    def test_as_text_ends_with_the_totals(self):
        result = joulemark("sweep", STUDIES / "quick.yaml", "--dry-run")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("study quick: 12 runs, 0 of them skipped", result.stdout)


class Runs(Folder):
    def test_are_recorded_with_their_configuration_and_not_made_twice(self):
        text = self.command("echo $0 >> " + str(self.folder / "calls"), "repeats: 2\n")
        self.assertEqual(self.sweep(text).returncode, 0)
        self.assertEqual(self.runs(), [f"work-x{x}-r{r}" for x in (1, 2, 3) for r in (1, 2)])
        self.assertEqual(self.sweep(text).returncode, 0)
        self.assertEqual((self.folder / "calls").read_text().split(), ["1", "2", "3"] * 2)
        (host,) = (self.out / "runs/work-x2-r2").iterdir()
        run = json.loads((host / "run.json").read_text())
        self.assertEqual(run["study"], {"name": "s", "repeat": 2, "position": 5})
        self.assertEqual(run["factors"]["x"], 2)

    def test_added_to_the_study_are_made_and_any_other_change_is_refused(self):
        self.assertEqual(self.sweep(self.command("true")).returncode, 0)
        self.assertEqual(self.sweep(self.command("true", "repeats: 2\n")).returncode, 0)
        self.assertEqual(len(self.runs()), 6)
        self.assert_one_sentence(self.sweep(self.command("false", "repeats: 2\n")), 2, "has changed", "-o")

    def test_that_fail_do_not_stop_the_others(self):
        result = self.sweep(self.command("[ $0 != 2 ]"))
        self.assertEqual(result.returncode, 3)
        self.assertEqual([self.end(f"work-x{x}-r1")["exit_status"] for x in (1, 2, 3)], [0, 1, 0])
        self.assertIn("2 of 3 runs done, 1 failed", result.stderr)

    def test_that_refuse_their_arguments_end_the_sweep_with_the_programs_sentence(self):
        text = ("study: s\nworkload: {model: simulated, samples: 1000, set: {no_such_option: 3}}\n"
                "factors: {gpus: [1, 2, 4]}\nsimulation: {accelerator: V100}\n")
        result = self.sweep(text)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("so no other is made", result.stderr)
        self.assertIn("no-such-option", result.stderr)
        self.assertEqual(len(self.runs()), 1)

    def test_under_mpirun_have_as_many_ranks_as_gpus(self):
        text = ("study: s\nworkload: {name: work, command: [sh, -c, 'echo rank $OMPI_COMM_WORLD_RANK']}\n"
                "factors: {gpus: [3]}\nlauncher: mpirun\n")
        result = self.sweep(text)
        log = (self.out / "logs/work-g3-r1.log").read_text()
        self.assertEqual(result.returncode, 0, result.stderr + log)
        self.assertEqual(sorted(line for line in log.splitlines() if line.startswith("rank ")),
                         ["rank 0", "rank 1", "rank 2"])

    def test_on_simulated_gpus_are_marked_simulated(self):
        text = ("study: s\nworkload: {model: simulated, epochs: 2, warmup_epochs: 1, samples: 10000}\n"
                "factors: {gpus: [1, 2], power_cap_w: [150, 250], local_batch: [128]}\n"
                "simulation: {accelerator: V100, seed: 7}\n")
        result = self.sweep(text)
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in result.stderr.splitlines()[:-1]:
            self.assertRegex(line, r" of real time, .* \(simulated\); \d of 4 runs done")
        self.assertEqual(len(self.runs()), 4)
        for run in self.runs():
            (host,) = (self.out / "runs" / run).iterdir()
            record = json.loads((host / "run.json").read_text())
            self.assertTrue(record["simulated"])
            self.assertEqual(len([d for d in record["devices"] if d["component"] == "gpu"]), record["factors"]["gpus"])

    def test_on_simulated_gpus_that_fail_silently_have_no_last_line(self):
        text = "study: s\nworkload: {name: work, command: [sh, -c, 'exit 4']}\nsimulation: {accelerator: V100}\n"
        result = self.sweep(text)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("failed: exit status 4; its output is in", result.stderr)

    def test_on_gpus_that_refuse_a_level_are_skipped_with_the_reason(self):
        text = ("study: s\nworkload: {model: simulated, samples: 10000}\nrepeats: 2\n"
                "factors: {power_cap_w: [20, 250], local_batch: [128]}\nsimulation: {accelerator: V100}\n")
        result = self.sweep(text)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.runs()), 2)
        self.assertRegex(result.stderr, "cap20-.*skipped: .*20")


    def test_that_failed_are_made_with_the_same_options_that_the_hint_repeats(self):
        path = self.folder / "my study.yaml"
        words = ["sweep", str(path), "-o", str(self.out), "--budget", "40 kWh", "--keep-going"]
        path.write_text(self.command("[ $0 != 2 ]"))
        result = joulemark(*words)
        self.assertEqual(result.returncode, 3)
        hint = result.stderr.splitlines()[-1].partition("with: ")[2]
        self.assertEqual(shlex.split(hint), ["joulemark", *words])
        rehearsed = ["sweep", str(STUDIES / "quick.yaml"), "-o", str(self.folder / "r"), "--budget", "1J",
                     "--simulate", "A100", "--truth", '{"gpu_exponent": 0.9}']
        hint = joulemark(*rehearsed).stderr.splitlines()[-1].partition("with: ")[2]
        self.assertEqual(shlex.split(hint), ["joulemark", *rehearsed])


class Interrupted(Folder):
    def wait_for(self, path):
        deadline = time.monotonic() + 30
        while not path.exists():
            self.assertLess(time.monotonic(), deadline, f"{path} never came")
            time.sleep(0.05)

    def test_by_ctrl_c_reaches_the_run_once_and_goes_on_later(self):
        started, caught = self.folder / "started", self.folder / "caught"
        script = f"if [ $0 = 2 ] && [ ! -e {caught} ]; then trap 'echo INT >> {caught}; exit 1' INT; touch {started}; sleep 30 & wait; fi"
        path = self.study(self.command(script))
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(BIN / "joulemark", ["joulemark", "sweep", str(path), "-o", str(self.out)])
        self.wait_for(started)
        os.write(terminal, b"\x03")
        output = b""
        try:
            while block := os.read(terminal, 4096):
                output += block
        except OSError:  # the terminal's other end was closed
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertEqual(status, 130, output)
        self.assertRegex(output, b"1 of 3 runs done[^;]*; stopped by signal 2, go on with: joulemark sweep")
        self.assertEqual(caught.read_text(), "INT\n")
        self.assertEqual(self.sweep(self.command(script)).returncode, 0)
        self.assertEqual(len(self.runs()), 3)
        self.assertTrue((self.out / "superseded/work-x2-r1-1").is_dir())

    def test_by_kill_9_leaves_no_lock_and_no_run_behind(self):
        started = self.folder / "started"
        script = f"if [ $0 = 2 ] && [ ! -e {started} ]; then touch {started}; exec sleep 60; fi"
        process = subprocess.Popen([BIN / "joulemark", "sweep", self.study(self.command(script)), "-o", self.out],
                                   stderr=subprocess.DEVNULL)
        self.wait_for(started)
        second = self.sweep(self.command(script))
        self.assert_one_sentence(second, 3, "another sweep is at work")
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.wait_for(next((self.out / "runs/work-x2-r1").iterdir()) / "end.json")
        result = self.sweep(self.command(script))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([self.end(run)["exit_status"] for run in self.runs()], [0, 0, 0])


class Train(Folder):
    def test_hands_over_to_the_program_beside_it(self):
        copy = shutil.copy(BIN / "joulemark", self.folder)
        alone = subprocess.run([copy, "train", "resnet50"], text=True, capture_output=True, env={"PATH": "/nonexistent"})
        self.assert_one_sentence(alone, 3, "joulemark-train", "scripts/deps.sh")
        program = self.folder / "joulemark-train"
        program.write_text("#!/bin/sh\necho \"$@\"\nexit 7\n")
        program.chmod(0o755)
        result = subprocess.run([copy, "train", "resnet50", "--epochs", "2"], text=True, capture_output=True)
        self.assertEqual((result.returncode, result.stdout), (7, "resnet50 --epochs 2\n"))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""`joulemark run` as a user meets it: statuses, signals, terminals, crashes, full disks."""

import csv
import glob
import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

JOULEMARK = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark")

# Counts signals into a file until told to end, then leaves with status 9.
COUNTING = textwrap.dedent(
    """
    import signal, sys, time
    counts = {}
    def count(number, frame):
        counts[number] = counts.get(number, 0) + 1
    numbers = [int(n) for n in sys.argv[3].split(",")]
    for number in numbers:
        signal.signal(number, count)
    open(sys.argv[1], "w").write("ready")
    while not set(numbers) <= set(counts):
        time.sleep(0.01)
    time.sleep(0.3)  # for a second one, if there is one
    open(sys.argv[2], "w").write(" ".join(f"{n}:{counts[n]}" for n in numbers))
    sys.exit(9)
    """
)


def until(condition, what, seconds=60):
    """Waits for something that must happen."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen in {seconds} s")
        time.sleep(0.01)


def children_of(process):
    """Its children, whichever of its threads started them; those that have ended are gone."""
    children = []
    for path in glob.glob(f"/proc/{process.pid}/task/*/children"):
        try:
            with open(path) as file:
                children += [int(pid) for pid in file.read().split()]
        except OSError:
            pass
    return children


def table(path):
    """Rows of complete lines, as a reader takes them."""
    with open(path, newline="") as file:
        text = file.read()
    return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.results = os.path.join(self.folder.name, "results")
        os.environ["XDG_RUNTIME_DIR"] = self.folder.name  # so that killed meters leave their sockets here

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def command(self, *words, options=()):
        return [JOULEMARK, "run", "-o", self.results, *options, "--", *words]

    def run_metered(self, *words, options=(), **keywords):
        keywords = {"capture_output": True, "text": True, "timeout": 100, **keywords}
        return subprocess.run(self.command(*words, options=options), **keywords)

    def start(self, *words, options=(), **keywords):
        process = subprocess.Popen(self.command(*words, options=options), stderr=subprocess.PIPE, **keywords)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def host_folder(self):
        (folder,) = glob.glob(os.path.join(self.results, "runs", "*", "*"))
        return folder

    def document(self, name):
        with open(os.path.join(self.host_folder(), name)) as file:
            return json.load(file)

    def regions(self):
        return table(os.path.join(self.host_folder(), "regions.csv"))


class Statuses(RunTest):
    def test_the_commands_own_status(self):
        for status in (0, 1, 7, 255):
            done = self.run_metered("sh", "-c", f"exit {status}")
            self.assertEqual(done.returncode, status)

    def test_a_signal_is_128_and_its_number(self):
        for name, number in (("TERM", 15), ("KILL", 9), ("SEGV", 11)):
            done = self.run_metered("sh", "-c", f"kill -{name} $$", options=["--run-id", name])
            self.assertEqual(done.returncode, 128 + number)
        with open(glob.glob(os.path.join(self.results, "runs", "KILL", "*", "end.json"))[0]) as file:
            end = json.load(file)
        self.assertEqual(end["signal"], 9)
        self.assertEqual(end["exit_status"], 137)

    def test_not_found_is_127(self):
        done = self.run_metered("no-such-command-anywhere")
        self.assertEqual(done.returncode, 127)
        self.assertIn("joulemark: command not found: no-such-command-anywhere\n", done.stderr)

    def test_not_executable_is_126(self):
        plain = self.path("plain")
        open(plain, "w").close()
        for word in (plain, self.folder.name):
            self.assertEqual(self.run_metered(word).returncode, 126)

    def test_a_script_without_an_interpreter_line_runs(self):
        script = self.path("script")
        with open(script, "w") as file:
            file.write("exit 4\n")
        os.chmod(script, 0o755)
        self.assertEqual(self.run_metered(script).returncode, 4)

    def test_wrong_options_are_2_and_one_sentence(self):
        for options in (
            ["--no-such-option"],
            ["--rate", "0"],
            ["--rate", "fast"],
            ["--tag", "novalue"],
            ["--estimate", "gpu"],
            ["--epoch-regex", "("],
            ["--run-id", "a/b"],
            ["--run-id", ""],
            ["--run-id", "x" * 400],
            ["-o", ""],
            ["--power-cap-w", "-5"],
            ["--idle-s", "-1"],
            ["--factor", "gpus=-3"],
            ["--repeat", "-1"],
            ["--position", "-1"],
            ["--epoch-regex", ""],
            ["--epoch-end-regex", ""],
            ["--epoch-end-regex", "("],
            ["--epoch-regex", "a", "--epoch-end-regex", "b"],
        ):
            done = self.run_metered("true", options=options)
            self.assertEqual(done.returncode, 2, options)
            self.assertRegex(done.stderr, r"\Ajoulemark: [^\n]+\n\Z", options)
        for options, said in ((["--rate", "abc"], "--rate 'abc' is no number"),
                              (["--repeat", "1.5"], "--repeat '1.5' is no whole number")):
            self.assertIn(said, self.run_metered("true", options=options).stderr)
        done = subprocess.run([JOULEMARK, "run", "--help"], capture_output=True, text=True)
        self.assertIn("\nUsage: joulemark run [OPTIONS] -- COMMAND [ARGUMENTS]\n", done.stdout)
        done = subprocess.run([JOULEMARK, "run", "-o", self.results], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.run_metered("").returncode, 2)
        self.assertFalse(os.path.exists(self.results))

    def test_a_results_directory_that_cannot_be_is_125(self):
        blocked = self.path("file")
        open(blocked, "w").close()
        for directory in (os.path.join(blocked, "results"), "/proc/results"):
            done = subprocess.run(
                [JOULEMARK, "run", "-o", directory, "--", "touch", self.path("ran")], capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 125)
            self.assertRegex(done.stderr, r"\Ajoulemark: [^\n]+results[^\n]*\n\Z")
        self.assertFalse(os.path.exists(self.path("ran")))

    @unittest.skipUnless(os.geteuid() == 0, "needs a directory that is closed to the user")
    def test_a_closed_directory_is_told_as_such(self):
        closed = self.path("closed")
        os.mkdir(closed, 0o700)
        os.chmod(self.folder.name, 0o755)
        inside = os.path.join(closed, "x")
        for words, status in ((["run", "-o", inside, "--", "true"], 125), (["import", inside, "-o", self.results], 2),
                              (["show", inside], 2)):
            done = subprocess.run([JOULEMARK, *words], capture_output=True, text=True, user=65534)
            self.assertEqual(done.returncode, status, words)
            self.assertRegex(done.stderr, r"\Ajoulemark: [^\n]*closed/x[^\n]*: Permission denied\n\Z")

    def test_a_file_size_limit_is_told_and_not_inherited(self):
        self.run_metered("true", options=["--run-id", "x"])
        def limit(size):
            return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))}

        done = subprocess.run([JOULEMARK, "export", self.results, "-d", self.path("tables")],
                              capture_output=True, text=True, **limit(1000))
        self.assertEqual(done.returncode, 3, done)
        self.assertRegex(done.stderr, r"\Ajoulemark: [^\n]+\n\Z")
        self.assertEqual(self.run_metered("true", **limit(1000)).returncode, 125)  # no room for run.json
        metered = self.run_metered("sh", "-c", f"head -c 2000000 /dev/zero >{self.path('large')}", **limit(1_000_000))
        self.assertEqual(metered.returncode, 128 + signal.SIGXFSZ)

    def test_a_run_id_is_used_once(self):
        self.assertEqual(self.run_metered("true", options=["--run-id", "x"]).returncode, 0)
        self.assertEqual(self.run_metered("true", options=["--run-id", "x"]).returncode, 125)


class Streams(RunTest):
    def test_stay_those_of_the_caller(self):
        with open(self.path("out"), "wb") as out:
            done = subprocess.run(
                self.command("sh", "-c", "readlink /proc/self/fd/1; cat; echo error >&2", options=["-q"]),
                input=b"\x00in\xff",
                stdout=out,
                stderr=subprocess.PIPE,
            )
        with open(self.path("out"), "rb") as file:
            self.assertEqual(file.read(), self.path("out").encode() + b"\n\x00in\xff")
        self.assertEqual(done.stderr, b"error\n")

    def test_no_descriptor_leaks_into_the_command(self):
        done = self.run_metered("sh", "-c", "ls /proc/self/fd | wc -l")
        plain = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l"], capture_output=True, text=True)
        self.assertEqual(done.stdout, plain.stdout)

    def test_signal_settings_are_as_without_the_meter(self):
        words = ["sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"]

        def masks(output):
            # 32 and 33 are the C library's own, which posix_spawn ignores in every program it starts.
            return [int(line.split()[1], 16) & ~(3 << 31) for line in output.splitlines()]

        plain = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(masks(self.run_metered(*words).stdout), masks(plain.stdout))

    def test_tapped_output_is_the_same_bytes(self):
        data = bytes(range(256)) * 4096
        with open(self.path("data"), "wb") as file:
            file.write(data)
        done = self.run_metered("cat", self.path("data"), options=["--mllog", "--epoch-regex", "z+"], text=False)
        self.assertEqual(done.stdout, data)

    def test_tapped_streams_of_one_file_keep_their_order(self):
        script = "for i in $(seq 500); do echo out $i; echo error $i >&2; done"
        done = self.run_metered("sh", "-c", script, options=["-q", "--mllog"], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, capture_output=False)
        self.assertEqual(done.stdout, "".join(f"out {i}\nerror {i}\n" for i in range(1, 501)))

    def test_tapped_streams_of_two_files_stay_two(self):
        done = self.run_metered("sh", "-c", "echo out; echo error >&2", options=["-q", "--epoch-regex", "x+"])
        self.assertIn("error\n", done.stderr)
        self.assertEqual(done.stdout, "out\n")

    def test_a_closed_stream_stays_closed_and_no_file_takes_its_place(self):
        closed = self.run_metered("sh", "-c", "test -e /proc/self/fd/2 || echo closed", preexec_fn=lambda: os.close(2))
        self.assertEqual(closed.stdout, "closed\n")
        for path in glob.glob(os.path.join(self.host_folder(), "*")):
            with open(path) as file:
                self.assertNotIn("joulemark: ", file.read(), path)

    def test_tapped_output_arrives_at_once(self):
        process = self.start("sh", "-c", "printf partial; read line; echo $line",
                             options=["--mllog"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(os.read(process.stdout.fileno(), 100), b"partial")
        out, _ = process.communicate(b"answer\n")
        self.assertEqual(out, b"answer\n")

    def test_a_reader_that_goes_away_ends_a_tapped_command(self):
        process = self.start("yes", options=["--mllog"], stdout=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual(process.wait(60), 128 + signal.SIGPIPE)


class Marks(RunTest):
    def test_mlperf_lines(self):
        lines = "\n".join(
            ":::MLLOG " + json.dumps({"key": key, "value": value, "metadata": {"epoch_num": 1}})
            for key, value in (("train_samples", 640), ("epoch_start", None), ("epoch_stop", None))
        )
        script = 'while read -r line; do echo "$line"; sleep 0.2; done'  # in one write they would have no times
        done = self.run_metered("sh", "-c", script, options=["--mllog"], input=lines + "\n")
        self.assertEqual(done.stdout, lines + "\n")
        rows = [row for row in self.regions() if row["source"] == "mllog"]
        self.assertEqual([(r["event"], r["name"], r["index"]) for r in rows],
                         [("config", "", ""), ("begin", "epoch", "1"), ("end", "epoch", "1")])
        self.assertEqual(rows[2]["samples"], "640")

    def test_a_regular_expression(self):
        script = "for i in 1 2 3; do echo Epoch $i loss 0.$i; sleep 0.2; done"
        self.run_metered("sh", "-c", script, options=["--epoch-regex", r"^Epoch \d+ loss (?<loss>\S+)"])
        rows = [row for row in self.regions() if row["source"] == "regex"]
        self.assertEqual([r["event"] for r in rows], ["begin", "end", "begin", "end", "begin", "end"])
        self.assertEqual([r["index"] for r in rows], ["0", "0", "1", "1", "2", "2"])
        self.assertEqual([r["loss"] for r in rows], ["", "0.2", "", "0.3", "", ""])

    def epochs(self, script, *options):
        """Their durations in seconds, and what the summary says."""
        done = self.run_metered("sh", "-c", script, options=options)
        begins, epochs = {}, []
        for row in self.regions():
            if row["source"] == "regex" and row["event"] == "begin":
                begins[row["index"]] = int(row["time_ns"])
            elif row["source"] == "regex" and row["event"] == "end":
                epochs.append((int(row["time_ns"]) - begins[row["index"]]) / 1e9)
        self.assertEqual([line for line in self.document("end.json")["warnings"] if line not in done.stderr], [])
        return epochs, done.stderr

    def test_lines_at_the_ends_of_epochs(self):
        script = "for i in 1 2 3; do sleep 0.4; echo Epoch $i done; done"
        epochs, said = self.epochs(script, "--epoch-end-regex", r"^Epoch (\d+)")
        self.assertEqual(len(epochs), 3)
        self.assertTrue(all(0.35 < epoch < 0.8 for epoch in epochs), epochs)
        self.assertIn("epochs   3, mean 4", said)
        self.assertNotIn("warning  --epoch", said)

    def test_lines_taken_for_begins_are_told_to_look_like_ends(self):
        script = "for i in 1 2 3; do sleep 0.5; echo Epoch $i done; done"
        epochs, said = self.epochs(script, "--epoch-regex", r"^Epoch (\d+)")
        self.assertIn("give the pattern as --epoch-end-regex", said)

    def test_lines_of_one_epoch_on_standard_error(self):
        script = (r"for e in 0 1; do for s in 0 1; do printf '\rEpoch %s step %s' $e $s >&2; sleep 0.2; done; done; "
                  "echo >&2")
        epochs, said = self.epochs(script, "--epoch-regex", r"Epoch (\d+)")
        self.assertEqual(len(epochs), 2)
        self.assertIn("\nEpoch 1 step 1\n", said)  # text mode: of '\\r'

    def test_a_python_that_buffers_is_asked_not_to(self):
        script = f"{sys.executable} -c 'import time\nfor i in range(3): print(f\"Epoch {{i}}\"); time.sleep(0.4)'"
        epochs, said = self.epochs(script, "--epoch-regex", r"^Epoch (\d+)")
        self.assertEqual(len(epochs), 3)
        self.assertTrue(all(0.3 < epoch < 1 for epoch in epochs), epochs)

    def test_lines_that_were_held_back_mark_nothing_and_say_so(self):
        script = r"sleep 0.3; printf 'Epoch 0\nEpoch 1\nEpoch 2\n'"
        epochs, said = self.epochs(script, "--epoch-regex", r"^Epoch (\d+)")
        self.assertEqual(epochs, [])
        self.assertIn("the times of 3 regions are not known", said)

    def test_a_pattern_that_matches_nothing_is_told(self):
        for i, options in enumerate((["--epoch-regex", "^Epcoh"], ["--mllog"])):
            done = self.run_metered("sh", "-c", "echo Epoch 0; echo Epoch 1 >&2", options=[*options, "--run-id", f"r{i}"])
            self.assertIn(" matched no line of the 2 on standard output and standard error", done.stderr)

    def test_the_command_and_idle_time_are_regions(self):
        self.run_metered("true", options=["--idle-s", "0.2"])
        rows = [(r["event"], r["name"]) for r in self.regions()]
        names = ["joulemark.idle_before", "joulemark.command", "joulemark.idle_after"]
        self.assertEqual(rows, [(event, name) for name in names for event in ("begin", "end")])
        times = [int(r["time_ns"]) for r in self.regions()]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(times[1] - times[0], 200_000_000)


class Documents(RunTest):
    def test_what_was_asked_for_is_kept(self):
        self.run_metered("true", "--flag", "[a]", options=[
            "--name", "my run", "--tag", "who=me", "--tag", "why=a=b", "--factor", "gpus=4", "--factor", "model=r",
            "--study", "s", "--repeat", "2", "--position", "5", "--expected-hosts", "a,b", "--rate", "50"])
        run = self.document("run.json")
        self.assertEqual(run["command"], ["true", "--flag", "[a]"])
        self.assertEqual(run["name"], "my run")
        self.assertEqual(run["tags"], {"who": "me", "why": "a=b"})
        self.assertEqual(run["factors"], {"gpus": 4, "model": "r"})
        self.assertEqual(run["study"], {"name": "s", "repeat": 2, "position": 5})
        self.assertEqual(run["expected_hosts"], ["a", "b"])
        self.assertEqual(run["rate_hz"], 50)
        self.assertEqual(run["clock"], "monotonic")
        end = self.document("end.json")
        self.assertEqual(end["exit_status"], 0)
        self.assertIsNone(end["signal"])
        self.assertEqual(end["meter"]["lost"], 0)
        self.assertGreater(end["meter"]["max_rss_bytes"], 0)
        self.assertGreaterEqual(end["end_ns"], run["start_ns"])

    def test_command_lines_of_any_bytes(self):
        done = self.run_metered("true", b"\xff\xfe")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(self.document("run.json")["command"]), 2)

    def test_samples_cover_the_command(self):
        self.run_metered("sleep", "0.5", options=["--rate", "50"])
        rows = [r for r in table(os.path.join(self.host_folder(), "node.csv")) if r["memory_used_bytes"]]
        times = [int(r["time_ns"]) for r in rows]
        command = [int(r["time_ns"]) for r in self.regions() if r["name"] == "joulemark.command"]
        self.assertLessEqual(times[0], command[0])
        self.assertGreaterEqual(times[-1], command[1])
        self.assertGreater(len(times), 2)

    def test_quiet_is_quiet(self):
        self.assertEqual(self.run_metered("true", options=["--quiet"]).stderr, "")
        self.assertIn("exit status 0", self.run_metered("true").stderr)


class Signals(RunTest):
    def counting(self, numbers):
        return ("python3", "-c", COUNTING, self.path("ready"), self.path("counts"), ",".join(str(n) for n in numbers))

    def counts(self):
        with open(self.path("counts")) as file:
            return file.read()

    def test_sent_to_the_meter_reach_the_command_once(self):
        numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT]
        process = self.start(*self.counting([int(n) for n in numbers]))
        until(lambda: os.path.exists(self.path("ready")), "start")
        for number in numbers:
            process.send_signal(number)
        self.assertEqual(process.wait(60), 9)
        self.assertEqual(self.counts(), " ".join(f"{int(n)}:1" for n in numbers))

    def on_terminal(self, words, feed, when):
        """Runs `words` on a pseudo-terminal; types `feed` once `when` holds. Its status and what it printed."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(words[0], words)
        printed = b""
        fed = False
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if not fed and when(printed):
                os.write(terminal, feed)
                fed = True
            if select.select([terminal], [], [], 0.01)[0]:
                try:
                    block = os.read(terminal, 65536)
                except OSError:
                    break
                if not block:
                    break
                printed += block
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        return os.waitstatus_to_exitcode(status), printed

    def test_ctrl_c_reaches_the_command_once(self):
        for options in ([], ["--mllog"]):
            with self.subTest(options=options):
                words = self.command(*self.counting([int(signal.SIGINT)]), options=options)
                status, _ = self.on_terminal(words, b"\x03", lambda _: os.path.exists(self.path("ready")))
                self.assertEqual(status, 9)
                self.assertEqual(self.counts(), "2:1")
                os.remove(self.path("ready"))

    def test_ctrl_c_ends_a_command_that_does_not_catch_it(self):
        words = self.command("sh", "-c", "echo started; exec sleep 60")
        status, printed = self.on_terminal(words, b"\x03", lambda printed: b"started" in printed)
        self.assertEqual(status, 130)
        self.assertIn(b"ended by signal 2", printed)

    def test_a_tapped_command_still_sees_a_terminal(self):
        words = self.command("sh", "-c", "test -t 1 && test -t 2 && echo terminal; stty size <&1",
                             options=["--epoch-regex", "x"])
        status, printed = self.on_terminal(words, b"", lambda _: True)
        self.assertEqual(status, 0)
        self.assertTrue(printed.startswith(b"terminal\r\n"), printed)

    def test_an_end_during_idle_time_starts_no_command(self):
        process = self.start("touch", self.path("ran"), options=["--idle-s", "60"])
        until(lambda: glob.glob(os.path.join(self.results, "runs", "*", "*", "regions.csv")), "start")
        process.terminate()
        self.assertEqual(process.wait(60), 143)
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertEqual(self.document("end.json")["exit_status"], 143)

    def test_after_the_command_has_ended_change_nothing(self):
        for i in range(10):
            process = self.start("sh", "-c", "exit 7", options=["-q", "--idle-s", "0.1", "--run-id", f"r{i}"])
            host = os.path.join(self.results, "runs", f"r{i}", "*")
            ended = lambda: [row for path in glob.glob(os.path.join(host, "regions.csv")) for row in table(path)
                             if row["name"] == "joulemark.idle_after"]
            until(ended, "the command's end")
            while process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGINT)
            self.assertEqual(process.returncode, 7)
            (path,) = glob.glob(os.path.join(host, "end.json"))
            with open(path) as file:
                end = json.load(file)
            self.assertEqual((end["exit_status"], end["signal"]), (7, None))


class Crashes(RunTest):
    def test_kill_9_leaves_the_data_and_the_command(self):
        process = self.start("sh", "-c", "read line; echo done > $0", self.path("done"),
                             options=["--rate", "100"], stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        rows = lambda: table(glob.glob(os.path.join(self.results, "runs", "*", "*", "node.csv"))[0])
        until(lambda: glob.glob(os.path.join(self.results, "runs", "*", "*", "node.csv")) and len(rows()) > 50, "data")
        before = len(rows())
        process.kill()
        process.wait()
        self.assertGreaterEqual(len(rows()), before)
        times = [int(row["time_ns"]) for row in rows()]
        self.assertEqual(times, sorted(times))
        self.assertFalse(os.path.exists(os.path.join(self.host_folder(), "end.json")))
        self.assertEqual(self.document("run.json")["schema"], 1)
        # The command goes on by itself.
        process.stdin.write(b"\n")
        process.stdin.flush()
        until(lambda: os.path.exists(self.path("done")), "the command's own end")

    def test_kill_9_at_random_moments(self):
        for i in range(20):
            process = self.start("sleep", "60", options=["--rate", "1000", "--run-id", f"r{i}"])
            time.sleep(0.02 * i)
            orphans = children_of(process)
            process.kill()
            process.wait()
            for orphan in orphans:
                os.kill(orphan, signal.SIGKILL)
            for path in glob.glob(os.path.join(self.results, "runs", f"r{i}", "*", "*.csv")):
                for row in table(path):
                    self.assertNotIn(None, row.values(), path)  # too few fields
                    self.assertNotIn(None, row, path)  # too many
            for path in glob.glob(os.path.join(self.results, "runs", f"r{i}", "*", "*.json")):
                with open(path) as file:
                    json.load(file)

    def test_a_script_that_exits_keeps_its_data(self):
        script = "import sys, joulemark\njoulemark.begin('epoch')\nsys.exit(3)"
        environment = {**os.environ, "PYTHONPATH": os.path.join(os.environ["JOULEMARK_SOURCE"], "python")}
        self.assertEqual(self.run_metered("python3", "-c", script, env=environment).returncode, 3)
        self.assertIn(("begin", "epoch"), [(r["event"], r["name"]) for r in self.regions()])
        self.assertEqual(self.document("end.json")["exit_status"], 3)

    def test_a_descendant_left_behind_holds_nothing_up(self):
        for options in ([], ["--mllog"]):
            with self.subTest(options=options):
                # It keeps standard output open, and lives until the test's folder goes.
                script = f"(while test -d {self.folder.name}; do sleep 0.1; done) & echo out; exit 5"
                with open(self.path("out"), "w") as out:
                    done = self.run_metered("sh", "-c", script, options=options, capture_output=False, stdout=out,
                                            stderr=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 5)
                with open(self.path("out")) as file:
                    self.assertEqual(file.read(), "out\n")

    def test_no_room_for_threads_is_told_as_such(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_STACK, (8 << 30, resource.RLIM_INFINITY))  # each thread's
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

        if subprocess.run([JOULEMARK, "--version"], capture_output=True, preexec_fn=limit).returncode != 0:
            self.skipTest("this build needs more address space")
        self.assertEqual(self.run_metered("true").returncode, 0)
        done = subprocess.run([JOULEMARK, "analyze", self.results], capture_output=True, text=True, preexec_fn=limit)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"\Ajoulemark: the system's limits leave no room to work[^\n]+\n\Z")
        done = self.run_metered("true", options=["--run-id", "x"], preexec_fn=limit)
        self.assertEqual(done.returncode, 125)

    def test_a_full_disk_costs_rows_and_nothing_else(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))

        done = self.run_metered("sh", "-c", "sleep 1.5; exit 6", options=["--rate", "1000"], preexec_fn=limit)
        self.assertEqual(done.returncode, 6)
        self.assertEqual(done.stderr.count("the command goes on"), 2, done.stderr)  # at once, and in the summary
        self.assertRegex(done.stderr, r"\d+ of \d+ rows lost")
        end = self.document("end.json")
        self.assertGreater(end["meter"]["lost"], 0)
        for name in ("cpu.csv", "node.csv", "regions.csv"):
            table(os.path.join(self.host_folder(), name))

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount")
    def test_a_full_file_system(self):
        mount = self.path("small")
        os.mkdir(mount)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "none", mount], capture_output=True).returncode:
            self.skipTest("mounting is not permitted here")
        self.addCleanup(subprocess.run, ["umount", mount])
        self.results = os.path.join(mount, "results")
        done = self.run_metered("sh", "-c", "sleep 1.5; exit 6", options=["--rate", "1000"])
        self.assertEqual(done.returncode, 6)
        self.assertIn("No space left on device", done.stderr)


class Ranks(RunTest):
    def rank(self, rank, size, script, **options):
        environment = {
            **os.environ,
            "PYTHONPATH": os.path.join(os.environ["JOULEMARK_SOURCE"], "python"),
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": str(size),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
            "OMPI_COMM_WORLD_LOCAL_SIZE": str(size),
            "PMIX_NAMESPACE": f"test{os.getpid()}",
        }
        return self.start("python3", "-c", script, env=environment, **options)

    def test_one_sampler_for_a_node(self):
        script = textwrap.dedent(
            """
            import os, sys, joulemark
            rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
            for epoch in joulemark.epochs(range(2), samples=10):
                pass
            sys.exit(rank + 10)
            """
        )
        processes = [self.rank(rank, 4, script) for rank in range(4)]
        self.assertEqual([process.wait(60) for process in processes], [10, 11, 12, 13])
        self.host_folder()  # one
        rows = [r for r in self.regions() if r["name"] == "epoch"]
        self.assertEqual(len(rows), 16)
        for rank in range(4):
            mine = [(r["event"], r["index"]) for r in rows if r["rank"] == str(rank)]
            self.assertEqual(mine, [("begin", "0"), ("end", "0"), ("begin", "1"), ("end", "1")])
        end = self.document("end.json")
        told = {r["rank"]: r["exit_status"] for r in end["failed_ranks"]}
        self.assertEqual(len(told), 3)
        self.assertEqual(told, {rank: rank + 10 for rank in range(4) if rank + 10 != end["exit_status"]})

    def test_lines_at_the_ends_of_epochs_are_those_of_rank_0(self):
        script = ("import os, time\nfor i in range(2):\n  time.sleep(0.3)\n"
                  "  if os.environ['OMPI_COMM_WORLD_RANK'] == '0': print('Epoch', i, 'done', flush=True)")
        options = ["--epoch-end-regex", r"^Epoch (\d+) done"]
        processes = [self.rank(rank, 2, script, options=options, stdout=subprocess.DEVNULL) for rank in (1, 0)]
        self.assertEqual([process.wait(60) for process in processes], [0, 0])
        rows = [(r["event"], r["index"], r["rank"]) for r in self.regions() if r["name"] == "epoch"]
        self.assertEqual(rows, [("begin", "0", "0"), ("end", "0", "0"), ("begin", "1", "0"), ("end", "1", "0"),
                                ("begin", "2", "0")])
        self.assertEqual(self.document("end.json")["warnings"], [])

    def test_a_rank_that_fails_beside_the_sampler_fails_the_run(self):
        for other, told in (("sys.exit(7)", 7), ("os.kill(os.getppid(), signal.SIGKILL)", None)):
            with self.subTest(told=told):
                self.results = self.path(f"results-{told}")
                sampler = self.rank(0, 2, "import time; time.sleep(1)")
                until(lambda: glob.glob(os.path.join(self.results, "runs", "*", "*", "regions.csv")), "start")
                self.rank(1, 2, f"import os, signal, sys; {other}").wait(60)
                self.assertEqual(sampler.wait(60), 0)
                end = self.document("end.json")
                self.assertEqual(end["exit_status"], 0)
                self.assertEqual(end["failed_ranks"], [{"rank": 1, "exit_status": told}])
                self.assertIn("1 other rank of this node failed, the first is rank 1", "".join(end["warnings"]))
                done = subprocess.run([JOULEMARK, "analyze", self.results, "--json"], capture_output=True, text=True)
                self.assertEqual(json.loads(done.stdout)["runs"][0]["status"], "failed", done.stderr)

    def test_ranks_that_do_not_run_the_meter_are_not_billed(self):
        process = self.rank(0, 3, "import time; time.sleep(1)")
        self.assertEqual(process.wait(60), 0)
        self.assertIn("openmpi started 3 ranks on this node, and 1 of them ran joulemark", process.stderr.read().decode())
        begin, end = (int(r["time_ns"]) for r in self.regions() if r["name"] == "joulemark.command")
        self.assertEqual(self.document("end.json")["end_ns"], end)
        waited = max(int(r["time_ns"]) for r in table(os.path.join(self.host_folder(), "node.csv"))) - end
        self.assertGreater(waited, (end - begin) // 2)  # it did wait

    def test_the_last_rank_ends_the_run(self):
        script = "import os, time; time.sleep(0.5 if os.environ['OMPI_COMM_WORLD_RANK'] == '0' else 2.5)"
        first = self.rank(0, 2, script)
        until(lambda: glob.glob(os.path.join(self.results, "runs", "*", "*", "regions.csv")), "start")
        second = self.rank(1, 2, script)
        self.assertEqual([first.wait(60), second.wait(60)], [0, 0])
        begin, end = (int(r["time_ns"]) for r in self.regions() if r["name"] == "joulemark.command")
        self.assertGreater(end - begin, 2.5e9)

    def test_a_rank_that_was_killed_holds_nobody_up(self):
        processes = [self.rank(0, 2, "import time; time.sleep(0.2)"), self.rank(1, 2, "import time; time.sleep(60)")]
        until(lambda: glob.glob(os.path.join(self.results, "runs", "*", "*", "regions.csv")), "start")
        time.sleep(0.5)
        orphans = [pid for process in processes for pid in children_of(process)]
        for process in processes:
            process.kill()
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
        # The same job step again, at once.
        again = [self.rank(rank, 2, "pass", options=["--run-id", "again"]) for rank in range(2)]
        self.assertEqual([process.wait(60) for process in again], [0, 0])


if __name__ == "__main__":
    unittest.main()

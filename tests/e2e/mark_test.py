# SPDX-License-Identifier: Apache-2.0
"""The C header and the Python module: with a meter, without one, and with one that has gone."""

import csv
import glob
import json
import os
import socket
import subprocess
import tempfile
import textwrap
import unittest

JOULEMARK = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark")
SOURCE = os.environ["JOULEMARK_SOURCE"]

C_PROGRAM = r"""
#include <joulemark/mark.h>
int main(void) {
    joulemark_config("{\"local_batch\": 64}");
    for (int epoch = 0; epoch < 2; ++epoch) {
        joulemark_begin("epoch");
        joulemark_result result = JOULEMARK_RESULT;
        result.samples = 640;
        result.loss = 0.5 - 0.25 * epoch;
        result.quality_name = "top1 \"error\"";
        result.quality = 0.125;
        joulemark_end_with("epoch", &result);
    }
    joulemark_begin("eval\n");
    joulemark_end("eval\n");
    joulemark_begin("cut");
    joulemark_abort("cut");
    joulemark_note("{\"skipped\": \"a.jpg\"}");
    return 0;
}
"""


class MarkTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def environment(self, **variables):
        plain = {k: v for k, v in os.environ.items() if k not in ("RANK", "JOULEMARK_SOCKET")}
        return {**plain, "PYTHONPATH": os.path.join(SOURCE, "python"), **variables}

    def metered(self, *words, **variables):
        """The rows of regions.csv that the command's own marks gave."""
        results = self.path("results")
        subprocess.run([JOULEMARK, "run", "-q", "-o", results, "--", *words], check=True, timeout=100,
                       env=self.environment(**variables))
        (regions,) = glob.glob(os.path.join(results, "runs", "*", "*", "regions.csv"))
        with open(regions, newline="") as file:
            return [row for row in csv.DictReader(file) if row["source"] == "socket"]

    def end(self):
        (path,) = glob.glob(os.path.join(self.path("results"), "runs", "*", "*", "end.json"))
        with open(path) as file:
            return json.load(file)

    def build(self, compiler, *flags, suffix="c", text=C_PROGRAM):
        source = self.path(f"program.{suffix}")
        with open(source, "w") as file:
            file.write(text)
        program = self.path("program")
        subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Werror", "-I", os.path.join(SOURCE, "include"),
                        source, "-o", program, "-lm", "-pthread"], check=True)
        return program


class CHeader(MarkTest):
    def check_rows(self, rows):
        self.assertEqual([(r["event"], r["name"], r["index"]) for r in rows],
                         [("config", "", ""), ("begin", "epoch", "0"), ("end", "epoch", "0"), ("begin", "epoch", "1"),
                          ("end", "epoch", "1"), ("begin", "eval ", "0"), ("end", "eval ", "0"), ("begin", "cut", "0"),
                          ("abort", "cut", "0"), ("note", "", "")])
        self.assertEqual(json.loads(rows[0]["data"]), {"local_batch": 64})
        self.assertEqual(json.loads(rows[9]["data"]), {"skipped": "a.jpg"})
        self.assertEqual([rows[4][k] for k in ("samples", "updates", "loss", "quality_name", "quality",
                                               "quality_direction", "rank")],
                         ["640", "", "0.25", 'top1 "error"', "0.125", "lower", "3"])
        times = [int(r["time_ns"]) for r in rows]
        self.assertEqual(times, sorted(times))

    def test_c99(self):
        self.check_rows(self.metered(self.build("cc", "-std=c99", "-pedantic"), RANK="3"))

    def test_cpp(self):
        program = self.build("c++", "-std=c++11", "-pedantic", suffix="cpp")
        self.check_rows(self.metered(program, RANK="3"))

    def test_what_is_refused_or_too_long_is_counted(self):
        text = textwrap.dedent(
            r"""
            #include <joulemark/mark.h>
            int main(void) {
                static char data[1 << 23];
                memset(data, ' ', sizeof data - 1);
                data[0] = '{';
                data[sizeof data - 2] = '}';
                joulemark_begin("");
                joulemark_note(data);
                data[100000] = '}';
                data[100001] = 0;
                joulemark_note(data);
                joulemark_begin("a");
                return 0;
            }
            """
        )
        rows = self.metered(self.build("cc", "-std=gnu99", text=text))
        self.assertEqual([(r["event"], r["name"]) for r in rows], [("begin", "a")])
        end = self.end()
        self.assertEqual(end["marks"], {"refused": 2, "lost": 1})
        self.assertRegex("\n".join(end["warnings"]), "2 messages .* its name is empty(.|\n)*1 marks? did not get through")

    def test_without_a_meter_it_does_nothing(self):
        program = self.build("cc", "-std=gnu99")
        subprocess.run([program], check=True, env=self.environment())
        for socket_path in ("", "/nonexistent/x.sock", "x" * 300):
            subprocess.run([program], check=True, env=self.environment(JOULEMARK_SOCKET=socket_path))

    def test_a_meter_that_takes_nothing_costs_little_and_fails_nothing(self):
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(receiver.close)
        receiver.bind(self.path("sock"))
        text = C_PROGRAM.replace("epoch < 2", "epoch < 100000")
        subprocess.run([self.build("cc", "-std=gnu99", text=text)], check=True, timeout=60,
                       env=self.environment(JOULEMARK_SOCKET=self.path("sock")))

    def test_many_threads(self):
        text = textwrap.dedent(
            r"""
            #include <joulemark/mark.h>
            #include <pthread.h>
            static void* work(void* name) {
                for (int i = 0; i < 50; ++i) {
                    joulemark_begin((const char*)name);
                    joulemark_end((const char*)name);
                }
                return NULL;
            }
            int main(void) {
                static const char* names[] = {"a", "b", "c", "d"};
                pthread_t threads[4];
                for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, (void*)names[i]);
                for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
                return 0;
            }
            """
        )
        rows = self.metered(self.build("cc", "-std=gnu99", text=text))
        for name in "abcd":
            mine = [(r["event"], int(r["index"])) for r in rows if r["name"] == name]
            self.assertEqual(mine, [(event, i) for i in range(50) for event in ("begin", "end")])


class PythonModule(MarkTest):
    def python(self, text, **variables):
        return self.metered("python3", "-c", textwrap.dedent(text), **variables)

    def test_regions_epochs_config_and_notes(self):
        rows = self.python(
            """
            import joulemark
            assert joulemark.enabled()
            joulemark.config(local_batch=64, path=None)
            for epoch in joulemark.epochs(range(2), samples=100):
                pass
            with joulemark.region("eval", samples=50, index=7) as result:
                result.loss = float("nan")
                result.quality("top1_error", 0.25, "lower")
            joulemark.begin("block")
            joulemark.end("block", tokens=512)
            joulemark.note(skipped="a.jpg", value=float("inf"))
            """,
            SLURM_PROCID="2",
        )
        self.assertEqual([(r["event"], r["name"], r["index"], r["rank"]) for r in rows],
                         [("config", "", "", "2"), ("begin", "epoch", "0", "2"), ("end", "epoch", "0", "2"),
                          ("begin", "epoch", "1", "2"), ("end", "epoch", "1", "2"), ("begin", "eval", "7", "2"),
                          ("end", "eval", "7", "2"), ("begin", "block", "0", "2"), ("end", "block", "0", "2"),
                          ("note", "", "", "2")])
        self.assertEqual(rows[2]["samples"], "100")
        self.assertEqual((rows[6]["loss"], rows[6]["quality"], rows[6]["quality_direction"]), ("", "0.25", "lower"))
        self.assertEqual(rows[8]["tokens"], "512")
        self.assertEqual(json.loads(rows[9]["data"]), {"skipped": "a.jpg"})

    def test_a_region_is_aborted_when_its_block_raises(self):
        rows = self.python(
            """
            import joulemark
            try:
                with joulemark.region("r"):
                    raise ValueError
            except ValueError:
                pass
            for epoch in joulemark.epochs(range(5), samples=100):
                break
            for epoch in range(5):
                with joulemark.region("whole", samples=100):
                    break
            """
        )
        self.assertEqual([(r["event"], r["name"], r["samples"]) for r in rows],
                         [("begin", "r", ""), ("abort", "r", ""), ("begin", "epoch", ""), ("abort", "epoch", ""),
                          ("begin", "whole", ""), ("end", "whole", "100")])

    def test_an_epoch_that_ctrl_c_cuts_short_counts_nowhere(self):
        text = textwrap.dedent(
            """
            import joulemark, os, signal
            try:
                for epoch in joulemark.epochs(range(5), samples=100):
                    if epoch == 2:
                        os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                pass
            """
        )
        results = self.path("results")
        done = subprocess.run([JOULEMARK, "run", "-o", results, "--", "python3", "-c", text], timeout=100, text=True,
                              env=self.environment(), stderr=subprocess.PIPE, check=True)
        self.assertRegex(done.stderr, r"epochs +2, mean .*; 1 aborted and left out")
        show = subprocess.run([JOULEMARK, "analyze", results, "--json"], check=True, capture_output=True)
        (run,) = json.loads(show.stdout)["runs"]
        self.assertEqual(run["status"], "ok")
        epochs = [r for r in json.loads(show.stdout)["regions"] if r["name"] == "epoch"]
        self.assertEqual([(r["index"], r["open"], r["samples"]) for r in epochs],
                         [(0, False, 100), (1, False, 100), (2, True, None)])

    def test_warm_up_epochs_are_told_by_the_program_or_on_the_command_line(self):
        program = ["import joulemark, time", "for i in joulemark.epochs(range(3)): time.sleep(0.5 if i == 0 else 0.1)"]
        for options, text in (([], [*program, "joulemark.config(warmup_epochs=1)"]),
                              (["--factor", "warmup_epochs=1"], [*program, "joulemark.config(warmup_epochs=0)"])):
            results = self.path(f"results{len(options)}")
            subprocess.run([JOULEMARK, "run", "-q", "-o", results, *options, "--", "python3", "-c", "\n".join(text)],
                           check=True, timeout=100, env=self.environment())
            analysis = subprocess.run([JOULEMARK, "analyze", results, "--json"], check=True, capture_output=True)
            (run,) = json.loads(analysis.stdout)["runs"]
            self.assertLess(run["epoch_time_s"], 0.25)
            self.assertEqual(run["factors"]["warmup_epochs"], 1)

    def test_a_message_too_long_is_lost_alone(self):
        rows = self.python("import joulemark; joulemark.note(text='x' * 10**6); joulemark.begin('a')")
        self.assertEqual([r["event"] for r in rows], ["begin"])
        self.assertEqual(self.end()["marks"], {"refused": 0, "lost": 1})

    def test_what_is_refused_or_cannot_be_said_is_counted(self):
        rows = self.python(
            """
            import joulemark
            endless = []
            endless.append(endless)
            joulemark.begin('')
            joulemark.note(value=endless)
            joulemark.begin('a')
            """
        )
        self.assertEqual([(r["event"], r["name"]) for r in rows], [("begin", "a")])
        self.assertEqual(self.end()["marks"], {"refused": 1, "lost": 1})

    def test_without_a_meter_it_does_nothing(self):
        text = "import joulemark\nwith joulemark.region('r', samples=1) as r: r.loss = 'no number'\n"
        for path in (None, "", "/nonexistent/x.sock"):
            variables = {} if path is None else {"JOULEMARK_SOCKET": path}
            subprocess.run(["python3", "-c", text], check=True, env=self.environment(**variables))

    def test_a_meter_that_takes_nothing_costs_little_and_fails_nothing(self):
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(receiver.close)
        receiver.bind(self.path("sock"))
        text = "import joulemark\nfor i in range(20000): joulemark.begin('r')\n"
        subprocess.run(["python3", "-c", text], check=True, timeout=60,
                       env=self.environment(JOULEMARK_SOCKET=self.path("sock")))

    def test_what_a_full_queue_cost_is_told_when_there_is_room_again(self):
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.addCleanup(receiver.close)
        receiver.bind(self.path("sock"))

        def received():
            messages = []
            try:
                while True:
                    messages.append(json.loads(receiver.recv(1000)))
            except BlockingIOError:
                return messages

        text = ("import joulemark\nfor i in range(3000): joulemark.begin('r')\n"
                "print(flush=True)\ninput()\njoulemark.begin('last')\n")
        sender = subprocess.Popen(["python3", "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env=self.environment(JOULEMARK_SOCKET=self.path("sock")))
        self.addCleanup(sender.stdout.close)
        self.assertEqual(sender.stdout.readline(), b"\n")
        lost = 3000 - len(received())
        self.assertGreater(lost, 0)
        sender.communicate(b"\n", timeout=60)
        self.assertEqual([(m["event"], m.get("count")) for m in received()], [("begin", None), ("lost", lost)])


if __name__ == "__main__":
    unittest.main()

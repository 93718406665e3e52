# SPDX-License-Identifier: Apache-2.0
"""joulemark-sim as a user runs it: results against the ground truth, marks, bad input."""
import json
import os
import socket
import subprocess
import tempfile
import threading
import unittest

SIM = os.path.join(os.environ["JOULEMARK_BIN"], "joulemark-sim")
QUIET = {"noise_pct": 0, "run_noise_pct": 0, "power_noise_pct": 0}


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.state = os.path.join(self.folder.name, "gpus.sim")

    def sim(self, *arguments, status=0, **environment):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "JOULEMARK_S"))}
        env.update(JOULEMARK_SIM=self.state, **environment)
        done = subprocess.run([SIM, *map(str, arguments)], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        if status:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done

    def create(self, *arguments):
        self.sim("create", self.state, *arguments)

    def show(self, *arguments):
        return json.loads(self.sim("show", self.state, "--json", *arguments).stdout)

    def train(self, truth=None, *arguments, **environment):
        """Seconds of the clock that a training takes, and the joules of each GPU over it."""
        start = self.show()["now_ns"]
        self.sim("train", "--truth", json.dumps({**QUIET, **(truth or {})}), *arguments, **environment)
        shown = self.show("--from-ns", start)
        return (shown["now_ns"] - start) / 1e9, [gpu["energy_j"] for gpu in shown["gpus"]]

    def test_time_follows_the_power_law_of_gpus(self):
        self.create("--gpus", 8)
        one, _ = self.train({"gpu_exponent": 0.8, "epoch_time_s": 1000}, "--gpus", 1)
        eight, _ = self.train({"gpu_exponent": 0.8, "epoch_time_s": 1000}, "--gpus", 8)
        self.assertAlmostEqual(one, 1000, places=6)
        self.assertAlmostEqual(eight / one, 8**-0.8, places=8)

    def test_warm_up_epochs_count_and_take_longer(self):
        self.create()
        time, _ = self.train({"epoch_time_s": 100, "warmup_factor": 1.5}, "--epochs", 3, "--warmup-epochs", 1)
        self.assertAlmostEqual(time, 350, places=6)

    def test_energy_of_busy_and_idle_gpus(self):
        self.create("--gpus", 2)
        time, (busy, idle) = self.train({"epoch_time_s": 100, "full_power_w": 200}, "--gpus", 1)
        self.assertAlmostEqual(idle, 25 * time, places=4)
        # One GPU: 94 % of the epoch at full power, 6 % (evaluation) at 0.6 of it above idle.
        self.assertAlmostEqual(busy, 100 * (0.94 * 200 + 0.06 * (25 + 0.6 * 175)), places=4)

    def test_noise_is_the_same_for_the_same_history_and_differs_between_runs(self):
        times = []
        for _ in range(2):
            self.create("--seed", 3)
            times.append([self.train({"noise_pct": 2})[0] for _ in range(2)])
        self.assertEqual(times[0], times[1])
        self.assertNotEqual(times[0][0], times[0][1])

    def test_visible_devices(self):
        self.create("--gpus", 4)
        uuid = self.show()["gpus"][3]["uuid"]
        _, joules = self.train(None, CUDA_VISIBLE_DEVICES=f"2,{uuid[:12]}")
        self.assertEqual([j > 2 * min(joules) for j in joules], [False, False, True, True])
        self.sim("train", "--gpus", 2, status=2, CUDA_VISIBLE_DEVICES="1,9,2")
        self.sim("train", status=3, CUDA_VISIBLE_DEVICES="")

    def test_marks_arrive_at_their_instants_while_the_clock_stands(self):
        self.create("--gpus", 4)
        path = os.path.join(self.folder.name, "marks")
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(receiver.close)
        receiver.bind(path)
        receiver.settimeout(30)
        marks, clocks = [], []

        def receive():
            while len(marks) < 5:
                receiver.recv(1, socket.MSG_PEEK)  # the sender waits until the mark is taken
                clocks.append(self.show()["now_ns"])
                marks.append(json.loads(receiver.recv(65536)))

        thread = threading.Thread(target=receive)
        thread.start()
        self.sim("train", "--epochs", 2, "--global-batch", 512, "--samples", 10000, JOULEMARK_SOCKET=path)
        thread.join()
        self.assertEqual([m["event"] for m in marks], ["config", "begin", "end", "begin", "end"])
        self.assertEqual([m["t"] for m in marks], clocks)
        data = marks[0]["data"]
        self.assertEqual((data["gpus"], data["local_batch"], data["global_batch"]), (4, 128, 512))
        self.assertEqual((data["dataset_samples"], data["simulated"]), (10000, True))
        end = marks[4]
        self.assertEqual((end["index"], end["samples"], end["updates"]), (1, 10000, 80))
        self.assertEqual(end["quality"]["direction"], "lower")
        self.assertLess(end["loss"], marks[2]["loss"])

    def test_a_receiver_that_is_gone_does_not_stop_training(self):
        self.create()
        self.sim("train", JOULEMARK_SOCKET=os.path.join(self.folder.name, "nobody"))

    def test_work_on_one_gpu(self):
        self.create("--gpus", 2, "--accelerator", "A100")
        self.sim("work", "--seconds", 60, "--power-w", 1000, "--busy", 50, "--gpu", 1)
        idle, busy = self.show()["gpus"]
        self.assertAlmostEqual(idle["energy_j"], 60 * 52, places=4)
        self.assertAlmostEqual(busy["energy_j"], 60 * 400, places=4)  # the default power limit
        self.assertAlmostEqual(busy["busy_s"], 30, places=6)

    def test_backwards_index_order(self):
        self.create("--gpus", 3, "--fault", "index-order")
        _, joules = self.train(None, "--gpus", 1)
        self.assertEqual(joules.index(max(joules)), 2)
        self.assertEqual([gpu["index"] for gpu in self.show()["gpus"]], [2, 1, 0])

    def test_real_clock(self):
        self.create("--clock", "real")
        self.sim("work", "--seconds", "0.2", "--power-w", "100")
        shown = self.show()
        self.assertEqual(shown["clock"], "real")
        self.assertGreater(shown["gpus"][0]["busy_s"], 0)
        self.assertLessEqual(shown["gpus"][0]["busy_s"], 0.2)
        self.assertGreaterEqual(shown["now_ns"] - shown["start_ns"], 0.2e9)

    def test_create_prints_what_to_export(self):
        self.state = os.path.join(self.folder.name, "my gpus.sim")
        created = self.sim("create", self.state, "--gpus", 2, "--accelerator", "H100")
        shell = subprocess.run(["sh", "-c", created.stdout + 'printf "%s\\n" "$JOULEMARK_SIM" "$JOULEMARK_NVML"; env'],
                               capture_output=True, text=True)
        state, library = shell.stdout.splitlines()[:2]
        self.assertEqual(os.path.realpath(state), os.path.realpath(self.state))
        self.assertTrue(os.path.isabs(library) and os.path.isfile(library), library)
        self.assertIn(f"JOULEMARK_NVML={library}", shell.stdout.splitlines())

    def test_bad_input(self):
        self.sim("create", self.state, "--accelerator", "TPU", status=2)
        self.sim("create", self.state, "--gpus", 0, status=2)
        self.sim("create", self.state, "--fault", "gpu-lost#1", status=2)
        self.sim("create", os.path.join(self.folder.name, "no", "where"), status=3)
        self.sim("train", status=3)
        self.sim("show", self.state, status=3)
        self.create("--gpus", 2)
        self.sim("train", "--truth", '{"exponent": 1}', status=2)
        self.sim("train", "--truth", "/nonexistent", status=2)
        self.sim("train", "--gpus", 3, status=2)
        self.sim("train", "--global-batch", 129, status=2)
        self.sim("train", "--global-batch", 128, "--local-batch", 64, status=2)
        self.sim("train", "--epochs", 1, "--warmup-epochs", 1, status=2)
        self.sim("work", "--seconds", 0, "--power-w", 1, status=2)
        self.sim("show", self.state, "--to-ns", 10**18, status=2)
        self.sim("fly", status=2)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""A study with launcher slurm over two real slurmd: one run, two hosts, one sampler on each."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import slurm_cluster

JOULEMARK = pathlib.Path(os.environ["JOULEMARK_BIN"]) / "joulemark"
SKIPPED = 77

STUDY = """
study: two-nodes
workload:
  name: work
  command: [sh, -c, "echo rank $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME; sleep 1"]
factors:
  gpus: [4]
launcher: slurm
gpus_per_node: 2
rate_hz: 10
"""


class SlurmStudy(unittest.TestCase):
    def test_one_run_has_a_folder_per_node_and_each_task_ran_once(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "study.yaml").write_text(STUDY)
            words = [JOULEMARK, "sweep", folder / "study.yaml", "-o", folder / "out"]
            sweep = subprocess.run(words, env=cluster.environment(), text=True, capture_output=True, timeout=90)
            log = (folder / "out/logs/work-g4-r1.log").read_text()
            self.assertEqual(sweep.returncode, 0, sweep.stderr + log)
            hosts = sorted(path.name for path in (folder / "out/runs/work-g4-r1").iterdir())
            self.assertEqual(hosts, cluster.names)
            for host in hosts:
                run = json.loads((folder / "out/runs/work-g4-r1" / host / "run.json").read_text())
                end = json.loads((folder / "out/runs/work-g4-r1" / host / "end.json").read_text())
                self.assertEqual(sorted(run["expected_hosts"]), cluster.names)
                self.assertEqual(run["study"], {"name": "two-nodes", "repeat": 1, "position": 1})
                self.assertEqual(run["factors"]["gpus"], 4)
                self.assertEqual(run["allocation"]["ranks_on_node"], 2)
                self.assertEqual(end["exit_status"], 0)
            said = sorted(line for line in log.splitlines() if line.startswith("rank "))
            self.assertEqual(said, [f"rank {rank} of 4 on node{rank // 2 + 1}" for rank in range(4)])

    def test_a_rank_that_fails_fails_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "study.yaml").write_text(STUDY.replace("sleep 1", "[ $SLURM_PROCID != 3 ]"))
            words = [JOULEMARK, "sweep", folder / "study.yaml", "-o", folder / "out"]
            sweep = subprocess.run(words, env=cluster.environment(), text=True, capture_output=True, timeout=90)
            self.assertEqual(sweep.returncode, 3, sweep.stderr)
            self.assertIn("1 failed", sweep.stderr)
            (end,) = (folder / "out").glob("*/work-g4-r1*/node2/end.json")
            end = json.loads(end.read_text())
            self.assertIn((end["exit_status"], end["failed_ranks"]), [(1, []), (0, [{"rank": 3, "exit_status": 1}])])


if __name__ == "__main__":
    try:
        with slurm_cluster.Cluster() as cluster:
            unittest.main()
    except slurm_cluster.Unavailable as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What metering costs: `joulemark run --rate 10 -- sleep 20` against `sleep 20`, all processes counted. On this machine
# as it is, and on eight simulated GPUs whose energy counter takes 3.5 ms to read, under the real clock.
#
#   bench/overhead.sh [BUILD]      (default: build/lean)
#
# Prints added wall time, CPU time and peak memory (PSS, sampled ten times a second), and exits 1 when one is over its
# bound: 0.1 s, 0.2 s, 25 MiB. Bounds can be missed on a machine that is busy with something else.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/lean}
export JOULEMARK_BIN="$(cd "$build" && pwd)/bin" JOULEMARK_BUILD="$(cd "$build" && pwd)"
exec python3 -B - <<'PYTHON'
import os, resource, subprocess, sys, tempfile, time

BIN, BUILD = os.environ["JOULEMARK_BIN"], os.environ["JOULEMARK_BUILD"]
SECONDS = 20
BOUNDS = {"wall_s": 0.1, "cpu_s": 0.2, "memory_mib": 25}


def descendants(pid):
    """A process and all its descendants that are there now."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as children:
                    found += [int(child) for child in children.read().split()]
        except OSError:
            pass
    return found


def memory_mib(pids):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as lines:
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except OSError:
            pass
    return total / 1024


def measure(words, environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    process = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL)
    peak = 0
    while True:
        try:
            process.wait(0.1)
            break
        except subprocess.TimeoutExpired:
            peak = max(peak, memory_mib(descendants(process.pid)))
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": wall, "cpu_s": cpu, "memory_mib": peak}


def main():
    plain = ["sleep", str(SECONDS)]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "gpus.sim")
        subprocess.run([os.path.join(BIN, "joulemark-sim"), "create", state, "--accelerator", "H200", "--gpus", "8",
                        "--clock", "real", "--counter-latency-ms", "3.5"], check=True, stderr=subprocess.DEVNULL)
        simulated = {"JOULEMARK_NVML": os.path.join(BUILD, "sim", "libnvidia-ml.so.1"), "JOULEMARK_SIM": state}
        metered = [os.path.join(BIN, "joulemark"), "run", "--rate", "10", "-o", os.path.join(folder, "results"), "--"]
        base = measure(plain, dict(os.environ))
        for name, extra in (("this machine", {}), ("8 simulated GPUs", simulated)):
            cost = measure(metered + plain, {**os.environ, **extra})
            for key, bound in BOUNDS.items():
                added = cost[key] - base[key]
                verdict = "ok" if added < bound else "OVER"
                failed = failed or added >= bound
                print(f"{name:<18} added {key:<11} {added:8.3f}   bound {bound:6.1f}   {verdict}", flush=True)
    sys.exit(1 if failed else 0)


main()
PYTHON

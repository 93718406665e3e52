#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""joulemark analyze on a large study: by default 3,400 runs x 64 GPUs x 10 regions in the merge.

Writes run files of that many runs, merges them once (not timed: that is done once per run, as it ends), then times
`joulemark analyze --json` from a cold page cache where it may be dropped, and the same summary (mean, sd and interval of
energy per epoch, by configuration) by pandas on the same database, where pandas is installed.

    bench/analyze_large.py build/release/bin/joulemark [--runs 3400] [--gpus 64] [--keep DIR]
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

REGIONS = 10
EPOCH_NS = 60_000_000_000


def write_run(root, number, gpus, rng):
    factors = {"workload": f"model{number % 8}", "gpus": gpus, "power_cap_w": 100 + 25 * (number // 8 % 7),
               "sm_clock_mhz": (735, 1060, 1380)[number // 56 % 3], "warmup_epochs": 1}
    folder = os.path.join(root, "runs", f"run{number:05}", "node0")
    os.makedirs(folder)
    devices = [f"gpu{i}" for i in range(gpus)]
    epoch_ns = int(EPOCH_NS * rng.lognormvariate(0, 0.01) * (250 / factors["power_cap_w"]) ** 0.5)
    power_w = factors["power_cap_w"] * 0.9
    start, end = 1_000_000_000, 1_000_000_000 + (REGIONS - 1) * epoch_ns
    document = {
        "schema": 1, "run": f"run{number:05}", "host": "node0", "expected_hosts": ["node0"], "command": ["train"],
        "study": {"name": "large", "repeat": number // 168, "position": number}, "factors": factors,
        "start_ns": start, "simulated": True, "rate_hz": 1, "clock": "simulated",
        "devices": [{"device": d, "file": "gpu", "name": "V100", "component": "gpu", "index": i, "simulated": True}
                    for i, d in enumerate(devices)],
        "sources": [{"source": "nvml.energy", "device": d, "metrics": ["energy_j", "power_w", "busy_pct"],
                     "method": "simulated", "scope": "gpu board", "origin": "bench", "period_s": epoch_ns * 1e-9,
                     "native_period_s": 0.1} for d in devices]}
    with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as file:
        json.dump(document, file)
    with open(os.path.join(folder, "gpu.csv"), "w", encoding="utf-8") as file:
        file.write("time_ns,read_ns,device,energy_j,power_w,busy_pct\n")
        for edge in range(REGIONS):
            at = start + edge * epoch_ns
            energy = power_w * edge * epoch_ns * 1e-9
            file.writelines(f"{at},0,{d},{energy:.3f},{power_w:.1f},95\n" for d in devices)
    with open(os.path.join(folder, "regions.csv"), "w", encoding="utf-8") as file:
        file.write("time_ns,event,name,index,rank,samples,updates,tokens,loss,quality_name,quality,quality_direction,"
                   "source,data\n")
        for epoch in range(REGIONS - 1):
            file.write(f"{start + epoch * epoch_ns},begin,epoch,{epoch},0,,,,,,,,socket,\n")
            file.write(f"{start + (epoch + 1) * epoch_ns},end,epoch,{epoch},0,100000,100,,,,,,socket,\n")
    with open(os.path.join(folder, "end.json"), "w", encoding="utf-8") as file:
        json.dump({"end_ns": end, "exit_status": 0, "signal": None}, file)


def drop_caches():
    try:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3")
        return True
    except OSError:
        return False


def timed(command):
    """Wall seconds and greatest resident MiB of a command run by a process of its own."""
    script = ("import resource,subprocess,sys,time; t=time.monotonic(); "
              "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
              "print(time.monotonic()-t, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss/1024)")
    out = subprocess.run([sys.executable, "-c", script, *command], check=True, capture_output=True, text=True).stdout
    return tuple(map(float, out.split()))


PANDAS = """
import sqlite3, sys
import pandas
base = sqlite3.connect(sys.argv[1])
regions = pandas.read_sql("SELECT * FROM region_metrics WHERE region = 'epoch' AND region_index > 0", base)
runs = pandas.read_sql("SELECT run, factors FROM runs", base)
energy = regions.groupby(["run", "region_index"]).energy_j.sum().groupby("run").mean().rename("energy")
print(runs.merge(energy, on="run").groupby("factors").energy.agg(["mean", "std", "count"]))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("joulemark")
    parser.add_argument("--runs", type=int, default=3400)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--keep", help="write the results here and keep them")
    options = parser.parse_args()
    root = options.keep or tempfile.mkdtemp(prefix="joulemark-bench-")
    try:
        if not os.path.exists(os.path.join(root, "runs")):
            rng = random.Random(1)
            for number in range(options.runs):
                write_run(root, number, options.gpus, rng)
        begin = time.monotonic()
        subprocess.run([options.joulemark, "show", root], check=True, stdout=subprocess.DEVNULL)
        print(f"merge of {options.runs} runs x {options.gpus} GPUs: {time.monotonic() - begin:.1f} s")
        cold = drop_caches()
        seconds, mib = timed([options.joulemark, "analyze", root, "--json"])
        print(f"joulemark analyze, {'cold' if cold else 'warm'}: {seconds:.2f} s, {mib:.0f} MiB")
        try:
            import pandas  # noqa: F401
        except ImportError:
            print("pandas is not installed: nothing to compare with")
            return 0
        cold = drop_caches()
        seconds, mib = timed([sys.executable, "-c", PANDAS, os.path.join(root, "joulemark.sqlite")])
        print(f"pandas, one of these summaries, {'cold' if cold else 'warm'}: {seconds:.2f} s, {mib:.0f} MiB")
        return 0
    finally:
        if not options.keep:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

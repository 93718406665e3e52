#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Energy of short regions on one NVIDIA GPU: counter, integral and attribution beside the long-run value.

    bench/bursts.py [--joulemark build/gpu/bin/joulemark] [--out DIR]      meters itself, prints a table (about 3 minutes)
    joulemark doctor --calibrate -- python3 bench/bursts.py --load-only     the load alone, as a calibration with durations of its own

Bursts of matrix products of 0.2, 0.5 and 2 s with idle gaps of uneven length, each marked through python/joulemark.py. The
long-run value of a burst is what the counter says over the whole series (a region of its own, long against any
refresh), less idle power times the time between bursts, divided by their number; idle power is the counter's over
an idle stretch that follows the same load. Needs PyTorch with CUDA.
"""
import argparse
import csv
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

SERIES = {0.2: 60, 0.5: 40, 2.0: 15}  # nominal duration in s: bursts
IDLE_S = 20


def load():
    import torch

    import joulemark

    torch.manual_seed(0)
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def products(count):
        for _ in range(count):
            torch.matmul(a, b)
        torch.cuda.synchronize()

    products(50)
    begin = time.monotonic()
    products(200)
    each_s = (time.monotonic() - begin) / 200
    rng = random.Random(1)
    for nominal_s, bursts in SERIES.items():
        products(round(1 / each_s))
        time.sleep(2)
        with joulemark.region(f"series-{nominal_s}"):
            for _ in range(bursts):
                with joulemark.region(f"burst-{nominal_s}"):
                    products(round(nominal_s / each_s))
                time.sleep(rng.uniform(0.6, 0.9))
        with joulemark.region("idle"):
            time.sleep(IDLE_S)


def counter(folder):
    """(time_ns, joules) of gpu0 at each reading."""
    with open(os.path.join(folder, "gpu.csv"), newline="") as file:
        return [(int(r["time_ns"]), float(r["energy_j"])) for r in csv.DictReader(file)
                if r["device"].startswith("gpu") and r["energy_j"]]


def difference(readings, start_ns, end_ns):
    """Counter over a long stretch: interpolated at both ends."""

    def at(time_ns):
        before = max((r for r in readings if r[0] <= time_ns), default=readings[0])
        after = min((r for r in readings if r[0] > time_ns), default=readings[-1])
        share = 0 if after[0] == before[0] else (time_ns - before[0]) / (after[0] - before[0])
        return before[1] + share * (after[1] - before[1])

    return at(end_ns) - at(start_ns)


def measure(options):
    out = options.out or tempfile.mkdtemp(prefix="joulemark-bursts-")
    subprocess.run([options.joulemark, "run", "-o", out, "--name", "bursts", "--rate", "100", "--energy-rate", "100", "--",
                    sys.executable, __file__, "--load-only"], check=True)
    document = json.loads(subprocess.run([options.joulemark, "analyze", out, "--json"], check=True, capture_output=True,
                                         text=True).stdout)
    (folder,) = (os.path.dirname(p) for p in glob.glob(os.path.join(out, "runs", "bursts-*", "*", "gpu.csv")))
    readings = counter(folder)
    regions = document["regions"]
    idles = [r for r in regions if r["name"] == "idle"]
    idle_w = sum(difference(readings, r["start_ns"] + 10**9, r["end_ns"]) for r in idles) / sum(
        (r["end_ns"] - r["start_ns"]) / 1e9 - 1 for r in idles)
    kinds = {kind["name"]: kind for kind in document["attributed"]}
    result = {"idle_power_w": idle_w, "rows": []}
    print(f"idle {idle_w:.1f} W")
    print(f"{'burst s':>8} {'n':>3} {'long-run J':>10} {'counter':>9} {'integral':>9} {'attributed':>10} {'bound':>7}  method")
    for nominal_s in SERIES:
        (series,) = [r for r in regions if r["name"] == f"series-{nominal_s}"]
        bursts = [r for r in regions if r["name"] == f"burst-{nominal_s}"]
        busy_s = sum(r["end_ns"] - r["start_ns"] for r in bursts) / 1e9
        whole_s = (series["end_ns"] - series["start_ns"]) / 1e9
        long_run = (difference(readings, series["start_ns"], series["end_ns"]) - idle_w * (whole_s - busy_s)) / len(bursts)

        def mean(key):
            values = [r[key] for r in bursts if r[key] is not None]
            return sum(values) / len(values) if values else float("nan")

        row = {"nominal_s": nominal_s, "n": len(bursts), "long_run_j": long_run, "counter_j": mean("energy_counter_j"),
               "integrated_j": mean("energy_integrated_j"), "attributed_j": mean("energy_j"),
               "bound_j": mean("energy_bound_j"), "methods": sorted({r["provenance"]["method"] for r in bursts}),
               "kind": kinds.get(f"burst-{nominal_s}")}
        result["rows"].append(row)
        off = {key: 100 * (row[key] / long_run - 1) for key in ("counter_j", "integrated_j", "attributed_j")}
        print(f"{nominal_s:8} {len(bursts):3} {long_run:10.1f} {off['counter_j']:+8.1f}% {off['integrated_j']:+8.1f}% "
              f"{off['attributed_j']:+9.1f}% {100 * row['bound_j'] / long_run:6.1f}%  {', '.join(row['methods'])}")
    with open(os.path.join(out, "bursts.json"), "w") as file:
        json.dump(result, file, indent=1)
    print(f"data in {out}")
    worst = max(abs(row["attributed_j"] / row["long_run_j"] - 1) for row in result["rows"])
    print(f"attributed: at most {100 * worst:.1f} % off the long-run value")
    return 0 if worst < 0.03 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemark", default="joulemark")
    parser.add_argument("--out", help="results directory, kept")
    parser.add_argument("--load-only", action="store_true")
    options = parser.parse_args()
    if options.load_only:
        load()
        return 0
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From nothing to a report: installs what is missing, builds, trains a small ResNet-50 on 1 and 2 CPU ranks, runs a study on simulated
# V100s, and writes both reports. What is measured already is not measured again: a second call starts at once.
#
#   scripts/demo.sh [DIR]         default: demo-results
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-demo-results}

scripts/build.sh
PATH=$PWD/build/release/bin:$PATH

say() { printf '\n== %s\n' "$*"; }

say "What this machine can measure (joulemark doctor)"
joulemark doctor

say "A study on this machine's CPU: ResNet-50 on generated JPEGs, 1 and 2 ranks x 2 local batches x 3 repeats"
[ -d "$out/images" ] || joulemark-train make-images "$out/images" --classes 4 --per-class 64 --size 96 --seed 1
JOULEMARK_DEMO_IMAGES=$PWD/$out/images joulemark sweep studies/quick.yaml -o "$out/cpu"
joulemark analyze "$out/cpu"
joulemark report "$out/cpu" -f "$out/cpu.html"

say "A study on simulated V100s: five power caps, five clocks, 2 to 64 GPUs, 5 repeats"
joulemark sweep studies/simulated-v100.yaml -o "$out/simulated-v100"
joulemark analyze "$out/simulated-v100"
joulemark report "$out/simulated-v100" -f "$out/simulated-v100.html"

say "Reports"
printf '%s\n' "$PWD/$out/cpu.html" "$PWD/$out/simulated-v100.html  (simulated)"

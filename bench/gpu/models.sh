#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every model on one GPU.
#
#   bench/gpu/models.sh OUT [BUNDLE]
#
# Throughput, energy per sample, SM activity and memory in bf16 on synthetic data. Needs a CUDA build of PyTorch in the python3
# of PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
bundle=${2:-}
mkdir -p "$out"
. bench/gpu/build.sh

step "models, bf16"
# model, samples per epoch; the second epoch counts
while read -r model samples more; do
    # shellcheck disable=SC2086
    timeout 120 joulemark run -o "$out/models" --name "$model" --rate 10 --quiet -- \
        joulemark-train "$model" --dataset synthetic --device cuda --precision bf16 --samples "$samples" --epochs 2 --eval-every 0 --quiet $more ||
        echo "$model failed"
done <<MODELS
resnet50 38400 --channels-last
vgg16 25600 --channels-last
inception_v3 19200 --channels-last
unet 1280 --channels-last
bert 9600
distilbert 16000
schnet 8000
dimenet 3200
pna 4800
nnconv 8000
fourcastnet 80
MODELS
joulemark analyze "$out/models" --json > "$out/models.json"
python3 - "$out/models.json" <<'PYTHON'
import json, sys

document = json.load(open(sys.argv[1]))
print(f"{'model':<14} {'batch':>5} {'samples/s':>10} {'J/sample':>9} {'W':>5} {'busy %':>6} {'SM %':>5} {'memory %':>8}")
configs = {run["run"]: run for run in document["runs"]}
for region in document["regions"]:
    if region["name"] == "epoch" and region["index"] == 1:
        run = configs[region["run"]]
        number = lambda key: float("nan") if region.get(key) is None else region[key]
        rate = region["samples"] / ((region["end_ns"] - region["start_ns"]) * 1e-9)
        print(f"{run['factors']['workload']:<14} {run['factors']['local_batch']:>5} {rate:10.1f} {number('energy_j') / region['samples']:9.4f} "
              f"{number('mean_power_w'):5.0f} {number('gpu_busy_pct'):6.1f} {number('sm_util_pct'):5.1f} {number('gpu_memory_util_pct'):8.1f}")
PYTHON
rm -rf "$out/models"

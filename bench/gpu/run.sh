#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that needs a real NVIDIA GPU, in one go and in under ten minutes on a node with 16 cores: build, unit tests, doctor,
# overhead, ResNet-50 beside the same program in eager PyTorch. Reads the card, changes none of its settings.
#
#   bench/gpu/run.sh OUT [BUNDLE]     BUNDLE: made by `scripts/deps.sh --bundle`, for a node without package registries
#
# Needs a CUDA build of PyTorch with torchvision in the python3 of PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
bundle=${2:-}
mkdir -p "$out"
. bench/gpu/build.sh

step "unit tests"
ctest --test-dir build/gpu -L unit -j 8 > "$out/unit.log" 2>&1 || true
tail -12 "$out/unit.log"

step doctor
joulemark doctor
joulemark doctor --json > "$out/doctor.json"

step overhead
bench/overhead.sh build/gpu || true

step "ResNet-50, bf16, channels-last, batch 256: three interleaved pairs"
for pair in 1 2 3; do
    joulemark run -o "$out/resnet50" --name "joulemark-$pair" --quiet -- \
        joulemark-train resnet50 --dataset synthetic --device cuda --precision bf16 --channels-last --local-batch 256 \
        --samples 76800 --epochs 2 --eval-every 0
    joulemark run -o "$out/resnet50" --name "pytorch-$pair" --quiet -- \
        python3 bench/gpu/resnet50_eager.py --local-batch 256 --steps 300 --epochs 2
done
joulemark analyze "$out/resnet50" --json > "$out/resnet50.json"
python3 - "$out/resnet50.json" <<'PYTHON'
import json, sys

document = json.load(open(sys.argv[1]))
print(f"{'run':<42} {'samples/s':>9} {'J/sample':>8} {'counter J':>10} {'integral J':>10} {'W':>6} {'busy %':>6} {'SM %':>5} {'mem %':>5}")
for region in document["regions"]:
    if region["name"] != "epoch" or region["index"] == 0:
        continue
    seconds = (region["end_ns"] - region["start_ns"]) * 1e-9
    number = lambda key: float("nan") if region.get(key) is None else region[key]
    print(f"{region['run']:<42} {region['samples'] / seconds:9.0f} {number('energy_j') / region['samples']:8.4f} "
          f"{number('energy_counter_j'):10.0f} {number('energy_integrated_j'):10.0f} {number('mean_power_w'):6.0f} "
          f"{number('gpu_busy_pct'):6.1f} {number('sm_util_pct'):5.1f} {number('gpu_memory_util_pct'):5.1f}")
PYTHON
rm -rf "$out/resnet50"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Loss and gradients of every model at full size against the reference implementations, with weights and inputs from SEED
# (default 20261130): in fp64 and fp32 on the GPU, and in fp32 on the CPU, where sums have one order. Both sides compute on the
# same device in the same precision; fp32 here is held against the reference's fp64 as well.
#
#   bench/gpu/parity.sh OUT [BUNDLE [SEED [MODEL...]]]
#
# Needs a CUDA build of PyTorch with torchvision, transformers and torch_geometric in the python3 of PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
bundle=${2:-}
seed=${3:-20261130}
mkdir -p "$out"
. bench/gpu/build.sh

step "parity at full size, seed $seed"
export out seed OMP_NUM_THREADS=4
parity() { # DOMAIN:MODEL PRECISION DEVICE
    local domain=${1%%:*} model=${1#*:} file=$out/${1#*:}-$2-$3.safetensors
    if timeout 200 python3 "tests/reference/$domain.py" --full "$model" --seed "$seed" --precision "$2" --device "$3" "$file" \
        > "$file.log" 2>&1; then
        tail -1 "$file.log" | sed "s|^$out/||"
        timeout 200 build/gpu/tests/joulemark-parity "$file" --device "$3" || true
        [ "$2" = fp32 ] || timeout 200 build/gpu/tests/joulemark-parity "$file" --device "$3" --dtype fp32 || true
    else
        echo "$model: no reference: $(grep -v '^ *$' "$file.log" | tail -1)"
    fi
    rm -f "$file" "$file.log"
}
export -f parity
models=(weather:fourcastnet vision:inception_v3 vision:vgg16 vision:unet vision:resnet50 language:bert-base language:distilbert
        chemistry:dimenet chemistry:pna chemistry:schnet chemistry:nnconv)
for model in "${models[@]}"; do
    if [ $# -le 3 ] || [[ " ${*:4} " == *" ${model#*:} "* ]]; then
        printf '%s\n' "$model fp32 cpu" "$model fp64 cuda" "$model fp32 cuda"
    fi
done | xargs -P 6 -L 1 bash -c 'parity "$@"' - | tee "$out/parity.txt"

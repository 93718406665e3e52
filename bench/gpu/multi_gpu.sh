#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several GPUs of one host through NCCL. `study` took seven minutes on two H200 and goes on where it stopped.
#
#   bench/gpu/multi_gpu.sh study|parallel OUT [BUNDLE]
#
#   study      studies/multi-gpu.yaml, its tables and report
#   parallel   all-reduce bandwidth; ResNet-50 beside PyTorch's DistributedDataParallel in interleaved pairs; the share of
#              communication that is not hidden; bucket sizes; losses of one and of all GPUs at equal global batch
#
# Needs a CUDA build of PyTorch with torchvision in the python3 of PATH. NVLink multicast stays off.
set -euo pipefail
cd "$(dirname "$0")/../.."
part=$1
out=$2
bundle=${3:-}
mkdir -p "$out"
. bench/gpu/build.sh
export NCCL_NVLS_ENABLE=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
gpus=$(nvidia-smi --list-gpus | wc -l)

ranks() {  # PROGRAM options...: one process per GPU
    timeout 100 torchrun --nproc-per-node "$gpus" --master-addr 127.0.0.1 --master-port 29517 --local-addr 127.0.0.1 "$@" 2> "$out/torchrun.log"
}

train() {  # RANKS options...: the last epoch's samples/s
    local ranks=$1
    shift
    timeout 60 mpirun -n "$ranks" --bind-to none joulemark-train resnet50 --dataset synthetic --device cuda --precision bf16 --channels-last \
        --samples $((25600 * ranks)) --epochs 2 --eval-every 0 "$@" 2>&1 | sed -n 's/.*epoch 2\/2 .* \([0-9.]*\) samples\/s.*/\1/p'
}

case $part in
study)
    step "study on 1 and $gpus GPUs"
    joulemark sweep studies/multi-gpu.yaml -o "$out/multi-gpu" || true
    joulemark analyze "$out/multi-gpu" | tee "$out/multi-gpu.txt"
    joulemark analyze "$out/multi-gpu" --json > "$out/multi-gpu.json"
    joulemark report "$out/multi-gpu" -f "$out/multi-gpu.html"
    ;;
parallel)
    step "all-reduce bandwidth"
    ranks bench/gpu/allreduce.py || tail -3 "$out/torchrun.log"
    step "ResNet-50, local batch 256, $gpus GPUs: joulemark-train, PyTorch DDP"
    for pair in 1 2 3; do
        printf '%s ' "$(train "$gpus" --local-batch 256)"
        ranks bench/gpu/resnet50_eager.py --local-batch 256 --steps 100 --epochs 2 || tail -3 "$out/torchrun.log"
    done
    step "share of communication not hidden: with all-reduce, without"
    for local in 256 32; do
        echo "local batch $local: $(train "$gpus" --local-batch $local) $(train "$gpus" --local-batch $local --reduction none)"
    done
    step "bucket sizes, local batch 32"
    for mib in 1 5 25 100; do
        echo "$mib MiB: $(train "$gpus" --local-batch 32 --bucket-mib $mib)"
    done
    step "losses of 1 and $gpus GPUs at global batch 256, fp32, synchronised batch norm"
    for ranks in 1 "$gpus"; do
        mpirun -n "$ranks" --bind-to none joulemark-train resnet50 --dataset synthetic --device cuda --samples 25600 --epochs 1 \
            --eval-every 0 --global-batch 256 --sync-bn --lr 0.01 --log-losses "$out/losses-$ranks.txt" --quiet
    done
    paste "$out/losses-1.txt" "$out/losses-$gpus.txt" | awk '{d = $1 > $2 ? $1 - $2 : $2 - $1; if (d / $1 > m) m = d / $1} NR % 25 == 1 {print NR, $1, $2} END {print "greatest relative difference", m}'
    ;;
*)
    echo "multi_gpu.sh: the part is study or parallel, not '$part'" >&2
    exit 2
    ;;
esac

# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 in eager PyTorch with the settings of `joulemark-train resnet50`: the program it is compared with.

Synthetic images live on the GPU, so neither program waits for a loader. Under torchrun it is data parallel through
DistributedDataParallel. Rank 0 prints one line of JSON.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch
import torchvision

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import joulemark  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--local-batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=400, help="updates per epoch")
    parser.add_argument("--epochs", type=int, default=2, help="the first one warms up")
    options = parser.parse_args()

    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    model = torchvision.models.resnet50().to(device, memory_format=torch.channels_last)
    if ranks > 1:
        torch.distributed.init_process_group("nccl")
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index], gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    criterion = torch.nn.CrossEntropyLoss()
    images = torch.randn(options.local_batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (options.local_batch,), device=device)

    joulemark.config(workload="resnet50-pytorch-eager", local_batch=options.local_batch, gpus=ranks, precision="bf16")
    rate = 0.0
    for epoch in range(options.epochs):
        torch.cuda.synchronize()
        begin = time.monotonic()
        samples = options.steps * options.local_batch
        with joulemark.region("epoch", index=epoch, samples=samples, updates=options.steps):
            for _ in range(options.steps):
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = criterion(model(images), labels)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
        rate = ranks * samples / (time.monotonic() - begin)
    if rank == 0:
        print(json.dumps({"samples_per_s": rate, "torch": torch.__version__, "ranks": ranks, "device": torch.cuda.get_device_name()}))
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

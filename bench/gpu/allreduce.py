# SPDX-License-Identifier: Apache-2.0
"""NCCL all-reduce bandwidth by message size, under torchrun: time per call and bus bandwidth (2 (n - 1) / n x size / time)."""
import os
import time

import torch


def main():
    ranks, rank, local = (int(os.environ[name]) for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"))
    torch.cuda.set_device(local)
    torch.distributed.init_process_group("nccl")
    if rank == 0:
        print(f"{'MiB':>9} {'ms':>8} {'bus GB/s':>9}   NCCL all-reduce of float32 over {ranks} {torch.cuda.get_device_name()}")
    for exponent in range(-6, 11, 2):
        size = int(2.0**exponent * 2**20)
        data = torch.zeros(size // 4, device="cuda")
        calls = 200 if size < 2**24 else 30
        for measured in (False, True):
            torch.distributed.barrier()
            torch.cuda.synchronize()
            begin = time.monotonic()
            for _ in range(calls):
                torch.distributed.all_reduce(data)
            torch.cuda.synchronize()
            seconds = (time.monotonic() - begin) / calls
            if measured and rank == 0:
                print(f"{2.0**exponent:9.4f} {seconds * 1e3:8.3f} {2 * (ranks - 1) / ranks * size / seconds / 1e9:9.1f}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sampling at 100 Hz costs a training: one ResNet-50, the sampler on and off every 5 s, in pairs.

    bench/toggle_overhead.py [--joulemark build/gpu/bin/joulemark] [--pairs 30] [--out FILE.json]

One process trains all the time. In the "on" window of each pair `joulemark run --rate 100` watches the same GPU around a
`sleep`: a process of its own, as in real use, started and ended within the window, so that its start counts too. The order
within a pair is random: slow drift of the GPU cancels. Per pair, the ratio of the mean time of a step; over pairs, its
median and the upper end of a one-sided 95 % bootstrap interval of the mean. Exit 1 when that is 0.5 % or more, or when
the sampler takes 1 % of a core or more outside driver calls. Needs PyTorch with CUDA; takes 2 x pairs x 5 s.
"""
import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WINDOW_S = 5.0


def resnet50():
    from torch import nn

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs = 4 * width
            self.body = nn.Sequential(
                nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
            self.short = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            self.last = nn.ReLU(inplace=True)

        def forward(self, x):
            return self.last(self.body(x) + self.short(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def trainer(batch):
    """A function that makes one step and waits for the GPU."""
    import torch

    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    model = resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    criterion = torch.nn.CrossEntropyLoss()
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (batch,), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()

    return step


def window(step):
    """Mean time of the steps that begin within a window."""
    begin = time.monotonic()
    steps = 0
    while time.monotonic() - begin < WINDOW_S:
        step()
        steps += 1
    return (time.monotonic() - begin) / steps


def sampled_window(step, options, folder, costs):
    sampler = subprocess.Popen(
        [options.joulemark, "run", "-q", "-o", folder, "--rate", "100", "--", "sleep", str(WINDOW_S - 0.3)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = window(step)
    if sampler.wait() != 0:
        raise SystemExit("the sampler failed: run `joulemark run --rate 100 -- sleep 5` to see why")
    newest = max(Path(folder).glob("runs/*/*/end.json"), key=lambda path: path.stat().st_mtime)
    meter = json.loads(newest.read_text())["meter"]
    costs.append({"cpu_s": meter["cpu_s"], "driver_s": meter["driver_s"], "achieved_hz": meter["achieved_hz"]})
    return seconds


def upper_bound(ratios, seed=1, resamples=10000):
    """Of a one-sided 95 % interval of the mean, by the percentile bootstrap over pairs."""
    rng = random.Random(seed)
    means = sorted(statistics.fmean(rng.choices(ratios, k=len(ratios))) for _ in range(resamples))
    return means[math.ceil(0.95 * resamples) - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemark", default="joulemark")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--local-batch", type=int, default=256)
    parser.add_argument("--out")
    options = parser.parse_args()
    step = trainer(options.local_batch)
    for _ in range(3):
        window(step)  # warm: cuDNN has chosen, the GPU is hot
    rng = random.Random(0)
    slow_downs, costs = [], []
    with tempfile.TemporaryDirectory(prefix="joulemark-toggle-") as folder:
        for pair in range(options.pairs):
            times = {}
            for on in rng.sample((True, False), 2):
                times[on] = sampled_window(step, options, folder, costs) if on else window(step)
            slow_downs.append(times[True] / times[False] - 1)
            print(f"pair {pair + 1:3}: off {1e3 * times[False]:.3f} ms, on {1e3 * times[True]:.3f} ms a step, "
                  f"{100 * slow_downs[-1]:+.3f} %", flush=True)
    bound = upper_bound(slow_downs)
    # All CPU time but that inside reads: driver_s is wall time there, of which a waiting driver call uses less.
    own = [max(0.0, cost["cpu_s"] - cost["driver_s"]) / WINDOW_S for cost in costs]
    whole = [cost["cpu_s"] / WINDOW_S for cost in costs]
    result = {"pairs": options.pairs, "slow_down": {"median": statistics.median(slow_downs), "mean": statistics.fmean(slow_downs),
                                                    "upper95": bound}, "cpu_share_outside_driver": statistics.fmean(own),
              "cpu_share": statistics.fmean(whole), "slow_downs": slow_downs, "samplers": costs}
    print(f"slow-down: median {100 * result['slow_down']['median']:+.3f} %, upper 95 % bound {100 * bound:+.3f} %")
    print(f"sampler's CPU: {100 * result['cpu_share']:.2f} % of a core, start and end included; "
          f"{100 * result['cpu_share_outside_driver']:.2f} % outside driver calls")
    if options.out:
        Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
    return 0 if bound < 0.005 and result["cpu_share_outside_driver"] < 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())

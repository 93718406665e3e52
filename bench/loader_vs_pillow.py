# SPDX-License-Identifier: Apache-2.0
"""Decode, random resized crop to 224 x 224 and flip, one core each: joulemark-train's loader and Pillow on the same files.

    python3 bench/loader_vs_pillow.py [FOLDER] [--images N] [--rounds N]

Needs Pillow, and `loader_bench` (cmake -DJOULEMARK_BENCH=ON) in build/*/bench. Without FOLDER it uses ImageNet-like
files that `joulemark-train make-images` writes: about 500 x 375 pixels. Rounds alternate, and CPU time counts, so that a
busy machine does not favour one. Prints images per second of CPU time and their ratio; exit status 1 when the ratio of medians is below 1.
"""

import argparse
import io
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZE = 224


def crop_box(width, height):
    """torchvision's RandomResizedCrop."""
    for _ in range(10):
        area = random.uniform(0.08, 1) * width * height
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return left, top, left + w, top + h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, (width + side) // 2, (height + side) // 2


def load_with_pillow(path, reduced):
    """As torchvision's ImageFolder does it; `reduced` also uses Pillow's draft mode, as our decoder's scaling does."""
    with open(path, "rb") as file:
        image = Image.open(io.BytesIO(file.read()))
        box = crop_box(*image.size)
        if reduced:
            width, height = image.size
            factor = max(1, min((box[2] - box[0]) // SIZE, (box[3] - box[1]) // SIZE))
            image.draft("RGB", (width // factor, height // factor))
            scale = image.size[0] / width
            box = tuple(edge * scale for edge in box)
        image = image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box)
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return image.tobytes()


def pillow(files, reduced):
    begin = time.process_time()
    for path in files:
        load_with_pillow(path, reduced)
    return len(files) / (time.process_time() - begin)


def ours(bench, folder, images):
    output = subprocess.run([bench, folder, str(images), str(SIZE)], check=True, capture_output=True, text=True).stdout
    return float(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", help="one sub-folder of .jpg files per class")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core, inherited by our program
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder
        if not folder:
            command = [arguments.build / "bin" / "joulemark-train", "make-images", scratch, "--classes", "4", "--size"]
            subprocess.run([*command, "375", "--per-class", "50"], check=True)
            folder = scratch + "/train"
        files = sorted(path for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
        files = files[: arguments.images]
        bench = arguments.build / "bench" / "loader_bench"
        rates = {"joulemark-train": [], "Pillow": [], "Pillow, draft mode": []}
        for _ in range(arguments.rounds):
            rates["joulemark-train"].append(ours(bench, folder, len(files)))
            rates["Pillow"].append(pillow(files, reduced=False))
            rates["Pillow, draft mode"].append(pillow(files, reduced=True))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, median in medians.items():
        print(f"{name:20} {median:8.1f} images per CPU second (median of {arguments.rounds} rounds, {min(rates[name]):.1f} to {max(rates[name]):.1f})")
    ratios = {name: medians["joulemark-train"] / medians[name] for name in medians if name != "joulemark-train"}
    print(f"{len(files)} files; " + ", ".join(f"{ratio:.2f} x {name}" for name, ratio in ratios.items()))
    return 0 if min(ratios.values()) >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Parity fixtures of FourCastNet.

The published network is no package that could be imported, so this is its definition in plain PyTorch, from the
papers (Pathak et al. 2022, Guibas et al. 2022), with the parameter names and the arithmetic of the published AFNONet
(double skip connection, sparsity threshold 0.01, hard thresholding fraction 1, no dropout, a last norm that is not
used). It is written apart from Joulemark's: with complex tensors, one block after the other.

    python3 weather.py --small FOLDER
    python3 weather.py --full fourcastnet --seed N FILE

and the small ERA5 folder of the data reader's tests (needs h5py):

    python3 weather.py --era5 FOLDER
"""

import argparse
import pathlib

import torch
from torch import nn

import fixture


class Filter(nn.Module):
    threshold = 0.01

    def __init__(self, width, blocks):
        super().__init__()
        block = width // blocks
        self.w1 = nn.Parameter(0.02 * torch.randn(2, blocks, block, block))
        self.b1 = nn.Parameter(0.02 * torch.randn(2, blocks, block))
        self.w2 = nn.Parameter(0.02 * torch.randn(2, blocks, block, block))
        self.b2 = nn.Parameter(0.02 * torch.randn(2, blocks, block))

    @staticmethod
    def layer(z, weight, bias):
        product = torch.einsum("...ki,kio->...ko", z, torch.complex(weight[0], weight[1]))
        return product + torch.complex(bias[0], bias[1])

    def forward(self, x):
        rows, columns = x.shape[1:3]
        spectrum = torch.fft.rfft2(x, dim=(1, 2), norm="ortho")
        # The published code counts the modes that it keeps along the width from the height.
        kept = rows // 2 + 1
        z = spectrum[:, :, :kept].unflatten(-1, self.w1.shape[1:3])
        z = self.layer(z, self.w1, self.b1)
        z = self.layer(torch.complex(z.real.relu(), z.imag.relu()), self.w2, self.b2)
        z = torch.complex(*(nn.functional.softshrink(part, self.threshold) for part in (z.real, z.imag)))
        mixed = torch.zeros_like(spectrum)
        mixed[:, :, :kept] = z.flatten(-2)
        return torch.fft.irfft2(mixed, s=(rows, columns), dim=(1, 2), norm="ortho") + x


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x):
        return self.fc2(nn.functional.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width, blocks, mlp_ratio):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.filter = Filter(width, blocks)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = Mlp(width, mlp_ratio * width)

    def forward(self, x):
        x = x + self.filter(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    def __init__(self, channels, patch, width):
        super().__init__()
        self.proj = nn.Conv2d(channels, width, kernel_size=patch, stride=patch)


class FourCastNet(nn.Module):
    def __init__(self, *, channels=20, height=720, width=1440, patch=8, embed=768, depth=12, blocks=8, mlp_ratio=4):
        super().__init__()
        self.grid = (height // patch, width // patch)
        self.patch = patch
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], embed))
        self.patch_embed = PatchEmbed(channels, patch, embed)
        self.blocks = nn.ModuleList(Block(embed, blocks, mlp_ratio) for _ in range(depth))
        self.norm = nn.LayerNorm(embed, eps=1e-6)
        self.head = nn.Linear(embed, channels * patch * patch, bias=False)

    def forward(self, fields):
        x = self.patch_embed.proj(fields).flatten(2).transpose(1, 2) + self.pos_embed
        x = x.unflatten(1, self.grid)
        for block in self.blocks:
            x = block(x)
        # [N, rows, columns, (patch row, patch column, channel)] to an image
        patches = self.head(x).unflatten(-1, (self.patch, self.patch, -1))
        return patches.permute(0, 5, 1, 3, 2, 4).flatten(4, 5).flatten(2, 3)


def relative_l2(prediction, target):
    return ((prediction - target).flatten(1).norm(dim=1) / target.flatten(1).norm(dim=1)).mean()


def loss(module, inputs):
    fields = inputs["fields"]
    state = fields[:, 0]
    total = 0
    for step in range(1, fields.shape[1]):
        state = module(state)
        total = total + relative_l2(state, fields[:, step])
    # The unused norm gets the gradient 0, not none.
    return total + 0 * (module.norm.weight.sum() + module.norm.bias.sum())


def write(path, settings, seed, samples, **place):
    torch.manual_seed(seed)
    sizes = {name: value for name, value in settings.items() if name != "steps"}
    module = FourCastNet(**sizes)
    with torch.no_grad():
        for block in module.blocks:
            # Large enough that some of what the filter makes is above its threshold and some is not.
            block.filter.w1.mul_(10)
            block.filter.w2.mul_(10)
    fields = torch.randn(samples, settings["steps"] + 1, settings["channels"], settings["height"], settings["width"])
    fixture.save(
        path,
        model="fourcastnet",
        settings=settings,
        module=module,
        inputs={"fields": fields},
        loss=loss,
        reference="tests/reference/weather.py",
        seed=seed,
        **place,
    )


def write_era5(folder):
    """Two years and one for validation, each value saying where it stands, and statistics of another kind."""
    import h5py
    import numpy

    def year(number, times):
        t, c, y, x = numpy.indices((times, 2, 9, 16))
        return (1000 * c + 100 * number + 10 * t + 0.5 * y + 0.03125 * x * (c + 1)).astype("<f4")

    for name, number, times, storage in (
        ("train/1979", 0, 5, {}),
        ("train/1980", 1, 4, {"chunks": (1, 1, 9, 16), "compression": "gzip"}),
        ("valid/2016", 2, 3, {}),
    ):
        path = folder / f"{name}.h5"
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            file.create_dataset("fields", data=year(number, times), **storage)
    with h5py.File(folder / "no_fields.h5", "w") as file:
        file.create_dataset("t2m", data=numpy.zeros((2, 3), "<f4"))
    (folder / "stats").mkdir(exist_ok=True)
    numpy.save(folder / "stats/global_means.npy", numpy.array([3, 4], "<f4").reshape(1, 2, 1, 1))
    numpy.save(folder / "stats/global_stds.npy", numpy.array([0.5, 2], "<f8").reshape(1, 2, 1, 1))
    numpy.save(folder / "stats/time_means.npy", numpy.arange(2 * 9 * 16, dtype="<f4").reshape(1, 2, 9, 16))


SMALL = {"channels": 3, "height": 16, "width": 32, "patch": 4, "embed": 8, "depth": 2, "blocks": 2, "mlp_ratio": 2}
FULL = {"channels": 20, "height": 720, "width": 1440, "patch": 8, "embed": 768, "depth": 12, "blocks": 8, "mlp_ratio": 4}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", metavar="FOLDER")
    parser.add_argument("--full", choices=["fourcastnet"])
    parser.add_argument("--era5", metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1)
    fixture.add_options(parser)
    parser.add_argument("file", nargs="?")
    options = parser.parse_args()
    if options.small:
        write(pathlib.Path(options.small) / "fourcastnet.safetensors", {**SMALL, "steps": 2}, options.seed, 2)
    if options.era5:
        write_era5(pathlib.Path(options.era5))
    if options.full:
        write(options.file, {**FULL, "steps": 1}, options.seed, 1, **fixture.place_of(options))


if __name__ == "__main__":
    main()

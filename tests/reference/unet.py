# SPDX-License-Identifier: Apache-2.0
"""The U-Net that joulemark-train's `unet` is held against: SEVIR's nowcasting sizes, 13 frames of 384 x 384 to 12."""

import torch
from torch import nn


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(x)))


class UNet(nn.Module):
    """[N, inputs, H, W] to [N, outputs, H, W]; H and W are multiples of 2 ** depth."""

    def __init__(self, inputs=13, outputs=12, width=32, depth=4):
        super().__init__()
        widths = [width * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip([inputs, *widths[:-1]], widths, strict=True))
        narrower = widths[-2::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in narrower)
        self.merge = nn.ModuleList(DoubleConv(2 * w, w) for w in narrower)
        self.head = nn.Conv2d(width, outputs, 1)

    def forward(self, x):
        skipped = []
        for block in self.down[:-1]:
            x = block(x)
            skipped.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.down[-1](x)
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skipped.pop(), up(x)], 1))
        return self.head(x)

# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the vision models from torchvision and from unet.py.

    python3 vision.py --small OUT_DIR
    python3 vision.py --full MODEL --seed N OUT_FILE

Batch norm uses its running statistics (`*_batch_statistics`: those of the batch), dropout is off.
"""

import argparse
import functools
import pathlib

import torch
from torch import nn

try:
    import torchvision
except (AttributeError, RuntimeError):
    # The wheel's compiled operators want another torch build's libraries; without them the package asks for the schemas
    # of these two all the same. No model here uses them.
    schemas = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, operator):
            schemas.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision
from torchvision.models import inception, resnet, vgg  # noqa: E402

import fixture  # noqa: E402
from unet import UNet  # noqa: E402

TORCHVISION = f"torchvision {torchvision.__version__.partition('+')[0]}"


def make_resnet50(width=64, blocks=(3, 4, 6, 3), classes=1000):
    if width == 64:
        return resnet.ResNet(resnet.Bottleneck, list(blocks), num_classes=classes)

    class Narrow(resnet.ResNet):
        """torchvision fixes 64 channels behind the first convolution; its layers take any."""

        def _make_layer(self, block, planes, *args, **kwargs):
            if planes == 64:
                self.inplanes = width
                self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
                self.bn1 = nn.BatchNorm2d(width)
            return super()._make_layer(block, planes * width // 64, *args, **kwargs)

    module = Narrow(resnet.Bottleneck, list(blocks), num_classes=classes)
    module.fc = nn.Linear(32 * width, classes)
    return module


def make_vgg16(width=64, hidden=4096, classes=1000):
    layers = [layer if layer == "M" else layer * width // 64 for layer in vgg.cfgs["D"]]
    module = vgg.VGG(vgg.make_layers(layers), num_classes=classes)
    if width != 64 or hidden != 4096:
        module.classifier[0] = nn.Linear(8 * width * 49, hidden)
        module.classifier[3] = nn.Linear(hidden, hidden)
        module.classifier[6] = nn.Linear(hidden, classes)
    return module


def make_inception_v3(narrow=1, classes=1000):
    if narrow == 1:
        return inception.Inception3(num_classes=classes, init_weights=True)

    def channels(full):
        return full if full == 3 else max(1, full // narrow)

    def conv_block(inputs, outputs, **shape):
        return inception.BasicConv2d(channels(inputs), channels(outputs), **shape)

    names = ("InceptionA", "InceptionB", "InceptionC", "InceptionD", "InceptionE", "InceptionAux")
    blocks = [functools.partial(getattr(inception, name), conv_block=conv_block) for name in names]
    module = inception.Inception3(classes, inception_blocks=[conv_block, *blocks], init_weights=True)
    module.AuxLogits.fc = nn.Linear(channels(768), classes)
    module.fc = nn.Linear(channels(2048), classes)
    return module


def classification(module, inputs):
    return nn.functional.cross_entropy(module(inputs["images"]), inputs["labels"])


def classification_with_head(module, inputs):
    images = inputs["image_blocks"].repeat_interleave(13, 2).repeat_interleave(13, 3)
    module.training = True  # of the network alone: its batch norms and dropout stay in evaluation mode
    main, auxiliary = module(images)
    cross_entropy = nn.functional.cross_entropy
    return cross_entropy(main, inputs["labels"]) + 0.4 * cross_entropy(auxiliary, inputs["labels"])


def forecast(module, inputs):
    return nn.functional.mse_loss(module(inputs["seen"]), inputs["wanted"])


def make_fixture(path, model, seed, settings, batch, size, batch_statistics=False, **place):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    make = {"resnet50": make_resnet50, "vgg16": make_vgg16, "inception_v3": make_inception_v3, "unet": UNet}[model]
    module = make(**settings)
    fixture.randomise_norms(module, generator)
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            nn.init.uniform_(parameter, -0.1, 0.1)
    module.train(batch_statistics)
    if model == "unet":
        inputs, outputs = module.down[0].conv1.in_channels, module.head.out_channels
        tensors = {"seen": torch.randn(batch, inputs, size, size), "wanted": torch.randn(batch, outputs, size, size)}
        loss, reference = forecast, "tests/reference/unet.py"
    else:
        labels = torch.randint(settings.get("classes", 1000), (batch,))
        if model == "inception_v3":
            tensors, loss = {"image_blocks": torch.randn(batch, 3, 23, 23)}, classification_with_head
        else:
            tensors, loss = {"images": torch.randn(batch, 3, size, size)}, classification
        tensors["labels"] = labels
        reference = TORCHVISION
    if batch_statistics:
        tensors["batch_statistics"] = torch.tensor(True)
    fixture.save(
        path,
        model=model,
        settings=settings,
        module=module,
        inputs=tensors,
        loss=loss,
        reference=reference,
        seed=seed,
        **place,
    )


def small(folder, seed):
    resnet50 = {"width": 4, "blocks": (1, 2, 1, 1), "classes": 5}
    unet = {"inputs": 3, "outputs": 2, "width": 4, "depth": 2}
    for name, model, settings, batch, size, own in (
        ("resnet50", "resnet50", resnet50, 2, 40, False),
        ("resnet50_batch_statistics", "resnet50", resnet50, 4, 40, True),
        ("vgg16", "vgg16", {"width": 2, "hidden": 16, "classes": 5}, 2, 64, False),
        ("inception_v3", "inception_v3", {"narrow": 32, "classes": 5}, 2, 299, False),
        ("unet", "unet", unet, 2, 16, False),
        ("unet_batch_statistics", "unet", unet, 2, 16, True),
    ):
        make_fixture(folder / f"{name}.safetensors", model, seed, settings, batch, size, own)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="all small fixtures")
    parser.add_argument("--full", metavar="MODEL", choices=("resnet50", "vgg16", "inception_v3", "unet"))
    parser.add_argument("--seed", type=int, default=1)
    fixture.add_options(parser)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.full:
        size = {"inception_v3": 299, "unet": 384}.get(arguments.full, 224)
        make_fixture(arguments.out, arguments.full, arguments.seed, {}, batch=2, size=size, **fixture.place_of(arguments))
    elif arguments.small:
        small(arguments.out, arguments.seed)
    else:
        parser.error("give --small or --full MODEL")


if __name__ == "__main__":
    main()

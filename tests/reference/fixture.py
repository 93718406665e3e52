# SPDX-License-Identifier: Apache-2.0
"""Writes what `joulemark-parity` reads: weights, inputs, loss and gradients of a reference model in one file."""

import json
import pathlib
import struct

import torch

TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def write_safetensors(path, tensors, metadata):
    header = {"__metadata__": metadata}
    end = 0
    dense = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    for name, tensor in dense.items():
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in dense.values():
            file.write(tensor.numpy().tobytes())


def save(path, *, model, settings, module, inputs, loss, reference, seed):
    """Runs `loss(module, inputs)` and its backward in fp64 and writes all of it.

    `module` is in the mode that is compared (batch norm, no dropout), its weights in fp32, in which they are
    stored: they are exact in both precisions. `settings` are those of `--set`. `inputs` become fp64 where they are
    floating.
    """
    weights = {name: tensor.clone() for name, tensor in module.named_parameters()}
    persistent = module.state_dict()
    weights |= {name: tensor.clone() for name, tensor in module.named_buffers() if name in persistent}
    module.double()
    module.zero_grad()
    wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    value = loss(module, wide)
    value.backward()
    tensors = {f"weight.{name}": tensor for name, tensor in weights.items()}
    tensors |= {f"input.{name}": tensor for name, tensor in inputs.items()}
    tensors["loss"] = value
    tensors |= {f"gradient.{name}": tensor.grad for name, tensor in module.named_parameters()}
    metadata = {
        "model": model,
        "settings": " ".join(f"{name}={text(value)}" for name, value in settings.items()),
        "reference": f"{reference}, torch {torch.__version__.partition('+')[0]}",
        "seed": str(seed),
    }
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_safetensors(path, tensors, metadata)
    print(f"{path}: {model} {metadata['settings']}, loss {value.item():.6f}")


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(part) for part in value)
    return str(value)


def randomise_norms(module, generator):
    """Gives norm layers weights and statistics that a mistake would show, unlike the ones and zeros they start from."""
    for layer in module.modules():
        if getattr(layer, "running_var", None) is not None:
            layer.running_mean.uniform_(-0.1, 0.1, generator=generator)
            layer.running_var.uniform_(0.5, 1.5, generator=generator)
            with torch.no_grad():
                layer.weight.uniform_(0.5, 1.5, generator=generator)
                layer.bias.uniform_(-0.1, 0.1, generator=generator)

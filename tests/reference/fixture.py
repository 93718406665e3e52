# SPDX-License-Identifier: Apache-2.0
"""Writes what `joulemark-parity` reads: weights, inputs, loss and gradients of a reference model in one file."""

import json
import math
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


def add_options(parser):
    """Where and in which precision a full-size reference is computed."""
    parser.add_argument("--precision", choices=("fp64", "fp32"), default="fp64", help="of the reference; default fp64")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of the reference; default cpu")


def place_of(options):
    return {"precision": options.precision, "device": options.device}


def differentiate(module, inputs, loss, dtype, device):
    """Loss and gradients by name, computed in `dtype` on `device`."""
    module.to(device, dtype)
    module.zero_grad()
    placed = {name: tensor.to(device, dtype if tensor.is_floating_point() else None) for name, tensor in inputs.items()}
    value = loss(module, placed)
    value.backward()
    return value.detach().clone(), {name: tensor.grad.clone() for name, tensor in module.named_parameters()}


def worst_difference(gradients, reference):
    """The measure of joulemark-parity: per tensor, relative to the larger of its norm and 1e-3 x that of all."""
    norms = {name: tensor.double().norm().item() for name, tensor in reference.items()}
    floor = 1e-3 * math.hypot(*norms.values())
    return max(
        ((gradients[name].double() - tensor.double()).norm().item() / max(norms[name], floor), name)
        for name, tensor in reference.items()
    )


def nudge(module, generator):
    """Moves every weight to one of its two neighbours in fp32: the least that any rounding does."""
    with torch.no_grad():
        for tensor in module.parameters():
            up = torch.rand(tensor.shape, generator=generator).to(tensor.device) < 0.5
            tensor.copy_(torch.nextafter(tensor, torch.where(up, math.inf, -math.inf)))


def save(path, *, model, settings, module, inputs, loss, reference, seed, precision="fp64", device="cpu"):
    """Runs `loss(module, inputs)` and its backward and writes all of it.

    `module` is in the mode that is compared (batch norm, no dropout), its weights in fp32, in which they are
    stored: they are exact in both precisions. `settings` are those of `--set`. `inputs` take `precision` where they
    are floating. With fp32, how far the reference is from itself in fp64 is measured too, and from itself with
    its weights nudged: where that is more than the limit, no two ways of rounding agree within it.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    persistent = module.state_dict()
    weights = {name: tensor.clone() for name, tensor in module.named_parameters()}
    weights |= {name: tensor.clone() for name, tensor in module.named_buffers() if name in persistent}
    metadata = {
        "model": model,
        "settings": " ".join(f"{name}={text(value)}" for name, value in settings.items()),
        "reference": f"{reference}, torch {torch.__version__.partition('+')[0]}",
        "seed": str(seed),
        "precision": precision,
    }
    own = ""
    if precision == "fp32":
        value, gradients = differentiate(module, inputs, loss, torch.float32, device)
        _, exact = differentiate(module, inputs, loss, torch.float64, device)
        generator = torch.Generator().manual_seed(seed)
        nudged = []
        for _ in range(4):
            module.load_state_dict(weights, strict=False)
            nudge(module.to(torch.float32), generator)
            _, moved = differentiate(module, inputs, loss, torch.float32, device)
            nudged.append(worst_difference(gradients, moved))
        own = "".join(
            f", its own fp32 {distance:.1e} from {other} ({name})"
            for other, (distance, name) in (
                ("its fp64", worst_difference(gradients, exact)),
                ("that of nudged weights", max(nudged)),
            )
        )
    else:
        value, gradients = differentiate(module, inputs, loss, torch.float64, device)
    tensors = {f"weight.{name}": tensor for name, tensor in weights.items()}
    tensors |= {f"input.{name}": tensor for name, tensor in inputs.items()}
    tensors["loss"] = value
    tensors |= {f"gradient.{name}": tensor for name, tensor in gradients.items()}
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_safetensors(path, tensors, metadata)
    print(f"{path}: {model} {metadata['settings']}, {precision} on {device}, loss {value.item():.6f}{own}")


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

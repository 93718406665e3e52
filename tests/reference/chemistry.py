# SPDX-License-Identifier: Apache-2.0
"""Parity fixtures of SchNet, DimeNet, PNA and NNConv from PyTorch Geometric.

Its models find edges with extension packages; here edges are inputs. PNA's and NNConv's networks are those of its
examples for ZINC and QM9, made of its layers.

    python3 chemistry.py --small FOLDER
    python3 chemistry.py --full schnet|dimenet|pna|nnconv --seed N FILE
"""

import argparse
import math
import pathlib

import numpy
import scipy.optimize
import scipy.special
import torch
import torch_geometric
from torch import nn
from torch_geometric.nn import BatchNorm, NNConv, PNAConv, Set2Set, global_add_pool
from torch_geometric.nn.models import dimenet, dimenet_utils, schnet

import fixture

REFERENCE = f"torch_geometric {torch_geometric.__version__}"


def bessel_zeros(orders, count):
    """Zeros of spherical Bessel functions in double precision; PyTorch Geometric rounds them to single."""
    rows = [numpy.arange(1, count + orders) * math.pi]
    for order in range(1, orders):
        before = rows[-1]
        rows.append(
            numpy.array(
                [
                    scipy.optimize.brentq(
                        lambda x, l=order: scipy.special.spherical_jn(l, x), low, high, xtol=1e-15, rtol=1e-15
                    )
                    for low, high in zip(before[:-1], before[1:], strict=True)
                ]
            )
        )
    return numpy.stack([row[:count] for row in rows])


def triplets(edges, _):
    """As dimenet.triplets, without sparse matrices: every pair of edges k->j, j->i with k != i."""
    source, target = edges
    ji, kj = torch.nonzero(source[:, None] == target[None, :], as_tuple=True)
    apart = target[ji] != source[kj]
    ji, kj = ji[apart], kj[apart]
    return target, source, target[ji], source[ji], source[kj], kj, ji


def molecules(generator, atoms, spread):
    """Elements, positions with at least 0.9 between any two atoms of a molecule, and each atom's molecule."""
    elements = torch.tensor([1, 6, 7, 8, 9])
    z, positions, molecule = [], [], []
    for index, count in enumerate(atoms):
        points = []
        while len(points) < count:
            point = spread * torch.rand(3, generator=generator)
            if all((point - other).norm() > 0.9 for other in points):
                points.append(point)
        positions += points
        z.append(elements[torch.randint(5, (count,), generator=generator)])
        molecule += [index] * count
    return torch.cat(z), torch.stack(positions), torch.tensor(molecule)


def graph(generator, atoms, spread, cutoff):
    z, position, molecule = molecules(generator, atoms, spread)
    near = torch.cdist(position, position) < cutoff
    near &= molecule[:, None] == molecule[None, :]
    near.fill_diagonal_(False)
    target, source = near.nonzero(as_tuple=True)
    return {
        "z": z,
        "position": position,
        "molecule": molecule,
        "source": source,
        "target": target,
        "property": torch.randn(len(atoms), generator=generator),
    }


def mean_squared_error(prediction, inputs):
    return nn.functional.mse_loss(prediction.view(-1), inputs["property"])


def edges_of(inputs):
    return torch.stack([inputs["source"], inputs["target"]])


def distances(position, edges):
    return (position[edges[0]] - position[edges[1]]).norm(dim=-1)


def make_schnet(settings, inputs):
    edges = edges_of(inputs)
    return schnet.SchNet(
        hidden_channels=settings["hidden"],
        num_filters=settings["filters"],
        num_interactions=settings["interactions"],
        num_gaussians=settings["gaussians"],
        cutoff=settings["cutoff"],
        interaction_graph=lambda position, _: ((here := edges.to(position.device)), distances(position, here)),
    )


def schnet_loss(module, inputs):
    return mean_squared_error(module(inputs["z"], inputs["position"], inputs["molecule"]), inputs)


def make_dimenet(settings, _):
    dimenet_utils.Jn_zeros = bessel_zeros
    return dimenet.DimeNet(
        hidden_channels=settings["hidden"],
        out_channels=1,
        num_blocks=settings["blocks"],
        num_bilinear=settings["bilinear"],
        num_spherical=settings["spherical"],
        num_radial=settings["radial"],
        cutoff=settings["cutoff"],
        # The usual start, zeros, would keep gradients from all that is before the output.
        output_initializer="glorot_orthogonal",
    )


def dimenet_loss(module, inputs):
    dimenet.radius_graph = lambda *_, **__: edges_of(inputs)
    dimenet.triplets = lambda edges, num_nodes: triplets(edges, num_nodes)
    return mean_squared_error(module(inputs["z"], inputs["position"], inputs["molecule"]), inputs)


class Pna(nn.Module):
    def __init__(self, settings, degrees):
        super().__init__()
        hidden, gaussians = settings["hidden"], settings["gaussians"]
        self.node_emb = nn.Embedding(100, hidden)
        self.edge_emb = schnet.GaussianSmearing(0, settings["cutoff"], gaussians)
        self.convs = nn.ModuleList()
        self.batch_norms = nn.ModuleList()
        for _ in range(settings["layers"]):
            self.convs.append(
                PNAConv(
                    hidden,
                    hidden,
                    aggregators=["mean", "min", "max", "std"],
                    scalers=["identity", "amplification", "attenuation"],
                    deg=degrees,
                    edge_dim=gaussians,
                    towers=settings["towers"],
                )
            )
            self.batch_norms.append(BatchNorm(hidden))
        self.mlp = nn.Sequential(nn.Linear(hidden, 50), nn.ReLU(), nn.Linear(50, 25), nn.ReLU(), nn.Linear(25, 1))

    def forward(self, z, edges, lengths, molecule):
        x = self.node_emb(z)
        lengths = self.edge_emb(lengths)
        for conv, norm in zip(self.convs, self.batch_norms, strict=True):
            x = norm(conv(x, edges, lengths)).relu()
        return self.mlp(global_add_pool(x, molecule))


def make_pna(settings, inputs):
    degrees = torch.bincount(torch.bincount(inputs["target"], minlength=len(inputs["z"])))
    module = Pna(settings, degrees)
    fixture.randomise_norms(module, None)
    return module


def pna_loss(module, inputs):
    # Batch norm uses the batch's own statistics.
    edges = edges_of(inputs)
    output = module(inputs["z"], edges, distances(inputs["position"], edges), inputs["molecule"])
    return mean_squared_error(output, inputs)


class NnConv(nn.Module):
    def __init__(self, settings):
        super().__init__()
        dim, hidden = settings["dim"], settings["edge_hidden"]
        self.steps = settings["steps"]
        self.lin0 = nn.Linear(11, dim)
        network = nn.Sequential(nn.Linear(5, hidden), nn.ReLU(), nn.Linear(hidden, dim * dim))
        self.conv = NNConv(dim, dim, network, aggr="mean")
        self.gru = nn.GRU(dim, dim)
        self.set2set = Set2Set(dim, processing_steps=settings["set2set_steps"])
        self.lin1 = nn.Linear(2 * dim, dim)
        self.lin2 = nn.Linear(dim, 1)

    def forward(self, x, edges, features, molecule):
        x = self.lin0(x).relu()
        hidden = x.unsqueeze(0)
        for _ in range(self.steps):
            message = self.conv(x, edges, features).relu()
            x, hidden = self.gru(message.unsqueeze(0), hidden)
            x = x.squeeze(0)
        return self.lin2(self.lin1(self.set2set(x, molecule)).relu())


def make_nnconv(settings, inputs):
    inputs["atom_features"] = torch.rand(len(inputs["z"]), 11)
    inputs["edge_features"] = torch.rand(len(inputs["source"]), 5)
    module = NnConv(settings)
    with torch.no_grad():
        module.conv.bias.uniform_(-0.1, 0.1)
    return module


def nnconv_loss(module, inputs):
    features = inputs["atom_features"], edges_of(inputs), inputs["edge_features"], inputs["molecule"]
    return mean_squared_error(module(*features), inputs)


MODELS = {
    "schnet": (
        make_schnet,
        schnet_loss,
        {"hidden": 8, "filters": 6, "interactions": 2, "gaussians": 5, "cutoff": 3.0},
        {"hidden": 128, "filters": 128, "interactions": 6, "gaussians": 50, "cutoff": 10.0},
    ),
    "dimenet": (
        make_dimenet,
        dimenet_loss,
        {"hidden": 8, "blocks": 2, "bilinear": 3, "spherical": 7, "radial": 6, "cutoff": 2.5},
        {"hidden": 128, "blocks": 6, "bilinear": 8, "spherical": 7, "radial": 6, "cutoff": 5.0},
    ),
    "pna": (
        make_pna,
        pna_loss,
        {"hidden": 6, "layers": 2, "towers": 3, "gaussians": 5, "cutoff": 2.5},
        {"hidden": 75, "layers": 4, "towers": 5, "gaussians": 50, "cutoff": 5.0},
    ),
    "nnconv": (
        make_nnconv,
        nnconv_loss,
        {"dim": 6, "steps": 3, "set2set_steps": 3, "edge_hidden": 7},
        {"dim": 64, "steps": 3, "set2set_steps": 3, "edge_hidden": 128},
    ),
}


def write(path, model, settings, seed, atoms, spread, **place):
    make, loss, _, _ = MODELS[model]
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    inputs = graph(generator, atoms, spread, settings.get("cutoff", math.inf))
    module = make(settings, inputs)
    fixture.save(
        path,
        model=model,
        settings=settings,
        module=module,
        inputs=inputs,
        loss=loss,
        reference=REFERENCE,
        seed=seed,
        **place,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", metavar="FOLDER")
    parser.add_argument("--full", choices=MODELS)
    parser.add_argument("--seed", type=int, default=1)
    fixture.add_options(parser)
    parser.add_argument("file", nargs="?")
    options = parser.parse_args()
    if options.small:
        for model, (_, _, small, _) in MODELS.items():
            path = pathlib.Path(options.small) / f"{model}.safetensors"
            # One molecule is a single atom: no edges, no triplets.
            write(path, model, small, options.seed, [5, 1, 7, 4], 3)
    if options.full:
        _, _, _, full = MODELS[options.full]
        write(options.file, options.full, full, options.seed, [18, 21, 9, 15, 29, 17, 19, 3], 5, **fixture.place_of(options))


if __name__ == "__main__":
    main()

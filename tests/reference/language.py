# SPDX-License-Identifier: Apache-2.0
"""Loss and gradients of transformers' BertForMaskedLM and DistilBertForMaskedLM.

    python3 tests/reference/language.py --small OUT_DIR               narrow ones, for ctest
    python3 tests/reference/language.py --full MODEL --seed N OUT_FILE   as published
"""

import argparse
import pathlib

import torch
import transformers
from transformers import BertConfig, BertForMaskedLM, DistilBertConfig, DistilBertForMaskedLM

import fixture

SMALL = {"hidden": 32, "layers": 2, "heads": 4, "intermediate": 64, "positions": 40, "vocabulary": 100}
FULL = {"bert-base": {"layers": 12}, "distilbert": {"layers": 6}}
FULL_COMMON = {"hidden": 768, "heads": 12, "intermediate": 3072, "positions": 512, "vocabulary": 30522}
SEQUENCE = {"small": (3, 24), "full": (2, 128)}  # sequences, tokens
IGNORED = -100
FIRST_WORD = 5  # ids before are special; 0 is padding


def bert(s):
    return BertForMaskedLM(
        BertConfig(
            vocab_size=s["vocabulary"],
            hidden_size=s["hidden"],
            num_hidden_layers=s["layers"],
            num_attention_heads=s["heads"],
            intermediate_size=s["intermediate"],
            max_position_embeddings=s["positions"],
        )
    )


def distilbert(s):
    return DistilBertForMaskedLM(
        DistilBertConfig(
            vocab_size=s["vocabulary"],
            dim=s["hidden"],
            n_layers=s["layers"],
            n_heads=s["heads"],
            hidden_dim=s["intermediate"],
            max_position_embeddings=s["positions"],
        )
    )


MODELS = {"bert-base": bert, "distilbert": distilbert}


def inputs(settings, size):
    """Sequences of different lengths, so that padding is masked; a seventh of the tokens is predicted."""
    count, length = SEQUENCE[size]
    ids = torch.randint(FIRST_WORD, settings["vocabulary"], (count, length))
    lengths = torch.tensor([length - i * length // 5 for i in range(count)]).unsqueeze(1)
    present = torch.arange(length).expand(count, length) < lengths
    ids[~present] = 0
    predicted = present & (torch.rand(count, length) < 1 / 7)
    predicted[:, 1] = True
    labels = torch.where(predicted, torch.randint(0, settings["vocabulary"], (count, length)), IGNORED)
    return {"ids": ids, "present": present, "labels": labels}


def loss(module, batch):
    # Some releases read a boolean mask as numbers to add.
    mask = batch["present"].long()
    return module(input_ids=batch["ids"], attention_mask=mask, labels=batch["labels"]).loss


def write(name, size, settings, seed, path, **place):
    torch.manual_seed(seed)
    module = MODELS[name](settings).eval()  # no dropout
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1:  # biases and norms start from zeros and ones, which would hide mistakes
                parameter.add_(torch.empty_like(parameter).uniform_(-0.1, 0.1))
    fixture.save(
        path,
        model=name,
        settings=settings,
        module=module,
        inputs=inputs(settings, size),
        loss=loss,
        reference=f"transformers {transformers.__version__}",
        seed=seed,
        **place,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="both small fixtures")
    parser.add_argument("--full", metavar="MODEL", choices=sorted(FULL))
    parser.add_argument("--seed", type=int, default=1)
    fixture.add_options(parser)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.full:
        settings = FULL[arguments.full] | FULL_COMMON
        write(arguments.full, "full", settings, arguments.seed, arguments.out, **fixture.place_of(arguments))
    elif arguments.small:
        for name in MODELS:
            write(name, "small", SMALL, arguments.seed, arguments.out / f"{name}.safetensors")
    else:
        parser.error("give --small or --full MODEL")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""BERT and DistilBERT in eager PyTorch with the settings of `joulemark-train bert`: what it is compared with.

transformers' models as a user would train them: bf16 by autocast, fused AdamW, the head on all positions. The
tokens live on the GPU, so neither program waits for a loader. Prints one line of JSON.
"""
import argparse
import json
import sys
import time
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import joulemark  # noqa: E402

MODELS = {
    "bert-base": lambda: transformers.BertForMaskedLM(transformers.BertConfig()),
    "distilbert": lambda: transformers.DistilBertForMaskedLM(transformers.DistilBertConfig()),
}
PREDICTED = 19  # of 128 tokens
IGNORED = -100


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), default="bert-base")
    parser.add_argument("--local-batch", type=int, default=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=400, help="updates per epoch")
    parser.add_argument("--epochs", type=int, default=2, help="the first one warms up")
    options = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    model = MODELS[options.model]().to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    ids = torch.randint(5, model.config.vocab_size, (options.local_batch, options.length), device=device)
    labels = torch.full_like(ids, IGNORED)
    labels[:, 1 : 1 + PREDICTED] = ids[:, 1 : 1 + PREDICTED]

    joulemark.config(
        workload=f"{options.model}-pytorch-eager", local_batch=options.local_batch, gpus=1, precision="bf16"
    )
    rate = 0.0
    for epoch in range(options.epochs):
        torch.cuda.synchronize()
        begin = time.monotonic()
        samples = options.steps * options.local_batch
        tokens = samples * options.length
        with joulemark.region("epoch", index=epoch, samples=samples, tokens=tokens, updates=options.steps):
            for _ in range(options.steps):
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = model(input_ids=ids, labels=labels).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
        rate = samples / (time.monotonic() - begin)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    print(json.dumps({"samples_per_s": rate, **versions, "device": torch.cuda.get_device_name()}))


if __name__ == "__main__":
    main()

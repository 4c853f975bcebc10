#!/usr/bin/env python3
"""Compares our logits with transformers on a GGUF dequantized to float32: mean KL, flips of the top token.

usage: accuracy.py LOGITS_DUMP MODEL.gguf [--reference DIR] [--isa ISA]   (needs torch, transformers, gguf)
The text is prose, code and dialogue written for this purpose; 512 positions.
"""
import argparse
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.quantization_config import GgufConfig

TEXT = pathlib.Path(__file__).with_name("accuracy_text.txt").read_text()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dump")
    parser.add_argument("model")
    parser.add_argument("--isa", default="")
    parser.add_argument("--positions", type=int, default=512)
    args = parser.parse_args()
    path = pathlib.Path(args.model)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32,
                                                 quantization_config=GgufConfig(dequantize=True)).float().eval()
    ids = tokenizer(TEXT).input_ids[: args.positions]
    print(f"{path.name}: {len(ids)} positions")
    with torch.no_grad():
        golden = model(torch.tensor([ids])).logits[0].double()
    golden = torch.log_softmax(golden, -1)
    with tempfile.TemporaryDirectory() as folder:
        np.array(ids, dtype="<i4").tofile(f"{folder}/ids")
        for numerics in ("exact", "default"):
            subprocess.run([args.dump, args.model, f"{folder}/ids", f"{folder}/out", numerics] + ([args.isa] if args.isa else []),
                           check=True)
            ours = torch.from_numpy(np.fromfile(f"{folder}/out", dtype="<f4").reshape(len(ids), -1)).double()
            ours = torch.log_softmax(ours[:, : golden.shape[1]], -1)
            kl = (golden.exp() * (golden - ours)).sum(-1)
            best = golden.topk(2, -1).values
            margin = best[:, 0] - best[:, 1]
            flips = golden.argmax(-1) != ours.argmax(-1)
            widest = margin[flips].max().item() if flips.any() else 0.0
            print(f"  {numerics:8} mean KL {kl.mean().item():.2e}  max KL {kl.max().item():.2e}  flips {int(flips.sum())}"
                  f"  widest margin of a flip {widest:.4f} nat", flush=True)


if __name__ == "__main__":
    main()

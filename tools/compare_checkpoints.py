#!/usr/bin/env python3
"""Writes a checkpoint for ./dev compare. usage: compare_checkpoints.py llama1b|smol768 SMOLLM2_GGUF OUT (needs torch, transformers, gguf)

llama1b: random BF16 weights of Llama's 1B shape. smol768: SmolLM2-135M widened from 576 to 768 with zeros, so that every block format
applies to its rows; RMSNorm over 768 of which 192 are zero is kept by weights x sqrt(576/768) and eps x 576/768."""
import math
import pathlib
import sys

import torch
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.utils.quantization_config import GgufConfig

WIDTH = 768


def llama1b():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=49152, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
        head_dim=64, max_position_embeddings=8192, rope_theta=5e5, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2))


def smol768(source):
    narrow = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32,
                                                  quantization_config=GgufConfig(dequantize=True)).float()
    config = narrow.config
    shrink = config.hidden_size / WIDTH
    wide = LlamaForCausalLM(LlamaConfig(
        vocab_size=config.vocab_size, hidden_size=WIDTH, intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_hidden_layers, num_attention_heads=12, num_key_value_heads=4, head_dim=64,
        max_position_embeddings=config.max_position_embeddings, rms_norm_eps=config.rms_norm_eps * shrink,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_parameters["rope_theta"]}, tie_word_embeddings=True,
        bos_token_id=config.bos_token_id, eos_token_id=config.eos_token_id)).float()
    values = narrow.state_dict()
    with torch.no_grad():
        for key, target in wide.state_dict().items():
            value = values[key]
            target.zero_()
            if value.dim() == 1:
                target[: len(value)] = value * math.sqrt(shrink)
            else:
                target[: value.shape[0], : value.shape[1]] = value
        ids = torch.arange(100, 164)[None]
        expected, actual = narrow(ids).logits, wide(ids).logits
    if not torch.allclose(expected, actual, rtol=1e-3, atol=1e-2):
        sys.exit(f"compare_checkpoints: the wide model differs by {(expected - actual).abs().max():.3g}; this transformers is not the pinned one")
    return wide


def main():
    kind, source, out = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    model = llama1b() if kind == "llama1b" else smol768(source)
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    # transformers' GGUF reader loses the split of digits.
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)])
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main()

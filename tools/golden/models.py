"""Tiny configurations of every served model type and rope kind, and transformers' log-probabilities for them.

Weights come from a hash of (tensor name, index), the same here and in tests/model/tiny_model_util.cc, so that only the
configuration and the log-probabilities are stored. Needs torch and transformers.
"""
import json
import pathlib

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "model"
TOKENS = 40

BASE = dict(vocab_size=96, hidden_size=64, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, head_dim=16, max_position_embeddings=256, rms_norm_eps=1e-5,
            tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def rope(kind, **rest):
    return dict(rope_type=kind, rope_theta=10000.0, **rest)


CONFIGS = {
    "llama": dict(model_type="llama"),
    "llama_wide": dict(model_type="llama", head_dim=32, num_attention_heads=8, num_key_value_heads=2,
                       tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
    "llama_linear": dict(model_type="llama", rope_parameters=rope("linear", factor=4.0)),
    "llama_llama3": dict(model_type="llama", rope_parameters=rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)),
    "llama_yarn": dict(model_type="llama", rope_parameters=rope(
        "yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=4.0, beta_slow=1.0)),
    "mistral": dict(model_type="mistral", sliding_window=8),
    "qwen2": dict(model_type="qwen2"),
    "qwen2_window": dict(model_type="qwen2", use_sliding_window=True, sliding_window=8, max_window_layers=1),
    "qwen3": dict(model_type="qwen3", tie_word_embeddings=True),
    "qwen3_yarn": dict(model_type="qwen3", rope_parameters=rope(
        "yarn", factor=2.0, original_max_position_embeddings=128, attention_factor=1.25)),
    "gemma2": dict(model_type="gemma2", sliding_window=8, attn_logit_softcapping=0.5, final_logit_softcapping=2.0,
                   query_pre_attn_scalar=24, tie_word_embeddings=True, num_hidden_layers=4),
    "gemma3": dict(model_type="gemma3_text", sliding_window=8, query_pre_attn_scalar=24, tie_word_embeddings=True,
                   num_hidden_layers=4,
                   layer_types=["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
                   rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=100.0),
                                        full_attention=dict(rope_type="linear", rope_theta=20000.0, factor=4.0))),
}


def hashed(name, shape):
    """Uniform in [-1, 1): splitmix64 of FNV-1a(name) + index, its upper 24 bits."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) % 2**64
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    unit = (z >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - np.float32(1)
    return unit.reshape(shape)


def weight(name, shape, gemma):
    values = hashed(name, shape)
    if "norm" in name:
        return values * np.float32(0.25) + np.float32(0 if gemma else 1)
    if len(shape) == 1:
        return values * np.float32(0.25)
    return values * np.float32(0.4 if "embed" in name or "lm_head" in name else 0.1875)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    tokens = [(7 * i * i + 3 * i + 5) % 96 for i in range(TOKENS)]
    for stem, fields in CONFIGS.items():
        fields = {**BASE, **fields}
        config = AutoConfig.for_model(**fields)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
        gemma = fields["model_type"].startswith("gemma")
        state = {name: torch.from_numpy(weight(name, tuple(value.shape), gemma).copy())
                 for name, value in model.state_dict().items()}
        if fields["tie_word_embeddings"]:
            state["lm_head.weight"] = state["model.embed_tokens.weight"]
        model.load_state_dict(state)
        with torch.no_grad():
            logprobs = torch.log_softmax(model(torch.tensor([tokens])).logits[0].double(), -1).float()
        written = {key: value for key, value in config.to_dict().items() if not key.startswith("_")}
        written["tensors"] = {name: list(value.shape) for name, value in state.items()
                              if not (fields["tie_word_embeddings"] and name == "lm_head.weight")}
        (OUT / f"{stem}.json").write_text(json.dumps(written, indent=None, sort_keys=True) + "\n")
        logprobs.numpy().astype("<f4").tofile(OUT / f"{stem}.logprobs")
        print(stem, "entropy of the last position", float(-(logprobs[-1].exp() * logprobs[-1]).sum()))


if __name__ == "__main__":
    main()

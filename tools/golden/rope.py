"""Inverse frequencies and attention factors of rope kinds, as transformers computes them. Needs torch and transformers."""
import json
import pathlib

from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "model" / "rope.json"
MAX_POSITION = 4096
CASES = {
    "linear": dict(rope_type="linear", factor=4.0),
    "llama3": dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=512),
    "yarn": dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=1024),
    "yarn_exact_range": dict(rope_type="yarn", factor=40.0, original_max_position_embeddings=4096, beta_fast=16.0,
                             beta_slow=2.0, truncate=False),
    "yarn_attention_factor": dict(rope_type="yarn", factor=2.0, original_max_position_embeddings=2048,
                                  attention_factor=1.25),
    "yarn_mscale": dict(rope_type="yarn", factor=40.0, original_max_position_embeddings=4096, mscale=0.707,
                        mscale_all_dim=1.0),
}


def main():
    golden = {}
    for name, scaling in CASES.items():
        config = LlamaConfig(hidden_size=64, num_attention_heads=1, head_dim=64, max_position_embeddings=MAX_POSITION,
                             rope_parameters=dict(scaling, rope_theta=50000.0))
        frequencies, factor = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config, "cpu")
        golden[name] = dict(frequencies=[float(f) for f in frequencies], attention_factor=float(factor))
    OUT.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()

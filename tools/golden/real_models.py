"""What transformers says of the two real models, dequantized to float32: the score of a short prompt (SmolLM2), and greedy tokens with their
log-probabilities after prompts longer than Gemma's window. Needs torch, transformers and the files in $VLLM_TEST_MODELS."""
import json
import os
import pathlib

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.quantization_config import GgufConfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "data" / "model" / "real_models.json"
SMOLLM2, GEMMA = "SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"
WINDOWED_LENGTHS, GENERATED = (600, 1500), 16
CLEAR = 0.05  # nat between the best two: below it rounding may decide


def load(folder, file):
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32, attn_implementation="eager",
                                                 quantization_config=GgufConfig(dequantize=True)).float().eval()
    return AutoTokenizer.from_pretrained(folder, gguf_file=file), model


def logprobs(model, ids, last=0):
    """Of the last positions, or of all."""
    with torch.no_grad():
        return torch.log_softmax(model(torch.tensor([ids]), logits_to_keep=last, use_cache=False).logits[0].double(), -1)


def score(tokenizer, model, text):
    ids = tokenizer(text).input_ids
    rows = logprobs(model, ids)
    return {"text": text, "ids": ids, "logprobs": [round(rows[i, token].item(), 6) for i, token in enumerate(ids[1:])]}


def greedy(model, ids):
    """Whole passes without a cache: the plainest computation there is."""
    prompt, tokens, values = list(ids), [], []
    while len(tokens) < GENERATED:
        best = logprobs(model, prompt + tokens, last=1)[-1].topk(2)
        if (best.values[0] - best.values[1]).item() < CLEAR:
            break
        tokens.append(best.indices[0].item())
        values.append(round(best.values[0].item(), 6))
    return {"prompt": prompt, "tokens": tokens, "logprobs": values}


def main():
    folder = os.environ.get("VLLM_TEST_MODELS", "")
    if not all(os.path.exists(os.path.join(folder, file)) for file in (SMOLLM2, GEMMA)):
        print("real_models: $VLLM_TEST_MODELS does not hold both models; nothing written")
        return
    out = {"smollm2": score(*load(folder, SMOLLM2), "The sky is blue")}
    tokenizer, gemma = load(folder, GEMMA)
    tokenizer.add_bos_token = True
    # Not the same text again and again, which a model would copy whatever its window.
    text = (ROOT / "tools" / "accuracy_text.txt").read_text() + "".join(
        f"Line {i}: {i * i % 97} birds and {i * 7 % 31} stones lie {'north' if i % 3 else 'south'} of the well.\n" for i in range(80))
    ids = tokenizer(text).input_ids
    assert len(ids) >= max(WINDOWED_LENGTHS), len(ids)
    out["gemma3"] = [greedy(gemma, ids[:length]) for length in WINDOWED_LENGTHS]
    OUT.write_text(json.dumps(out, separators=(",", ":")) + "\n")
    print({key: len(str(value)) for key, value in out.items()}, [len(g["tokens"]) for g in out["gemma3"]])


if __name__ == "__main__":
    main()

"""Goldens of the sampler: vLLM's own Triton kernels, run by Triton's interpreter on the CPU, one request a case."""
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

VOCAB = 96
VALIDATION_VOCAB = 160


def load_vllm():
    """Imports vLLM's V2 sampling kernels with Triton in interpreter mode (there is no GPU driver to find)."""
    os.environ["TRITON_INTERPRET"] = "1"
    import triton.backends

    driver = SimpleNamespace(is_active=lambda: True)
    triton.backends.backends.clear()
    triton.backends.backends["cpu"] = SimpleNamespace(driver=driver, compiler=None)
    from vllm.v1.sample.ops import topk_topp_sampler
    from vllm.v1.worker.gpu.sample import bad_words, gumbel, logit_bias, logprob, min_p, penalties

    return SimpleNamespace(
        bad_words=bad_words, gumbel=gumbel, logit_bias=logit_bias, logprob=logprob, min_p=min_p, penalties=penalties,
        topk_topp=topk_topp_sampler)


def row_of(case):
    """Logits that the test makes again by the same integer arithmetic; exact in float32."""
    out = []
    for i in range(VOCAB):
        x = (i * 2654435761 + case["salt"] * 2246822519) % 2**32
        value = (x >> 16) / 65536 * 16 - 8
        if case.get("grid"):
            value = round(value * 2) / 2
        out.append(value)
    return out


def cases():
    prompt = [3, 5, 5, 9, 60, 95]
    output = [7, 9, 9, 9, 12, 7]
    base = {"temperature": 1.0, "prompt": prompt, "output": output}
    changes = {
        "plain": {},
        "greedy": {"temperature": 0.0},
        "greedy_grid": {"temperature": 0.0, "grid": True},
        "hot": {"temperature": 1.7},
        "cold": {"temperature": 0.25},
        "repetition": {"repetition_penalty": 1.3},
        "repetition_below_one": {"repetition_penalty": 0.7, "temperature": 0.0},
        "frequency": {"frequency_penalty": 0.5},
        "presence": {"presence_penalty": 1.25},
        "all_penalties": {"repetition_penalty": 1.1, "frequency_penalty": -0.5, "presence_penalty": 2.0},
        "penalties_without_output": {"repetition_penalty": 1.4, "presence_penalty": 1.0, "output": []},
        "allowed": {"allowed": [4, 9, 77, 95]},
        "bias": {"bias": [[0, 5.5], [9, -100.0], [95, 3.25]]},
        "bias_before_penalties": {"bias": [[7, 12.0], [9, -3.0]], "repetition_penalty": 1.5},
        "allowed_and_bias": {"allowed": [4, 9, 77], "bias": [[9, 2.0], [10, 90.0]]},
        "min_tokens_masks": {"min_tokens": 7, "stops": [2, 31, 90]},
        "min_tokens_reached": {"min_tokens": 6, "stops": [2, 31, 90]},
        "bad_word_single": {"bad_words": [[11], [12]]},
        "bad_word_completes": {"bad_words": [[12, 7, 44], [9, 7, 45], [7, 46], [3, 5, 47]]},
        "bad_word_longer_than_output": {"bad_words": [[1, 2, 7, 9, 9, 9, 12, 7, 50]]},
        "min_p": {"min_p": 0.1},
        "min_p_hot": {"min_p": 0.05, "temperature": 1.5},
        "min_p_one": {"min_p": 1.0},
        "top_k_1": {"top_k": 1},
        "top_k_5": {"top_k": 5},
        "top_k_ties": {"top_k": 6, "grid": True},
        "top_k_whole": {"top_k": VOCAB},
        "top_k_beyond": {"top_k": VOCAB + 40},
        "top_p_90": {"top_p": 0.9},
        "top_p_half": {"top_p": 0.5},
        "top_p_tiny": {"top_p": 0.001},
        "top_p_near_one": {"top_p": 0.9999},
        "top_p_ties": {"top_p": 0.6, "grid": True},
        "top_k_top_p": {"top_k": 8, "top_p": 0.7},
        "top_k_top_p_min_p": {"top_k": 20, "top_p": 0.95, "min_p": 0.02, "temperature": 1.3},
        "everything": {"top_k": 30, "top_p": 0.9, "min_p": 0.01, "temperature": 0.8, "repetition_penalty": 1.2,
                       "frequency_penalty": 0.3, "presence_penalty": 0.2, "bias": [[20, 4.0]], "min_tokens": 9,
                       "stops": [1, 2], "bad_words": [[7, 20]], "seed": -5},
        "seed_zero": {"seed": 0},
        "seed_negative": {"seed": -1234567},
        "first_position": {"prompt": [1], "output": []},
    }
    for salt, (name, change) in enumerate(changes.items()):
        yield {**base, "seed": 1234567890123 * (salt + 1), "name": name, "salt": salt + 1, **change}


def ints(values, width=1):
    import torch

    padded = list(values) + [0] * (max(width, 1) - len(values))
    return torch.tensor([padded], dtype=torch.int32)


def one(value, dtype):
    import torch

    return torch.tensor([value], dtype=dtype)


def apply_bias(v, logits, case, index, position):
    import torch

    bias = case.get("bias", [])
    stops = case.get("stops", []) if case.get("min_tokens") else []
    allowed = case.get("allowed", [])
    values = torch.tensor([[b for _, b in bias] or [0.0]], dtype=torch.float32)
    v.logit_bias.apply_logit_bias(
        logits, index, one(position, torch.int64), one(len(allowed), torch.int32), ints(allowed),
        one(len(bias), torch.int32), ints([i for i, _ in bias]), values,
        one(len(case["prompt"]) + case.get("min_tokens", 0), torch.int32), one(len(stops), torch.int32),
        one(0, torch.int32), ints(stops))


def apply_penalties(v, logits, case, index):
    import torch

    mask = torch.zeros(1, (VOCAB + 31) // 32, dtype=torch.int64)
    for token in case["prompt"]:
        mask[0, token // 32] |= 1 << (token % 32)
    mask = mask.to(torch.int32) if int(mask.max()) < 2**31 else torch.where(mask >= 2**31, mask - 2**32, mask).to(torch.int32)
    counts = torch.zeros(1, VOCAB, dtype=torch.int32)
    for token in case["output"]:
        counts[0, token] += 1
    v.penalties.apply_penalties(
        logits, index, one(0, torch.int64), one(0, torch.int64), one(case.get("repetition_penalty", 1.0), torch.float32),
        one(case.get("frequency_penalty", 0.0), torch.float32), one(case.get("presence_penalty", 0.0), torch.float32),
        mask, counts)


def apply_bad_words(v, logits, case, index):
    import torch

    words = case.get("bad_words", [])
    if not words:
        return
    flat, offsets = [], [0]
    for word in words:
        flat += word
        offsets.append(len(flat))
    ids = case["prompt"] + case["output"]
    v.bad_words.apply_bad_words(
        logits, index, ints(flat), ints(offsets), one(len(words), torch.int32), ints(ids),
        one(len(case["prompt"]), torch.int32), one(len(ids), torch.int32), one(ids[-1], torch.int64),
        one(0, torch.int64), len(words))


def run(v, case):
    import torch

    raw = torch.tensor([row_of(case)], dtype=torch.float32)
    logits = raw.clone()
    index = one(0, torch.int64)
    position = len(case["prompt"]) + len(case["output"]) - 1  # of the last known token
    apply_bias(v, logits, case, index, position)
    apply_penalties(v, logits, case, index)
    apply_bad_words(v, logits, case, index)
    temperature = one(case["temperature"], torch.float32)
    v.gumbel.apply_temperature(logits, index, temperature)
    if case.get("min_p"):
        v.min_p.apply_min_p(logits, index, one(case["min_p"], torch.float32))
    top_k = case.get("top_k", 0)
    k = one(min(top_k, VOCAB), torch.int32) if 0 < top_k < VOCAB else None
    p = one(case["top_p"], torch.float32) if case.get("top_p", 1.0) != 1.0 else None
    logits = v.topk_topp.apply_top_k_top_p_pytorch(logits, k, p)
    sampled = v.gumbel.gumbel_sample(logits, index, temperature, one(case["seed"], torch.int64),
                                     one(position, torch.int64), apply_temperature=False, is_drafting=False)
    result = dict(case)
    result["sampled"] = int(sampled[0])
    finite = lambda row: [None if x == float("-inf") else float(f"{x:.8g}") for x in row]
    result["processed"] = finite(logits[0].tolist())
    for name, row, logits_mode in (("raw_logprobs", raw, False), ("processed_logprobs", logits, False),
                                   ("raw_logits", raw, True), ("processed_logits", logits, True)):
        scores = v.logprob.compute_topk_scores(row, 3, sampled, logits_mode=logits_mode)
        result[name] = {"ids": scores.logprob_token_ids[0].tolist(), "scores": finite(scores.logprobs[0].tolist()),
                        "rank": int(scores.selected_token_ranks[0])}
    return result


def noise(v):
    """vLLM's uniform of (seed, position, token): the bits are uniform * 2^32 - 0.5, in float32 precision."""
    import torch

    from vllm.triton_utils import tl, triton

    @triton.jit
    def kernel(out_ptr, seed_ptr, pos_ptr, token_ptr, hash32: tl.constexpr):
        i = tl.program_id(0)
        tl.store(out_ptr + i, hash32(tl.load(seed_ptr + i), tl.load(pos_ptr + i), tl.load(token_ptr + i)).to(tl.int64))

    rows = [(0, 0, 0), (1, 2, 3), (-1, 7, 151935), (2**63 - 1, 2**31 + 5, 262143), (-(2**63), 131071, 31999), (42, 17, 0)]
    seed, pos, token = (torch.tensor(column, dtype=torch.int64) for column in zip(*rows))
    out = torch.zeros(len(rows), dtype=torch.int64)
    kernel[(len(rows),)](out, seed, pos, token, v.gumbel.murmur3_hash32)
    return [{"seed": s, "position": p, "token": t, "bits": int(b) % 2**32} for (s, p, t), b in zip(rows, out.tolist())]


VALIDATION = [
    {}, {"n": 0}, {"n": -3}, {"n": 2, "temperature": 0.0}, {"presence_penalty": 2.5}, {"presence_penalty": -2.0},
    {"presence_penalty": "nan"}, {"frequency_penalty": -2.25}, {"repetition_penalty": 0.0},
    {"repetition_penalty": "inf"}, {"repetition_penalty": -1.0}, {"temperature": -1.0}, {"temperature": "nan"},
    {"temperature": 1e308}, {"temperature": 2.0}, {"temperature": 2.1}, {"temperature": 1e-6}, {"temperature": 0.005},
    {"temperature": -1e-5}, {"temperature": 3.0}, {"temperature": 1e16}, {"temperature": 123456789.125},
    {"top_p": 0.0}, {"top_p": 1.5}, {"top_p": "nan"}, {"top_k": -1}, {"top_k": -2}, {"min_p": -0.1}, {"min_p": 1.1},
    {"max_tokens": 0}, {"max_tokens": -1}, {"min_tokens": -1}, {"min_tokens": 17, "max_tokens": 16},
    {"min_tokens": 17, "max_tokens": None}, {"logprobs": -2}, {"logprobs": -1}, {"logprobs": 20}, {"logprobs": 21},
    {"logprobs": 1000000}, {"prompt_logprobs": -2}, {"prompt_logprobs": 21}, {"prompt_logprobs": -1},
    {"prompt_logprobs": 0}, {"stop": [""]}, {"stop": ["a", ""]}, {"stop": ["a"], "detokenize": False},
    {"bad_words": ["", "a"]}, {"bad_words": ["it's", "\n", ""]}, {"stop_token_ids": [5, 160]},
    {"stop_token_ids": [-1, 3, 3]}, {"stop_token_ids": [3, 3, 4]}, {"allowed_token_ids": []},
    {"allowed_token_ids": [1, 160, -4]}, {"logit_bias": {"160": 1.0}}, {"logit_bias": {"-1": 1.0, "5": 2.0}},
    {"logit_bias": {"5": 1e9, "6": -1e9, "7": 3.5}}, {"logprob_token_ids": [1, 999]},
    {"logprob_token_ids": [1, 2], "logprobs": 3}, {"logprob_token_ids": [1, 2], "logprobs": 2},
    {"logprob_token_ids": list(range(129))}, {"seed": -1}, {"seed": 7, "n": 3},
    {"temperature": 0.0, "top_p": 0.5, "top_k": 4, "min_p": 0.25},
]


def validation():
    """What SamplingParams and its verify() say of each set of fields: the message, or the fields afterwards."""
    from vllm.sampling_params import SamplingParams

    config = SimpleNamespace(max_logprobs=20, get_vocab_size=lambda: VALIDATION_VOCAB, is_diffusion=False, max_model_len=64)
    out = []
    for fields in VALIDATION:
        given = {k: float(x) if x in ("nan", "inf") else x for k, x in fields.items()}
        try:
            params = SamplingParams.from_optional(**given)
            params.verify(config, None, None, None)
            out.append({"fields": fields, "after": {
                "temperature": params.temperature, "top_p": params.top_p, "top_k": params.top_k, "min_p": params.min_p,
                "seed": params.seed, "stop_token_ids": params.stop_token_ids,
                "skip_reading_prefix_cache": params.skip_reading_prefix_cache,
                "logit_bias": [[k, x] for k, x in (params.logit_bias or {}).items()]}})
        except Exception as error:  # every class of vLLM's errors ends as a 400
            out.append({"fields": fields, "error": str(error)})
    return out


def generate(root: Path) -> None:
    v = load_vllm()
    folder = root / "tests" / "data" / "sampler"
    folder.mkdir(parents=True, exist_ok=True)
    write = lambda name, value: (folder / name).write_text(json.dumps(value, separators=(",", ":")) + "\n")
    write("cases.json", {"vocab": VOCAB, "noise": noise(v), "cases": [run(v, case) for case in cases()]})
    write("validation.json", {"vocab": VALIDATION_VOCAB, "max_logprobs": 20, "cases": validation()})


if __name__ == "__main__":
    generate(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]))

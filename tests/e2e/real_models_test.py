"""The real models against transformers on the same file dequantized to float32: scores, and texts beyond the sliding window."""
import json
import pathlib

import pytest
from conftest import MODELS, Server

GOLDEN = json.loads((pathlib.Path(__file__).resolve().parents[1] / "data" / "model" / "real_models.json").read_text())
GEMMA = "gemma-3-270m-q4_k_m.gguf"


def check_scores(server, tolerance):
    golden = GOLDEN["smollm2"]
    expected = pytest.approx(golden["logprobs"], abs=tolerance)
    for prompt in (golden["text"], golden["ids"]):
        fields = {"prompt": prompt, "echo": True, "logprobs": 1}
        answer = server.post("/v1/completions", {**fields, "max_tokens": 0})[1]
        choice = answer["choices"][0]
        assert choice["text"] == golden["text"] and answer["usage"]["completion_tokens"] == 0
        assert choice["logprobs"]["token_logprobs"][0] is None and choice["logprobs"]["token_logprobs"][1:] == expected
        one_more = server.post("/v1/completions", {**fields, "max_tokens": 1})[1]["choices"][0]["logprobs"]["token_logprobs"]
        assert one_more[1:-1] == expected
    two = server.post("/v1/completions", {"prompt": [golden["text"], "x y"], "echo": True, "logprobs": 1, "max_tokens": 0})[1]
    assert two["choices"][0]["logprobs"]["token_logprobs"][1:] == expected and two["choices"][1]["text"] == "x y"


def test_smollm2_scores_a_prompt_as_transformers_does(vllm, model, server):
    check_scores(server, 0.1)  # default numerics
    with Server(vllm, model, "--numerics", "exact", "--max-model-len", "256") as exact:
        check_scores(exact, 1e-3)


@pytest.mark.parametrize(("kv", "tolerance"), [("bfloat16", 0.1), ("float16", 0.1), ("float32", 0.1), ("fp8", 0.6), ("fp8_e5m2", 1.0),
                                               ("int8_per_token_head", 0.15)])
def test_smollm2_answers_with_every_type_of_the_kv_cache(vllm, model, kv, tolerance):
    with Server(vllm, model, "--kv-cache-dtype", kv, "--max-model-len", "512") as server:
        request = {"prompt": "The capital of France is", "temperature": 0, "max_tokens": 8}
        assert server.post("/v1/completions", request)[1]["choices"][0]["text"].startswith(" Paris")
        check_scores(server, tolerance)


@pytest.mark.parametrize("flags", [(), ("--long-prefill-token-threshold", "100", "--max-num-batched-tokens", "128")])
def test_gemma3_sees_as_far_as_its_windows(vllm, flags):
    path = MODELS / GEMMA
    if not path.exists():
        pytest.skip(f"{GEMMA} is not there")
    with Server(vllm, str(path), "--numerics", "exact", "--max-model-len", "2048", *flags) as gemma:
        for case in GOLDEN["gemma3"]:
            assert len(case["tokens"]) >= 5, "the golden text is long enough to tell"
            answer = gemma.post("/v1/completions", {"prompt": case["prompt"], "max_tokens": len(case["tokens"]), "temperature": 0,
                                                    "logprobs": 0, "return_token_ids": True, "ignore_eos": True})[1]
            choice = answer["choices"][0]
            assert choice["token_ids"] == case["tokens"]
            assert choice["logprobs"]["token_logprobs"] == pytest.approx(case["logprobs"], abs=2e-3)

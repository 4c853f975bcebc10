"""The engine through HTTP: neighbours, preemption, the prefix cache, and requests that do not fit."""
import concurrent.futures
import json

import pytest
from conftest import Server, run
from tiny_models import random_model

GREEDY = {"temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def tiny_path(tmp_path_factory):
    return random_model(tmp_path_factory.mktemp("engine"))


def serve(vllm, path, *flags):
    return Server(vllm, path, "--served-model-name", "m", "--numerics", "exact", "--block-size", "16", *flags)


def complete(server, **body):
    status, answer = server.post("/v1/completions", {"max_tokens": 16, **body})
    assert status == 200, answer
    return answer


def ids_of(server, **body):
    return [c["token_ids"] for c in complete(server, return_token_ids=True, **body)["choices"]]


@pytest.fixture(scope="module")
def exact(vllm, tiny_path):
    with serve(vllm, tiny_path, "--max-model-len", "256") as server:
        yield server


@pytest.mark.parametrize("fields", [GREEDY, {"temperature": 0.8, "seed": 42, "ignore_eos": True}])
@pytest.mark.parametrize("neighbours", [1, 6, 15])
def test_a_result_does_not_depend_on_its_neighbours(exact, fields, neighbours):
    alone = ids_of(exact, prompt="The one that counts", **fields)
    with concurrent.futures.ThreadPoolExecutor(neighbours + 1) as pool:
        others = [pool.submit(ids_of, exact, prompt=f"other {i} " * (i + 1), temperature=1, max_tokens=24) for i in range(neighbours)]
        assert pool.submit(ids_of, exact, prompt="The one that counts", **fields).result() == alone
        for other in others:
            other.result()


def test_choices_of_one_seed_differ_and_repeat(exact):
    fields = dict(prompt="x", n=3, temperature=1, seed=7, ignore_eos=True)
    first = ids_of(exact, **fields)
    assert len({json.dumps(c) for c in first}) == 3 and ids_of(exact, **fields) == first


def test_prompt_logprobs_are_the_same_whatever_the_cache_holds(vllm, tiny_path):
    prompts = [[(7 * i) % 256 for i in range(n)] for n in (15, 16, 17, 32, 33, 48)]

    def scores(server, prompt):
        rows = complete(server, prompt=prompt, prompt_logprobs=1, max_tokens=1, temperature=0)["choices"][0]["prompt_logprobs"]
        return [next(iter(row.values()))["logprob"] for row in rows[1:]]

    with serve(vllm, tiny_path, "--no-enable-prefix-caching", "--max-model-len", "128") as server:
        expected = [scores(server, p) for p in prompts]
    with serve(vllm, tiny_path, "--max-model-len", "128", "--enable-prompt-tokens-details") as server:
        for order in (range(6), range(5, -1, -1), range(6)):
            for i in order:
                assert scores(server, prompts[i]) == pytest.approx(expected[i], abs=1e-4)
                details = complete(server, prompt=prompts[i], max_tokens=1, **GREEDY)["usage"]["prompt_tokens_details"]
        assert details["cached_tokens"] >= 32  # plain requests do hit
        assert server.metric("vllm:prefix_cache_hits_total") > 0


def test_identical_prompts_of_one_step_share_blocks_and_agree(vllm, tiny_path):
    """The choices of one request arrive together: all but the first find blocks that the same step is filling, as in vLLM."""
    prompt = [(7 * i) % 256 for i in range(40)]
    fields = {"prompt": prompt, "temperature": 1, "top_k": 1, "ignore_eos": True, "logprobs": 2}

    def said(server, **more):
        return [(c["token_ids"], c["logprobs"]["token_logprobs"]) for c in complete(server, return_token_ids=True, **fields, **more)["choices"]]

    for device in ("cpu", "opaque"):
        with serve(vllm, tiny_path, "--no-enable-prefix-caching", "--max-model-len", "128", "--device", device) as server:
            alone = said(server)[0]
        with serve(vllm, tiny_path, "--max-model-len", "128", "--device", device) as server:
            assert said(server, n=3) == [alone] * 3
            assert server.metric("vllm:prefix_cache_hits_total") == 2 * 32
            assert server.metric("vllm:prefix_cache_queries_total") == 3 * 40


def test_chunked_prefill_gives_the_same_ids(vllm, tiny_path, exact):
    prompts = ["x" * n for n in (15, 16, 17, 31, 32, 33)]
    expected = [ids_of(exact, prompt=p, **GREEDY) for p in prompts]
    with serve(vllm, tiny_path, "--max-model-len", "256", "--long-prefill-token-threshold", "5") as server:
        assert [ids_of(server, prompt=p, **GREEDY) for p in prompts] == expected


def test_preemption_gives_the_same_ids(vllm, tiny_path, exact):
    prompts = [chr(97 + i) * 30 for i in range(6)]
    expected = [ids_of(exact, prompt=p, max_tokens=60, **GREEDY) for p in prompts]
    with serve(vllm, tiny_path, "--max-model-len", "96", "--num-gpu-blocks-override", "12") as server:
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            got = list(pool.map(lambda p: ids_of(server, prompt=p, max_tokens=60, **GREEDY), prompts))
        assert got == expected
        assert server.metric("vllm:num_preemptions_total") > 0


def test_a_context_bigger_than_the_pool_is_refused_at_the_start(vllm, tiny_path):
    out = run(vllm, "serve", tiny_path, "--block-size", "16", "--num-gpu-blocks-override", "8", "--max-model-len", "2048")
    assert out.returncode == 1 and "--max-model-len 112" in out.stderr.splitlines()[-1], out


def test_a_request_bigger_than_the_pool_is_told_and_blocks_nobody(vllm, tiny_path):
    with serve(vllm, tiny_path, "--num-gpu-blocks-override", "8") as server:
        for length in (500, 128, 112):
            assert server.post("/v1/completions", {"prompt": "x" * length, "max_tokens": 4})[0] == 400, length
            assert complete(server, prompt="hello", max_tokens=2)["choices"][0]["finish_reason"] == "length"
        answer = complete(server, prompt="x" * 100, max_tokens=100, ignore_eos=True)
        assert answer["usage"]["total_tokens"] == 112 and answer["choices"][0]["finish_reason"] == "length"

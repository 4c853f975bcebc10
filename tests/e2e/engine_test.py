"""The engine through HTTP: neighbours, preemption, the prefix cache, and requests that do not fit."""
import concurrent.futures
import json

import pytest
from conftest import Server
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


def test_a_request_bigger_than_the_pool_is_told_and_blocks_nobody(vllm, tiny_path):
    flags = ["--num-gpu-blocks-override", "8", "--max-model-len", "2048"]
    process = serve(vllm, tiny_path, *flags)
    try:
        process.__enter__()
    except AssertionError:
        assert process.process.returncode == 1  # refused at start: the context does not fit the pool
        return
    with process as server:
        status, answer = server.post("/v1/completions", {"prompt": "x" * 500, "max_tokens": 4})
        assert status == 400 or answer["choices"][0]["finish_reason"] in ("error", "length"), answer
        assert complete(server, prompt="hello", max_tokens=2)["choices"][0]["finish_reason"] == "length"

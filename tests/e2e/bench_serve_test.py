"""vllm bench serve against a running server: the report, the result file and the plot."""
import json
import os
import xml.etree.ElementTree

import pytest
from conftest import Server, run
from tiny_models import random_model

PROMPTS, TOKENS = 6, 9


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    return random_model(tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="module")
def tiny(vllm, model_path):
    with Server(vllm, model_path, "--served-model-name", "tiny", "--max-model-len", "256") as server:
        yield server


def bench(vllm, server, *flags, **options):
    return run(vllm, "bench", "serve", "--base-url", server.url, "--num-prompts", str(PROMPTS), "--random-input-len", "12",
               "--random-output-len", str(TOKENS), "--temperature", "0", *flags, **options)


def test_the_result_file_counts_every_token(vllm, tiny, tmp_path):
    done = bench(vllm, tiny, "--max-concurrency", "2", "--save-result", "--save-detailed", "--result-dir", str(tmp_path),
                 "--result-filename", "r.json", "--plot", str(tmp_path / "r.svg"), "--percentile-metrics", "ttft,tpot,itl,e2el",
                 "--metric-percentiles", "50,99", "--metadata", "version=1")
    assert done.returncode == 0, done.stderr
    assert "Successful requests:                     6" in done.stdout
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["completed"] == PROMPTS and result["failed"] == 0
    assert result["total_output_tokens"] == PROMPTS * TOKENS
    assert result["output_lens"] == [TOKENS] * PROMPTS
    # Tokens of so small a model may come faster than they are sent, and then share an event.
    assert all(0 < len(gaps) < TOKENS for gaps in result["itls"])
    assert result["p50_itl_ms"] <= result["p99_itl_ms"] and result["p99_e2el_ms"] >= result["median_ttft_ms"] > 0
    assert result["max_concurrency"] == 2 and result["request_rate"] == "inf" and result["version"] == "1"
    assert xml.etree.ElementTree.parse(tmp_path / "r.svg").getroot().tag.endswith("svg")


def test_chat_requests_arrive_at_the_rate_that_was_asked(vllm, tiny, tmp_path):
    done = bench(vllm, tiny, "--backend", "openai-chat", "--request-rate", "20", "--burstiness", "2", "--save-result", "--save-detailed",
                 "--result-filename", str(tmp_path / "r.json"))
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["completed"] == PROMPTS and result["total_output_tokens"] == PROMPTS * TOKENS
    starts = sorted(result["start_times"])
    assert starts[-1] - starts[0] > 0.05, "the requests were sent all at once"


def test_the_key_comes_from_the_environment(vllm, model_path, tmp_path):
    with Server(vllm, model_path, "--api-key", "secret", "--max-model-len", "256") as server:
        environment = {**os.environ, "OPENAI_API_KEY": "secret"}
        assert bench(vllm, server, env=environment, cwd=tmp_path).returncode == 0
        refused = bench(vllm, server, "--model", model_path, cwd=tmp_path)
    assert refused.returncode == 1 and "HTTP 401" in refused.stdout


def test_a_server_that_is_not_there_is_told_in_one_line(vllm):
    done = run(vllm, "bench", "serve", "--port", "1", timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("vllm: --model: none given") and done.stderr.count("\n") == 1

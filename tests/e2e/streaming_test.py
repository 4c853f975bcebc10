"""Streams: whole characters, whole stop strings, one shape. On models whose greedy text is known."""
import json
import urllib.request

import pytest
from conftest import ANSWER_GUARD_S, Server
from tiny_models import script_model

LLAMA = ["Hi ", b"\xf0\x9f", b"\xa6\x99", " caf", b"\xc3", b"\xa9", " end"]
STOPS = ["alpha ", "be", "ta ST", "OPP", " tail", "ED ", "STO", "P!x", "after"]


@pytest.fixture(scope="module")
def llama(vllm, tmp_path_factory):
    with Server(vllm, script_model(tmp_path_factory.mktemp("llama"), LLAMA), "--served-model-name", "m") as server:
        yield server


@pytest.fixture(scope="module")
def stops(vllm, tmp_path_factory):
    with Server(vllm, script_model(tmp_path_factory.mktemp("stops"), STOPS), "--served-model-name", "m") as server:
        yield server


def events(server, path, body):
    """The parsed events of a stream; checks its framing."""
    request = urllib.request.Request(server.url + path, json.dumps({**body, "stream": True}).encode(),
                                     {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=ANSWER_GUARD_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        text = answer.read().decode("utf-8", errors="strict")
    lines = [line for line in text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines) and lines[-1] == "data: [DONE]"
    parsed = [json.loads(line[6:]) for line in lines[:-1]]
    assert len({e["id"] for e in parsed}) == 1 and len({e["created"] for e in parsed}) == 1
    return parsed


def text_of(parsed, index=0):
    return "".join(c["text"] for e in parsed for c in e["choices"] if c["index"] == index)


def test_characters_cut_over_tokens_arrive_whole(llama):
    body = {"prompt": "x", "max_tokens": 20, "temperature": 0, "logprobs": 1}
    parsed = events(llama, "/v1/completions", body)
    assert text_of(parsed) == "Hi 🦙 café end"
    assert all("\ufffd" not in c["text"] for e in parsed for c in e["choices"])
    whole = llama.post("/v1/completions", body)[1]["choices"][0]
    assert whole["text"] == "Hi 🦙 café end" and whole["finish_reason"] == "stop"


def test_chat_logprobs_carry_half_characters_as_bytes(llama):
    body = {"messages": [{"role": "user", "content": "x"}], "temperature": 0, "logprobs": True, "top_logprobs": 2, "max_tokens": 20}
    choice = llama.post("/v1/chat/completions", body)[1]["choices"][0]
    assert choice["message"]["content"] == "Hi 🦙 café end"
    raw = b"".join(bytes(t["bytes"]) for t in choice["logprobs"]["content"])
    assert raw.startswith("Hi 🦙 café end".encode())


@pytest.mark.parametrize("stop", [["STOP!"], "STOP!"])
def test_a_stop_string_over_several_tokens_is_found_and_its_false_start_released(stops, stop):
    body = {"prompt": "x", "max_tokens": 20, "temperature": 0, "stop": stop}
    parsed = events(stops, "/v1/completions", body)
    assert text_of(parsed) == "alpha beta STOPP tailED "
    assert parsed[-1]["choices"][0]["finish_reason"] == "stop" and parsed[-1]["choices"][0]["stop_reason"] == "STOP!"
    whole = stops.post("/v1/completions", body)[1]["choices"][0]
    assert whole["text"] == "alpha beta STOPP tailED " and whole["stop_reason"] == "STOP!"


def test_a_stop_string_can_be_kept_without_what_follows_it(stops):
    body = {"prompt": "x", "max_tokens": 20, "temperature": 0, "stop": ["STOP!"], "include_stop_str_in_output": True}
    assert text_of(events(stops, "/v1/completions", body)) == "alpha beta STOPP tailED STOP!"


def test_the_role_comes_once_a_choice_and_the_reason_last(stops):
    body = {"messages": [{"role": "user", "content": "x"}], "temperature": 1, "top_k": 1, "n": 2, "max_tokens": 20}
    parsed = events(stops, "/v1/chat/completions", body)
    for index in (0, 1):
        own = [c for e in parsed for c in e["choices"] if c["index"] == index]
        assert [("role" in c["delta"]) for c in own] == [True] + [False] * (len(own) - 1)
        assert [c["finish_reason"] for c in own][:-1] == [None] * (len(own) - 1) and own[-1]["finish_reason"] == "stop"


@pytest.mark.parametrize("options", [None, {"include_usage": True}, {"include_usage": True, "continuous_usage_stats": True}])
def test_usage_chunks_follow_the_stream_options(stops, options):
    body = {"prompt": "xyz", "max_tokens": 4, "temperature": 0, **({"stream_options": options} if options else {})}
    parsed = events(stops, "/v1/completions", body)
    if options is None:
        assert all(e.get("usage") is None for e in parsed)
        return
    assert parsed[-1]["choices"] == []
    assert parsed[-1]["usage"] == {**parsed[-1]["usage"], "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    continuous = options.get("continuous_usage_stats", False)
    assert all((e.get("usage") is not None) == continuous for e in parsed[:-1])


def test_stream_options_without_a_stream_are_refused(stops):
    status, answer = stops.post("/v1/completions", {"prompt": "x", "stream_options": {"include_usage": True}})
    assert status == 400 and "Stream options can only be defined when `stream=True`." in answer["error"]["message"]


def test_an_error_before_the_first_token_is_plain_json(stops):
    status, answer = stops.post("/v1/completions", {"prompt": "x", "stream": True, "temperature": -1})
    assert status == 400 and answer["error"]["code"] == 400

"""Bad requests get a 4xx of vLLM's shape and harm nobody; odd but valid ones are served."""
import json
import socket
import threading
import time

import pytest
from conftest import ANSWER_GUARD_S, Server
from tiny_models import random_model, script_model

RAISING = ('{% for m in messages %}{% if (m.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("order: " ~ m.role) }}'
           '{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}{{ strftime_now("%Y") }}')
USER = {"role": "user", "content": "x"}


@pytest.fixture(scope="module")
def tiny(vllm, tmp_path_factory):
    model = random_model(tmp_path_factory.mktemp("tiny"))
    with Server(vllm, model, "--served-model-name", "m", "--max-model-len", "64", "--numerics", "exact") as server:
        yield server


@pytest.fixture(scope="module")
def vocab_size():
    return 257


def complete(server, **body):
    return server.post("/v1/completions", {"prompt": "x", "max_tokens": 2, "temperature": 0, **body})


def assert_error(status, answer, wanted=400):
    assert status == wanted, answer
    error = answer["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["code"] == wanted and error["message"]


def bad_fields(vocab):
    yield from ({"prompt": p} for p in ([-1], [vocab], [2**40], [[]], [], ""))
    yield from ({"logit_bias": b} for b in ({str(vocab): 1}, {"-1": 1}, {"AI": 1}))
    yield from ({"allowed_token_ids": []}, {"allowed_token_ids": [vocab]}, {"stop": ""}, {"stop": [""]}, {"stop": ["x"] * 100000})
    yield from ({"temperature": -1}, {"temperature": "NaN"}, {"top_p": 0}, {"top_p": 1.5}, {"n": 0}, {"n": 10**9}, {"logprobs": 10**6})
    yield from ({"min_p": -0.1}, {"top_k": -2}, {"presence_penalty": 3}, {"repetition_penalty": 0}, {"min_tokens": -1})
    yield from ({"max_tokens": v} for v in (2**31, 2**63, -1, 1.5, "many"))
    yield from ({"use_beam_search": True}, {"structured_outputs": {"choice": ["a"]}}, {"response_format": {"type": "json_object"}})
    yield from ({"timeout": -1}, {"timeout": 1e9}, {"timeout": "soon"})
    yield from ({"prompt": "x" * 65}, {"prompt": "x" * 64})


def test_every_bad_field_is_a_400_while_a_neighbour_is_untouched(tiny, vocab_size):
    alone = complete(tiny, prompt="neighbour", max_tokens=40, ignore_eos=True)[1]["choices"][0]["text"]
    texts, end = [], threading.Event()

    def neighbour():
        while not end.is_set():
            texts.append(complete(tiny, prompt="neighbour", max_tokens=40, ignore_eos=True)[1]["choices"][0]["text"])

    thread = threading.Thread(target=neighbour)
    thread.start()
    try:
        for fields in bad_fields(vocab_size):
            status, answer = complete(tiny, **fields)
            assert status == 400, (str(fields)[:200], status, str(answer)[:500])
            assert_error(status, answer)
    finally:
        end.set()
        thread.join()
    assert texts and set(texts) == {alone}
    assert tiny.get("/health")[0] == 200


def test_the_context_bounds_prompt_and_answer_as_in_vllm(tiny):
    status, answer = complete(tiny, prompt="x" * 8, max_tokens=60, ignore_eos=True)
    assert status == 200 and answer["usage"]["completion_tokens"] == 56 and answer["choices"][0]["finish_reason"] == "length"
    assert complete(tiny, prompt="x" * 63, max_tokens=1)[0] == 200
    for fields in ({"prompt": "x" * 64, "max_tokens": 1}, {"prompt": "x" * 64, "max_tokens": 0, "echo": True}, {"prompt": "x" * 65}):
        status, answer = complete(tiny, **fields)
        assert_error(status, answer)
        assert "64" in answer["error"]["message"], answer


def test_a_chat_without_a_limit_fills_the_context(tiny):
    status, answer = tiny.post("/v1/chat/completions", {"messages": [USER], "ignore_eos": True, "temperature": 0})
    assert status == 200 and answer["usage"]["total_tokens"] == 64


def test_empty_stops_and_nulls_are_valid(tiny):
    for fields in ({"stop": []}, {"stop": None}, {"seed": None, "logit_bias": None, "user": None, "suffix": None, "n": None}):
        assert complete(tiny, **fields)[0] == 200, fields


def test_unknown_fields_are_ignored(tiny):
    assert complete(tiny, store=True, metadata={"a": 1}, service_tier="auto", foo=[1])[0] == 200


def test_an_unknown_model_is_a_404(tiny):
    status, answer = complete(tiny, model="other")
    assert_error(status, answer, 404)
    assert answer["error"]["type"] == "NotFoundError" and answer["error"]["param"] == "model"


def test_content_may_be_null_empty_or_parts(tiny):
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    for content in (None, "", [], parts):
        messages = [USER, {"role": "assistant", "content": content, "tool_calls": []}, {"role": "user", "content": "y", "name": "n"}]
        status, answer = tiny.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1})
        assert status == 200, (content, answer)
    status, tokens = tiny.post("/tokenize", {"messages": [USER, {"role": "assistant", "content": None}]})
    text = tiny.post("/detokenize", {"tokens": tokens["tokens"]})[1]["prompt"]
    assert status == 200 and "None" not in text and "null" not in text


def test_an_image_is_refused_and_nothing_is_fetched(tiny):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.5)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x.png"
        content = [{"type": "image_url", "image_url": {"url": url}}]
        status, answer = tiny.post("/v1/chat/completions", {"messages": [{"role": "user", "content": content}], "max_tokens": 1})
        assert_error(status, answer)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_masked_vocabulary_gives_strict_json(tiny):
    body = {"echo": True, "logprobs": 5, "allowed_token_ids": [65], "max_tokens": 3, "ignore_eos": True}
    status, answer = complete(tiny, prompt="correct horse", **body)
    assert status == 200 and answer["choices"][0]["text"] == "correct horseAAA"
    json.loads(json.dumps(answer), parse_constant=lambda name: pytest.fail(name))
    # Prompt log-probabilities come from the unmasked logits.
    free = complete(tiny, prompt="correct horse", **{**body, "allowed_token_ids": None})[1]
    count = len("correct horse")
    masked, plain = (a["choices"][0]["logprobs"]["token_logprobs"][1:count] for a in (answer, free))
    assert masked == pytest.approx(plain, abs=1e-5)


def test_echo_scores_prompts_of_texts_ids_and_lists(tiny):
    scores = complete(tiny, prompt="abc", echo=True, max_tokens=0, logprobs=1)[1]["choices"][0]["logprobs"]["token_logprobs"]
    assert scores[0] is None and len(scores) == 3
    by_ids = complete(tiny, prompt=[97, 98, 99], echo=True, max_tokens=0, logprobs=1)[1]["choices"][0]
    assert by_ids["text"] == "abc" and by_ids["logprobs"]["token_logprobs"][1:] == pytest.approx(scores[1:], abs=1e-5)
    two = complete(tiny, prompt=["abc", "x"], echo=True, max_tokens=0, logprobs=1)[1]
    assert [c["text"] for c in two["choices"]] == ["abc", "x"] and two["usage"]["completion_tokens"] == 0
    one_more = complete(tiny, prompt="abc", echo=True, max_tokens=1, logprobs=1)[1]["choices"][0]
    assert len(one_more["logprobs"]["tokens"]) == 4


NESTED = [100, 3000, 100000, 5000000]


@pytest.mark.parametrize("depth", NESTED)
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_deep_nesting_is_refused_wherever_it_stands(tiny, depth, brackets):
    open_one, close_one = ("[", "]") if brackets == "[]" else ('{"a":', "}")
    value = open_one * depth + "1" + close_one * depth
    fields = ["tools", "metadata", "chat_template_kwargs", "foo"] if depth <= 3000 else ["foo"]
    for field in fields:
        body = f'{{"model":"m","messages":[{{"role":"user","content":"x"}}],"max_tokens":1,"{field}":{value}}}'.encode()
        status, _ = tiny.post("/v1/chat/completions", body)
        assert status in (400, 413) or (depth == 100 and status == 200), (field, status)
    assert tiny.get("/health")[0] == 200


def peak_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


MANY_NAMES = b"{" + b",".join(b'"%d":0' % i for i in range(65_000))
HEAVY = {  # made when needed
    "numbers": lambda: b"[" + b"0," * 2_000_000 + b"0]",
    "lists": lambda: b"[" + b"[]," * 600_000 + b"0]",
    "texts": lambda: b'["' + b'","' * 600_000 + b'"]',
    "objects": lambda: b"[" + b'{"a":0},' * 200_000 + b"0]",
    "names in names": lambda: (MANY_NAMES + b',"z":') * 7 + MANY_NAMES + b"}" * 8,
    "too many names": lambda: (MANY_NAMES + b',"z":') * 40,
    "too many numbers": lambda: b"[" + b"0," * 10_000_000 + b"0]",
    "too many texts": lambda: b'["' + b'","' * 5_000_000 + b'"]',
    "nested lists": lambda: b"[" * 5_000_000 + b"]" * 5_000_000,
    "nested objects": lambda: b'{"a":' * 5_000_000,
    "one text": lambda: b'"' + b"a" * 30_000_000 + b'"',
}


@pytest.mark.parametrize("kind", HEAVY)
def test_a_hostile_body_takes_no_more_than_four_times_its_size(vllm, tmp_path, kind):
    with Server(vllm, script_model(tmp_path / "m", ["a"]), "--served-model-name", "m", "--max-model-len", "64") as server:
        body = b'{"model":"m","messages":[{"role":"user","content":"x"}],"foo":' + HEAVY[kind]() + b"}"
        assert server.post("/v1/chat/completions", body)[0] in (200, 400)
        assert peak_bytes(server.process.pid) < 4 * len(body) + (100 << 20)
        assert server.get("/health")[0] == 200


def test_unclosed_and_broken_bodies_are_refused(tiny):
    for body in (b"", b"{", b"[" * 100000, b'{"prompt":"x"', b"null", b"[]", b'"x"', b"\xff\xfe", b'{"prompt": NaN}'):
        status, answer = tiny.post("/v1/completions", body)
        assert status == 400, (body[:20], status, answer)


def test_a_body_of_50_megabytes_gets_a_413(tiny):
    size = 50_000_000
    with socket.create_connection(("127.0.0.1", tiny.port), timeout=ANSWER_GUARD_S) as connection:
        connection.sendall("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           f"Content-Length: {size}\r\n\r\n".encode())
        try:
            connection.sendall(b"a" * size)
        except OSError:
            pass  # the server has answered and stopped reading
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
    assert tiny.get("/health")[0] == 200


def test_two_content_lengths_are_refused(tiny):
    with socket.create_connection(("127.0.0.1", tiny.port), timeout=ANSWER_GUARD_S) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"Content-Length: 2\r\nContent-Length: 14\r\n\r\n{}GET / HTTP/1.1")
        answer = connection.recv(65536)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400"), answer[:100]


def test_a_template_that_raises_is_a_400_and_goes_on_serving(vllm, tmp_path):
    model = script_model(tmp_path / "raising", ["a", "b"], template=RAISING)
    with Server(vllm, model, "--served-model-name", "m") as server:
        status, answer = server.post("/v1/chat/completions", {"messages": [USER, USER]})
        assert_error(status, answer)
        assert "order: user" in answer["error"]["message"]
        assert server.post("/v1/chat/completions", {"messages": [USER], "max_tokens": 2})[0] == 200
        tokens = server.post("/tokenize", {"messages": [USER]})[1]["tokens"]
        assert server.post("/detokenize", {"tokens": tokens})[1]["prompt"].endswith(time.strftime("%Y"))


GUARDED = [("GET", "/v1/models"), ("POST", "/v1/completions"), ("POST", "/v1/chat/completions"), ("POST", "/tokenize"),
           ("POST", "/detokenize"), ("GET", "//v1/models"), ("POST", "/v1/../invocations"), ("GET", "/V1/models"),
           ("GET", "/v1%2fmodels"), ("GET", "/v1/models/"), ("GET", "/nothing"), ("PUT", "/v1/models"), ("HEAD", "/v1/models"),
           ("GET", "/v1/models?api_key=K")]


def status_of(server, method, path, authorization):
    with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_GUARD_S) as connection:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n"
        if authorization is not None:
            head += f"Authorization: {authorization}\r\n"
        connection.sendall(head.encode() + b"\r\n")
        return int(connection.recv(65536).split()[1])


def test_the_key_guards_every_route_but_the_public_ones_and_is_never_logged(vllm, tmp_path):
    model, log, key = script_model(tmp_path / "keyed", ["a"]), tmp_path / "log.txt", "K3y-that-nobody-may-see"
    flags = ("--served-model-name", "m", "--log-level", "DEBUG")
    with Server(vllm, model, "--api-key", key, *flags, log=log) as server:
        for method, path in GUARDED:
            for authorization in (None, "Bearer ", f"Bearer {key.lower()}", f"Basic {key}", f"Bearer {key}K", key):
                path_with_key = path.replace("=K", f"={key}")
                assert status_of(server, method, path_with_key, authorization) == 401, (method, path, authorization)
        for method, path in (("GET", "/health"), ("GET", "/ping"), ("GET", "/version"), ("GET", "/metrics")):
            assert status_of(server, method, path, None) == 200, path
        assert status_of(server, "OPTIONS", "/v1/models", None) != 401
        for scheme in ("Bearer", "bearer"):
            assert status_of(server, "GET", "/v1/models", f"{scheme} {key}") == 200
        assert status_of(server, "GET", "/nothing", f"Bearer {key}") == 404
        assert server.get("/v1/models")[1] == {"error": "Unauthorized"}
        headers = {"Authorization": f"Bearer {key}"}
        assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 1}, headers)[0] == 200
        assert server.post("/v1/completions", {"prompt": "x", "temperature": -1}, headers)[0] == 400
    text = log.read_text(encoding="utf-8")
    assert server.url in text and key not in text and key.lower() not in text, text


def test_a_request_ends_at_its_time_limit_with_what_it_has(vllm, model):
    """A limit of the request, and the server's for those that name none."""
    with Server(vllm, model, "--request-timeout", "0.6") as server:
        for extra in ({"timeout": 0.4}, {}):
            status, answer = complete(server, max_tokens=8000, ignore_eos=True, **extra)
            assert status == 200, answer
            choice = answer["choices"][0]
            assert (choice["finish_reason"], choice["stop_reason"]) == ("abort", "timeout"), choice
            assert 0 < answer["usage"]["completion_tokens"] < 8000 and choice["text"]
        status, answer = complete(server, max_tokens=3, timeout=0)
        assert status == 200 and answer["choices"][0]["finish_reason"] == "length"
        assert_error(*complete(server, timeout=1e-6), wanted=504)
        assert server.metric("vllm:num_requests_running") == 0


def test_a_full_queue_is_a_503_that_says_when_to_try_again(vllm, model):
    with Server(vllm, model, "--max-num-queued-reqs", "1") as server:
        busy = threading.Thread(target=complete, args=(server,), kwargs={"max_tokens": 8000, "ignore_eos": True, "timeout": 3})
        busy.start()
        guard = time.monotonic() + ANSWER_GUARD_S
        while server.metric("vllm:num_requests_running") == 0:
            assert time.monotonic() < guard
            time.sleep(0.01)
        assert_error(*complete(server), wanted=503)
        assert 1 <= int(server.headers["Retry-After"]) <= 60
        assert server.metric("vllm:admission_rejections_total", reason="max_num_queued_reqs") == 1
        busy.join()
        assert complete(server)[0] == 200

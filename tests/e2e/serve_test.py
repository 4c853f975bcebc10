"""The life of the server process: addresses, configuration, and its end."""
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import ANSWER_GUARD_S, Server, free_port, run
from tiny_models import script_model

LONG = {"prompt": "Count:", "max_tokens": 400, "temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    return script_model(tmp_path_factory.mktemp("script"), ["one", " two"])


def start_long_request(server, body, result):
    def send():
        try:
            result.append(server.post("/v1/completions", body))
        except OSError as error:
            result.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    deadline = time.monotonic() + 30
    while server.metric("vllm:num_requests_running") == 0:
        assert time.monotonic() < deadline and thread.is_alive()
        time.sleep(0.01)
    return thread


def end(process):
    """Ends a server by a signal and returns its exit code; nothing is left running when it does not end."""
    process.terminate()
    try:
        return process.wait(ANSWER_GUARD_S)
    finally:
        process.kill()


def test_sigterm_lets_running_requests_end_within_the_time(vllm, model):
    with Server(vllm, model, "--shutdown-timeout", "100") as server:
        result = []
        thread = start_long_request(server, LONG, result)
        server.process.send_signal(signal.SIGTERM)
        thread.join()
        assert result[0][0] == 200 and result[0][1]["usage"]["completion_tokens"] == 400
        assert server.process.wait(ANSWER_GUARD_S) == 0


def test_sigterm_without_a_time_cuts_requests_and_ends(vllm, model):
    with Server(vllm, model) as server:
        result = []
        thread = start_long_request(server, {**LONG, "max_tokens": 7000}, result)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(ANSWER_GUARD_S) == 0
        thread.join()
        assert isinstance(result[0], OSError)


def test_a_second_signal_ends_the_process_at_once(vllm, model):
    with Server(vllm, model, "--shutdown-timeout", "1000") as server:
        result = []
        thread = start_long_request(server, {**LONG, "max_tokens": 7000}, result)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 1
        thread.join()


def test_a_unix_socket_serves(vllm, script, tmp_path):
    path = str(tmp_path / "vllm.sock")
    process = subprocess.Popen([vllm, "serve", script, "--uds", path, "--served-model-name", "m"], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + ANSWER_GUARD_S
        while True:
            assert process.poll() is None and time.monotonic() < deadline
            connection = http.client.HTTPConnection("localhost")
            connection.sock = socket.socket(socket.AF_UNIX)
            try:
                connection.sock.connect(path)
                break
            except OSError:
                time.sleep(0.05)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "x", "temperature": 0}),
                           {"Content-Type": "application/json"})
        assert json.loads(connection.getresponse().read())["choices"][0]["text"] == "one two"
    finally:
        code = end(process)
    assert code == 0


@pytest.mark.skipif(not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"), reason="no IPv6 here")
def test_ipv6_serves(vllm, script):
    port = free_port()
    process = subprocess.Popen([vllm, "serve", script, "--host", "::1", "--port", str(port)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + ANSWER_GUARD_S
        while True:
            assert process.poll() is None and time.monotonic() < deadline
            try:
                connection = http.client.HTTPConnection("::1", port, timeout=ANSWER_GUARD_S)
                connection.request("GET", "/health")
                assert connection.getresponse().status == 200
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
    finally:
        code = end(process)
    assert code == 0


def test_the_configuration_file_fills_the_flags(vllm, script, tmp_path):
    config = tmp_path / "serve.yaml"
    config.write_text("served-model-name: [first, second]\nmax_model_len: 1k\napi-key: K\nenforce-eager: true\n")
    log = tmp_path / "log.txt"
    with Server(vllm, script, "--config", str(config), log=log) as server:
        models = server.get("/v1/models", {"Authorization": "Bearer K"})[1]["data"]
        assert [m["id"] for m in models] == ["first", "second"] and models[0]["max_model_len"] == 1000
        assert "enforce-eager has no effect" in server.log()


def test_the_environment_gives_a_key(vllm, script):
    with Server(vllm, script, env={"VLLM_API_KEY": "K"}) as server:
        assert server.get("/v1/models")[0] == 401
        assert server.get("/v1/models", {"Authorization": "Bearer K"})[0] == 200


def test_the_summary_tells_what_runs(vllm, script, tmp_path):
    with Server(vllm, script, "--served-model-name", "m", log=tmp_path / "log.txt") as server:
        for word in ("model ", "weights ", "device ", "attention ", "context ", "KV cache ", "scheduler ", "chat ", "names ", "API "):
            assert word in server.log(), server.log()
        assert server.url in server.log()


def test_a_port_in_use_is_told_in_one_line(vllm, script):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        out = run(vllm, "serve", script, "--port", port)
    assert out.returncode == 1 and port in out.stderr.splitlines()[-1], out


def test_version_names_ours_and_vllms(server):
    answer = server.get("/version")[1]
    assert answer["vllm"] == "0.33.0" and answer["version"]


def test_tokens_of_a_text_and_back(server):
    text = "Hello, 🦙 world!"
    answer = server.post("/tokenize", {"prompt": text})[1]
    assert answer["count"] == len(answer["tokens"]) and answer["max_model_len"] == 4096
    assert server.post("/detokenize", {"tokens": answer["tokens"]})[1]["prompt"] == text


def test_metrics_are_vllms(server):
    server.post("/v1/completions", {"prompt": "x", "max_tokens": 2})
    text = server.get("/metrics")[1]
    for name in ("vllm:num_requests_running", "vllm:kv_cache_usage_perc", "vllm:prompt_tokens_total", "vllm:generation_tokens_total",
                 "vllm:time_to_first_token_seconds_bucket", "vllm:e2e_request_latency_seconds_count",
                 'vllm:request_success_total{', "vllm:num_preemptions_total", "vllm:prefix_cache_queries_total"):
        assert name in text, name

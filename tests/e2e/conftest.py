"""Fixtures of the end-to-end lane: the program, the models, a running server. All on loopback, no network."""
import json
import os
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

# Taken out of the environment: the program tells unknown variables that begin with VLLM_.
MODELS = pathlib.Path(os.environ.pop("VLLM_TEST_MODELS", "models"))
STORM_SECONDS = float(os.environ.pop("VLLM_STORM_SECONDS", "20"))
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
START_GUARD_S = 120  # hang guards, far above what a start or an answer takes
ANSWER_GUARD_S = 120


def pytest_addoption(parser):
    parser.addoption("--vllm", required=True, help="the program under test")


@pytest.fixture(scope="session")
def vllm(request):
    return request.config.getoption("--vllm")


@pytest.fixture(scope="session")
def model():
    """Path of the default model."""
    path = MODELS / MODEL
    assert path.exists(), f"{path} is missing: VLLM_TEST_MODELS names no folder with it; ./dev test sets it"
    return str(path)


def run(program, *args, **options):
    """Runs the program to its end; returns the finished process with text output."""
    options.setdefault("timeout", ANSWER_GUARD_S)
    return subprocess.run([program, *args], capture_output=True, text=True, **options)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A `vllm serve` process on a free port; use as a context manager. `prefix` is a command that starts the program."""

    def __init__(self, program, model, *flags, env=None, log=None, prefix=()):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.headers = {}  # of the last answer
        self.log_path = pathlib.Path(log) if log else None
        self._log = open(self.log_path, "wb") if log else subprocess.DEVNULL
        self.process = subprocess.Popen(
            [*prefix, program, "serve", model, "--host", "127.0.0.1", "--port", str(self.port), *flags],
            stdout=self._log, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})

    def __enter__(self):
        deadline = time.monotonic() + START_GUARD_S
        while True:
            assert self.process.poll() is None, f"the server ended with {self.process.returncode}\n{self.log()}"
            assert time.monotonic() < deadline, f"the server does not answer\n{self.log()}"
            try:
                if self.get("/health")[0] == 200:
                    return self
            except (urllib.error.URLError, ConnectionError, OSError):
                time.sleep(0.05)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.log_path:
            self._log.close()

    def log(self):
        return self.log_path.read_text(errors="replace")[-4000:] if self.log_path else ""

    def get(self, path, headers=None):
        return self._send(urllib.request.Request(self.url + path, headers=headers or {}))

    def post(self, path, body, headers=None):
        """(status, parsed JSON or text) of a POST of JSON; `body` may be bytes that are sent as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._send(urllib.request.Request(
            self.url + path, data=data, headers={"Content-Type": "application/json", **(headers or {})}))

    def _send(self, request):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=ANSWER_GUARD_S) as answer:
                status, text, self.headers = answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            status, text, self.headers = error.code, error.read().decode(), error.headers
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def metric(self, name, **labels):
        """Sum of a metric's samples whose labels hold these values."""
        total, found = 0.0, False
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith(name) and line[len(name):len(name) + 1] in ("{", " "):
                if all(f'{key}="{value}"' in line for key, value in labels.items()):
                    total, found = total + float(line.rsplit(" ", 1)[1]), True
        assert found, f"no metric {name} {labels}"
        return total


@pytest.fixture(scope="session")
def server(vllm, model, tmp_path_factory):
    """One server of the default model for the tests that need no flags of their own."""
    log = tmp_path_factory.mktemp("server") / "log.txt"
    with Server(vllm, model, "--served-model-name", "smol", "--max-model-len", "4096", log=log) as running:
        yield running

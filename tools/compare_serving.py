"""HTTP serving in ./dev compare: each side's own server, and `vllm bench serve` of this program as the clients of all of them."""
import dataclasses
import http.client
import json
import pathlib
import tempfile
import time

import peers
from peers_install import Failure, call

OUTPUT = 128  # tokens generated for a request
SYSTEM_PROMPT, QUESTION = 2000, 64  # tokens of the shared prompt, and of what follows it
START_LIMIT = 900  # seconds that a server may take to start


@dataclasses.dataclass(frozen=True)
class Load:
    """So many clients, each sending its next request when its last answer has ended. `shared`: tokens that all prompts begin with."""
    clients: int
    prompt: int
    shared: int = 0

    @property
    def title(self):
        text = f"{self.shared} shared + {self.prompt}" if self.shared else f"{self.prompt}"
        return f"{self.clients} client{'s' if self.clients > 1 else ''}, {text} / {OUTPUT}"

    @property
    def requests(self):
        return max(4, self.clients * (2 if self.prompt + self.shared < 1000 else 1))

    @property
    def context(self):
        """Tokens of a sequence, with room for what a server's tokenizer may add."""
        return -(-(self.shared + self.prompt + OUTPUT + 64) // 256) * 256


LOADS = [Load(clients, prompt, shared) for clients in (1, 8, 32) for prompt, shared in ((128, 0), (1024, 0), (QUESTION, SYSTEM_PROMPT))]
QUICK = [Load(8, 128)]
# Rows of a load: what is printed → field of the result file.
FIELDS = {"": "output_throughput", "TTFT p50, ms": "p50_ttft_ms", "TTFT p99, ms": "p99_ttft_ms", "between tokens p50, ms": "p50_itl_ms",
          "between tokens p99, ms": "p99_itl_ms"}


def row(load, field):
    return f"{load.title}: {field}" if field else load.title


class Server:
    """A side's server, up and answering; use as a context manager."""

    def __init__(self, side, model, load):
        self.port = peers.free_port()
        command, env = side.server(model, load, self.port)
        self.name = side.name
        self.log = peers.LOGS / f"{side.name}-server.log"
        self.process = peers.Process(command, self.log, env)

    def __enter__(self):
        begin = time.monotonic()
        while not self._answers():
            if self.process.popen.poll() is not None:
                raise Failure(f"{self.name}: its server ended with {self.process.popen.returncode}: {self.process.last_words()}; see {self.log}")
            if time.monotonic() - begin > START_LIMIT:
                self.process.end()
                raise Failure(f"{self.name}: its server is not ready after {START_LIMIT} s; see {self.log}")
            time.sleep(0.1)
        self.process.done.set()  # its memory is not watched while it is measured
        return self

    def _answers(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def __exit__(self, *_):
        self.process.end()


def drive(program, server, model, load, seed, folder):
    """Runs the clients and returns the figures by row."""
    def clients(seed, requests, warmups, what):
        name = pathlib.Path(folder) / f"{seed}.json"
        call([program, "bench", "serve", "--base-url", f"http://127.0.0.1:{server.port}", "--model", "m", "--tokenizer", model.gguf,
              "--random-input-len", load.prompt, "--random-prefix-len", load.shared, "--random-output-len", OUTPUT, "--num-prompts", requests,
              "--max-concurrency", load.clients, "--num-warmups", warmups, "--temperature", "0", "--seed", seed, "--metric-percentiles",
              "50,99", "--save-result", "--result-filename", name], what, "to see why run", timeout=peers.LIMIT)
        return json.loads(name.read_text(encoding="utf-8"))

    what = f"{server.name}, {model.title}, {load.title}"
    if not load.shared:  # of another seed: prompts that are measured must not be in a prefix cache
        clients(seed + 1000, 1, 0, f"{what}, warm-up")
    result = clients(seed, load.requests, 1 if load.shared else 0, what)
    if result["failed"] or result["total_output_tokens"] != load.requests * OUTPUT:
        raise Failure(f"{what}: {result['failed']} requests failed, {result['total_output_tokens']} tokens instead of "
                      f"{load.requests * OUTPUT}; see {server.log}")
    return {row(load, field): result[name] for field, name in FIELDS.items()}


def measure(program, side, model, load, seed):
    """Figures of one load on one side, by row."""
    with tempfile.TemporaryDirectory() as folder, Server(side, model, load) as server:
        return drive(program, server, model, load, seed, folder)

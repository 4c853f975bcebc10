"""A server that has nothing to do does nothing: no thread spins, polls or ticks."""
import pathlib
import time

from conftest import Server
from tiny_models import script_model

SETTLE_S = 1  # workers look for more work for a millisecond, connections close
IDLE_S = 3
# 20 ms in 10 s are allowed; ten times that, for machines that are busy with other things.
BOUND_NS = IDLE_S * 20_000_000


def cpu_ns(pid):
    """Time on processors of all threads of a process."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def test_a_server_that_has_served_sleeps(vllm, tmp_path):
    model = script_model(tmp_path, ["one", " two"])
    with Server(vllm, model) as server:
        assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 50, "ignore_eos": True})[0] == 200
        time.sleep(SETTLE_S)
        before = cpu_ns(server.process.pid)
        assert before > 0
        time.sleep(IDLE_S)
        assert cpu_ns(server.process.pid) - before < BOUND_NS

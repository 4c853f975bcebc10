"""What ./dev compare measures: this program and its peers, each with the same few verbs.

A side has `name`, `version()`, `fits(model)` (None, or why it cannot run it), `prepare(model)` (once, not measured), `start(model)` (a
cold process up to its first token), `measure(model, work)` in tokens a second, and `close()` at the end of a round."""
import dataclasses
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import peers_install
from peers_install import CACHE, Failure, call

GENERATED = 64  # tokens of a sequence over which decoding is measured
CONTEXT = 4096  # of the process whose start and memory are measured
FIRST_PROMPT = list(range(100, 116))  # 16 token ids that every vocabulary has
LONG = 2048  # from this many tokens on one repetition must do
LIMIT = 3600  # seconds that one measurement may take
LOGS = CACHE / "compare"


@dataclasses.dataclass(frozen=True)
class Work:
    """Reading a prompt of so many tokens, or decoding `batch` sequences at once after prompts of so many tokens."""
    kind: str  # "prompt" or "decode"
    tokens: int
    batch: int = 1

    @property
    def title(self):
        if self.kind == "prompt":
            return f"prompt of {self.tokens}"
        return f"decode at {self.tokens}" if self.batch == 1 else f"decode at {self.tokens}, {self.batch} sequences"

    @property
    def repetitions(self):
        return 1 if self.tokens >= LONG else 3


@dataclasses.dataclass(frozen=True)
class Start:
    """Seconds from exec to the first token of a 16-token prompt; peak MB of RssAnon + RssFile + RssShmem, and without RssFile."""
    seconds: float
    total_mb: float
    anonymous_mb: float


class Unfit(Exception):
    """A peer cannot run a model; the reason is printed in its place."""


# ------------------------------------------------------------------------------------------------------------- processes


def group(leader):
    """Processes of the process group of a leader."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[2]) == leader or int(fields[3]) == leader:  # of its group, or of its session
                found.append((int(folder.name), int(fields[11]) + int(fields[12])))
    return found


def cpu_seconds(leader):
    return sum(ticks for _, ticks in group(leader)) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid):
    """RssAnon + RssFile + RssShmem, and RssAnon + RssShmem of a process."""
    parts = {}
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                if line.startswith("Rss"):
                    parts[line[:7]] = int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        pass
    anonymous = parts.get("RssAnon", 0) + parts.get("RssShme", 0)
    return anonymous + parts.get("RssFile", 0), anonymous


class Process:
    """A process in a session of its own, whose memory is watched until `watched` is told."""

    def __init__(self, command, log, env=None, stdin=None, stdout=None):
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.begin = time.monotonic()
        with open(log, "wb") as output:
            try:
                self.popen = subprocess.Popen([str(part) for part in command], stdin=stdin or subprocess.DEVNULL,
                                              stdout=stdout or output, stderr=output, env=env, start_new_session=True)
            except OSError as error:
                raise Failure(f"{command[0]}: {error.strerror}; build or install it first") from None
        self.peak = (0, 0)
        self.done = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _watch(self):
        members, looked = [self.popen.pid], 0.0
        while True:
            last = self.done.is_set()
            if time.monotonic() - looked > 0.2:  # finding the children costs more than reading their memory
                members, looked = [pid for pid, _ in group(self.popen.pid)] or members, time.monotonic()
            sums = [sum(parts) for parts in zip(*(resident_kb(pid) for pid in members))]
            self.peak = tuple(max(pair) for pair in zip(self.peak, sums))
            if last:
                return
            self.done.wait(0.005 if time.monotonic() - self.begin < 10 else 0.05)  # a peer that takes minutes is not disturbed

    def watched(self):
        """Ends the watch: the time since the start, and the peaks."""
        seconds = time.monotonic() - self.begin
        self.done.set()
        self.watcher.join()
        return Start(seconds, self.peak[0] / 1024, self.peak[1] / 1024)

    def last_words(self):
        lines = [line.strip() for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        told = [line for line in lines if re.search(r"error|fail|cannot|unsupported", line, re.I)]
        return (told or lines or ["it printed nothing"])[-1][:300]

    def end(self, patience=10):
        self.done.set()
        for signum in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.popen.pid, signal.SIGCONT)
                os.killpg(self.popen.pid, signum)
            except ProcessLookupError:
                pass
            try:
                self.popen.wait(patience)
                if signum == signal.SIGKILL or len(group(self.popen.pid)) == 0:
                    return
            except subprocess.TimeoutExpired:
                pass


def warm(path):
    """Reads a file or a folder's files once, so that the page cache has them."""
    for file in [path] if path.is_file() else [p for p in path.iterdir() if p.is_file()]:
        with open(file, "rb", buffering=0) as data:
            while data.read(1 << 22):
                pass


def serve_first_token(command, port, path, log):
    """Starts an OpenAI-compatible server and asks it for one token until it gives it. Returns Start."""
    warm(path)
    process = Process(command, log)
    body = json.dumps({"model": "m", "prompt": FIRST_PROMPT, "max_tokens": 1, "temperature": 0})
    status, answer = None, b""
    try:
        while status != 200:
            if process.popen.poll() is not None:
                raise Unfit(f"{pathlib.Path(command[0]).name} ended with {process.popen.returncode}: {process.last_words()}")
            if time.monotonic() - process.begin > LIMIT:
                raise Failure(f"{command[0]}: no first token within {LIMIT} s; see {log}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
                connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                status, answer = response.status, response.read()
            except (ConnectionError, http.client.HTTPException):
                status = None
            finally:
                connection.close()
            if status not in (None, 200, 503):  # 503: it listens, but still loads
                raise Failure(f"{command[0]}: HTTP {status} ({answer[:200].decode(errors='replace')}); see {log}")
            if status != 200:
                time.sleep(0.005)
        start = process.watched()
    finally:
        process.end()
    if json.loads(answer)["usage"]["completion_tokens"] != 1:
        raise Failure(f"{command[0]}: the first answer has not one token; see {log}")
    return start


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ------------------------------------------------------------------------------------------------------------------ ours


class Peer:
    """What is measured: a program that takes any model and keeps nothing running in between, unless it says otherwise."""

    def fits(self, model):
        """Why the model cannot be measured; None: it can."""
        return None

    def prepare(self, model):
        pass

    def close(self):
        pass

    def server(self, model, load, port):
        """Command and environment of a server of the OpenAI API for tools/compare_serving.py; None: it has none."""
        return None


class Ours(Peer):
    """This program: `vllm bench latency` for rates, `vllm serve` for the start."""
    name = "vllm.cpp"

    def __init__(self, program, threads, numerics):
        self.program, self.threads, self.numerics = program, threads, numerics

    def version(self):
        return call([self.program, "--version"], "vllm --version", "./dev build, then run").strip()

    def start(self, model):
        port = free_port()
        return serve_first_token([self.program, "serve", model.gguf, "--host", "127.0.0.1", "--port", port, "--served-model-name", "m",
                                  "--max-model-len", CONTEXT, "--max-num-seqs", "1", "--threads", self.threads, "--numerics",
                                  self.numerics], port, model.gguf, LOGS / "vllm.cpp.log")

    def server(self, model, load, port):
        return [self.program, "serve", model.gguf, "--host", "127.0.0.1", "--port", port, "--served-model-name", "m", "--max-model-len",
                load.context, "--max-num-seqs", load.clients, "--threads", self.threads, "--numerics", self.numerics], None

    def _latency(self, model, work, output, *more):
        """Median seconds of the batch."""
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            call([self.program, "bench", "latency", model.gguf, "--input-len", work.tokens, "--output-len", output, "--batch-size",
                  work.batch, "--num-iters", work.repetitions, "--num-iters-warmup", "1", "--max-model-len",
                  work.tokens + 2 * GENERATED, "--threads", self.threads, "--numerics", self.numerics, "--disable-detokenize",
                  "--output-json", out.name, *more],
                 f"{self.name}, {model.title}, {work.title}", "to see why run", timeout=LIMIT)
            return statistics.median(json.load(out)["latencies"])

    def measure(self, model, work):
        if work.kind == "prompt":
            return work.tokens / self._latency(model, work, 1)
        # With the prefix cache the prompt is read in the warm-up only, and what is left to subtract is small.
        first, all_of_them = (self._latency(model, work, output, "--enable-prefix-caching") for output in (1, GENERATED + 1))
        if all_of_them <= first:
            raise Failure(f"{self.name}, {model.title}, {work.title}: {GENERATED} tokens more took no time; wait for a quiet machine")
        return work.batch * GENERATED / (all_of_them - first)


# ------------------------------------------------------------------------------------------------------------- llama.cpp


class LlamaCpp(Peer):
    """llama-bench and llama-batched-bench, each with the faster of flash attention on and off; llama-server for the start."""
    name = "llama.cpp"

    def __init__(self, folder, threads, isa, source):
        self.folder, self.threads, self.isa, self.source = folder, threads, isa, source
        for program in ("llama-bench", "llama-batched-bench", "llama-server"):
            if not (folder / program).exists():
                raise Failure(f"--llama {folder}: no {program} there; give the bin folder of a whole build, or none to build it here")
        self.flash = {}
        self.features = self._features()
        forbidden = {"avx2": "AVX512|AMX|AVX_VNNI", "avxvnni": "AVX512|AMX", "avx512": "AMX"}.get(isa)
        if forbidden and re.search(forbidden, self.features):
            raise Failure(f"--llama {folder}: it uses {self.features}, but this run is held to {isa}; give a build for that, or none")

    def _features(self):
        """Instruction sets of the build, in its own words."""
        library = self.folder / "libllama.so"
        if not library.exists():
            return "instruction sets unknown"
        script = ("import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).llama_print_system_info; f.restype = ctypes.c_char_p; "
                  "print(f().decode())")
        told = call([sys.executable, "-c", script, library], str(library), "give the bin folder of a whole build; the command was")
        return " ".join(re.findall(r"(\w+) = 1\b", told))

    def version(self):
        done = subprocess.run([self.folder / "llama-server", "--version"], capture_output=True, text=True, check=False)
        found = re.search(r"version: (.*)", done.stderr + done.stdout)
        built = re.search(r"built with (.*) for", done.stderr + done.stdout)
        return ", ".join(filter(None, [found and found[1], self.source, built and built[1], f"{self.isa} build", self.features]))

    def start(self, model):
        port = free_port()
        return serve_first_token([self.folder / "llama-server", "-m", model.gguf, "--host", "127.0.0.1", "--port", port, "-c", CONTEXT,
                                  "-np", "1", "-t", self.threads, "-ub", "512", "--no-warmup", "--no-ui"],
                                 port, model.gguf, LOGS / "llama.cpp.log")

    def server(self, model, load, port):
        return [self.folder / "llama-server", "-m", model.gguf, "--host", "127.0.0.1", "--port", port, "-np", load.clients, "-c",
                load.clients * load.context, "-t", self.threads, "-b", "2048", "-ub", "512", "--no-ui"], None

    def measure(self, model, work):
        chosen = self.flash.get((model, work))
        rates = {flash: self._rate(model, work, flash) for flash in ([chosen] if chosen else ["on", "off"])}
        self.flash[model, work] = max(rates, key=rates.get)  # the first round's winner runs in the later ones
        return max(rates.values())

    def _rate(self, model, work, flash):
        what = f"{self.name}, {model.title}, {work.title}"
        if work.batch > 1:
            out = call([self.folder / "llama-batched-bench", "-m", model.gguf, "-t", self.threads, "-c",
                        work.batch * (work.tokens + 2 * GENERATED), "-b", "2048", "-ub", "512", "-npp", work.tokens, "-ntg", GENERATED,
                        "-npl", work.batch, "-fa", flash, "--output-format", "jsonl"], what, "to see why run", timeout=LIMIT)
            rows = [json.loads(line)["speed_tg"] for line in out.splitlines() if line.startswith("{")]
        else:
            shape = ["-p", work.tokens, "-n", "0"] if work.kind == "prompt" else ["-p", "0", "-n", GENERATED, "-d", work.tokens]
            out = call([self.folder / "llama-bench", "-m", model.gguf, "-t", self.threads, *shape, "-ub", "512", "-fa", flash, "-r",
                        work.repetitions, "-o", "json"], what, "to see why run", timeout=LIMIT)
            rows = [statistics.median(row["samples_ts"]) for row in json.loads(out)]
        if len(rows) != 1:
            raise Failure(f"{what}: {len(rows)} results instead of one; this build's tools differ from {peers_install.LLAMA_SOURCE}'s")
        return rows[0]


# --------------------------------------------------------------------------------------------- peers that are Python modules


class Worker(Peer):
    """A peer that is a Python module: tools/peers_worker.py holds it for one round. It sleeps while another side is measured."""

    def __init__(self, kind, python, threads):
        self.kind, self.python, self.threads = kind, pathlib.Path(python), threads
        if not self.python.exists():
            raise Failure(f"--{kind}-python {python}: no such interpreter; give one that has {kind}, or none to install it here")
        self.process, self.told, self.busy = None, {}, []

    def version(self):
        notes = [self.told.get("version", "")]
        if self.busy:
            notes.append(f"{statistics.median(self.busy):.1f} of {self.threads} cores busy while it reads prompts")
        return ", ".join(notes + self.notes())

    def notes(self):
        return []

    def path(self, model):
        return model.gguf

    def environment(self):
        return {"OMP_NUM_THREADS": str(self.threads)}

    def start(self, model):
        return self._start(model, {})

    def _start(self, model, more):
        path = self.path(model)
        warm(path)
        env = {**os.environ, **self.environment(), **more}
        self.process = Process([self.python, pathlib.Path(__file__).with_name("peers_worker.py"), self.kind, path, self.threads],
                               LOGS / f"{self.kind}.log", env, subprocess.PIPE, subprocess.PIPE)
        try:
            self.told = self._answer(Unfit)
            start = self.process.watched()
            self._sleep()
        except BaseException:
            self.close()
            raise
        return start

    def _answer(self, kind):
        line = self.process.popen.stdout.readline()
        if not line:
            try:
                status = f"ended with {self.process.popen.wait(10)}"  # below zero: by a signal
            except subprocess.TimeoutExpired:
                status = "closed its answers"
            raise kind(f"{self.name} {status}: {self.process.last_words()}; see {self.process.log}")
        answer = json.loads(line)
        if "error" in answer:
            raise kind(f"{self.name}: {answer['error'][:300]}")
        return answer

    def _sleep(self):
        os.killpg(self.process.popen.pid, signal.SIGSTOP)

    def measure(self, model, work):
        os.killpg(self.process.popen.pid, signal.SIGCONT)
        begin, cpu = time.monotonic(), cpu_seconds(self.process.popen.pid)
        order = {"kind": work.kind, "tokens": work.tokens, "batch": work.batch, "generated": GENERATED, "repetitions": work.repetitions}
        self.process.popen.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.popen.stdin.flush()
        answer = self._answer(Failure)
        if work.kind == "prompt":
            self.busy.append((cpu_seconds(self.process.popen.pid) - cpu) / (time.monotonic() - begin))
        self._sleep()
        return answer["rate"]

    def close(self):
        if self.process:
            self.process.end()
            self.process.popen.stdin.close()
            self.process.popen.stdout.close()
            self.process = None


class VllmCpu(Worker):
    """vLLM for CPU, on BF16 checkpoints."""
    name = "vLLM"

    def __init__(self, python, threads):
        super().__init__("vllm", python, threads)
        self.instructions = []

    def fits(self, model):
        return None if model.checkpoint else "has no GGUF"

    def path(self, model):
        return model.checkpoint

    def environment(self):
        cpus = sorted(os.sched_getaffinity(0))[:self.threads]
        # Unless told, it keeps one core free of its own threads: on a small machine that is half of it.
        return {"VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cpus)), "VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_NO_USAGE_STATS": "1",
                "VLLM_CACHE_ROOT": str(CACHE / "peers" / "vllm-cache"), "VLLM_LOGGING_LEVEL": "WARNING", "HF_HUB_OFFLINE": "1",
                "PATH": f"{self.python.parent}:{os.environ['PATH']}"}

    def server(self, model, load, port):
        return [self.python, "-m", "vllm.entrypoints.cli.main", "serve", model.checkpoint, "--host", "127.0.0.1", "--port", port,
                "--served-model-name", "m", "--dtype", "bfloat16", "--max-model-len", load.context, "--max-num-seqs",
                load.clients, "--tokenizer", model.checkpoint], {**os.environ, **self.environment(), "OMP_NUM_THREADS": str(self.threads)}

    def prepare(self, model):
        """A start that is not measured: it compiles the graphs that later starts find, and tells which instructions its matrices use."""
        self._start(model, {"ONEDNN_VERBOSE": "1"})
        self.close()
        text = (LOGS / "vllm.log").read_text(encoding="utf-8", errors="replace")
        used = re.findall(r"onednn_verbose\S*exec,cpu,(?:matmul|inner_product),([^,]+),", text)
        self.instructions = sorted(set(used), key=used.count, reverse=True)[:2]

    def notes(self):
        return [f"matrix kernels {' and '.join(self.instructions)}"] if self.instructions else []


class OpenVino(Worker):
    """OpenVINO GenAI, on GGUF files."""
    name = "OpenVINO"

    def __init__(self, python, threads):
        super().__init__("openvino", python, threads)

    def fits(self, model):
        return None

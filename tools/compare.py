#!/usr/bin/env python3
"""Measures this program against llama.cpp on the same machine, interleaved (./dev compare --llama BIN [MODEL...]).

Per model and round: decode of one sequence, prefill of 512 tokens, and (ours only) the time of a cold process to its first token
with its peak memory. Only the ratios of one run mean anything. BIN is the folder with llama-bench."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPT = "The quick brown fox jumps over the lazy dog and runs into the dark forest"


def ours_latency(args, model, input_len, output_len):
    """Best seconds of a batch of one."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([args.vllm, "bench", "latency", model, "--input-len", str(input_len), "--output-len", str(output_len),
                        "--batch-size", "1", "--num-iters", "3", "--num-iters-warmup", "1", "--max-model-len", "1024",
                        "--threads", str(args.threads), "--numerics", args.numerics, "--output-json", out.name],
                       check=True, stdout=subprocess.DEVNULL)
        return min(json.load(open(out.name, encoding="utf-8"))["latencies"])


def ours(args, model):
    first, many = ours_latency(args, model, 16, 1), ours_latency(args, model, 16, 65)
    return {"decode": 64 / (many - first), "prefill 512": 512 / ours_latency(args, model, 512, 1)}


def theirs(args, model):
    """Best of flash attention on and off, as llama-bench reports them."""
    out = subprocess.run([str(args.llama / "llama-bench"), "-m", model, "-t", str(args.threads), "-p", "512", "-n", "64", "-ub",
                          "512", "-fa", "0,1", "-r", "3", "-o", "json"], check=True, capture_output=True, text=True).stdout
    rows = json.loads(out)
    best = lambda key: max(r["avg_ts"] for r in rows if (r["n_prompt"] > 0) == (key == "prefill 512"))  # noqa: E731
    return {"decode": best("decode"), "prefill 512": best("prefill 512")}


def anonymous_kb(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return sum(int(line.split()[1]) for line in status if line.startswith(("RssAnon", "RssShmem")))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def cold(args, model):
    """Seconds from exec to the first token, and the peak of RssAnon + RssShmem in MB."""
    begin = time.monotonic()
    process = subprocess.Popen([args.vllm, "complete", model, PROMPT, "-n", "1", "--temp", "0", "--threads", str(args.threads)],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, anonymous_kb(process.pid))
        time.sleep(0.002)
    if process.returncode:
        sys.exit(f"compare: vllm complete {model} ended with {process.returncode}")
    return time.monotonic() - begin, peak / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--llama", type=pathlib.Path, default=os.environ.get("LLAMA_BIN"), help="folder with llama-bench")
    parser.add_argument("--vllm", default=str(ROOT / "build/release/vllm"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--numerics", default="default")
    parser.add_argument("models", nargs="*", help="GGUF files; default: those of VLLM_TEST_MODELS")
    args = parser.parse_args()
    models = args.models or sorted(str(p) for p in pathlib.Path(os.environ.get("VLLM_TEST_MODELS", "")).glob("*.gguf"))
    if args.llama is None or not (args.llama / "llama-bench").exists():
        sys.exit("compare: --llama BIN: no llama-bench there; build llama.cpp at full speed and give its bin folder")
    print("| model | what | ours | llama.cpp | ratio (median of rounds) |\n|---|---|---|---|---|")
    for model in models:
        name, rounds = pathlib.Path(model).name, []
        for number in range(args.rounds):  # the order alternates, so that a drift of the machine hits both
            pair = [(ours, args, model), (theirs, args, model)]
            results = {call.__name__: call(*rest) for call, *rest in (pair if number % 2 == 0 else pair[::-1])}
            rounds.append((results["ours"], results["theirs"]))
        for what in ("decode", "prefill 512"):
            mine, peer = (statistics.median(r[i][what] for r in rounds) for i in (0, 1))
            ratio = statistics.median(r[0][what] / r[1][what] for r in rounds)
            print(f"| {name} | {what}, t/s | {mine:.1f} | {peer:.1f} | {ratio:.2f} |", flush=True)
        starts = [cold(args, model) for _ in range(max(args.rounds, 3))]
        print(f"| {name} | cold process to first token, s | {min(s[0] for s in starts):.2f} | | |")
        print(f"| {name} | peak RssAnon + RssShmem, MB | {max(s[1] for s in starts):.0f} | | |", flush=True)


if __name__ == "__main__":
    main()

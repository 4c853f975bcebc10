"""The commands of the program: what they print, and one line with exit code 1 for whatever is wrong."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from conftest import ANSWER_GUARD_S, run

FRANCE = "The capital of France is"


def one_line_error(process):
    """The error of a refused command: exit code 1, nothing on stdout, one line on stderr."""
    assert process.returncode == 1, process
    assert process.stdout == "", process
    lines = process.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("vllm"), process
    return lines[0]


def test_help_lists_the_commands(vllm):
    out = run(vllm, "--help")
    assert out.returncode == 0 and "vllm serve MODEL" in out.stdout


def test_version_names_the_instruction_set(vllm):
    out = run(vllm, "--version").stdout
    assert out.startswith("vllm.cpp ") and ("AVX" in out or "AMX" in out)


def test_an_unknown_flag_names_the_nearest(vllm):
    assert "did you mean --max-model-len?" in one_line_error(run(vllm, "serve", "m", "--max-modle-len", "5"))


def test_no_model_names_the_remedy(vllm):
    assert "no model given" in one_line_error(run(vllm, "serve"))


def test_a_missing_file_is_named(vllm):
    assert "/nonexistent/model.gguf" in one_line_error(run(vllm, "complete", "/nonexistent/model.gguf", "x"))


def test_a_hub_name_that_is_not_cached_names_the_download_command(vllm, tmp_path):
    error = one_line_error(run(vllm, "serve", "org/name", env={**os.environ, "HF_HOME": str(tmp_path)}))
    assert "org/name" in error and "download" in error


def test_a_truncated_model_is_refused(vllm, model, tmp_path):
    for size in (0, 3, 4, 23, 4096, 1 << 20):
        path = tmp_path / f"cut{size}.gguf"
        with open(model, "rb") as source:
            path.write_bytes(source.read(size))
        assert path.name in one_line_error(run(vllm, "complete", str(path), "x")), size


def test_a_block_size_that_is_no_multiple_of_16_is_refused_with_vllms_text(vllm, model):
    assert "Block size must be a multiple of 16" in one_line_error(run(vllm, "complete", model, "x", "--block-size", "24"))


def test_an_instruction_set_that_is_none_is_refused(vllm, model):
    error = one_line_error(run(vllm, "complete", model, "x", env={**os.environ, "VT_CPU_ISA": "sse2"}))
    assert "sse2" in error and "avx2" in error


def test_complete_goes_on_from_a_text(vllm, model):
    out = run(vllm, "complete", model, FRANCE, "-n", "4", "--temp", "0")
    assert out.returncode == 0 and out.stdout.startswith(FRANCE) and "Paris" in out.stdout, out


def test_complete_reads_standard_input(vllm, model):
    out = run(vllm, "complete", model, "-n", "4", "--temp", "0", input=FRANCE)
    assert "Paris" in out.stdout, out


def test_complete_is_repeatable_with_a_seed(vllm, model):
    first, second = (run(vllm, "complete", model, "Once", "-n", "12", "--temp", "1", "--seed", "7").stdout for _ in range(2))
    assert first == second and len(first) > 8


def test_a_model_path_outside_ascii_opens(vllm, model, tmp_path):
    folder = tmp_path / "mödel 模型"
    folder.mkdir()
    os.symlink(model, folder / "ü.gguf")
    out = run(vllm, "complete", str(folder / "ü.gguf"), FRANCE, "-n", "2", "--temp", "0", env={**os.environ, "LC_ALL": "C"})
    assert out.returncode == 0, out


def test_chat_answers_each_line_and_keeps_the_history(vllm, model):
    out = run(vllm, "chat", model, "--temp", "0", "-n", "24", input="My name is Ada.\nWhat is my name?\n")
    assert out.returncode == 0 and "Ada" in out.stdout, out


def test_chat_without_a_template_names_the_remedy(vllm, model, tmp_path):
    # The same file with the template's key renamed: the engine then finds none.
    data = bytearray(open(model, "rb").read())
    at = data.index(b"tokenizer.chat_template")
    data[at:at + 23] = b"tokenizer.chat_templatX"
    path = tmp_path / "plain.gguf"
    path.write_bytes(data)
    assert "--chat-template" in one_line_error(run(vllm, "chat", str(path), "-p", "hi"))


def test_a_signal_stops_an_answer_and_two_quit(vllm, model):
    process = subprocess.Popen([vllm, "chat", model, "--ignore-eos", "--temp", "0"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.stdin.write(b"Count to one thousand.\n")
        process.stdin.flush()
        assert process.stdout.read(1)  # the answer has begun
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=ANSWER_GUARD_S)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_bench_latency_writes_vllms_fields(vllm, model, tmp_path):
    path = tmp_path / "latency.json"
    out = run(vllm, "bench", "latency", model, "--input-len", "8", "--output-len", "4", "--batch-size", "2", "--num-iters", "3",
              "--num-iters-warmup", "1", "--output-json", str(path))
    assert "Avg latency:" in out.stdout and "99% percentile latency:" in out.stdout, out
    result = json.loads(path.read_text())
    assert list(result) == ["model_id", "avg_latency", "latencies", "percentiles"]
    assert len(result["latencies"]) == 3 and list(result["percentiles"]) == ["10", "25", "50", "75", "90", "99"]


def test_bench_throughput_writes_vllms_fields(vllm, model, tmp_path):
    path = tmp_path / "throughput.json"
    out = run(vllm, "bench", "throughput", model, "--input-len", "8", "--output-len", "4", "--num-prompts", "5", "--output-json",
              str(path))
    assert out.stdout.startswith("Throughput: "), out
    result = json.loads(path.read_text())
    assert result["num_requests"] == 5 and result["total_num_tokens"] == 5 * (8 + 4)
    assert set(result) == {"model_id", "elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second"}


def test_perplexity_of_plain_prose_is_low(vllm, model, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 80)
    out = run(vllm, "perplexity", str(text), "-m", model, "--window", "128", "--chunks", "3")
    assert out.returncode == 0, out
    estimate = float(out.stdout.split("PPL = ")[1].split(" ")[0])
    assert 1 < estimate < 3  # after half a window the sentence is known by heart


def test_perplexity_of_a_text_that_is_too_short_is_refused(vllm, model, tmp_path):
    text = tmp_path / "short.txt"
    text.write_text("short")
    assert "at least 512" in one_line_error(run(vllm, "perplexity", str(text), "-m", model))


def test_inspect_shows_tensors_and_kernels_with_reasons(vllm, model):
    out = run(vllm, "inspect", model).stdout
    assert "token_embd.weight" in out and "Q4_1" in out and "kernels:" in out and "CPU_ATTN" in out


def test_a_trace_file_is_a_chrome_trace(vllm, model, tmp_path):
    path = tmp_path / "trace.json"
    out = run(vllm, "complete", model, "x", "-n", "3", env={**os.environ, "VLLM_TRACE": str(path)})
    assert out.returncode == 0, out
    text = path.read_text()
    events = json.loads(text if text.rstrip().endswith("]") else text.rstrip().rstrip(",") + "]")
    assert any(event.get("ph") == "X" for event in events)


def test_provider_statistics_count_chosen_and_executed(vllm, model):
    out = run(vllm, "complete", model, "x", "-n", "2", env={**os.environ, "VT_OP_PROVIDER_STATS": "1"})
    rows = [line.split() for line in out.stderr.splitlines()]
    counts = [row for row in rows if len(row) == 5 and row[2] == "cpu" and row[3].isdigit()]
    assert counts and all(int(row[4]) > 0 for row in counts if int(row[3]) > 0), out.stderr


def test_the_opaque_device_gives_the_same_text(vllm, model):
    args = ("complete", model, FRANCE, "-n", "2", "--temp", "0", "--numerics", "exact")
    assert run(vllm, *args, "--device", "opaque").stdout == run(vllm, *args).stdout


@pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="needs root and unshare")
def test_complete_runs_on_a_read_only_root_without_a_home(vllm, model):
    script = 'mount -o remount,ro,bind / 2>/dev/null; exec "$0" complete "$1" x -n 2'
    out = run("unshare", "-m", "sh", "-c", script, vllm, model, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})
    assert out.returncode == 0, out

"""Hostile and damaged model files: exit code 1, one line that names file and field, and no memory taken for what they claim."""
import json
import pathlib
import struct
import sys

import pytest
from conftest import run
from tiny_models import script_model

SMALL_GGUF = pathlib.Path(__file__).resolve().parents[1] / "data" / "load" / "gguf_py.gguf"
SPARE_BYTES = 200 << 20  # beside the file itself


# Runs a command and tells its exit code and largest resident set. In a process of its own: a child inherits the figure of the process that
# it was forked from, and this one may be large.
LAUNCHER = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stderr=open(sys.argv[1], "wb")).returncode
print("launched", code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def refusal(vllm, path, tmp_path):
    """The one line of stderr; checks the exit code and the largest resident set of the process."""
    err = tmp_path / "stderr.txt"
    out = run(sys.executable, "-c", LAUNCHER, str(err), vllm, "complete", str(path), "x").stdout.splitlines()
    text = err.read_text(encoding="utf-8")  # strictly
    assert len(out) == 1, out  # nothing of the program's own
    _, code, peak_kb = out[0].split()
    assert code == "1", (out, text)
    lines = text.splitlines()
    assert len(lines) == 1 and lines[0].startswith("vllm"), text
    size = sum(p.stat().st_size for p in ([path] if path.is_file() else path.rglob("*")) if p.is_file())
    assert int(peak_kb) * 1024 < size + SPARE_BYTES, (peak_kb, size)
    return lines[0]


def u32(*values):
    return struct.pack(f"<{len(values)}I", *values)


def u64(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def text(value):
    return u64(len(value)) + value.encode()


def gguf(tensors=b"", keys=b"", tensor_count=1, key_count=1, version=3):
    return b"GGUF" + u32(version) + u64(tensor_count, key_count) + keys + tensors + bytes(4096)


ARCHITECTURE = text("general.architecture") + u32(8) + text("llama")


def tensor(dims, kind=0, offset=0):
    return text("token_embd.weight") + u32(len(dims)) + u64(*dims) + u32(kind) + u64(offset)


HOSTILE_GGUF = {
    "too many tensors": (gguf(tensor_count=2**60, keys=ARCHITECTURE), "tensor count"),
    "all tensors": (gguf(tensor_count=2**64 - 1, keys=ARCHITECTURE), "tensor count"),
    "too many keys": (gguf(key_count=2**61), "key count"),
    "a string of 2^63": (gguf(keys=text("k") + u32(8) + u64(2**63)), "'k'"),
    "an array of 2^62": (gguf(keys=text("k") + u32(9, 4) + u64(2**62)), "'k'"),
    "arrays in arrays": (gguf(keys=text("k") + (u32(9) + b"") + (u32(9) + u64(1)) * 100_000), "'k'"),
    "dims that wrap": (gguf(tensor([2**62, 8]), ARCHITECTURE), "token_embd.weight"),
    "padding that wraps": (gguf(tensor([2**62 - 1]), ARCHITECTURE), "token_embd.weight"),
    "an empty dim": (gguf(tensor([0]), ARCHITECTURE), "token_embd.weight"),
    "an offset that wraps": (gguf(tensor([8], offset=2**64 - 32), ARCHITECTURE), "token_embd.weight"),
    "a tensor beyond the end": (gguf(tensor([1 << 40]), ARCHITECTURE), "token_embd.weight"),
    "a type that is none": (gguf(tensor([8], kind=255), ARCHITECTURE), "type 255"),
    "five dims": (gguf(tensor([1] * 5), ARCHITECTURE), "dimensions"),
    "no tensors": (gguf(tensor_count=0, keys=ARCHITECTURE), "no tensors"),
    "version 4": (gguf(version=4), "version 4"),
}


@pytest.mark.parametrize("name", HOSTILE_GGUF)
def test_a_hostile_gguf_is_refused(vllm, tmp_path, name):
    path = tmp_path / "hostile.gguf"
    data, word = HOSTILE_GGUF[name]
    path.write_bytes(data)
    line = refusal(vllm, path, tmp_path)
    assert "hostile.gguf" in line and word in line, line


def test_a_gguf_cut_anywhere_is_refused(vllm, tmp_path):
    good = SMALL_GGUF.read_bytes()
    for size in (0, 3, 4, 23, len(good) // 4, len(good) // 2, len(good) - 1):
        path = tmp_path / "cut.gguf"
        path.write_bytes(good[:size])
        assert "cut.gguf" in refusal(vllm, path, tmp_path), size


def header(shape, offsets):
    return json.dumps({"model.embed_tokens.weight": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}).encode()


def safetensors(head, data=b"", length=None):
    return u64(len(head) if length is None else length) + head + data


HOSTILE_SAFETENSORS = {
    "a shape larger than its bytes": safetensors(header([1000, 1000], [0, 8]), bytes(8)),
    "a shape that wraps": safetensors(header([2**62, 4], [0, 0])),
    "offsets the wrong way round": safetensors(header([2], [8, 0]), bytes(8)),
    "a negative offset": safetensors(header([2], [-8, 0]), bytes(8)),
    "data cut short": safetensors(header([2], [0, 8]), bytes(4)),
    "a header length that wraps": safetensors(b"{}", length=2**64 - 1),
    "a header length above the limit": safetensors(b"{}", length=100_000_001),
    "seven bytes": bytes(7),
    "a list for a header": safetensors(b"[]"),
    "a nested header": safetensors(b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}"),
    "a key outside UTF-8": safetensors(b'{"\xff":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}', bytes(4)),
}


@pytest.fixture
def checkpoint(tmp_path):
    return pathlib.Path(script_model(tmp_path / "model", ["a", "b"]))


@pytest.mark.parametrize("name", HOSTILE_SAFETENSORS)
def test_a_hostile_safetensors_file_is_refused(vllm, tmp_path, checkpoint, name):
    (checkpoint / "model.safetensors").write_bytes(HOSTILE_SAFETENSORS[name])
    assert "model.safetensors" in refusal(vllm, checkpoint, tmp_path)


@pytest.mark.parametrize("entry", ["../x.safetensors", "ABSOLUTE", "a/../../x.safetensors", "link.safetensors", "", ".", "x\0.safetensors"])
def test_an_index_that_leaves_the_folder_is_refused(vllm, tmp_path, checkpoint, entry):
    weights = checkpoint / "model.safetensors"
    outside = tmp_path / "x.safetensors"  # there, and valid
    outside.write_bytes(weights.read_bytes())
    weights.unlink()
    (checkpoint / "a").mkdir()
    (checkpoint / "link.safetensors").symlink_to(outside)
    index = {"weight_map": {"model.embed_tokens.weight": str(outside) if entry == "ABSOLUTE" else entry}}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    line = refusal(vllm, checkpoint, tmp_path)
    assert "weight_map" in line or "link.safetensors" in line, line

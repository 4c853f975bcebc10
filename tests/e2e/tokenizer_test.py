"""Ids of the real models through /tokenize: equal to Hugging Face's on a mixed corpus, whole on long inputs."""
import json
import pathlib
import sys

import pytest

from conftest import MODELS, Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "golden"))
from _tokenizer_corpus import chunks, corpus, digest  # noqa: E402

GEMMA = "gemma-3-270m-q4_k_m.gguf"


def golden(name):
    return json.loads((ROOT / "tests" / "data" / "tokenizer" / f"{name}_golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def gemma(vllm, tmp_path_factory):
    path = MODELS / GEMMA
    if not path.exists():
        pytest.skip(f"{GEMMA} is not there")
    with Server(vllm, str(path), "--max-model-len", "2048", log=tmp_path_factory.mktemp("gemma") / "log.txt") as running:
        yield running


def ids(server, text, **fields):
    status, answer = server.post("/tokenize", {"prompt": text, **fields})
    assert status == 200, answer
    return answer["tokens"]


def check(server, expected):
    for text, tokens, decoded in expected["samples"]:
        assert ids(server, text) == tokens, text
        if tokens:
            assert server.post("/detokenize", {"tokens": tokens})[1]["prompt"] == decoded
    parts = chunks(corpus(1, 200 * 1024), 2048)
    assert [digest(ids(server, part)) for part in parts] == expected["chunks"]


def check_long(server):
    for unit in ("a", "us", " ", "\n", "é", "1", "<start_of_turn>user\nhello<end_of_turn>\n"):
        text = unit * (128 * 1024 // len(unit.encode()))
        tokens = ids(server, text, add_special_tokens=False)
        assert server.post("/detokenize", {"tokens": tokens})[1]["prompt"] == text


def test_smollm2_ids_equal_the_reference(server):
    check(server, golden("smollm2"))


def test_gemma3_ids_equal_the_reference(gemma):
    check(gemma, golden("gemma3"))


def test_long_inputs_come_back_whole(server, gemma):
    check_long(server)
    check_long(gemma)


def test_typed_turn_markers_become_control_ids_in_chats(server):
    for text, tokens in golden("smollm2")["chats"]:
        status, answer = server.post("/tokenize", {"messages": [{"role": "user", "content": text}]})
        assert status == 200 and answer["tokens"] == tokens


def test_gemma3_puts_bos_first_once_more_than_typed(gemma):
    assert ids(gemma, "hi").count(2) == 1
    assert ids(gemma, "<bos>hi").count(2) == 2

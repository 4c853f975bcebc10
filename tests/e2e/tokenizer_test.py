"""Ids of the real models through /tokenize: equal to Hugging Face's on a mixed corpus, on long inputs and in chats."""
import json
import pathlib
import sys

import pytest

from conftest import MODELS, Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "golden"))
from _tokenizer_corpus import chunks, corpus, digest, long_inputs  # noqa: E402

GEMMA = "gemma-3-270m-q4_k_m.gguf"
SMALL_STACK = ("prlimit", "--stack=1048576")


def golden(name):
    return json.loads((ROOT / "tests" / "data" / "tokenizer" / f"{name}_golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def gemma(vllm, tmp_path_factory):
    path = MODELS / GEMMA
    if not path.exists():
        pytest.skip(f"{GEMMA} is not there")
    template = ROOT / "tests" / "data" / "template" / "chat" / "gemma.jinja"  # the file has none
    with Server(vllm, str(path), "--max-model-len", "2048", "--chat-template", str(template), prefix=SMALL_STACK,
                log=tmp_path_factory.mktemp("gemma") / "log.txt") as running:
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


def check_long(server, expected):
    for text, wanted in zip(long_inputs(), expected["long"], strict=True):
        tokens = ids(server, text)
        assert digest(tokens) == wanted, text[:20]
        tokens = ids(server, text, add_special_tokens=False)
        assert server.post("/detokenize", {"tokens": tokens})[1]["prompt"] == text
    assert server.get("/health")[0] == 200


def check_chats(server, expected):
    for text, tokens in expected["chats"]:
        status, answer = server.post("/tokenize", {"messages": [{"role": "user", "content": text}]})
        assert status == 200 and answer["tokens"] == tokens, text


def test_smollm2_ids_equal_the_reference(server):
    check(server, golden("smollm2"))


def test_gemma3_ids_equal_the_reference(gemma):
    check(gemma, golden("gemma3"))


def test_long_inputs_of_smollm2_equal_the_reference_on_a_small_stack(vllm, model):
    with Server(vllm, model, prefix=SMALL_STACK) as server:
        check_long(server, golden("smollm2"))


def test_long_inputs_of_gemma3_equal_the_reference_on_a_small_stack(gemma):
    check_long(gemma, golden("gemma3"))


def test_typed_turn_markers_become_control_ids_in_chats(server):
    check_chats(server, golden("smollm2"))


def test_gemma3_chats_begin_with_one_bos_and_equal_the_reference(gemma):
    check_chats(gemma, golden("gemma3"))
    assert all(tokens.count(2) == 1 and tokens[0] == 2 for _, tokens in golden("gemma3")["chats"])


def test_gemma3_puts_bos_first_once_more_than_typed(gemma):
    assert ids(gemma, "hi").count(2) == 1
    assert ids(gemma, "<bos>hi").count(2) == 2

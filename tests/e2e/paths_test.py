"""Models, templates and caches under paths of every spelling, also where the locale is C."""
import json
import os
import pathlib

import pytest
from conftest import Server, run
from tiny_models import TEMPLATE, script_model

NAMES = ["модели/漢字 é/🦙 m", "with space", "100% #1", "new\nline", "e\u0301", "l" * 250]
PLAIN = {"LC_ALL": "C", "LANG": "C"}


def text_of(server, **fields):
    status, answer = server.post("/v1/completions", {"prompt": "x", "temperature": 0, **fields})
    assert status == 200, answer
    return answer["choices"][0]["text"]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_any_spelling_is_served_under_its_path(vllm, tmp_path, name):
    path = script_model(tmp_path / name, ["one", " two"])
    with Server(vllm, path, env=PLAIN) as server:
        assert server.get("/v1/models")[1]["data"][0]["id"] == path
        assert text_of(server, model=path) == "one two"


def test_a_chat_template_of_any_spelling_is_read(vllm, tmp_path):
    template = tmp_path / "шаблон 漢 %#" / "é\n.jinja"
    template.parent.mkdir()
    template.write_text("{{ messages[0].content }}é", encoding="utf-8")
    with Server(vllm, script_model(tmp_path / "m", ["one"]), "--chat-template", str(template), env=PLAIN) as server:
        tokens = server.post("/tokenize", {"messages": [{"role": "user", "content": "u"}]})[1]["tokens"]
        assert server.post("/detokenize", {"tokens": tokens})[1]["prompt"] == "ué"
    assert template.read_text(encoding="utf-8") != TEMPLATE


def test_a_cache_folder_of_any_spelling_is_found(vllm, tmp_path):
    home = tmp_path / "кэш 漢字 é %#"
    repository = home / "hub" / "models--org--name"
    script_model(repository / "snapshots" / "123", ["one", " two"])
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("123")
    with Server(vllm, "org/name", env={**PLAIN, "HF_HOME": str(home)}) as server:
        assert server.get("/v1/models")[1]["data"][0]["id"] == "org/name"
        assert text_of(server) == "one two"


@pytest.mark.parametrize("name", NAMES)
def test_an_error_shows_any_path_as_one_line_of_utf8(vllm, tmp_path, name):
    path = tmp_path / name
    path.mkdir(parents=True)
    out = run(vllm, "complete", str(path), "x", env={**os.environ, **PLAIN}, encoding="utf-8")  # strictly
    assert out.returncode == 1 and len(out.stderr.splitlines()) == 1, out
    assert json.dumps(pathlib.Path(name).name, ensure_ascii=False)[1:-1] in out.stderr, out

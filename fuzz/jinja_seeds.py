#!/usr/bin/env python3
"""Writes the seeds of the template target: the templates of the golden tests. Usage: jinja_seeds.py FOLDER"""
import hashlib
import json
import pathlib
import sys

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "template"
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
sources = [p.read_text(encoding="utf-8") for p in sorted((DATA / "chat").glob("*.jinja"))]
for name in ("expressions0", "expressions1", "statements", "random"):
    sources += [row["t"] for row in json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["cases"]]
sources += [row["source"] for row in json.loads((DATA / "detection.json").read_text(encoding="utf-8")) if "source" in row]
sources += ["{% for a in range(99999) %}{% endfor %}{{ 1 }}", "{{ 'a' * 9999999 }}", "{% set n = namespace(l=[1]) %}{% for i in range(99) %}"
            "{% set n.l = n.l + n.l %}{% endfor %}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"]
PLAIN = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}{{ x }}"
NAMED = [{"name": "default", "template": PLAIN}, {"name": "tool_use", "template": "T{{ tools }}"}]
for config in ({"chat_template": PLAIN, "bos_token": "<s>", "eos_token": {"content": "</s>"}, "kwargs": {"x": 1, "documents": []}},
               {"chat_template": NAMED}, {"chat_template": NAMED[1:]}, {"chat_template": [{"name": 1}]}, {"chat_template": 1}, {},
               {"chat_template": "{% if %}"}, {"chat_template": [*NAMED, {"name": "x", "template": "{{"}]}, {"chat_template": PLAIN, "messages": []},
               {"chat_template": PLAIN, "messages": [1]}, {"chat_template": PLAIN, "kwargs": {"tokenize": 1, "chat_template": 2}},
               {"chat_template": PLAIN, "kwargs": [{"a": 1}]},
               {"chat_template": PLAIN, "documents": [{"title": "t"}], "tools": [{}], "prompt": 1}, {"chat_template": PLAIN, "documents": [1]},
               {"chat_template": PLAIN, "tools": [1]}, {"chat_template": PLAIN, "continue": 1, "prompt": 1}, {"chat_template": "x", "continue": 1},
               {"chat_template": "content", "continue": 1}, {"chat_template": PLAIN, "continue": 1},
               {"chat_template": "{% for m in messages %}{{ m.content|trim }}{% endfor %}", "continue": 1, "messages": [{"content": "a "}]},
               {"chat_template": PLAIN, "continue": 1, "messages": [{"content": [{"text": "a"}, {}]}]},
               {"chat_template": PLAIN, "continue": 1, "messages": [{"content": [1]}]}, {"chat_template": PLAIN, "continue": 1, "messages": [{}]}, {"chat_template": []}, {"chat_template": None}):
    sources.append(json.dumps(config))
for source in sources:
    text = source.encode()
    (folder / hashlib.sha256(text).hexdigest()[:16]).write_bytes(text)

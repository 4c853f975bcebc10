#!/usr/bin/env python3
"""Writes the seeds of the configuration target. Usage: config_seeds.py FOLDER"""
import json
import pathlib
import sys

TENSOR = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
TEXTS = [
    json.dumps({"architectures": ["LlamaForCausalLM"], "hidden_size": 16, "rms_norm_eps": 1e-6, "tie": False, "rope": {"type": "yarn", "f": 2.0}}),
    json.dumps({"a": None, "b": [True, False], "c": [1, 2.5], "d": ["x", "\n"], "e": {}, "f": [], "g": -1, "h": 2**40, "i": 2**80}),
    json.dumps({"a": {"b": {"c": {"d": 1}}}, "a.b": 2, "b1": 3, "c": {"x": 1}, "z": 1}), json.dumps({"k": "y" * 300, "m\n": "ü" * 100}),
    '{"a": Infinity, "b": -Infinity, "c": NaN, "d": 1e400, "e": 18446744073709551615}', '{"a": 1, "a": 2}', "", " ", "[]", "3", '{"a": 1} x',
    '{"a": 1}{}', '{"a": nul}', '{"a": tru}', '{"a": 01}', '{"a" 1}', '{"a": 1,}', '{"a": "\\q"}', '{"a": "\\ud800"}', '{"a": [1,]}', "{",
    '{"a":' + "[" * 70 + "]" * 70 + "}", '{"a":{"x":' + "[" * 70 + "]" * 70 + "}}", '{"a":' * 70 + "1" + "}" * 70,
    json.dumps({"__metadata__": {"format": "pt"}, "t": TENSOR, "u": dict(TENSOR, x=[1, {"y": None}, True, "s", 2.5])}),
    json.dumps({"__metadata__": None, "t": TENSOR}), json.dumps({"__metadata__": 3}), json.dumps({"__metadata__": {"a": 3}}),
    json.dumps({"t": {"dtype": 3}}), json.dumps({"t": {"shape": 3}}), json.dumps({"t": {"shape": [-1]}}), json.dumps({"t": {"data_offsets": [0]}}),
    json.dumps({"t": {"data_offsets": [0, 1, 2]}}), json.dumps({"t": {"dtype": "F32", "shape": [1]}}), json.dumps({"t": {"shape": [1] * 65}}),
    '{"t":{"dtype":"F32","dtype":"F32"}}', json.dumps({"metadata": {"total_size": 3}, "weight_map": {"a": "x.safetensors"}}),
    json.dumps({"weight_map": 3}), json.dumps({"weight_map": {"a": 3}}), '{"weight_map":{},"weight_map":{}}',
    '{"a":[0' + ",0" * 270_000 + "]}",
]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for number, text in enumerate(TEXTS):
    (folder / f"{number:02d}.json").write_text(text, encoding="utf-8")
(folder / "bytes.json").write_bytes(b'{"a": "\xff", "\xff": 1}')
(folder / "nul.json").write_bytes(b'{"a": 1\0}')

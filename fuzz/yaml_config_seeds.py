#!/usr/bin/env python3
"""Writes the seeds of the YAML configuration target. Usage: yaml_config_seeds.py FOLDER"""
import pathlib
import sys

SEEDS = [
    "", "# nothing\n", "port: 8000\n", "a: [1, 'x', \"y\\n\"]\nb:\n  - p\n  - q\n", "a: {b: {c: [1, {d: null}]}}\n",
    "a: &x 1\nb: *x\n", "a: !!str 1\n", "- a\n", "? [k]\n: v\n", "a: |\n  text\n  more\nb: >-\n  folded\n  text\n",
    "---\na: 1\n...\n---\nb: 2\n", "%YAML 1.2\n---\na: ~\n", "a: 'it''s'\n", "a: 1\na: 2\n", "max-num-seqs: 1k\nlog_level: DEBUG\n",
    "a:\n b:\n  c:\n   d:\n    e: 1\n", "{a: 1, b: [2, 3]}\n", "a: [[[[[[1]]]]]]\n", "text\n", "a: \"\\u00e9\\x41\"\n", "\tx: 1\n",
    "a: " + "[" * 40 + "]" * 40 + "\n", "k: true\nl: False\nm: null\nn: 1.5e3\n", "x: [1, true, NULL, 0.5, -3, '4']\n",
    "m: {a: true, b: False, c: ~, d: 1, e: 0.5, f: t}\n", "&a x: 1\n", "a: !t {b: 1}\n", "a: !t [1]\n",
    "a:\n" + "".join(" " * i + "b:\n" for i in range(1, 40)),
]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for number, seed in enumerate(SEEDS):
    (folder / f"{number:02d}.yaml").write_text(seed, encoding="utf-8")
(folder / "bytes.yaml").write_bytes(b"a: \xff\n")
(folder / "large.yaml").write_bytes(b"#" * ((1 << 20) + 1))

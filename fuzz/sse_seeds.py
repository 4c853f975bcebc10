#!/usr/bin/env python3
"""Writes the seeds of the event stream target. Usage: sse_seeds.py FOLDER"""
import pathlib
import sys

SEEDS = [
    "", "data: {\"a\":1}\n\n", ": ping\n\ndata:x\r\n\r\ndata: y\r\r", "data\n\n", "data:\n\n", "dataset: x\n\n", "event: e\nid: 1\nretry: 5\n\n",
    "data: one\ndata: two\n\ndata: [DONE]\n\n", "\r\n\r\n\n\r", "data: cut", "data:  two blanks\n\n", "data: {\"t\":\"é漢\"}\n\n",
]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for number, seed in enumerate(SEEDS):
    for cut in (0, 2, 200):
        (folder / f"{number:02d}-{cut}").write_bytes(bytes([cut]) + seed.encode())

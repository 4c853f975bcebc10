#!/usr/bin/env python3
"""Writes the generated tables of README and docs from the program's own tables. Usage: tables.py [--check] PROGRAM

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; PROGRAM --markdown NAME prints it."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ["README.md", "docs/server.md", "docs/environment.md"]
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.S)


def main(args):
    check = "--check" in args
    program = next(a for a in args if not a.startswith("-"))

    def fill(match):
        text = subprocess.run([program, "--markdown", match[2]], check=True, capture_output=True, text=True).stdout
        return f"{match[1]}{text}{match[3]}"

    stale = []
    for name in FILES:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after, count = TABLE.subn(fill, before)
        if not count:
            sys.exit(f"tables: {name} has no generated table")
        if after != before:
            stale.append(name)
            if not check:
                path.write_text(after, encoding="utf-8")
    if check and stale:
        sys.exit(f"tables: {', '.join(stale)}: run tools/tables.py build/release/vllm")
    print(f"tables: {', '.join(stale) or 'nothing'} changed" if not check else "tables: up to date")


if __name__ == "__main__":
    main(sys.argv[1:])

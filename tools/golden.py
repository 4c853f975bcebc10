#!/usr/bin/env python3
"""Runs the golden writers tools/golden/*.py with this interpreter (./dev golden). Usage: golden.py [PART...]"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_FILE, MAX_ALL = 64 * 1024, 2 * 1024 * 1024


def main(wanted):
    parts = {p.stem: p for p in sorted((ROOT / "tools" / "golden").glob("*.py")) if not p.name.startswith("_")}
    unknown = [name for name in wanted if name not in parts]
    if unknown:
        sys.exit(f"golden: no part '{unknown[0]}' (there are: {', '.join(parts) or 'none'})")
    for name in wanted or parts:
        print(f"golden: {name}", flush=True)
        subprocess.run([sys.executable, str(parts[name])], cwd=ROOT, check=True)
    sizes = {p: p.stat().st_size for p in (ROOT / "tests" / "data").rglob("*") if p.is_file()}
    for path, size in sizes.items():
        if size > MAX_FILE:
            sys.exit(f"golden: {path.relative_to(ROOT)} has {size} bytes, at most {MAX_FILE}")
    if sum(sizes.values()) > MAX_ALL:
        sys.exit(f"golden: {sum(sizes.values())} bytes in all, at most {MAX_ALL}")


if __name__ == "__main__":
    main(sys.argv[1:])

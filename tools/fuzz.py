#!/usr/bin/env python3
"""Runs fuzz targets and prints the line coverage that each corpus reaches in its parser (./dev fuzz).

A target is fuzz/NAME_fuzz.cc. Its seeds are the files of fuzz/corpus/NAME/ and what fuzz/NAME_seeds.py writes into the
folder that it gets as its argument. Its parser is what a line `// Covers: src/a/b.cc src/a/c.cc` in it names, otherwise
the .cc twins of the project headers that it includes (those of base/ left out). A dictionary is fuzz/NAME.dict."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LLVM = "/usr/lib/llvm-19/bin"
RSS_LIMIT_MB, LENGTH_LIMIT = 1024, 1 << 20


def covered_sources(target):
    text = target.read_text(encoding="utf-8")
    named = re.search(r"// Covers:\s*(.+)", text)
    if named:
        return re.findall(r"[\w./-]+", named[1])
    headers = re.findall(r'#include "([\w/]+)\.h"', text)
    return [f"src/{h}.cc" for h in headers if not h.startswith("base/") and (ROOT / f"src/{h}.cc").exists()]


def seeds(name, folder):
    folder.mkdir(parents=True, exist_ok=True)
    maker = ROOT / "fuzz" / f"{name}_seeds.py"
    if maker.exists():
        subprocess.run([sys.executable, str(maker), str(folder)], check=True)
    fixed = ROOT / "fuzz" / "corpus" / name
    return [str(p) for p in (folder, fixed) if p.is_dir()]


def coverage(binary, profile, sources):
    data = profile.with_suffix(".profdata")
    subprocess.run([f"{LLVM}/llvm-profdata", "merge", "-sparse", str(profile), "-o", str(data)], check=True)
    out = subprocess.run([f"{LLVM}/llvm-cov", "export", "-summary-only", f"-instr-profile={data}", str(binary),
                          *(str(ROOT / s) for s in sources)], check=True, capture_output=True, text=True).stdout
    rows = []
    for row in json.loads(out)["data"][0]["files"]:
        lines = row["summary"]["lines"]
        rows.append((os.path.relpath(row["filename"], ROOT), lines["covered"], lines["count"]))
    return rows


def run(target, args):
    name = target.stem.removesuffix("_fuzz")
    binary = (args.build / "fuzz" / target.stem).resolve()
    home = (args.corpora / name).resolve()
    found, crashes = home / "found", home / "crashes"
    for folder in (found, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    given = seeds(name, home / "seeds")
    dictionary = ROOT / "fuzz" / f"{name}.dict"
    options = [f"-rss_limit_mb={RSS_LIMIT_MB}", f"-max_len={LENGTH_LIMIT}", "-timeout=20", f"-artifact_prefix={crashes}/",
               "-print_final_stats=1", *([f"-dict={dictionary}"] if dictionary.exists() else [])]
    print(f"fuzz: {name} for {args.seconds} s", flush=True)
    quiet = dict(os.environ, LLVM_PROFILE_FILE="/dev/null")
    log = home / "log.txt"
    with open(log, "w", encoding="utf-8") as out:
        status = subprocess.run([str(binary), f"-max_total_time={args.seconds}", *options, str(found), *given],
                                env=quiet, stdout=out, stderr=subprocess.STDOUT).returncode
    text = log.read_text(encoding="utf-8", errors="replace")
    runs = re.search(r"number_of_executed_units:\s*(\d+)", text)
    print(f"fuzz: {name}: {runs[1] if runs else '?'} runs, {'clean' if status == 0 else 'FAILED, see ' + str(log)}")
    if status != 0:
        print(text[-4000:])
    profile = home / "corpus.profraw"
    profile.unlink(missing_ok=True)
    subprocess.run([str(binary), "-runs=0", *options, str(found), *given], check=status == 0,
                   env=dict(os.environ, LLVM_PROFILE_FILE=str(profile)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sources = covered_sources(target)
    if not sources:
        sys.exit(f"fuzz: {target.name} names no parser: add a line '// Covers: src/…'")
    rows = coverage(binary, profile, sources) if profile.exists() else []
    for path, covered, count in rows:
        print(f"fuzz:   {100 * covered / max(count, 1):5.1f} %  {covered}/{count} lines  {path}")
    covered, count = sum(r[1] for r in rows), sum(r[2] for r in rows)
    share = 100 * covered / max(count, 1)
    print(f"fuzz: {name}: {share:.1f} % of {count} lines" + ("" if share >= args.least else f", below {args.least} %"))
    return status == 0 and share >= args.least


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--corpora", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--least", type=float, default=80, help="line coverage that a corpus must reach, percent")
    parser.add_argument("target", nargs="?")
    args = parser.parse_args()
    targets = sorted((ROOT / "fuzz").glob("*_fuzz.cc"))
    if args.target:
        targets = [t for t in targets if t.stem.removesuffix("_fuzz") == args.target.removesuffix("_fuzz")]
    if not targets:
        sys.exit(f"fuzz: no target {args.target or ''}")
    good = [run(target, args) for target in targets]
    print(f"fuzz: {sum(good)} of {len(good)} targets clean and covered")
    sys.exit(not all(good))


if __name__ == "__main__":
    main()

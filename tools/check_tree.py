#!/usr/bin/env python3
"""The style guide that runs: sizes, layering, test mirror, banned words, family leaks. Usage: check_tree.py ROOT"""
import pathlib
import re
import sys

CODE = {".h", ".cc", ".cu", ".cuh", ".comp"}
MAX_LINES, MAX_HEADER, MAX_FUNCTION = 800, 400, 80
# The spine may include only what stands to its right; server and capi are two ends of it and do not see each other.
SPINE = ["app", "server", "capi", "engine", "model", "vt"]
# A side may include what its set names.
SIDES = {
    "text": {"base"},
    "load": {"base", "quant", "model/spec.h"},
    "quant": {"base"},
    "media": {"base"},
    "dist": {"base", "vt"},
    "base": set(),
}
LOW = {"vt"}  # sees no side but base and quant
PROVIDERS = {"ref", "cpu", "opaque", "cuda", "vulkan"}
HEAVY = r'#\s*include <(nlohmann/json\.hpp|boost/|simdjson|spdlog/|yaml-cpp/|prometheus/)'
BANNED = {  # pattern: (folders it may live in, what to do instead)
    r"\bgetenv\(": ({"app"}, "read options in src/app and pass them down"),
    r"#\s*if(def)?\s.*(CUDA|VULKAN|__HIP)": (set(), "a device is a link-time folder under vt/, not a macro"),
    r"//.*\b(FIXME|XXX|previously|formerly|(we|it|this|that) used to)\b": (set(), "comments state what is, git keeps what was"),
    r"(?<![\w.])assert\(": (set(), "use CHECK (always on) or DCHECK (debug)"),
    r"\busing namespace (?!std::(string|chrono)?_?(view_)?literals)": (set(), "name what is used"),
}


def may_include(src, path):
    dst = path.split("/")[0]
    if dst in (src, "base"):
        return True
    if src in SIDES:
        return dst in SIDES[src] or path in SIDES[src]
    if dst in SIDES:
        return src not in LOW or dst == "quant"
    if (src, dst) == ("server", "capi"):
        return False
    return SPINE.index(dst) > SPINE.index(src)


def long_functions(lines):
    """Yields (line, length) of definitions at namespace level that are too long; the formatter puts their ends in column 0."""
    begin = None
    for number, line in enumerate(lines, 1):
        if begin is None:
            if line.endswith("{") and line[:1] not in (" ", "\t", "}", "/", "#", "") and not re.match(
                    r"(inline )?namespace\b|extern \"C\"|(template .*)?(class|struct|enum|union)\b|.*=\s*\{$", line):
                begin = number
        elif line.startswith("}"):
            if number - begin + 1 > MAX_FUNCTION:
                yield begin, number - begin + 1
            begin = None


INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)


def includers(root, folder):
    """Header as written in #include → the files below root/folder that include it."""
    found = {}
    for path in (root / folder).rglob("*"):
        if path.suffix in CODE:
            for header in INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
                found.setdefault(header, []).append(path.relative_to(root / folder))
    return found


def untested_units(root):
    """Units without a test: each public one (its header is included from outside of its folder) has tests/<same path>_test.cc or
    is included by a test of its part of the tree; the others are tested through those, so their folder must have tests at all."""
    by_source, by_test = includers(root, "src"), includers(root, "tests")
    for path in sorted((root / "src").rglob("*.cc")):
        rel = path.relative_to(root / "src")
        header = rel.with_suffix(".h")
        if not (root / "src" / header).exists():  # a part of another unit, or a command that the end-to-end lane runs
            continue
        if "families" in rel.parts or (rel.parts[0] == "vt" and rel.parts[1] in PROVIDERS):  # op tests run on each provider
            continue
        if (root / "tests" / rel.with_name(rel.stem + "_test.cc")).exists() or str(header) in by_test:
            continue
        public = any(user.parent != rel.parent for user in by_source.get(str(header), []))
        if public or not any((root / "tests" / rel.parent).glob("*_test.cc")):
            yield f"src/{rel}: no tests/{rel.with_name(rel.stem + '_test.cc')}, and no test includes {header}"


def check_file(root, path, families, say):
    rel = path.relative_to(root / "src")
    folder = rel.parts[0]
    if folder not in SPINE and folder not in SIDES:
        say(rel, f"folder '{folder}' is not in the map")
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if len(lines) > (MAX_HEADER if path.suffix == ".h" else MAX_LINES):
        say(rel, f"{len(lines)} lines")
    if not lines or not lines[0].startswith("//"):
        say(rel, "line 1 does not say what the file is for")
    if path.suffix == ".h" and "#pragma once" not in lines:
        say(rel, "no #pragma once")
    for number, length in long_functions(lines):
        say(rel, f"a function of {length} lines", number)
    for number, line in enumerate(lines, 1):
        include = re.match(r'\s*#include "([^"]+/[^"]+)"', line)
        if include and include[1].split("/")[0] in (*SPINE, *SIDES) and not may_include(folder, include[1]):
            say(rel, f"{folder} must not include {include[1]}", number)
        if path.suffix == ".h" and re.match(HEAVY, line):
            say(rel, "a heavy header belongs into a .cc file", number)
        for pattern, (allowed, instead) in BANNED.items():
            if folder not in allowed and rel.parts[:2] not in (("vt", "cuda"), ("vt", "vulkan")) and re.search(pattern, line):
                say(rel, instead, number)
        naive = re.search(r"\b(vt::Attention|OpId::kAttention)\b\s*[(,]", line)
        if naive and folder != "vt" and not any("VT-ATTN-NAIVE:" in near for near in lines[max(0, number - 21):number]):
            say(rel, "naive attention without a // VT-ATTN-NAIVE: reason within 20 lines", number)
        if folder in SPINE[2:] and "families" not in rel.parts:
            hit = families & set(re.findall(r"\w+", line.split("//")[0]))
            if hit:
                say(rel, f"family '{min(hit)}' named outside families/", number)


def unread_flags(root):
    """Flags of the table that claim to be honoured, but whose option nobody reads."""
    tables = [p for p in (root / "src" / "app").glob("*flags.cc")]
    rest = "".join(p.read_text(encoding="utf-8") for p in (root / "src").rglob("*.cc") if p not in tables)
    row = re.compile(r'\{"([\w-]+)",\s*"[^"]*",\s*k\w+,\s*"(?:[^"\\]|\\.)*",\s*k\w+,\s*kHonoured')
    for table in tables:
        for name in row.findall(table.read_text(encoding="utf-8")):
            if f'"{name.replace("-", "_")}"' not in rest:
                yield f"{table.relative_to(root)}: --{name} is said to be honoured, but nothing reads its option"


def main(root):
    problems = []

    def say(rel, text, number=None):
        problems.append(f"src/{rel}{f':{number}' if number else ''}: {text}")

    files = [p for p in sorted((root / "src").rglob("*")) if p.suffix in CODE]
    families = {p.stem for p in files if p.parent.name == "families"} - {"common", "families", "registry"}
    for path in files:
        check_file(root, path, families, say)
    problems += [*untested_units(root), *unread_flags(root)]
    for golden in sorted((root / "tests" / "data").rglob("*")):
        if golden.is_file() and golden.stat().st_size > 64 * 1024:
            problems.append(f"{golden.relative_to(root)}: {golden.stat().st_size} bytes, at most 65536")
    print(*problems, f"{len(problems)} problems in {len(files)} files", sep="\n")
    return not files or bool(problems)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))

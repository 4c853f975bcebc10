"""Tables of ./dev compare: medians with their ranges, ratios of paired runs, the machine, and the page docs/benchmarks.md."""
import dataclasses
import datetime
import os
import pathlib
import platform
import re
import resource
import statistics
import subprocess

from peers_install import ROOT, Failure

PAGE = ROOT / "docs" / "benchmarks.md"
START, TOTAL, ANONYMOUS = "load to first token, s", "peak memory, MB", "peak memory without file pages, MB"
LESS_IS_BETTER = {START, TOTAL, ANONYMOUS}
READ = "read loop"


def less_is_better(row):
    return row in LESS_IS_BETTER or row.endswith(", ms")


INSTRUCTIONS = [("amx_int8", "AMX int8"), ("amx_bf16", "AMX BF16"), ("avx512_bf16", "AVX-512 BF16"), ("avx512_vnni", "AVX-512 VNNI"),
                ("avx512f", "AVX-512"), ("avx_vnni", "AVX-VNNI"), ("avx2", "AVX2")]


class Results:
    """What was measured of one model: (row, side) → a figure for each round."""

    def __init__(self, model, sides):
        self.model, self.sides, self.figures, self.missing = model, sides, {}, {}

    def add(self, row, side, figure):
        self.figures.setdefault(row, {}).setdefault(side, []).append(figure)

    def drop(self, side, reason):
        self.missing[side] = reason

    def of(self, row, side):
        return self.figures.get(row, {}).get(side, [])


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values):
    if not values:
        return "–"
    if len(values) == 1:
        return number(values[0])
    return f"{number(statistics.median(values))} ({number(min(values))}–{number(max(values))})"


def ratio(row, ours, theirs):
    """Median over the rounds of how many times better ours was."""
    if not ours or len(ours) != len(theirs):
        return "–"
    pairs = [(b / a if less_is_better(row) else a / b) for a, b in zip(ours, theirs)]
    return f"**{statistics.median(pairs):.2f}**"


def table(results):
    """Markdown lines of one model."""
    ours, *peers = [side for side in results.sides if side not in results.missing]
    head = ["", ours, *(cell for peer in peers for cell in (peer, "ratio"))]
    lines = [f"### {results.model.title}", "", f"| {' | '.join(head)} |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for row in results.figures:
        if row.startswith(READ):
            continue
        mine = results.of(row, ours)
        cells = [spread(mine)]
        for peer in peers:
            theirs = results.of(row, peer)
            cells += [spread(theirs), ratio(row, mine, theirs)]
        lines.append(f"| {row if less_is_better(row) else row + ', t/s'} | {' | '.join(cells)} |")
        loop = results.of(f"{READ} {row}", READ)
        if loop:
            size = results.model.step_bytes / 1e9
            shares = [f"{100 * statistics.median(r * size / g for r, g in zip(results.of(row, side), loop)):.0f} %"
                      if len(results.of(row, side)) == len(loop) else "–" for side in (ours, *peers)]
            cells = [shares[0], *(cell for share in shares[1:] for cell in (share, ""))]
            lines.append(f"| share of a read loop of {1000 * size:.0f} MB, {spread(loop)} GB/s | {' | '.join(cells)} |")
    lines += [""] + [f"{side}: not measured, {reason}." for side, reason in results.missing.items()]
    return lines if lines[-1] == "" else [*lines, ""]


# ---------------------------------------------------------------------------------------------------------------- machine


def processor():
    """Name of the processor and the instruction sets that matter here."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    name = re.search(r"^model name\s*: (.*)$", text, re.M)
    family = re.search(r"^cpu family\s*: (\d+)$", text, re.M), re.search(r"^model\s*: (\d+)$", text, re.M)
    flags = set((re.search(r"^flags\s*: (.*)$", text, re.M) or [None, ""])[1].split())
    sets = [title for flag, title in INSTRUCTIONS if flag in flags]
    full = name[1] if name else platform.machine()
    if all(family):
        full += f" (family {family[0][1]}, model {family[1][1]})"
    return full, ", ".join(sets) or "none beyond the baseline"


def memory_gb():
    kilobytes = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="ascii"))[1]
    return int(kilobytes) / 2**20


def commit():
    """Commit of the tree, marked when sources differ from it."""
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=10"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown commit"


@dataclasses.dataclass
class Quiet:
    """Share of the processors that others took while the measurement ran."""
    begin: list = dataclasses.field(default_factory=lambda: Quiet.ticks())

    @staticmethod
    def ticks():
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, idle, wait, irq, soft, steal = map(int, stat.readline().split()[1:9])
        used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
        busy = user + nice + system + irq + soft
        return [busy - used * os.sysconf("SC_CLK_TCK"), steal, busy + idle + wait + steal]

    def text(self):
        others, steal, total = (after - before for after, before in zip(self.ticks(), self.begin))
        total = max(total, 1)
        return f"other processes {max(0, 100 * others / total):.0f} %, other tenants of the host {100 * steal / total:.1f} %"


def heading(forced):
    name, _ = processor()
    return f"{name}, {os.cpu_count()} cores" + (f", forced to {forced}" if forced else "")


def facts(args, versions, forced, quiet):
    name, sets = processor()
    rows = [("processor", f"{name}; {len(os.sched_getaffinity(0))} cores usable, {args.threads} threads a side; {sets}"),
            ("memory", f"{memory_gb():.0f} GiB; Linux {platform.release()}"),
            ("measured", f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {args.rounds} rounds; CPU time taken meanwhile by "
             f"{quiet.text()}")]
    if forced:
        rows.append(("forced", f"VT_CPU_ISA={forced}"))
    rows += [(side, f"{version}, {commit()}, --numerics {args.numerics}" if side == "vllm.cpp" else version)
             for side, version in versions.items()]
    return pairs(rows)


def pairs(rows):
    """Markdown lines of a table of keys and values."""
    return ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows), ""]


# ------------------------------------------------------------------------------------------------------------------- page


def write(title, lines, page=PAGE):
    """Puts a run into the page: in place of the run with the same title, or as the last one."""
    text = page.read_text(encoding="utf-8")
    end = "<!-- end of runs -->\n"
    if end not in text:
        raise Failure(f"{page}: has no line '{end.strip()}'; restore the page from git")
    section = f"<!-- run: {title} -->\n## {title}\n\n" + "\n".join(lines).rstrip() + "\n\n"
    old = re.compile(rf"<!-- run: {re.escape(title)} -->\n.*?(?=<!-- run: |<!-- end of runs -->)", re.S)
    text, count = old.subn(lambda _: section, text)
    if not count:
        text = text.replace(end, section + end)
    page.write_text(text, encoding="utf-8")

#!/usr/bin/env python3
"""Measures this program against its peers on the same machine, interleaved. Usage: ./dev compare [flags] [MODEL...]

Each round runs every piece of work on each side right after the other, in an order that alternates. Printed are medians with their
ranges and the median ratio of the paired runs (above 1: ours is better). Only the ratios of one run mean anything.
MODEL is a title, a file name or a path; none: the two real models, SmolLM2-768 and the random Llama of the 1B shape, which are made
in .cache/models when they are absent (that needs the environment of ./dev golden)."""
import argparse
import json
import os
import pathlib
import signal
import sys

import compare_models
import compare_report
import compare_serving
import peers
import peers_install
from compare_report import ANONYMOUS, READ, START, TOTAL, Results
from peers import Work
from peers_install import CACHE, ROOT, Failure, call, say

WORK = [Work("prompt", 128), Work("prompt", 512), Work("prompt", 4096), Work("decode", 128), Work("decode", 4096),
        *(Work("decode", 128, batch) for batch in (4, 16, 32))]
QUICK = [Work("prompt", 512), Work("decode", 128)]
PEERS = ["llama.cpp", "vllm", "openvino"]
FORCED = {"": "native", "amx": "native", "avx512": "avx512", "avxvnni": "avxvnni", "avx2": "avx2"}  # VT_CPU_ISA → build of the peer


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="./dev compare")
    parser.add_argument("--peers", default="llama.cpp", help=f"comma-separated, of {', '.join(PEERS)} (default: llama.cpp)")
    parser.add_argument("--quick", action="store_true", help="only a prompt of 512, decode at 128, 8 clients, start and memory, of models that are there")
    parser.add_argument("--serving", choices=["also", "only", "no"], default="also", help="measure HTTP serving also, only, or not (default: also)")
    parser.add_argument("--rounds", type=int, default=5, help="paired runs of each piece of work (default: 5)")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    parser.add_argument("--peer-isa", choices=[*peers_install.LLAMA_ISA], help="build of llama.cpp (default: as VT_CPU_ISA, else native)")
    parser.add_argument("--llama", type=pathlib.Path, help="bin folder of an existing llama.cpp instead of the pinned build")
    parser.add_argument("--vllm-python", type=pathlib.Path, help="interpreter with vLLM for CPU instead of the pinned environment")
    parser.add_argument("--openvino-python", type=pathlib.Path, help="interpreter with OpenVINO GenAI instead of the pinned environment")
    parser.add_argument("--models", type=pathlib.Path, action="append", default=[], help="folder in which to look for models; repeatable")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each side (default: all usable cores)")
    parser.add_argument("--numerics", choices=["exact", "default", "invariant", "fast"], default="default", help="of this program")
    parser.add_argument("--vllm", type=pathlib.Path, default=ROOT / "build/release/vllm", help="this program")
    parser.add_argument("--read-loop", type=pathlib.Path, default=ROOT / "build/bench/bench/read_loop", help="bench/read_loop.cc, built")
    parser.add_argument("model", nargs="*")
    args = parser.parse_args()
    args.peers = args.peers.split(",")
    for name in args.peers:
        if name not in PEERS:
            raise Failure(f"--peers: '{name}' is not one of {', '.join(PEERS)}")
    if args.rounds < 1 or args.threads < 1:
        raise Failure("--rounds and --threads: at least 1")
    for program, flag in ((args.vllm, "--vllm"), (args.read_loop, "--read-loop")):
        if not program.exists():
            raise Failure(f"{flag} {program}: no such program; run it by ./dev compare, which builds it")
    return args


def forced_isa(args):
    """The instruction set that VT_CPU_ISA forces on ours, and the build of the peer that is fair for it."""
    forced = os.environ.get("VT_CPU_ISA", "")
    if forced not in FORCED:
        raise Failure(f"VT_CPU_ISA={forced}: not one of {', '.join(filter(None, FORCED))}")
    args.peer_isa = args.peer_isa or FORCED[forced]
    if args.peer_isa != FORCED[forced]:
        raise Failure(f"--peer-isa {args.peer_isa}: ours runs {f'with VT_CPU_ISA={forced}' if forced else 'unforced'}; "
                      f"{'unset VT_CPU_ISA' if args.peer_isa == 'native' else f'set VT_CPU_ISA={args.peer_isa}'}, so that both are held alike")
    if args.peer_isa != "native" and args.peers != ["llama.cpp"]:
        raise Failure(f"--peers {','.join(args.peers)}: only llama.cpp can be held to {args.peer_isa}; leave the others out")
    return forced


def make_sides(args):
    sides = [peers.Ours(args.vllm, args.threads, args.numerics)]
    for name in args.peers:
        if name == "llama.cpp":
            folder = args.llama or peers_install.llama_bin(args.peer_isa)
            source = "" if args.llama else "llama-cpp-python 0.3.36"
            sides.append(peers.LlamaCpp(folder, args.threads, args.peer_isa, source))
        elif name == "vllm":
            sides.append(peers.VllmCpu(args.vllm_python or peers_install.vllm_python(), args.threads))
        else:
            sides.append(peers.OpenVino(args.openvino_python or peers_install.environment("peer_openvino"), args.threads))
    return sides


def quantizer_folder(sides):
    """Folder with llama-quantize: of the peer that is measured, if it has one."""
    for side in sides:
        if isinstance(side, peers.LlamaCpp) and (side.folder / "llama-quantize").exists():
            return side.folder
    return peers_install.llama_bin("native")


def read_rate(args, size):
    """GB/s of a loop that only reads as many bytes as a step of decoding, best pass of a second."""
    out = call([args.read_loop, size, args.threads], "the read loop", "to see why run", timeout=600)
    return float(out.split()[1])


class Run:
    """One model on all sides that can run it."""

    def __init__(self, args, model, sides, record):
        self.args, self.model, self.record = args, model, record
        self.results = Results(model, [side.name for side in sides])
        self.sides = []
        for side in sides:
            reason = side.fits(model)
            if reason:
                self.results.drop(side.name, f"it {reason} of this model")
            else:
                self.sides.append(side)

    def add(self, row, side, figure):
        self.results.add(row, side, figure)
        self.record.write(json.dumps([self.model.title, row, side, figure]) + "\n")
        self.record.flush()

    def prepare(self):
        for side in list(self.sides):
            try:
                side.prepare(self.model)
            except peers.Unfit as error:
                self.leave_out(side, error)

    def leave_out(self, side, error):
        if isinstance(side, peers.Ours):
            raise Failure(f"{self.model.title}: {error}")
        say(f"{self.model.title}: {side.name} is left out: {error}")
        self.results.drop(side.name, str(error))
        self.sides.remove(side)

    def serve(self, load, number):
        """One load on each side that has a server, right after the other."""
        for side in self.ordered(number):
            if side.server(self.model, load, 0) is None:
                continue
            for row, figure in compare_serving.measure(self.args.vllm, side, self.model, load, number).items():
                self.add(row, side.name, figure)

    def ordered(self, turn):
        return list(self.sides) if turn % 2 == 0 else self.sides[::-1]

    def round(self, number, works):
        try:
            for side in self.ordered(number):
                try:
                    start = side.start(self.model)
                except peers.Unfit as error:
                    if number:
                        raise Failure(f"{self.model.title}: {side.name} started before, now not: {error}") from None
                    self.leave_out(side, error)
                    continue
                for row, figure in ((START, start.seconds), (TOTAL, start.total_mb), (ANONYMOUS, start.anonymous_mb)):
                    self.add(row, side.name, figure)
            for turn, work in enumerate(works, number):
                if work == Work("decode", 128):
                    self.add(f"{READ} {work.title}", READ, read_rate(self.args, self.model.step_bytes))
                for side in self.ordered(turn):
                    self.add(work.title, side.name, side.measure(self.model, work))
        finally:
            for side in self.sides:
                side.close()


def run():
    args = arguments()
    forced = forced_isa(args)
    sides = make_sides(args)
    models = compare_models.choose(args.model, compare_models.folders(args.models), lambda: quantizer_folder(sides),
                                   "vllm" in args.peers, args.quick)
    works = [] if args.serving == "only" else QUICK if args.quick else WORK
    loads = [] if args.serving == "no" else compare_serving.QUICK if args.quick else compare_serving.LOADS
    load = os.getloadavg()[0]
    if load > 1:
        say(f"the load of this machine is {load:.1f}: figures of a busy machine mean little, also as ratios")
    quiet, done, title = compare_report.Quiet(), [], compare_report.heading(forced)
    record = CACHE / "compare" / "figures.jsonl"
    record.parent.mkdir(parents=True, exist_ok=True)
    with open(record, "w", encoding="utf-8") as log:  # each figure at once, so that an ended run has not lost its hours
        for model in models:
            one = Run(args, model, sides, log)
            if works:
                one.prepare()
            for number in range(args.rounds):
                say(f"{model.title}: round {number + 1} of {args.rounds}")
                if works:
                    one.round(number, works)
                for load in loads:
                    one.serve(load, number)
            done += compare_report.table(one.results)
            print("\n".join(compare_report.table(one.results)), flush=True)
            page = compare_report.facts(args, {side.name: side.version() for side in sides}, forced, quiet) + done
            if args.write:
                compare_report.write(title, page)
    print("\n".join(compare_report.facts(args, {side.name: side.version() for side in sides}, forced, quiet)))
    if args.write:
        say(f"written to {compare_report.PAGE.relative_to(ROOT)}")


def interrupt(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)  # so that a peer that runs is ended too
    try:
        run()
    except Failure as failure:
        sys.exit(f"compare: {failure}")
    except KeyboardInterrupt:
        sys.exit("compare: interrupted; the figures so far are in .cache/compare/figures.jsonl")

#!/usr/bin/env python3
"""Compares our logits with transformers on the same GGUF files dequantized to float32. Usage: ./dev accuracy [flags] [MODEL...]

Each file is run with each instruction set of this machine and each numerics, over 512 positions of a text that was written for this:
all at once, and again in steps of 1 to 8 positions, as prompts and decoding use different kernels. Bounds: exact numerics, mean KL
below 1e-6 and no other top token where the reference's two best are over 0.01 nat apart; default numerics, 5e-4 and 0.1 nat. The exit
status is 1 when one is broken, or when two runs that must give the same bits do not. MODEL is a weight format, a file name or a path;
none: SmolLM2-768 in every weight format with fast kernels that llama-quantize makes (needs the environment of ./dev golden).
Then, or with --kv alone, each type of the KV cache with one model in default numerics, without bounds."""
import argparse
import dataclasses
import datetime
import functools
import hashlib
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TQDM_DISABLE", "1")  # progress bars of the dequantization

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.utils.quantization_config import GgufConfig  # noqa: E402

import accuracy_kv  # noqa: E402
import compare_models  # noqa: E402
import compare_report  # noqa: E402
import peers_install  # noqa: E402
from peers_install import ROOT, Failure, call, say  # noqa: E402

PAGE = ROOT / "docs" / "accuracy.md"
TEXT = pathlib.Path(__file__).with_name("accuracy_text.txt").read_text(encoding="utf-8")
POSITIONS, STEP = 512, 8
NUMERICS = {"exact": (1e-6, 0.01), "default": (5e-4, 0.1), "fast": None}  # → greatest mean KL and margin of a flip
FLOATS = {"F32", "F16", "BF16"}
KV_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclasses.dataclass(frozen=True)
class Error:
    """How far logits are from the reference."""
    mean_kl: float
    max_kl: float
    flips: int
    margin: float  # greatest difference of the reference's two best where ours has another top token, nat; 0 without flips

    def text(self):
        return f"mean KL {self.mean_kl:.2e}  max KL {self.max_kl:.2e}  flips {self.flips}  widest margin of a flip {self.margin:.4f} nat"

    def breaks(self, numerics):
        bound = NUMERICS[numerics]
        return bound is not None and not (self.mean_kl <= bound[0] and self.margin <= bound[1])  # also when it is not a number


class Reference:
    """Token ids of the text and the log-probabilities that transformers gives for a file."""

    def __init__(self, path):
        tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)).float().eval()
        self.ids = tokenizer(TEXT).input_ids[:POSITIONS]
        with torch.no_grad():
            logits = model(torch.tensor([self.ids])).logits[0].double()
        self.logs = torch.log_softmax(logits, -1)
        self.chances = self.logs.exp()
        best = self.logs.topk(2, -1)
        self.top, self.margins = best.indices[:, 0], best.values[:, 0] - best.values[:, 1]

    def error(self, path):
        ours = torch.from_numpy(np.fromfile(path, dtype="<f4").reshape(len(self.ids), -1)[:, : self.logs.shape[1]]).double()
        ours = torch.log_softmax(ours, -1)
        kl = (self.chances * (self.logs - ours)).sum(-1)
        flips = ours.argmax(-1) != self.top
        return Error(kl.mean().item(), kl.max().item(), int(flips.sum()), self.margins[flips].max().item() if flips.any() else 0.0)


class File:
    """Measures one file, run by run."""

    def __init__(self, args, model, folder):
        self.args, self.path, self.folder = args, model.gguf, pathlib.Path(folder)
        self.types = {tensor.tensor_type.name for tensor in gguf.GGUFReader(self.path).tensors if len(tensor.shape) > 1}
        self.reference = Reference(self.path)
        np.array(self.reference.ids, dtype="<i4").tofile(self.folder / "ids")
        self.errors, self.bits, self.broken = {}, {}, []
        self.known = functools.lru_cache(maxsize=None)(lambda digest: self.reference.error(self.folder / "out"))

    def title(self):
        return "/".join(sorted(self.types))

    def dump(self, numerics, isa, *step):
        """Digest of the logits of a run, and their error."""
        out = self.folder / "out"
        call([self.args.dump, self.path, self.folder / "ids", out, numerics, isa, *step], f"{self.path.name} {isa} {numerics}",
             "to see why run", timeout=600)
        with open(out, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return digest, self.known(digest)

    def measure(self, isa, numerics):
        """The worse of both ways to run the positions; they must agree bit for bit but where BF16 kernels take over for many rows."""
        what = f"{self.title()} {isa} {numerics}"
        whole, error = self.dump(numerics, isa)
        steps, other = self.dump(numerics, isa, STEP)
        print(f"{self.title():9} {isa:7} {numerics:8} {error.text()}{'' if whole == steps else f'; in steps {other.text()}'}", flush=True)
        if whole != steps and (numerics == "exact" or (isa != "amx" and not self.types & FLOATS)):
            self.broken.append(f"{what}: all positions at once and steps of 1 to {STEP} give other bits")
        self.bits[isa, numerics] = whole
        # Both multiply with the same integer sums, and all else with the same AVX2 kernels.
        if isa == "avxvnni" and numerics == "default" and not self.types & FLOATS and self.bits.get(("avx2", numerics), whole) != whole:
            self.broken.append(f"{what}: other bits than avx2")
        worst = Error(*(max(pair) for pair in zip(dataclasses.astuple(error), dataclasses.astuple(other))))
        if error.breaks(numerics) or other.breaks(numerics):
            self.broken.append(f"{what}: the bound of {numerics} numerics is broken: {worst.text()}")
        self.errors[isa, numerics] = worst


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="./dev accuracy")
    parser.add_argument("--write", action="store_true", help="put the table of the whole list into docs/accuracy.md")
    parser.add_argument("--isa", action="append", help="as VT_CPU_ISA; repeatable (default: all that this machine has)")
    parser.add_argument("--llama", type=pathlib.Path, help="bin folder of an existing llama.cpp, to make models with")
    parser.add_argument("--models", type=pathlib.Path, action="append", default=[], help="folder in which to look for models; repeatable")
    parser.add_argument("--dump", type=pathlib.Path, default=ROOT / "build/bench/bench/logits_dump", help="bench/logits_dump.cc, built")
    parser.add_argument("--kv", action="store_true", help=f"only the types of the KV cache (default model: {KV_MODEL})")
    parser.add_argument("model", nargs="*")
    args = parser.parse_args()
    if args.write and (args.model or args.isa):
        raise Failure("--write: the table is written whole; leave out MODEL and --isa")
    known = {name: file for name, (file, _) in compare_models.FORMATS.items()}
    args.formats = [] if args.kv else [known.get(name, name) for name in args.model] or list(known.values())
    args.kv_models = args.model or [KV_MODEL] if args.kv or not args.model else []
    return args


def cell(error):
    return f"{error.mean_kl:.1e}, {f'{error.margin:.3f}' if error.flips else '–'}"


def table(isas, rows):
    """Markdown lines; `rows`: title of the file → (isa, numerics) → Error."""
    columns = [(isa, numerics) for isa in isas for numerics in NUMERICS]
    limits = [f"{NUMERICS[n][0]:.0e}, {NUMERICS[n][1]}" if NUMERICS[n] else "none" for _, n in columns]
    lines = [f"| | {' | '.join(f'{isa} {numerics}' for isa, numerics in columns)} |", "|---" + "|---:" * len(columns) + "|"]
    lines += [f"| {title} | {' | '.join(cell(errors[column]) for column in columns)} |" for title, errors in rows.items()]
    return [*lines, f"| bound | {' | '.join(limits)} |"]


def facts():
    name, sets = compare_report.processor()
    return compare_report.pairs([
        ("processor", f"{name}; {sets}"),
        ("measured", f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {POSITIONS} positions"),
        ("vllm.cpp", compare_report.commit()),
        ("reference", f"transformers {transformers.__version__}, PyTorch {torch.__version__}"),
    ])


def choose(args, names):
    return compare_models.choose(names, compare_models.folders(args.models), lambda: args.llama or peers_install.llama_bin("native"),
                                 False, False)


def run_kv(args):
    for model in choose(args, args.kv_models) if args.kv_models else []:
        print(f"{model.gguf.name}: types of the KV cache", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            rows = accuracy_kv.measure(args.dump, model.gguf, Reference(model.gguf), pathlib.Path(folder))
        if args.write:
            lines = [*facts(), *accuracy_kv.table(rows, cell)]
            compare_report.write(f"{model.gguf.stem}, types of the KV cache, {compare_report.heading('')}", lines, PAGE)


def run_formats(args):
    isas = args.isa or call([args.dump, "--isas"], "logits_dump", "run ./dev accuracy, which builds it").split()
    rows, broken = {}, []
    for model in choose(args, args.formats):
        with tempfile.TemporaryDirectory() as folder:
            file = File(args, model, folder)
            print(f"{model.gguf.name}: {len(file.reference.ids)} positions", flush=True)
            for isa in isas:
                for numerics in NUMERICS:
                    file.measure(isa, numerics)
        rows[file.title()] = file.errors
        broken += file.broken
        if args.write:
            compare_report.write(compare_report.heading(""), [*facts(), *table(isas, rows)], PAGE)
    return broken


def run():
    args = arguments()
    broken = run_formats(args) if args.formats else []
    run_kv(args)
    if args.write:
        say(f"written to {PAGE.relative_to(ROOT)}")
    if broken:
        raise Failure("\n".join(["bounds or equalities are broken:", *broken]))


if __name__ == "__main__":
    try:
        run()
    except Failure as failure:
        sys.exit(f"accuracy: {failure}")

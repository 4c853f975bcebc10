"""Models of ./dev compare and ./dev accuracy: what they are called, where they lie, what a step of decoding reads, how some are made."""
import dataclasses
import os
import pathlib
import struct

import peers_install
from peers_install import Failure, call, say

MODELS = peers_install.CACHE / "models"
TABLE = [  # title, GGUF file, checkpoint folder with the same weights in BF16
    ("SmolLM2-135M-Instruct Q4_1", "SmolLM2-135M-Instruct.Q4_1.gguf", None),
    ("Gemma 3 270M Q4_K_M", "gemma-3-270m-q4_k_m.gguf", None),
    ("SmolLM2-768 Q4_K_M", "smol768-Q4_K_M.gguf", None),
    ("Llama 1B shape Q4_K_M", "1b-Q4_K_M.gguf", None),
    ("Llama 1B shape Q8_0", "1b-Q8_0.gguf", None),
    ("Llama 1B shape BF16", "1b-bf16.gguf", "llama1b"),
]
# SmolLM2-768 in each weight format: format → (file, arguments of llama-quantize). All of it in Q2_K predicts worse than chance and has no
# digits to compare, so only some of its matrices are.
FORMATS = {name: (f"smol768-pure-{name}.gguf", f"--pure {name}") for name in (
    "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "F16", "BF16")}
FORMATS["Q2_K"] = ("smol768-part-Q2_K.gguf",
                   "--pure --tensor-type attn_q=q2_k --tensor-type attn_k=q2_k --tensor-type ffn_gate=q2_k Q8_0")
# Made here when absent: file → (kind of tools/compare_checkpoints.py, type of the converted file, arguments of llama-quantize or None).
MADE = {
    "smol768-Q4_K_M.gguf": ("smol768", "f32", "Q4_K_M"),
    "1b-Q4_K_M.gguf": ("llama1b", "bf16", "Q4_K_M"),
    "1b-Q8_0.gguf": ("llama1b", "bf16", "Q8_0"),
    "1b-bf16.gguf": ("llama1b", "bf16", None),
    **{file: ("smol768", "f32", quantizer) for file, quantizer in FORMATS.values()},
}
CONVERTED = {"smol768": "smol768-f32.gguf", "llama1b": "1b-bf16.gguf"}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # GGUF's value types


@dataclasses.dataclass(frozen=True)
class Model:
    """A model to measure: its GGUF file, perhaps the same weights as a checkpoint, and the weight bytes that a step of decoding reads."""
    title: str
    gguf: pathlib.Path
    checkpoint: pathlib.Path | None
    step_bytes: int


def step_bytes(path):
    """Weight bytes of a GGUF file that one step of decoding reads: all, but of an embedding that is not also the head, a row only."""
    with open(path, "rb") as file:
        def read(form):
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]

        def text():
            return file.read(read("Q"))

        def value(kind):
            if kind == 8:
                return text()
            if kind == 9:
                inner = read("I")
                return [value(inner) for _ in range(read("Q"))]
            return read(SCALARS[kind])

        try:
            if file.read(4) != b"GGUF":
                raise Failure(f"{path}: no GGUF file; give one, or none for the whole list")
            read("I")
            tensors, keys = read("Q"), read("Q")
            alignment = 32
            for _ in range(keys):
                key = text()
                found = value(read("I"))
                if key == b"general.alignment":
                    alignment = found
            offsets = {}
            for _ in range(tensors):
                name = text()
                for _ in range(read("I")):
                    read("Q")
                read("I")
                offsets[name] = read("Q")
        except (struct.error, KeyError, MemoryError):
            raise Failure(f"{path}: the GGUF header is cut or damaged; fetch or make the file again") from None
        data = os.path.getsize(path) - -(-file.tell() // alignment) * alignment
    if b"output.weight" not in offsets or b"token_embd.weight" not in offsets:
        return data
    begin = offsets[b"token_embd.weight"]
    return data - (min([o for o in offsets.values() if o > begin], default=data) - begin)


def folders(given):
    """Where models are looked for: the given folders first."""
    tests = os.environ.get("VLLM_TEST_MODELS")
    return [*given, *([pathlib.Path(tests)] if tests else []), MODELS]


def find(folders, name):
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def make(name, folders, llama):
    """Makes a model of MADE in .cache/models, with the oracle's Python and llama.cpp's converter and quantizer."""
    kind, converted_type, quantized = MADE[name]
    python = peers_install.oracle()
    MODELS.mkdir(parents=True, exist_ok=True)
    remedy = "to see why run"

    def build(target, command):
        say(f"making {target.name}")
        part = target.with_name(target.name + ".part")
        call(command(part), target.name, remedy)
        os.replace(part, target)

    converted = find(folders, CONVERTED[kind]) or MODELS / CONVERTED[kind]
    if not converted.exists():
        checkpoint = make_checkpoint(kind, folders, python)
        converter = peers_install.llama_source() / "convert_hf_to_gguf.py"
        build(converted, lambda part: [python, converter, checkpoint, "--outtype", converted_type, "--outfile", part])
    if quantized:
        threads = len(os.sched_getaffinity(0))
        *flags, target = quantized.split()
        build(MODELS / name, lambda part: [llama / "llama-quantize", *flags, converted, part, target, threads])
    return MODELS / name


def make_checkpoint(kind, folders, python=None):
    """Folder of a random or widened checkpoint, made if it is not there."""
    found = find(folders, f"{kind}/config.json")
    if found:
        return found.parent
    source = find(folders, TABLE[0][1])
    if source is None:
        raise Failure(f"{TABLE[0][1]}: needed to make {kind}, and not in {', '.join(map(str, folders))}; run ./dev setup")
    say(f"making the checkpoint {kind}")
    part = MODELS / f"{kind}.part"
    call([python or peers_install.oracle(), peers_install.ROOT / "tools" / "compare_checkpoints.py", kind, source, part], kind,
         "to see why run")
    os.replace(part, MODELS / kind)
    return MODELS / kind


def choose(names, folders, llama, checkpoints, quick):
    """Models for the names (titles, file names or paths; none: the whole table), made where they are absent and can be made.

    `llama` gives the folder with llama-quantize when it is asked; `checkpoints`: the BF16 checkpoint is needed too; `quick`: of the
    whole table only what is there."""
    known = {entry: row for row in TABLE for entry in row[:2]}
    chosen = []
    for name in names or [row[1] for row in TABLE]:
        title, file, checkpoint = known.get(name) or known.get(pathlib.Path(name).name) or (pathlib.Path(name).stem, name, None)
        path = pathlib.Path(name) if name not in known and pathlib.Path(name).exists() else find(folders, file)
        if path is None and file in MADE and (names or not quick):
            path = make(file, folders, llama())
        if path is None and not names:
            say(f"{file} is not in {', '.join(map(str, folders))}: left out; give its folder by --models")
            continue
        if path is None:
            raise Failure(f"{name}: no such file, also not in {', '.join(map(str, folders))}; give its path, or its folder by --models")
        where = make_checkpoint(checkpoint, folders) if checkpoint and checkpoints else None
        chosen.append(Model(title, path, where, step_bytes(path)))
    return chosen

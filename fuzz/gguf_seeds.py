#!/usr/bin/env python3
"""Writes the seeds of the GGUF target: good files of every kind, and one fault each. Usage: gguf_seeds.py FOLDER"""
import pathlib
import struct
import sys

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
PACK = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q", I64: "<q", F64: "<d"}
# type: (weights of a block, bytes of a block)
BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36), 10: (256, 84),
          11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74),
          18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2),
          26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17)}


def text(s):
    return struct.pack("<Q", len(s)) + s


def value(kind, v):
    if kind == STR:
        return text(v)
    if kind == ARR:
        return struct.pack("<IQ", v[0], len(v[1])) + b"".join(value(v[0], x) for x in v[1])
    return struct.pack(PACK[kind], v)


def gguf(keys, tensors, version=3, alignment=32, counts=None, magic=b"GGUF"):
    """keys: (name, kind, value); tensors: (name, dims, type[, offset])."""
    out = magic + struct.pack("<IQQ", version, *(counts or (len(tensors), len(keys))))
    for name, kind, v in keys:
        out += text(name) + struct.pack("<I", kind) + value(kind, v)
    at, sizes = 0, []
    for name, dims, kind, *offset in tensors:
        out += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
        out += struct.pack("<IQ", kind, offset[0] if offset else at)
        n = 1
        for d in dims:
            n *= d
        elements, size = BLOCKS.get(kind, (1, 4))
        sizes.append(min(n // elements * size, 4096))
        at += -(-sizes[-1] // alignment) * alignment
    out += b"\0" * (-len(out) % alignment)
    for size in sizes:
        out += bytes(i * 37 % 256 for i in range(size)) + b"\0" * (-size % alignment)
    return out


KEYS = [(b"general.architecture", STR, b"llama"), (b"general.alignment", U32, 32), (b"llama.block_count", U32, 1)]
EVERY = [(b"k%d" % k, k, v) for k, v in ((U8, 1), (I8, -1), (U16, 2), (I16, -2), (U32, 3), (I32, -3), (F32, 0.5), (BOOL, True),
                                        (U64, 2**64 - 1), (I64, -4), (F64, 0.25), (STR, b"x"))]
ARRAYS = [(b"a%d" % k, ARR, (k, [v, v])) for _, k, v in EVERY]
ONE = [(b"w", (4,), 0)]


def split(number, count, total):
    return [(b"split.no", U16, number), (b"split.count", U16, count), (b"split.tensors.count", I32, total)]


def pair(first, second, opened=0):
    return bytes([1]) + struct.pack("<HH", len(first), opened) + first + second


def single(data):
    return b"\0" + data


good = gguf(KEYS, ONE)
head = gguf(KEYS + split(0, 2, 1), [])
tail = gguf(split(1, 2, 1), ONE)
SEEDS = {
    "good": single(good), "every": single(gguf(KEYS + EVERY, ONE)), "arrays": single(gguf(KEYS + ARRAYS, ONE)),
    "types": single(gguf(KEYS, [(b"t%d" % k, (e,), k) for k, (e, _) in BLOCKS.items()])),
    "rank": single(gguf(KEYS, [(b"r", (4, 3, 2, 1), 0), (b"s", (32, 2), 8)])), "v2": single(gguf(KEYS, ONE, version=2)),
    "v1": single(gguf(KEYS, ONE, version=1)), "swapped": single(gguf(KEYS, ONE, version=3 << 24)),
    "magic": single(gguf(KEYS, ONE, magic=b"GGML")), "empty": single(b""), "short": single(good[:20]),
    "cut": single(good[:-1]), "cut_header": single(good[:60]), "none": single(gguf(KEYS, [])),
    "counts": single(gguf(KEYS, ONE, counts=(2**60, 3))), "counts2": single(gguf(KEYS, ONE, counts=(1, 2**61))),
    "counts3": single(gguf(KEYS, ONE, counts=(1000, 3))), "kind": single(gguf(KEYS, [(b"w", (4,), 255)])),
    "dims0": single(gguf(KEYS, [(b"w", (), 0)])), "dims5": single(gguf(KEYS, [(b"w", (1,) * 5, 0)])),
    "zero": single(gguf(KEYS, [(b"w", (4, 0), 0)])), "wrap": single(gguf(KEYS, [(b"w", (2**62, 8), 0)])),
    "wrap2": single(gguf(KEYS, [(b"w", (8, 2**62, 8), 0)])), "block": single(gguf(KEYS, [(b"w", (33,), 2)])),
    "offset": single(gguf(KEYS, [(b"w", (4,), 0, 1)])), "beyond": single(gguf(KEYS, [(b"w", (4,), 0, 2**64 - 32)])),
    "overlap": single(gguf(KEYS, ONE + [(b"v", (4,), 0, 0)])), "twin": single(gguf(KEYS, ONE + ONE)),
    "twin_key": single(gguf(KEYS + KEYS[:1], ONE)), "noname": single(gguf([(b"", U8, 1)], ONE)),
    "longname": single(gguf(KEYS, [(b"x" * 1025, (4,), 0)])), "align64": single(gguf([(b"general.alignment", U32, 64)], ONE, alignment=64)),
    "align7": single(gguf([(b"general.alignment", U32, 7)], ONE)), "align_text": single(gguf([(b"general.alignment", STR, b"8")], ONE)),
    "nested": single(gguf([(b"n", ARR, (ARR, [(U8, [1])]))], ONE)),
    "kind13": b"\0" + good.replace(struct.pack("<IQ", STR, 5), struct.pack("<IQ", 13, 5)),
    "array13": single(gguf([(b"n", ARR, (U8, [1]))], ONE).replace(struct.pack("<IIQ", ARR, U8, 1), struct.pack("<IIQ", ARR, 13, 1))),
    "many": single(gguf([(b"n", ARR, (U8, [1]))], ONE).replace(struct.pack("<IIQ", ARR, U8, 1), struct.pack("<IIQ", ARR, U8, 2**62))),
    "many_texts": single(gguf([(b"n", ARR, (STR, [b"a"]))], ONE).replace(struct.pack("<IIQ", ARR, STR, 1), struct.pack("<IIQ", ARR, STR, 2**62))),
    "values": single(gguf([(b"n", ARR, (U8, [1] * 300_000))], ONE)),
    "part": single(tail), "pair": pair(head, tail), "second": pair(head, tail, 1), "alone": pair(good, b""),
    "swapped_parts": pair(tail, head), "strangers": pair(head, gguf(split(0, 2, 1), ONE)),
    "total": pair(gguf(KEYS + split(0, 2, 5), []), tail), "three": pair(gguf(KEYS + split(0, 3, 1), []), tail),
    "odd_number": pair(gguf(KEYS + split(7, 2, 1), []), tail), "odd_count": pair(gguf(KEYS + split(0, 9999, 1), []), tail),
    "odd_kind": pair(gguf(KEYS + [(b"split.count", STR, b"2")], []), tail),
}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for seed, data in SEEDS.items():
    (folder / seed).write_bytes(data)

# Writes tests/data/quant/conversions.txt: hashes of gguf-py's conversions of seeded blocks, per number format.
"""One line a format and direction:
  dequantize NAME BLOCKS HASH F0..F7   hash of the floats that gguf-py reads from BLOCKS random blocks, and the first eight
  quantize   NAME COUNT  HASH          hash of the bytes that gguf-py packs COUNT floats into
Hashes are FNV-1a (64 bits) over the little-endian bytes, with every NaN replaced by 0x7fc00000. The inputs are a SplitMix64
stream (see Bytes and Floats), which the C++ test repeats."""
import os

import gguf.quants
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def splitmix(seed, count):
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, count + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_bytes(seed, count):
    return splitmix(seed, (count + 7) // 8).view(np.uint8)[:count]


def random_floats(seed, count):
    """In [-1, 1) with 24 bits, each run of 32 scaled by another power of two, and run 5 all zero."""
    u = (splitmix(seed, count) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    run = np.arange(count) // 32
    u = u * np.exp2((run % 9 - 4).astype(np.float32)).astype(np.float32)
    u[run == 5] = 0
    return u.astype(np.float32)


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def canonical(floats):
    bits = np.ascontiguousarray(floats, np.float32).view(np.uint32).copy()
    bits[(bits & 0x7FFFFFFF) > 0x7F800000] = 0x7FC00000
    return bits


def dequantize(t, data):
    if t == T.Q8_1:  # half d, half sum, 32 signed bytes: gguf-py has no reader
        b = data.reshape(-1, 36)
        d = b[:, :2].copy().view(np.float16).astype(np.float32)
        return (b[:, 4:].view(np.int8).astype(np.float32) * d).ravel()
    if t == T.Q8_K:  # float d, 256 signed bytes, 16 sums: gguf-py has no reader
        b = data.reshape(-1, 292)
        return (b[:, :4].copy().view(np.float32) * b[:, 4:260].view(np.int8).astype(np.float32)).ravel()
    plain = {T.I8: np.int8, T.I16: np.int16, T.I32: np.int32, T.I64: np.int64, T.F64: np.float64}
    if t in plain:
        return data.view(plain[t]).astype(np.float32)
    return gguf.quants.dequantize(data, t).ravel()


FORMATS = ("F32 F16 BF16 F64 I8 I16 I32 I64 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ1_S IQ1_M "
           "IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4").split()
PACKED = "F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 TQ1_0 TQ2_0 MXFP4".split()


def main(out_dir=None):
    out_dir = out_dir or os.path.join(ROOT, "tests", "data", "quant")
    os.makedirs(out_dir, exist_ok=True)
    lines = []
    for name in FORMATS:
        t = T[name]
        elements, size = GGML_QUANT_SIZES[t]
        size = 36 if t == T.Q8_1 else size  # gguf-py says 40; ggml's block is two halves and 32 bytes
        blocks = 64 if elements > 1 else 4096
        with np.errstate(all="ignore"):
            bits = canonical(dequantize(t, random_bytes(1000 + int(t), blocks * size)))
        assert len(bits) == blocks * elements
        lines.append(f"dequantize {name} {blocks} {fnv(bits.tobytes()):016x} " + " ".join(f"{b:08x}" for b in bits[:8]))
    for name in PACKED:
        floats = random_floats(7, 8192)
        data = np.ascontiguousarray(gguf.quants.quantize(floats.reshape(1, -1), T[name]))
        lines.append(f"quantize {name} {len(floats)} {fnv(data.tobytes()):016x}")
    with open(os.path.join(out_dir, "conversions.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

# Writes tests/data/kv_cache/{float8,int8}.txt: PyTorch's conversions between float32 and the 8-bit types of the KV cache.
"""float8.txt, one line each: `decode NAME` and the bits of the float of all 256 codes; `encode NAME` and pairs BITS:CODE. Inputs are
each border between two codes, the floats beside it, some negative ones, subnormals and what lies beyond the largest. vLLM's cache kernels
saturate where PyTorch makes an infinity of E5M2, so inputs are clamped first. A NaN has the code 7f here, whatever its sign.
int8.txt: rows of 16 floats, as bits, then the bits of their scale and their codes, as vLLM's kernel for int8_per_token_head
(v1/attention/ops/triton_reshape_and_cache_flash.py) has it, in the same float32 operations."""
import pathlib
import struct

import torch

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "kv_cache"
TYPES = {"e4m3": (torch.float8_e4m3fn, 448.0, 0x7E), "e5m2": (torch.float8_e5m2, 57344.0, 0x7B)}


def bits(x):
    return struct.pack(">f", x).hex()


def floats(codes, dtype):
    return torch.tensor(codes, dtype=torch.uint8).view(dtype).float()


def float8(name):
    dtype, largest, last = TYPES[name]
    values = floats(range(256), dtype)
    decode = " ".join("7fc00000" if v != v else bits(v) for v in values.tolist())
    positive = values[: last + 1].double()
    borders = ((positive[:-1] + positive[1:]) / 2).float()
    below, above = (torch.nextafter(borders, torch.full_like(borders, to)) for to in (0.0, float("inf")))
    inf = float("inf")
    extra = [0.0, -0.0, largest, largest * 1.01, largest * 1.04, largest * 1.08, 65504.0, 65536.0, 1e30, 3.4e38, inf, -inf,
             -largest * 2, float("nan"), 1e-30, 1e-45, -1e-40, 0.1, -0.1, -0.3, 1 / 3, -1.0625, -1.1875]
    inputs = torch.cat([borders, below, above, torch.tensor(extra)])
    codes = inputs.clamp(-largest, largest).to(dtype).view(torch.uint8)
    pairs = " ".join(f"{bits(x)}:{0x7F if x != x else c:02x}" for x, c in zip(inputs.tolist(), codes.tolist()))
    return [f"decode {name} {decode}", f"encode {name} {pairs}"]


def int8():
    torch.manual_seed(5)
    rows = [torch.randn(16) * scale for scale in (1.0, 0.01, 300.0, 1e-5, 1e-7)]
    rows += [torch.zeros(16), torch.arange(16) - 8.0, torch.arange(16) * 0.5 + 56, torch.tensor([127.0, -127.0, 0.5, -0.5, 1.5, 2.5] + [0.0] * 10)]
    lines = []
    for row in rows:
        scale = torch.clamp(row.abs().max() / torch.tensor(127.0), min=torch.tensor(1e-6))
        codes = row * (torch.tensor(1.0) / scale)
        codes = torch.where(codes >= 0, codes + 0.5, codes - 0.5).clamp(-128, 127).trunc().to(torch.int8)
        lines.append(" ".join([*(bits(x) for x in row.tolist()), bits(scale.item()), *(str(c) for c in codes.tolist())]))
    return lines


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "float8.txt").write_text("\n".join(float8("e4m3") + float8("e5m2")) + "\n", encoding="utf-8")
    (OUT / "int8.txt").write_text("\n".join(int8()) + "\n", encoding="utf-8")

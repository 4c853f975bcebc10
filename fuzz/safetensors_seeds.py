#!/usr/bin/env python3
"""Writes the seeds of the safetensors target: good files and one fault each. Usage: safetensors_seeds.py FOLDER"""
import json
import pathlib
import struct
import sys


def file(header, data=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4), **more):
    return dict(dtype=dtype, shape=list(shape), data_offsets=list(offsets), **more)


def folder_of(mode, index, first, second=b""):
    index = index if isinstance(index, bytes) else json.dumps(index).encode()
    return bytes([mode]) + struct.pack("<HH", len(index), len(first)) + index + first + second


def weights(**names):
    return {"metadata": {"total_size": 8}, "weight_map": names}


a, b = file({"a": entry()}, b"xxxx"), file({"b": entry()}, b"yyyy")
DTYPES = ("F32 F16 BF16 F64 I8 I16 I32 I64 BOOL U8 U16 U32 U64 C64 F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ F6_E2M3 "
          "F6_E3M2 F4").split()
FILES = {
    "good": a, "meta": file({"__metadata__": {"a": "b"}, "a": entry(x=[1, {"y": [None, True, "s", 2.5]}])}, b"xxxx"),
    "meta_null": file({"__metadata__": None}), "meta_int": file({"__metadata__": {"a": 1}}), "meta_list": file({"__metadata__": []}),
    "scalar": file({"a": entry(shape=())}, b"xxxx"), "zero": file({"a": entry(shape=(0, 5), offsets=(0, 0))}), "none": file({}),
    "dtypes": file({d: entry(d, (0,), (0, 0)) for d in DTYPES}), "spaces": file(b" \t\n" + json.dumps({"a": entry()}).encode() + b"  ", b"xxxx"),
    "short": b"1234567", "huge": struct.pack("<Q", 2**64 - 1) + b"{}", "long": struct.pack("<Q", 100) + b"{}", "list": file(b"[]"),
    "empty": file(b""), "range": file({"a": entry(shape=(1000, 1000), offsets=(0, 8))}, b"x" * 8),
    "wrap": file({"a": entry(shape=(2**62, 4), offsets=(0, 0))}), "bits": file({"a": entry("F4", (1,), (0, 0))}),
    "backwards": file({"a": entry(offsets=(8, 0))}, b"x" * 8), "negative": file({"a": entry(offsets=(-8, 0))}),
    "cut": file({"a": entry(shape=(2,), offsets=(0, 8))}, b"xxxx"), "hole": file({"a": entry(offsets=(4, 8))}, b"x" * 8),
    "more": file({"a": entry()}, b"x" * 8), "deep": file(b'{"a":{"x":' + b"[" * 70 + b"]" * 70 + b"}}"),
    "utf8": file(b'{"\xff":{}}'), "dtype": file({"a": entry("XX")}, b"xxxx"), "fields": file({"a": {"dtype": "F32"}}),
    "three": file({"a": entry(offsets=(0, 4, 4))}, b"xxxx"), "not_object": file({"a": 3}),
    "twice": file(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', b"x" * 8),
    "field_twice": file(b'{"a":{"dtype":"F32","dtype":"F32"}}'), "dims": file({"a": entry(shape=(1,) * 65)}, b"xxxx"),
}
INDEXES = {
    "index": weights(a="a.safetensors", b="s/b.safetensors"), "index_none": {}, "index_empty": weights(), "index_list": {"weight_map": []},
    "index_int": {"weight_map": {"a": 3}}, "index_up": weights(a="../x.safetensors"), "index_abs": weights(a="/x.safetensors"),
    "index_nul": weights(a="x.safetensors\0"), "index_blank": weights(a=""), "index_dot": weights(a="./x.safetensors"),
}
SEEDS = {name: b"\0" + data for name, data in FILES.items()}
SEEDS |= {name: b"\1" + json.dumps(data).encode() for name, data in INDEXES.items()}
SEEDS |= {
    "index_twice": b'\1{"weight_map":{"a":"x.safetensors","a":"x.safetensors"}}', "index_map_twice": b'\1{"weight_map":{},"weight_map":{}}',
    "folder": folder_of(2, weights(a="a.safetensors", b="b.safetensors"), a, b), "folder_single": folder_of(3, b"", a),
    "folder_odd": folder_of(3, b"", file(json.dumps({"a": entry()}).encode() + b" ", b"xxxx")),
    "folder_pickle": folder_of(4, b"x", a), "folder_none": folder_of(5, b"", a), "folder_two": folder_of(6, b"", a, b),
    "folder_missing": folder_of(2, weights(a="a.safetensors", b="c.safetensors"), a, b),
    "folder_wrong": folder_of(2, weights(a="a.safetensors", b="a.safetensors"), a, b),
    "folder_twin": folder_of(2, weights(a="a.safetensors", x="b.safetensors"), a, a),
}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for seed, data in SEEDS.items():
    (folder / seed).write_bytes(data)

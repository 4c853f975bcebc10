# Writes tests/data/load: a GGUF file made by gguf-py with every kind of key, and what gguf-py reads from it.
import os

import gguf
import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def write(path):
    w = gguf.GGUFWriter(path, "llama")
    w.add_uint8("x.u8", 255)
    w.add_int8("x.i8", -128)
    w.add_uint16("x.u16", 65535)
    w.add_int16("x.i16", -32768)
    w.add_uint32("x.u32", 4294967295)
    w.add_int32("x.i32", -2147483648)
    w.add_uint64("x.u64", 9223372036854775807)
    w.add_int64("x.i64", -9223372036854775808)
    w.add_bool("x.bool", True)
    w.add_string("x.text", "漢字")
    w.add_array("x.texts", ["a", "ü", "🦙"])
    w.add_array("x.ints", [1, -2, 3])
    r = np.random.default_rng(3)
    w.add_tensor("plain", r.standard_normal((3, 32)).astype(np.float32))
    w.add_tensor("half", r.standard_normal((2, 3, 8)).astype(np.float16))
    w.add_tensor("vector", r.standard_normal(5).astype(np.float32))
    q = gguf.quants.quantize(r.standard_normal((4, 64)).astype(np.float32), gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("packed", q, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def describe(path):
    lines = []
    reader = gguf.GGUFReader(path)
    for field in reader.fields.values():
        if field.name.startswith("GGUF."):
            continue
        array = field.types[0] == gguf.GGUFValueType.ARRAY
        value = field.contents()
        values = value if array else [value]
        lines.append(f"key {field.name} {int(field.types[-1])} {int(array)} {len(values)} "
                     + " ".join(str(int(v) if isinstance(v, bool) else v) for v in values))
    for tensor in reader.tensors:
        data = tensor.data.tobytes()
        h = 0
        for byte in data:
            h = (h * 31 + byte) & 0xFFFFFFFF
        shape = " ".join(str(int(n)) for n in reversed(tensor.shape))
        lines.append(f"tensor {tensor.name} {tensor.tensor_type.name} {shape} bytes {len(data)} hash {h}")
    return "\n".join(lines) + "\n"


def main(out_dir=None):
    out_dir = out_dir or os.path.join(ROOT, "tests", "data", "load")
    os.makedirs(out_dir, exist_ok=True)
    path = os.path.join(out_dir, "gguf_py.gguf")
    write(path)
    with open(os.path.join(out_dir, "gguf_py.txt"), "w") as f:
        f.write(describe(path))


if __name__ == "__main__":
    main()

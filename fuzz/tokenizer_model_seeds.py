# Writes seeds of the tokenizer_model target: small models built field by field, and the two of the golden files.
import pathlib
import shutil
import struct
import sys

out = pathlib.Path(sys.argv[1])
data = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "tokenizer"
for name in ("unigram.model", "bpe.model"):
    shutil.copy(data / name, out / name)


def varint(value):
    value &= (1 << 64) - 1
    text = b""
    while value >= 0x80:
        text += bytes([value & 0x7F | 0x80])
        value >>= 7
    return text + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def nested(field, text):
    return varint(field << 3 | 2) + varint(len(text)) + text


def piece(text, score, kind=1):
    return nested(1, nested(1, text.encode("utf-8")) + varint(2 << 3 | 5) + struct.pack("<f", score) + number(3, kind))


pieces = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("▁", -1) + piece("a", -2) + piece("▁a", -3) + piece("[X]", 0, 4) + piece("b", -4, 5)
for count, (trainer, normalizer) in enumerate([
        (number(3, 1), b""), (number(3, 2) + number(35, 1), number(3, 0) + number(4, 0)), (number(3, 2) + number(24, 1), number(5, 1)), (number(3, 3), b""), (number(40, 99), b""),
        (number(41, -1) + number(42, -1) + number(43, 0), nested(2, b"\x04\0\0\0\0\0\0\0")), (number(3, 1), number(5, 0)), (nested(3, b"x"), b""), (number(3, 1), nested(2, b"x"))]):
    (out / f"small{count}").write_bytes(pieces + nested(2, trainer) + nested(3, normalizer) + varint(9 << 3 | 1) + b"12345678" + varint(8 << 3 | 5) + b"1234")
(out / "cut").write_bytes(pieces[:20])
(out / "group").write_bytes(pieces + b"\x0b")
(out / "zero").write_bytes(b"\0\0")
(out / "wide").write_bytes(b"\xff" * 11)
(out / "text").write_bytes(nested(1, nested(1, b"\xff")))
(out / "nan").write_bytes(nested(1, nested(1, b"a") + varint(2 << 3 | 5) + struct.pack("<f", float("nan"))))

# The seeded corpus of the tokenizer tests, and digests of ids; tests/text/tokenizer/corpus_util.cc is its twin.
import hashlib
import json
import os

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DATA = os.path.join(ROOT, "tests", "data", "tokenizer")
MASK = (1 << 64) - 1


class Random:  # splitmix64
    def __init__(self, seed):
        self.state = seed

    def next(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % bound


def corpus(seed, size, table=None):
    """Mixed scripts, code, emoji, control characters and added tokens: at least `size` bytes of UTF-8, as one string."""
    table = table or json.load(open(os.path.join(DATA, "corpus.json"), encoding="utf-8"))
    random, out, length = Random(seed), [], 0
    while length < size:
        kind = random.next(16)
        if kind < 6:
            piece = table["words"][random.next(len(table["words"]))]
        elif kind == 6:
            piece = table["code"][random.next(len(table["code"]))]
        elif kind == 7:
            piece = table["emoji"][random.next(len(table["emoji"]))]
        elif kind == 8:
            piece = table["control"][random.next(len(table["control"]))]
        elif kind == 9:
            piece = table["tokens"][random.next(len(table["tokens"]))]
        elif kind == 10:
            piece = table["runs"][random.next(len(table["runs"]))] * (1 + random.next(40))
        elif kind == 11:
            piece = "".join(chr(48 + random.next(10)) for _ in range(1 + random.next(12)))
        else:
            low, high = table["ranges"][random.next(len(table["ranges"]))]
            piece = "".join(chr(low + random.next(high - low + 1)) for _ in range(1 + random.next(9)))
        piece += table["separators"][random.next(len(table["separators"]))]
        out.append(piece)
        length += len(piece.encode("utf-8"))
    return "".join(out)


def chunks(text, size):
    """Pieces of at least `size` bytes, cut between characters."""
    out, begin, length = [], 0, 0
    for at, c in enumerate(text):
        length += len(c.encode("utf-8"))
        if length >= size:
            out.append(text[begin:at + 1])
            begin, length = at + 1, 0
    return out + ([text[begin:]] if begin < len(text) else [])


LONG_UNITS = ("a", "us", " ", "\n", "é", "1", "<start_of_turn>user\nhello<end_of_turn>\n")
LONG_BYTES = 128 * 1024


def long_inputs():
    """Texts on which splitting or merging has been quadratic elsewhere: one unit again and again, and base64."""
    random, letters = Random(7), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    texts = [unit * (LONG_BYTES // len(unit.encode("utf-8"))) for unit in LONG_UNITS]
    return texts + ["".join(letters[random.next(64)] for _ in range(LONG_BYTES))]


def digest(ids):
    return hashlib.sha256(b"".join(i.to_bytes(4, "little") for i in ids)).hexdigest()[:16]

"""The installed C library: what it exports, its package files, and the examples built with them and run on a tiny model.

Usage: package_test.py BUILD_FOLDER CC CXX
"""
import array
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD, CC, CXX = sys.argv[1:4]
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, **options)
    if done.returncode:
        raise AssertionError(f"{command} exits {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def write_model(folder):
    """A Llama of one layer, 16 wide, whose tokens are the printable ASCII characters."""
    vocab = {chr(c): c - 33 for c in range(33, 127)} | {"\u0120": 94}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": level, "post_processor": None,
        "decoder": level, "model": {"type": "BPE", "vocab": vocab, "merges": []}}), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "vocab_size": 95, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "hidden_act": "silu"}))
    shapes = {"model.embed_tokens.weight": [95, 16], "model.norm.weight": [16]}
    layer = "model.layers.0."
    shapes |= {layer + name + "_layernorm.weight": [16] for name in ("input", "post_attention")}
    shapes |= {layer + "self_attn." + name + "_proj.weight": [16, 16] for name in "qkvo"}
    shapes |= {layer + "mlp." + name + "_proj.weight": [32, 16] for name in ("gate", "up")}
    shapes[layer + "mlp.down_proj.weight"] = [16, 32]
    header, data = {}, b""
    for name, shape in shapes.items():
        raw = array.array("f", (math.sin(i + len(data)) for i in range(math.prod(shape)))).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="vllm package ü ")  # paths may hold blanks
        cls.home = pathlib.Path(cls.folder.name)
        cls.prefix = cls.home / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "library")
        cls.lib = next(cls.prefix.rglob("libvllm.so")).parent
        cls.model = cls.home / "model"
        cls.model.mkdir()
        write_model(cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def environment(self):
        return dict(os.environ, PKG_CONFIG_PATH=str(self.lib / "pkgconfig"), LD_LIBRARY_PATH=str(self.lib))

    def check_examples(self, folder):
        """Both examples run on the tiny model, and do not answer with nothing."""
        generate = [folder / "simple_generate", self.model, "hello", "8"]
        text = run(*generate, env=self.environment())
        self.assertEqual(len(text), 9, text)  # eight characters and the line's end
        self.assertEqual(text, run(*generate, env=self.environment()))
        spoken = run(folder / "chat", self.model, TEMPLATE, env=self.environment(), input="Hi!\nWell?\n\n")
        self.assertRegex(spoken, r"^> .+\n> .*\n> $")

    def exported(self):
        lines = run("nm", "-D", "--defined-only", self.lib / "libvllm.so").splitlines()
        return {line.split()[-1].split("@")[0] for line in lines}

    def test_exactly_the_functions_of_the_header_are_exported(self):
        header = (ROOT / "include" / "vllm.h").read_text()
        declared = set(re.findall(r"^VLLM_API [^(]*?(\w+)\(", header, re.M))
        self.assertGreater(len(declared), 10)
        self.assertEqual(self.exported(), declared)

    def test_the_name_holds_the_abi_version(self):
        header = (ROOT / "include" / "vllm.h").read_text()
        version = re.search(r"#define VLLM_ABI_VERSION (\d+)", header)[1]
        self.assertIn(f"Library soname: [libvllm.so.{version}]", run("readelf", "-dW", self.lib / "libvllm.so"))

    def test_the_header_is_clean_c11_and_cpp(self):
        header = self.prefix / "include" / "vllm.h"
        strict = ["-Wall", "-Wextra", "-Werror", "-pedantic-errors", "-fsyntax-only"]
        run(CC, "-std=c11", *strict, "-x", "c", header)
        run(CXX, "-std=c++11", *strict, "-x", "c++", header)

    def test_the_examples_build_with_cmake_against_either_library(self):
        for static in ("OFF", "ON"):
            build = self.home / f"examples {static}"
            run("cmake", "-S", ROOT / "examples" / "c", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                f"-DSTATIC={static}", f"-DCMAKE_C_COMPILER={CC}")
            run("cmake", "--build", build)
            needed = "libvllm.so" in run("readelf", "-dW", build / "chat")
            self.assertEqual(needed, static == "OFF")
            self.check_examples(build)

    def test_the_examples_build_with_one_line(self):
        out = self.home / "one line"
        out.mkdir()
        for example in ("simple_generate", "chat"):
            run("sh", "-c", f'{CC} -std=c11 "$1" -o "$2" $(pkg-config --cflags --libs vllm)', "sh",
                ROOT / "examples" / "c" / f"{example}.c", out / example, env=self.plain_environment())
        self.check_examples(out)

    def plain_environment(self):
        """A prefix without blanks: the shell splits what pkg-config prints."""
        plain = pathlib.Path(tempfile.mkdtemp(prefix="vllm_package_"))
        self.addCleanup(lambda: plain.unlink() if plain.is_symlink() else None)
        plain.rmdir()
        plain.symlink_to(self.prefix)
        return dict(os.environ, PKG_CONFIG_PATH=str(plain / self.lib.relative_to(self.prefix) / "pkgconfig"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

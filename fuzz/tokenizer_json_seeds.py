# Writes seeds of the tokenizer_json target: each component of the golden file on its own, and whole small tokenizers.
import json
import pathlib
import sys

out = pathlib.Path(sys.argv[1])
data = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "tokenizer"
golden = json.loads((data / "components.json").read_text(encoding="utf-8"))
model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3, "<0x41>": 4}, "merges": [["a", "b"]], "unk_token": "<s>"}
number = 0


def seed(value, config=None):
    global number
    text = json.dumps(value, ensure_ascii=False) + ("" if config is None else "\0" + json.dumps(config))
    (out / f"{number:03}").write_bytes(text.encode("utf-8"))
    number += 1


for kind in ("normalizer", "pre_tokenizer", "decoder"):
    for entry in golden[kind + "s"]:
        seed({kind: entry[0], "model": model})
for name in ("fallback.json", "words.json"):
    for entry in json.loads((data / name).read_text(encoding="utf-8")):
        seed(entry["json"])
token = {"id": 9, "content": "<x>", "single_word": True, "lstrip": True, "rstrip": True, "normalized": True, "special": True}
special = {"SpecialToken": {"id": "<s>", "type_id": 0}}
template = {"type": "TemplateProcessing", "single": [special, {"Sequence": {"id": "A", "type_id": 0}}, special], "pair": [],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}}
seed({"version": "1.0", "added_tokens": [token], "post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, template]},
      "model": {**model, "merges": ["#version: 0.2", "a b"], "fuse_unk": True, "byte_fallback": True, "ignore_merges": True, "dropout": 0.0}})
seed({"post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 3]}, "model": model})
seed({"model": {"type": "Unigram", "vocab": [["<unk>", 0], ["a", -1.5], ["aa", -2]], "unk_id": 0, "byte_fallback": True}})
seed({"model": {"vocab": [["a", -1]]}})
seed({"model": {"vocab": {"a": 0}, "unk_token": "a"}})
for pattern in ("[a&&b]", "[a[b]]", "[[:alpha:]]", "(?~a)", "(*F)", "a{2}?", "\\xe9", "\\y", "[\\y]", "(", ")", "[a", "\\", "(?i", "(?#a", "a)b", "\\B.\\Z", "[\\h\\b]", "\\H\\1"):
    seed({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": False}, "model": model})
for broken in ({}, {"model": 3}, {"model": {"type": "X"}}, {"model": {"type": "WordPiece", "vocab": {}, "unk_token": "x"}}, {"version": "2", "model": model},
               {"model": {**model, "merges": ["a"]}}, {"model": {**model, "merges": [["a"]]}}, {"model": {**model, "merges": ["a x"]}}, {"model": {**model, "vocab": {"a": -1}}},
               {"model": model, "normalizer": {"type": "X"}}, {"model": model, "pre_tokenizer": {"type": "X"}}, {"model": model, "decoder": {"type": "X"}},
               {"model": model, "post_processor": {"type": "X"}}, {"model": {"type": "Unigram", "vocab": [["a"]]}}, {"model": {"type": "Unigram", "vocab": [["a", 1]], "unk_id": 4}}):
    seed(broken)
for config in ({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": True}, "add_bos_token": True, "add_eos_token": True, "chat_template": "{{ x }}",
                "added_tokens_decoder": {"7": {"content": "<y>", "special": True}}, "additional_special_tokens": ["<z>", {"content": "<w>"}]},
               {"chat_template": [{"name": "default", "template": "t"}], "clean_up_tokenization_spaces": True, "unk_token": None},
               {"chat_template": {"default": "t"}}, {"chat_template": 7}, {"chat_template": [7]}, {"bos_token": 7}, {"bos_token": {}}, {"add_bos_token": 7},
               {"added_tokens_decoder": []}, {"added_tokens_decoder": {"x": 1}}, []):
    seed({"model": model}, config)

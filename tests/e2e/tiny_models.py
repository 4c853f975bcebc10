"""Tiny Llama checkpoints (HF folders) that the tests make: scripted ones, whose greedy text is known, and random ones."""
import json
import pathlib
import struct

import numpy as np

EOS = "<|end|>"
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


def _byte_letters():
    """The letters that stand for bytes in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in plain}
    for b in range(256):
        if b not in letters:
            letters[b] = chr(256 + len(letters) - len(plain))
    return letters


LETTERS = _byte_letters()


def spelled(raw):
    return "".join(LETTERS[b] for b in raw)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array, np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_tokenizer(folder, vocab, template):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    end = {"id": len(vocab), "content": EOS, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [end], "normalizer": None,
         "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level, "model": model}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": EOS, "clean_up_tokenization_spaces": False,
         "chat_template": template}), encoding="utf-8")


def write_checkpoint(folder, embedding, head, fill, layers, heads, template, vocab, **config):
    """`fill(shape)` gives the projections; `vocab` is the byte-level vocabulary, EOS follows it."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    size, width = embedding.shape
    tensors = {"model.embed_tokens.weight": embedding, "lm_head.weight": head, "model.norm.weight": np.ones(width)}
    for layer in range(layers):
        at = f"model.layers.{layer}."
        for name in ("q", "k", "v", "o"):
            tensors[f"{at}self_attn.{name}_proj.weight"] = fill((width, width))
        for name, shape in (("gate", (32, width)), ("up", (32, width)), ("down", (width, 32))):
            tensors[f"{at}mlp.{name}_proj.weight"] = fill(shape)
        tensors[at + "input_layernorm.weight"] = tensors[at + "post_attention_layernorm.weight"] = np.ones(width)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width, "intermediate_size": 32,
         "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": heads, "head_dim": width // heads,
         "vocab_size": size, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu",
         "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "bos_token_id": None,
         "eos_token_id": len(vocab), "torch_dtype": "float32", **config}), encoding="utf-8")
    write_tokenizer(folder, vocab, template)
    return str(folder)


def byte_vocab(pieces=()):
    vocab = {LETTERS[b]: b for b in range(256)}
    for raw in pieces:
        vocab.setdefault(spelled(raw), len(vocab))
    return vocab


def script_model(folder, pieces, template=TEMPLATE):
    """A model whose greedy text after any prompt is `pieces` (texts or bytes, all different), then EOS: the residual stream is the
    one-hot of the last token, and row j of the head points at each i whose successor is j."""
    raws = [p if isinstance(p, bytes) else p.encode() for p in pieces]
    assert len(set(raws)) == len(raws), "every piece must be different"
    vocab = byte_vocab(raws)
    end, size = len(vocab), len(vocab) + 1
    ids = [vocab[spelled(raw)] for raw in raws]
    successor = dict.fromkeys(range(size), ids[0])
    successor.update(zip(ids, [*ids[1:], end]))
    width = max(64, (size + 31) // 32 * 32)
    embedding, head = np.zeros((size, width)), np.zeros((size, width))
    for token, following in successor.items():
        embedding[token, token] = 1
        head[following, token] = 1
    return write_checkpoint(folder, embedding, head, np.zeros, 1, width // 32, template, vocab)


def random_model(folder, layers=3, width=64, seed=1, **config):
    """Weights big enough that attention and position change the logits clearly."""
    random = np.random.default_rng(seed)
    vocab = byte_vocab()
    size = len(vocab) + 1

    def fill(shape):
        return random.standard_normal(shape) / np.sqrt(shape[1])

    return write_checkpoint(folder, random.standard_normal((size, width)), fill((size, width)) * 2, fill, layers, width // 32,
                            TEMPLATE, vocab, **config)

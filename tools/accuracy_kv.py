"""The table of the types of the KV cache for ./dev accuracy: error, perplexity, bytes and speed of decoding."""
import numpy as np
import torch

from peers_install import call

TYPES = ["bfloat16", "float16", "float32", "fp8", "fp8_e5m2", "int8_per_token_head"]
CONTEXT, STEPS = 4096, 60


def perplexity(path, reference):
    """Of the text's second to last token, from the logits that were dumped."""
    logits = torch.from_numpy(np.fromfile(path, dtype="<f4").reshape(len(reference.ids), -1)).double()
    logs = torch.log_softmax(logits, -1)[:-1]
    return torch.exp(-logs[torch.arange(len(logs)), torch.tensor(reference.ids[1:])].mean()).item()


def measure(dump, model, reference, folder):
    """Rows of the table: type, error, perplexity, bytes a token, speed of decoding relative to bfloat16."""
    np.array(reference.ids, dtype="<i4").tofile(folder / "ids")
    speeds = {}
    for line in call([dump, "--decode", model, CONTEXT, STEPS], "logits_dump", "to see why run", timeout=1200).splitlines():
        name, size, _, speed = line.split()
        speeds[name] = int(size), float(speed)
    rows = []
    for name in TYPES:
        out = folder / "out"
        call([dump, model, folder / "ids", out, "default", "", 0, name], f"{model.name} {name}", "to see why run", timeout=600)
        error, text = reference.error(out), perplexity(out, reference)
        print(f"{name:20} {error.text()}  perplexity {text:.3f}  {speeds[name][0]} bytes a token  decode x{speeds[name][1]:.2f}", flush=True)
        rows.append((name, error, text, *speeds[name]))
    return rows


def table(rows, cell):
    lines = ["| `--kv-cache-dtype` | mean KL, worst flip | perplexity | bytes a token | decoding after 4096 tokens |", "|---|---:|---:|---:|---:|"]
    return lines + [f"| {name} | {cell(error)} | {text:.3f} | {size} | {speed:.2f} × |" for name, error, text, size, speed in rows]

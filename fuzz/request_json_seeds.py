#!/usr/bin/env python3
"""Writes the seeds of the request JSON target: a byte for endpoint and options, then the body. Usage: request_json_seeds.py FOLDER"""
import json
import pathlib
import sys

COMPLETION, CHAT, TOKENIZE, DETOKENIZE, TRUST, KWARGS, PLAIN = 0, 1, 2, 3, 4, 8, 16
USER = {"role": "user", "content": "x"}
SAMPLING = {"n": 2, "presence_penalty": 0.5, "frequency_penalty": 0.5, "repetition_penalty": 1.1, "temperature": 0.5, "top_p": 0.9,
            "top_k": 3, "min_p": 0.1, "seed": 1, "stop": ["a"], "stop_token_ids": [1], "ignore_eos": True, "min_tokens": 1,
            "skip_special_tokens": False, "logit_bias": {"5": 1}, "allowed_token_ids": [5], "bad_words": ["w"], "max_tokens": 4}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}


def chat(content, **more):
    return {"messages": [{"role": "user", "content": content}], **more}


SEEDS = [
    (COMPLETION, {"prompt": "x", **SAMPLING}), (COMPLETION, {"prompt": ["x", "y"], "stream": True, "logprobs": 2, "echo": True}),
    (COMPLETION, {"prompt": [1, 2], "echo": True, "logprobs": 1, "max_tokens": 0}), (COMPLETION, {"prompt": [[1], [2]]}),
    (COMPLETION, {"prompt": "x", "stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}),
    (COMPLETION, {"prompt": "x", "stream": True, "stream_options": 5}), (COMPLETION, {"prompt": "x", "stream_options": {}}),
    (COMPLETION, {"prompt": "x", "prompt_logprobs": 2, "return_token_ids": True, "return_tokens_as_token_ids": True}),
    (COMPLETION, {"prompt": "x", "prompt_logprobs": 2, "stream": True}), (COMPLETION, {"prompt": "x", "prompt_logprobs": -5}),
    (COMPLETION, {"prompt": []}), (COMPLETION, {"prompt": [True]}), (COMPLETION, {"prompt": {}}), (COMPLETION, {"prompt": [-1]}),
    (COMPLETION, {"prompt": ["x"] * 1025}), (COMPLETION, {"prompt": "x" * 65}), (COMPLETION, {"prompt": "x", "model": "none"}),
    (COMPLETION, {"prompt": "x", "n": 0}), (COMPLETION, {"prompt": "x", "logprobs": -2}), (COMPLETION, {"prompt": "x", "max_tokens": 0}),
    (COMPLETION, {"prompt": "x", "max_tokens": 100}), (COMPLETION, {"prompt": "x", "max_tokens": -1}),
    (COMPLETION, {"prompt": "x", "logprob_token_ids": [1]}), (COMPLETION, {"prompt": "x", "use_beam_search": True}),
    (COMPLETION, {"prompt": "x", "cache_salt": "s", "priority": 1, "request_id": "r", "model": "alias"}),
    (COMPLETION, {"prompt": "x", "cache_salt": "a/b"}), (COMPLETION, {"prompt": "x", "request_id": "r" * 300}),
    (COMPLETION, {"prompt": "x", "temperature": "hot"}), (COMPLETION, {"prompt": "x", "logit_bias": {"a": 1}}),
    (COMPLETION, {"prompt": "x", "logit_bias": []}), (COMPLETION, {"prompt": "x", "logit_bias": {"1": "a"}}),
    (COMPLETION, {"prompt": "x", "n": 1.5, "stop": 5, "stop_token_ids": ["a"], "echo": 1}),
    (COMPLETION, {"prompt": "x", "stop": ["s" * 70000], "bad_words": ["w"]}), (COMPLETION, []), (COMPLETION | PLAIN, {}),
    (CHAT, chat("x", **SAMPLING)), (CHAT, chat("x", stream=True, n=2, logprobs=True, top_logprobs=2)),
    (CHAT, chat("x", logprobs=True, top_logprobs=-1, prompt_logprobs=1, return_token_ids=True, return_prompt_text=True)),
    (CHAT, chat("x", stream=True, stream_options={"include_usage": True, "continuous_usage_stats": True}, return_prompt_text=True)),
    (CHAT, chat("x", top_logprobs=2)), (CHAT, chat("x", top_logprobs=-2)), (CHAT, chat("x", max_completion_tokens=0)),
    (CHAT, chat("x", n=0)), (CHAT, chat("x", logprob_token_ids=[1])), (CHAT, chat("x", max_tokens=100)), (CHAT, chat("x" * 100)),
    (CHAT, chat([{"type": "text", "text": "a"}, "b", {"text": "c"}, {"type": "refusal", "refusal": "d"}])),
    (CHAT, chat([{"type": "image_url", "image_url": {"url": "x"}}])), (CHAT, chat([{"type": "what"}])), (CHAT, chat([{"type": "text"}])),
    (CHAT, chat([5])), (CHAT, chat(5)), (CHAT, chat(None)), (CHAT, {"messages": []}), (CHAT, {"messages": [5]}), (CHAT, {}),
    (CHAT, {"messages": [USER, {"role": "assistant", "tool_calls": [CALL], "reasoning": "r"}, {"role": "tool", "tool_call_id": "1", "content": "r"}]}),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]}),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": ""}}, {"function": {"name": "g"}}]}]}),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": [{"function": 5}]}]}), (CHAT, {"messages": [{"role": "assistant", "tool_calls": [5]}]}),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": {"a": 1}}]}), (CHAT, {"messages": [{"role": 5}]}),
    (CHAT, {"messages": [{"role": "assistant", "content": "c"}], "echo": True, "stream": True}),
    (CHAT, chat("x", tools=[TOOL], tool_choice="none")), (CHAT, chat("x", tools=[TOOL])), (CHAT, chat("x", tools=[TOOL], tool_choice="required")),
    (CHAT, chat("x", tools=[TOOL], tool_choice={"type": "function", "function": {"name": "f"}})), (CHAT, chat("x", tools=[TOOL], tool_choice=5)),
    (CHAT, chat("x", tools=[])), (CHAT, chat("x", tools={})), (CHAT, chat("x", tools=[{}])), (CHAT, chat("x", tool_choice="auto")),
    (CHAT | TRUST, chat("x", chat_template="t {{ messages[0].content }}")), (CHAT | TRUST, chat("x", chat_template="{% if %}")),
    (CHAT, chat("x", chat_template="t")), (CHAT | KWARGS, chat("x", chat_template_kwargs={"a": 1})), (CHAT, chat("x", chat_template_kwargs=[])),
    (CHAT, chat("x", reasoning_effort="low")), (CHAT, chat("x", reasoning_effort="much")), (CHAT, chat("x", documents=[{"a": "b"}])),
    (CHAT, chat("x", add_generation_prompt=True, continue_final_message=True)), (CHAT, chat("x", add_special_tokens="a")),
    (TOKENIZE, {"prompt": "ab<|end|>", "return_token_strs": True}), (TOKENIZE, {"messages": [USER]}), (TOKENIZE, {}), (TOKENIZE, {"prompt": 5}),
    (TOKENIZE, {"prompt": "x", "model": "none"}), (TOKENIZE, {"messages": []}), (DETOKENIZE, {"tokens": [97, 98, 256]}),
    (DETOKENIZE, {"tokens": [999]}), (DETOKENIZE, {"tokens": "a"}), (DETOKENIZE, {}), (DETOKENIZE, {"model": "none"}),
]
RAW = [b"", b"\x00", b"\x00{", b"\x01[" + b"[" * 200, b"\x00{\"a\":\"\xff\"}", b"\x00{\"prompt\":\"x\",\"prompt\":\"y\"}", b"\x00{\"n\":1e999}",
       b"\x00{\"seed\":18446744073709551615,\"prompt\":\"x\"}", b"\x00{\"n\":2.0,\"prompt\":[1.0]}"]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for number, (choice, body) in enumerate(SEEDS):
    (folder / f"{number:03d}").write_bytes(bytes([choice]) + json.dumps(body).encode())
for number, raw in enumerate(RAW):
    (folder / f"raw{number}").write_bytes(raw)

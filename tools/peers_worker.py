#!/usr/bin/env python3
"""Holds a peer that is a Python module for ./dev compare. usage: peers_worker.py vllm|openvino PATH THREADS

Loads the model and generates one token from 16, answers with one line of JSON, then answers each line of standard input (kind, tokens,
batch, generated, repetitions) with {"rate": tokens a second}. Prompts are random, so that no cache of prefixes helps."""
import json
import os
import random
import statistics
import sys
import time


class Vllm:
    def __init__(self, path, threads):
        import vllm
        self.vllm, self.count = vllm, 0
        self.llm = vllm.LLM(path, dtype="bfloat16", max_model_len=4096 + 128, max_num_seqs=32, enable_prefix_caching=False,
                            disable_log_stats=True)
        self.version = f"{vllm.__version__}"

    def run(self, prompts, generated):
        """Times at which tokens came: [(seconds since the start, sequences that have any, tokens)]."""
        engine = self.llm.llm_engine
        params = self.vllm.SamplingParams(temperature=0, ignore_eos=True, max_tokens=generated, detokenize=False)
        begin, have, times = time.perf_counter(), {}, []
        for prompt in prompts:
            self.count += 1
            engine.add_request(str(self.count), {"prompt_token_ids": prompt}, params)
        while engine.has_unfinished_requests():
            for output in engine.step():
                have[output.request_id] = len(output.outputs[0].token_ids)
            times.append((time.perf_counter() - begin, len(have), sum(have.values())))
        return times


class OpenVino:
    def __init__(self, path, threads):
        import numpy
        import openvino
        import openvino_genai
        self.numpy, self.openvino, self.genai = numpy, openvino, openvino_genai
        self.pipeline = openvino_genai.LLMPipeline(path, "CPU", INFERENCE_NUM_THREADS=threads)
        self.version = openvino_genai.__version__

    def run(self, prompts, generated):
        config = self.genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = generated, True, False
        ids = self.numpy.array(prompts, dtype=self.numpy.int64)
        inputs = self.genai.TokenizedInputs(self.openvino.Tensor(ids), self.openvino.Tensor(self.numpy.ones_like(ids)))
        begin = time.perf_counter()
        result = self.pipeline.generate(inputs, config)
        end = time.perf_counter() - begin
        raw = result.perf_metrics.raw_metrics  # milliseconds of an own clock, and how many sequences got a token then
        tokens, times = 0, []
        for stamp, sequences in zip(raw.m_new_token_times, raw.m_batch_sizes):
            tokens += sequences
            times.append((end - (raw.m_new_token_times[-1] - stamp) / 1000, min(tokens, len(prompts)), tokens))
        return times


def rate(peer, kind, tokens, batch, generated, repetitions):
    """Tokens a second: the median of the repetitions, after one that is not counted."""
    rates = []
    for _ in range(1 + repetitions):
        prompts = [[random.randrange(100, 9000) for _ in range(tokens)] for _ in range(batch)]
        times = peer.run(prompts, 1 if kind == "prompt" else generated + 1)
        if times[-1][2] != batch * (1 if kind == "prompt" else generated + 1):
            raise RuntimeError(f"{times[-1][2]} tokens came instead of {batch * (generated + 1)}")
        if kind == "prompt":
            rates.append(tokens / times[-1][0])
        else:  # from the moment on when every sequence has its first token
            began, _, had = next(row for row in times if row[1] == batch)
            rates.append((times[-1][2] - had) / (times[-1][0] - began))
    return statistics.median(rates[1:])


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the modules print belongs into the log

    def answer(**fields):
        print(json.dumps(fields), file=answers, flush=True)

    try:
        peer = {"vllm": Vllm, "openvino": OpenVino}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
        peer.run([list(range(100, 116))], 1)
    except Exception as error:  # a model that the peer refuses is a result
        return answer(error=" ".join(str(error).split()) or type(error).__name__)
    answer(version=peer.version)
    for line in sys.stdin:
        try:
            answer(rate=rate(peer, **json.loads(line)))
        except Exception as error:
            return answer(error=" ".join(str(error).split()) or type(error).__name__)


if __name__ == "__main__":
    main()

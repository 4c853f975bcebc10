"""Goldens of the scheduler: vLLM's own Scheduler and AsyncScheduler, driven step by step with a scripted model.

Each scenario is a seeded list of requests with the schedule that vLLM made of it: per step the sequences and their tokens, a hash
of the block ids that the runner was told, preemptions, ends and outputs. tests/engine/sched/golden_test.cc replays them.
"""
import json
import os
import random
import tempfile
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent.parent / "tests" / "data" / "scheduler"
VOCAB = 1000
MASK = (1 << 64) - 1


def mix(prefix, token):
    x = ((prefix ^ (token & 0xFFFFFFFF)) * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & MASK
    x ^= x >> 29
    x = (x * 0xBF58476D1CE4E5B9) & MASK
    return x ^ (x >> 32)


def follow(tokens, count):
    """What the scripted model answers to `tokens` (tests/engine/sched/scripted_runner.h has the same)."""
    prefix, outputs = 0, []
    for token in tokens:
        prefix = mix(prefix, token)
    for _ in range(count):
        outputs.append((prefix >> 13) % VOCAB)
        prefix = mix(prefix, outputs[-1])
    return outputs


def hash_ids(groups):
    value = 0xCBF29CE484222325
    for group in groups:
        for block in [len(group), *group]:
            value = ((value ^ block) * 0x100000001B3) & MASK
    return value


def prompt_of(request, known):
    """`family` gives a shared beginning of `shared` tokens; `after` continues an earlier request's prompt and answer."""
    tokens = list(known[request["after"]]) if request["after"] else []
    for i in range(request["length"]):
        own = request["id"] * 7919 + i * 17
        tokens.append((request["family"] * 131 + i * 31 if i < request["shared"] else own) % VOCAB)
    return tokens


class Model:
    """Follows the block tables no further than the sampled tokens need."""

    def __init__(self, num_drafts, asynchronous):
        self.tokens, self.drafts = {}, {}
        self.num_drafts, self.asynchronous = num_drafts, asynchronous

    def run(self, step, requests):
        from vllm.v1.outputs import ModelRunnerOutput

        computed = {new.req_id: new.num_computed_tokens for new in step.scheduled_new_reqs}
        cached = step.scheduled_cached_reqs
        computed.update(zip(cached.req_ids, cached.num_computed_tokens))
        for new in step.scheduled_new_reqs:
            self.tokens[new.req_id] = list(new.prompt_token_ids)
        for req_id in cached.resumed_req_ids:
            self.tokens[req_id] = list(requests[req_id].all_token_ids)
            self.drafts.pop(req_id, None)
        sampled = []
        for req_id, count in step.num_scheduled_tokens.items():
            tokens = self.tokens[req_id]
            drafts = list(step.scheduled_spec_decode_tokens.get(req_id, ()))
            own = self.drafts.get(req_id, [])
            drafts = [(own[i] if i < len(own) else 0) if d < 0 else d for i, d in enumerate(drafts)]
            end = min(computed[req_id], len(tokens) - 1) + count
            new = []
            if end == len(tokens) + len(drafts):
                for i in range(len(drafts) + 1):
                    new += follow(tokens + new, 1)
                    if i >= len(drafts) or drafts[i] != new[-1]:
                        break
            tokens += new
            sampled.append(new)
        ids = list(step.num_scheduled_tokens)
        drafts = []
        for req_id in ids if self.num_drafts else ():
            tokens = self.tokens[req_id]
            guess = follow(tokens, self.num_drafts)
            guess = [(t + 1) % VOCAB if (len(tokens) + i) % 3 == 0 else t for i, t in enumerate(guess)]
            self.drafts[req_id] = guess
            drafts.append(guess)
        output = ModelRunnerOutput(req_ids=ids, req_id_to_index={r: i for i, r in enumerate(ids)}, sampled_token_ids=sampled,
                                   pooler_output=[])
        return output, drafts


def make_scheduler(config, folder):
    import torch
    from vllm.config import CacheConfig, DeviceConfig, ModelConfig, ParallelConfig, SchedulerConfig, VllmConfig
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, SlidingWindowSpec
    from vllm.v1.structured_output import StructuredOutputManager

    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": VOCAB,
        "max_position_embeddings": config["max_model_len"], "rms_norm_eps": 1e-5, "torch_dtype": "float32"}))
    scheduler_config = SchedulerConfig(
        max_num_seqs=config["max_num_seqs"], max_num_batched_tokens=config["max_num_batched_tokens"],
        max_model_len=config["max_model_len"], is_encoder_decoder=False, policy=config["policy"],
        long_prefill_token_threshold=config["long_prefill_token_threshold"], watermark=config["watermark"],
        enable_chunked_prefill=config["enable_chunked_prefill"],
        scheduler_reserve_full_isl=config["scheduler_reserve_full_isl"])
    cache_config = CacheConfig(block_size=16, enable_prefix_caching=config["enable_prefix_caching"])
    vllm_config = VllmConfig(
        model_config=ModelConfig(model=str(folder), skip_tokenizer_init=True, dtype="float32", seed=0,
                                 max_model_len=config["max_model_len"]),
        scheduler_config=scheduler_config, cache_config=cache_config, device_config=DeviceConfig("cpu"),
        parallel_config=ParallelConfig())
    # The CPU platform switches both off; the scheduler itself runs anywhere.
    vllm_config.scheduler_config.async_scheduling = config["async_scheduling"]
    vllm_config.scheduler_config.enable_chunked_prefill = config["enable_chunked_prefill"]
    vllm_config.cache_config.enable_prefix_caching = config["enable_prefix_caching"]
    vllm_config.cache_config.num_gpu_blocks = config["num_blocks"]
    shape = dict(block_size=16, num_kv_heads=1, head_size=16, dtype=torch.float32)
    groups = [KVCacheGroupSpec([f"layer.{i}"], SlidingWindowSpec(**shape, sliding_window=w) if w else FullAttentionSpec(**shape))
              for i, w in enumerate(config["windows"])]
    kv_config = KVCacheConfig(num_blocks=config["num_blocks"], kv_cache_tensors=[], kv_cache_groups=groups,
                              prefix_cache_retention_interval=cache_config.prefix_cache_retention_interval)
    kind = AsyncScheduler if config["async_scheduling"] else Scheduler
    scheduler = kind(vllm_config, kv_config, StructuredOutputManager(vllm_config), block_size=16, hash_block_size=16)
    scheduler.num_spec_tokens = config["num_spec_tokens"]
    assert vllm_config.max_in_flight_tokens == config["max_num_batched_tokens"] * (2 if config["async_scheduling"] else 1)
    return scheduler


class Replay:
    def __init__(self, config, folder):
        from vllm.utils.hashing import sha256
        from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash

        init_none_hash(sha256)
        self.config = config
        self.scheduler = make_scheduler(config, folder)
        self.model = Model(config["num_spec_tokens"], config["async_scheduling"])
        self.hasher = get_request_block_hasher(16, sha256) if config["enable_prefix_caching"] else None
        self.known, self.seen = {}, set()

    def add(self, request):
        from vllm import SamplingParams
        from vllm.v1.request import Request

        name = f"{request['id']:04d}"
        params = SamplingParams(temperature=0, max_tokens=request["max_tokens"], stop_token_ids=request["stop_token_ids"])
        tokens = prompt_of(request, self.known)
        live = Request(name, tokens, params, None, arrival_time=float(request["id"]), cache_salt=request["salt"] or None,
                       priority=request["priority"], block_hasher=self.hasher)
        self.known[request["id"]] = live.all_token_ids
        self.scheduler.add_request(live)

    def record(self, step):
        cached = step.scheduled_cached_reqs
        blocks = {new.req_id: (1, new.num_computed_tokens, new.block_ids) for new in step.scheduled_new_reqs}
        for req_id, computed, ids in zip(cached.req_ids, cached.num_computed_tokens, cached.new_block_ids):
            kind = 2 if req_id in cached.resumed_req_ids else 0
            blocks[req_id] = (kind, computed, ids if ids is not None else [[] for _ in self.config["windows"]])
        scheduled = [[int(r), n, blocks[r][0], blocks[r][1], len(step.scheduled_spec_decode_tokens.get(r, ())),
                      format(hash_ids(blocks[r][2]), "x")] for r, n in step.num_scheduled_tokens.items()]
        finished = sorted(int(r) for r in step.finished_req_ids if r in self.seen)
        self.seen.update(step.num_scheduled_tokens)
        return {"s": scheduled, "p": sorted(int(r) for r in step.preempted_req_ids or ()), "f": finished}

    def update(self, step):
        from vllm.v1.outputs import DraftTokenIds

        output, drafts = self.model.run(step, self.scheduler.requests)
        results = self.scheduler.update_from_output(step, output)
        if drafts and not self.config["async_scheduling"]:
            self.scheduler.update_draft_token_ids(DraftTokenIds(output.req_ids, drafts))
        news = []
        for batch in results.values():
            for item in batch.outputs:
                reason = "" if item.finish_reason is None else str(item.finish_reason)
                news.append([int(item.request_id), list(item.new_token_ids), reason])
        return news

    def run(self, requests, aborts, steps):
        from vllm.v1.request import RequestStatus

        depth = 2 if self.config["async_scheduling"] else 1
        trace, flights = [], []
        for k in range(steps):
            for request in requests:
                if request["at"] == k:
                    self.add(request)
            for at, req_id in aborts:
                if at == k:
                    self.scheduler.finish_requests(f"{req_id:04d}", RequestStatus.FINISHED_ABORTED)
            step = self.scheduler.schedule()
            entry = self.record(step)
            entry["free"] = self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
            trace.append(entry)
            if step.total_num_scheduled_tokens > 0:
                flights.append(step)
                if len(flights) < depth:
                    continue
            if flights:
                entry["o"] = self.update(flights.pop(0))
        return trace


BASE = dict(num_blocks=40, windows=[0], max_model_len=512, max_num_batched_tokens=64, max_num_seqs=6, policy="fcfs",
            long_prefill_token_threshold=0, watermark=0.0, enable_chunked_prefill=True, scheduler_reserve_full_isl=True,
            enable_prefix_caching=True, async_scheduling=False, num_spec_tokens=0)

SCENARIOS = {
    "plain": dict(num_blocks=64),
    "plain_async": dict(async_scheduling=True),
    "no_caching": dict(enable_prefix_caching=False, num_blocks=24),
    "tight": dict(num_blocks=18),
    "tight_async": dict(num_blocks=20, async_scheduling=True),
    "no_reserve_async": dict(num_blocks=20, async_scheduling=True, scheduler_reserve_full_isl=False),
    "watermark_threshold": dict(num_blocks=30, watermark=0.1, long_prefill_token_threshold=24),
    "unchunked": dict(enable_chunked_prefill=False, max_model_len=160, max_num_batched_tokens=160),
    "priority": dict(policy="priority", num_blocks=26),
    "window": dict(windows=[40], num_blocks=40),
    "window_async": dict(windows=[40], num_blocks=20, async_scheduling=True),
    "hybrid": dict(windows=[0, 48, 48], num_blocks=110),
    "hybrid_async": dict(windows=[32, 0, 100], num_blocks=130, async_scheduling=True),
    "hybrid_tight_async": dict(windows=[0, 32], num_blocks=32, async_scheduling=True),
    "drafts": dict(num_spec_tokens=3, num_blocks=18),
    "drafts_async": dict(num_spec_tokens=3, num_blocks=18, async_scheduling=True),
}


def make_requests(rng, config, count, last_step):
    requests = []
    limit = 150 if config["enable_chunked_prefill"] else 100
    for i in range(1, count + 1):
        at = rng.randrange(last_step)
        earlier = [r["id"] for r in requests if r["at"] + 25 < at and r["after"] == 0]
        after = rng.choice(earlier) if earlier and rng.random() < 0.3 else 0
        length = rng.choice([1, 5, 15, 16, 17, 31, 32, 33, 48, 64, 100, 130]) if not after else rng.choice([1, 8, 20])
        length = min(length, limit)
        requests.append(dict(id=i, at=at, after=after, family=rng.randrange(3), shared=rng.choice([0, 16, 40, 200]),
                             length=length, max_tokens=rng.choice([1, 2, 9, 25, 60]), priority=rng.randrange(3),
                             salt=rng.choice(["", "", "", "tenant"]),
                             stop_token_ids=[rng.randrange(VOCAB) for _ in range(rng.choice([0, 0, 0, 30]))]))
    aborts = [[rng.randrange(last_step), rng.randrange(1, count + 1)] for _ in range(3)]
    return requests, aborts


def write_scenarios():
    for name, change in SCENARIOS.items():
        config = BASE | change
        rng = random.Random(name)
        requests, aborts = make_requests(rng, config, 24, 40)
        with tempfile.TemporaryDirectory() as folder:
            replay = Replay(config, Path(folder))
            trace = replay.run(requests, aborts, 150)
        preemptions = sum(len(e["p"]) for e in trace)
        hits = sum(s[3] for e in trace for s in e["s"] if s[2] == 1)
        print(f"{name}: {preemptions} preemptions, {hits} hit tokens, {len(replay.scheduler.requests)} unfinished")
        lines = [json.dumps({"config": config, "requests": requests, "aborts": aborts})[:-1] + ', "trace": [']
        lines.append(",\n".join(json.dumps(entry, separators=(",", ":")) for entry in trace))
        (OUT / f"{name}.json").write_text("\n".join(lines) + "\n]}\n")


def write_groups():
    """How vLLM groups layers: 'f' full attention, 's' and 't' sliding windows, capitals with twice the heads."""
    import torch
    from types import SimpleNamespace
    from vllm.v1.core import kv_cache_utils
    from vllm.v1.kv_cache_interface import FullAttentionSpec, SlidingWindowSpec

    cases = []
    for pattern in ["ffff", "sss", "sf", "sssssfsssssf", "sssssfsssssfsssssf", "sffsfsf", "sfsfsfsf", "sssf", "stfstf", "sstf",
                    "ffsffsff", "sF", "sFsF", "ssFssF", "sssssfss"]:
        specs = {}
        for i, kind in enumerate(pattern):
            shape = dict(block_size=16, num_kv_heads=2 if kind.isupper() else 1, head_size=16, dtype=torch.bfloat16)
            window = {"s": 64, "t": 128}.get(kind.lower())
            specs[str(i)] = SlidingWindowSpec(**shape, sliding_window=window) if window else FullAttentionSpec(**shape)
        if kv_cache_utils.is_kv_cache_spec_uniform(specs):
            groups = kv_cache_utils._get_kv_cache_groups_uniform_spec(specs)
        else:
            groups = kv_cache_utils._get_kv_cache_groups_uniform_page_size(kv_cache_utils.unify_kv_cache_spec_page_size(specs))
        cases.append(dict(pattern=pattern, groups=[dict(layers=[int(n) for n in g.layer_names], block_size=g.kv_cache_spec.block_size,
                                                        window=getattr(g.kv_cache_spec, "sliding_window", None) or 0)
                                                   for g in groups]))
    (OUT / "groups.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


def main():
    os.environ.update(VLLM_LOGGING_LEVEL="ERROR", HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
    OUT.mkdir(parents=True, exist_ok=True)
    write_scenarios()
    write_groups()


if __name__ == "__main__":
    main()

// A ModelRunner without a model, for tests. It keeps what a real KV cache would hold: for each slot a hash of the
// prefix that was written there. Before it "samples" it checks that every slot that attention would read holds the
// sequence's own prefix, and the sampled token is a function of that prefix: wrong blocks, stale blocks, lost tokens
// all show.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "engine/run/model_runner.h"

namespace vllm {

inline uint64_t MixPrefix(uint64_t prefix, int32_t token) {
  uint64_t x =
      (prefix ^ static_cast<uint64_t>(static_cast<uint32_t>(token))) * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 32);
}

inline constexpr int32_t kScriptedVocab = 1000;

// The model: the token that follows a prefix.
inline int32_t ScriptedToken(uint64_t prefix) { return static_cast<int32_t>((prefix >> 13) % kScriptedVocab); }

// What a request must produce, by the definition of the model alone.
inline std::vector<int32_t> ScriptedOutputs(const std::vector<int32_t>& prompt, int64_t count) {
  uint64_t prefix = 0;
  for (const int32_t token : prompt) prefix = MixPrefix(prefix, token);
  std::vector<int32_t> outputs;
  for (int64_t i = 0; i < count; ++i) {
    outputs.push_back(ScriptedToken(prefix));
    prefix = MixPrefix(prefix, outputs.back());
  }
  return outputs;
}

// The arithmetic of a step, without threads.
class ScriptedModel {
 public:
  struct Options {
    int num_drafts = 0;  // proposes so many tokens a step, some of them wrong
    bool async = false;  // drafts stay here and replace placeholders
  };

  explicit ScriptedModel(KvCacheConfig kv) : ScriptedModel(std::move(kv), Options{}) {}
  ScriptedModel(KvCacheConfig kv, Options options) : kv_(std::move(kv)), options_(options) {
    for (const KvCacheGroup& group : kv_.groups) block_slots_ = std::max(block_slots_, group.spec.block_size);
    slots_.resize(static_cast<size_t>(kv_.num_blocks * block_slots_));
    blocks_.resize(static_cast<size_t>(kv_.num_blocks));
  }

  // An error for a sequence when it samples at a position.
  std::function<std::optional<base::Error>(RequestId, int64_t position)> error = {};
  // What precedes a sequence's first token: sequences of different salts share nothing, if it differs. Absent: 0.
  std::function<uint64_t(RequestId)> first_prefix = {};
  // Makes some of the right drafts wrong, or drops some. Absent: every third position is wrong, so that all acceptance
  // counts occur.
  std::function<void(RequestId, std::vector<int32_t>& drafts)> spoil_drafts = {};

  ModelRunnerOutput RunStep(const SchedulerOutput& step) {
    Update(step);
    ModelRunnerOutput output;
    // A layer writes the whole batch's keys before any of it attends: sequences may share blocks of this very step.
    std::vector<Chunk> chunks;
    for (const ScheduledTokens& scheduled : step.scheduled) chunks.push_back(Write(scheduled));
    for (size_t i = 0; i < chunks.size(); ++i) output.sequences.push_back(Sample(step.scheduled[i], chunks[i]));
    if (options_.num_drafts > 0) Draft(step, output);
    return output;
  }

  size_t num_sequences() const { return sequences_.size(); }
  // Of a sequence that has run and whose end has not been announced; empty after a preemption.
  const BlockIds& table(RequestId id) const { return sequences_.at(id).blocks; }
  // The prefix that ends in a slot; 0: nothing was written there.
  uint64_t slot(int32_t block, int offset) const {
    return slots_[static_cast<size_t>(block) * static_cast<size_t>(block_slots_) + static_cast<size_t>(offset)];
  }
  // Writes into any slot of a block, ever.
  uint64_t num_writes(int32_t block) const { return blocks_[static_cast<size_t>(block)].writes; }

 private:
  struct Sequence {
    std::vector<int32_t> tokens = {};     // known ones
    std::vector<uint64_t> prefixes = {};  // of the first of them, after the first prefix
    int64_t num_computed = 0;
    BlockIds blocks = {};
    std::vector<int32_t> drafts = {};
  };
  struct Chunk {
    int64_t begin = 0, end = 0;
    std::vector<int32_t> drafts = {};
    std::vector<uint64_t> draft_prefixes = {};
  };
  struct Block {
    RequestId owner = 0;  // was given it to write
    uint64_t writes = 0;
  };

  void Update(const SchedulerOutput& step) {
    for (const RequestId id : step.finished) sequences_.erase(id);
    for (const RequestId id : step.preempted) {
      // It may have been aborted since.
      if (const auto found = sequences_.find(id); found != sequences_.end()) found->second.blocks.clear();
    }
    for (const NewRequestData& request : step.new_requests) {
      const auto [entry, is_new] = sequences_.try_emplace(request.id);
      Sequence& sequence = entry->second;
      CHECK(request.resumed == !is_new, "request ", request.id);
      CHECK(is_new || sequence.tokens == request.token_ids, "request ", request.id, " resumes with other tokens than ",
            "were sampled: a position would be sampled twice, or never");
      sequence.tokens = request.token_ids;
      sequence.num_computed = request.num_computed_tokens;
      sequence.blocks = request.block_ids;
      sequence.drafts.clear();
      for (size_t g = 0; g < kv_.groups.size(); ++g) {
        const int64_t hits = request.num_computed_tokens / kv_.groups[g].spec.block_size;
        Own(request.id, std::span(request.block_ids[g]).subspan(static_cast<size_t>(hits)));
      }
    }
    for (const CachedRequestData& request : step.cached_requests) {
      Sequence& sequence = sequences_.at(request.id);
      sequence.num_computed = request.num_computed_tokens;
      for (size_t g = 0; g < kv_.groups.size(); ++g) {
        std::vector<int32_t>& table = sequence.blocks[g];
        table.insert(table.end(), request.new_block_ids[g].begin(), request.new_block_ids[g].end());
        std::fill_n(table.begin(), request.num_null_blocks[g], 0);
        Own(request.id, request.new_block_ids[g]);
      }
    }
    int64_t total = 0;
    for (const ScheduledTokens& scheduled : step.scheduled) total += scheduled.num_tokens;
    CHECK(total == step.total_tokens, total, " tokens, ", step.total_tokens, " announced");
  }

  void Own(RequestId id, std::span<const int32_t> fresh) {
    for (const int32_t block : fresh) blocks_[static_cast<size_t>(block)].owner = id;
  }

  Chunk Write(const ScheduledTokens& scheduled) {
    Sequence& sequence = sequences_.at(scheduled.id);
    Chunk chunk{.drafts = scheduled.spec_token_ids};
    // With asynchronous scheduling the scheduler's count includes drafts that were rejected meanwhile.
    chunk.begin = std::min(sequence.num_computed, static_cast<int64_t>(sequence.tokens.size()) - 1);
    chunk.end = chunk.begin + scheduled.num_tokens;
    for (size_t i = 0; i < chunk.drafts.size(); ++i) {
      if (chunk.drafts[i] < 0) chunk.drafts[i] = i < sequence.drafts.size() ? sequence.drafts[i] : 0;
    }
    const int64_t known = static_cast<int64_t>(sequence.tokens.size());
    CHECK(chunk.end <= known + static_cast<int64_t>(chunk.drafts.size()), "tokens up to ", chunk.end, " of ", known);
    CHECK(scheduled.samples == (chunk.end == known + static_cast<int64_t>(chunk.drafts.size())), "request ",
          scheduled.id);
    uint64_t prefix = sequence.prefixes.empty() ? FirstPrefix(scheduled.id) : sequence.prefixes.back();
    for (size_t p = sequence.prefixes.size(); p < sequence.tokens.size(); ++p) {
      sequence.prefixes.push_back(prefix = MixPrefix(prefix, sequence.tokens[p]));
    }
    for (const int32_t draft : chunk.drafts) {
      chunk.draft_prefixes.push_back(prefix = MixPrefix(prefix, draft));
    }
    for (size_t g = 0; g < kv_.groups.size(); ++g) {
      for (int64_t p = chunk.begin; p < chunk.end; ++p) {
        const int32_t id = SlotBlock(sequence, g, p);
        CHECK(id != 0, "position ", p, " is written to the null block");
        Block& block = blocks_[static_cast<size_t>(id)];
        CHECK(block.owner == scheduled.id, "request ", scheduled.id, " writes to block ", id, " of request ",
              block.owner);
        ++block.writes;
        *Slot(id, p % kv_.groups[g].spec.block_size) = Prefix(sequence, chunk, p);
      }
    }
    return chunk;
  }

  SequenceOutput Sample(const ScheduledTokens& scheduled, const Chunk& chunk) {
    Sequence& sequence = sequences_.at(scheduled.id);
    for (size_t g = 0; g < kv_.groups.size(); ++g) Read(scheduled.id, sequence, chunk, g);
    SequenceOutput output{.id = scheduled.id};
    if (!scheduled.samples) return output;
    const int64_t known = static_cast<int64_t>(sequence.tokens.size());
    if (error) output.error = error(scheduled.id, known);
    if (output.error) {
      sequence.tokens.push_back(0);
      return output;
    }
    for (int64_t p = known - 1; p < chunk.end; ++p) {
      output.token_ids.push_back(ScriptedToken(Prefix(sequence, chunk, p)));
      const int64_t draft = p - known + 1;
      if (draft >= static_cast<int64_t>(chunk.drafts.size()) ||
          chunk.drafts[static_cast<size_t>(draft)] != output.token_ids.back()) {
        break;
      }
    }
    sequence.tokens.insert(sequence.tokens.end(), output.token_ids.begin(), output.token_ids.end());
    return output;
  }

  // Attention: every slot that it would read must hold the sequence's own prefix.
  void Read(RequestId id, const Sequence& sequence, const Chunk& chunk, size_t group) {
    const KvCacheSpec& spec = kv_.groups[group].spec;
    const int64_t first = spec.window == 0 ? 0 : std::max<int64_t>(0, chunk.begin - spec.window + 1);
    for (int64_t p = first; p < chunk.end;) {
      const int32_t block = SlotBlock(sequence, group, p);
      const uint64_t* slot = Slot(block, p % spec.block_size);
      for (const int64_t end = std::min(chunk.end, (p / spec.block_size + 1) * spec.block_size); p < end; ++p, ++slot) {
        CHECK(*slot == Prefix(sequence, chunk, p), "request ", id, " reads position ", p, " of group ", group,
              " in block ", block, ", which holds something else");
      }
    }
  }

  void Draft(const SchedulerOutput& step, ModelRunnerOutput& output) {
    for (const ScheduledTokens& scheduled : step.scheduled) {
      Sequence& sequence = sequences_.at(scheduled.id);
      uint64_t prefix = sequence.prefixes.back();
      for (size_t p = sequence.prefixes.size(); p < sequence.tokens.size(); ++p) {
        prefix = MixPrefix(prefix, sequence.tokens[p]);
      }
      std::vector<int32_t> drafts;
      for (int d = 0; d < options_.num_drafts; ++d) {
        drafts.push_back(ScriptedToken(prefix));
        prefix = MixPrefix(prefix, drafts.back());
      }
      if (spoil_drafts) {
        spoil_drafts(scheduled.id, drafts);
      } else {
        for (size_t d = 0; d < drafts.size(); ++d) {
          if ((sequence.tokens.size() + d) % 3 == 0) drafts[d] = (drafts[d] + 1) % kScriptedVocab;
        }
      }
      sequence.drafts = drafts;
      if (!options_.async) output.draft_token_ids.push_back(std::move(drafts));
    }
  }

  uint64_t FirstPrefix(RequestId id) const { return first_prefix ? first_prefix(id) : 0; }

  static uint64_t Prefix(const Sequence& sequence, const Chunk& chunk, int64_t position) {
    const auto p = static_cast<size_t>(position), known = sequence.prefixes.size();
    return p < known ? sequence.prefixes[p] : chunk.draft_prefixes[p - known];
  }

  int32_t SlotBlock(const Sequence& sequence, size_t group, int64_t position) const {
    const size_t index = static_cast<size_t>(position / kv_.groups[group].spec.block_size);
    CHECK(index < sequence.blocks[group].size(), "position ", position, " has no block");
    return sequence.blocks[group][index];
  }

  uint64_t* Slot(int32_t block, int64_t offset) {
    return &slots_[static_cast<size_t>(block) * static_cast<size_t>(block_slots_) + static_cast<size_t>(offset)];
  }

  KvCacheConfig kv_;
  Options options_;
  std::unordered_map<RequestId, Sequence> sequences_;
  // Groups alias one pool: a slot is a block and an offset, whichever group holds it.
  int block_slots_ = 0;
  std::vector<uint64_t> slots_;
  std::vector<Block> blocks_;
};

// The same behind the runner's interface, on a thread of its own.
class ScriptedRunner : public ModelRunner {
 public:
  explicit ScriptedRunner(KvCacheConfig kv) : ScriptedRunner(std::move(kv), ScriptedModel::Options{}) {}
  ScriptedRunner(KvCacheConfig kv, ScriptedModel::Options options)
      : model(std::move(kv), options), thread_([this] { Run(); }) {}
  ~ScriptedRunner() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      closed_ = false;
    }
    wake_.notify_all();
    thread_.join();
  }

  ScriptedModel model;                                           // set up before the first step
  std::function<void(const SchedulerOutput&)> before_step = {};  // on the runner's thread; may throw

  std::future<ModelRunnerOutput> ExecuteModel(SchedulerOutput step) override {
    std::promise<ModelRunnerOutput> promise;
    std::future<ModelRunnerOutput> future = promise.get_future();
    {
      const std::lock_guard lock(mutex_);
      CHECK(++in_flight_ <= 2, in_flight_, " steps in flight");
      max_in_flight_ = std::max(max_in_flight_, in_flight_);
      jobs_.push_back({std::move(step), std::move(promise)});
    }
    wake_.notify_all();
    return future;
  }

  // Holds steps back, or lets them go.
  void Close(bool closed) {
    {
      const std::lock_guard lock(mutex_);
      closed_ = closed;
    }
    wake_.notify_all();
  }
  int max_in_flight() const {
    const std::lock_guard lock(mutex_);
    return max_in_flight_;
  }
  int64_t num_steps() const {
    const std::lock_guard lock(mutex_);
    return num_steps_;
  }
  int in_flight() const {
    const std::lock_guard lock(mutex_);
    return in_flight_;
  }

 private:
  struct Job {
    SchedulerOutput step;
    std::promise<ModelRunnerOutput> promise;
  };

  void Run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !closed_ && (stop_ || !jobs_.empty()); });
      if (jobs_.empty()) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      std::optional<ModelRunnerOutput> output;
      std::exception_ptr failure;
      try {
        if (before_step) before_step(job.step);
        output = model.RunStep(job.step);
      } catch (...) {
        failure = std::current_exception();
      }
      {
        const std::lock_guard count(mutex_);
        --in_flight_;
        ++num_steps_;
      }
      if (failure) {
        job.promise.set_exception(failure);
      } else {
        job.promise.set_value(*std::move(output));
      }
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stop_ = false, closed_ = false;
  int in_flight_ = 0, max_in_flight_ = 0;
  int64_t num_steps_ = 0;
  std::thread thread_;
};

// A pool of `num_blocks` blocks of 16 tokens. Each window makes a group; 0 is full attention.
inline KvCacheConfig TestKvConfig(int64_t num_blocks, const std::vector<int>& windows = {0}) {
  KvCacheConfig config{.num_blocks = num_blocks, .layer_slots = 1};
  for (size_t i = 0; i < windows.size(); ++i) {
    const bool sliding = windows[i] > 0;
    config.groups.push_back({.spec = {.kind = sliding ? KvCacheKind::kSlidingWindow : KvCacheKind::kFullAttention,
                                      .block_size = 16,
                                      .kv_heads = 1,
                                      .head_dim = 16,
                                      .window = windows[i]},
                             .layers = {static_cast<int>(i)}});
  }
  return config;
}

}  // namespace vllm

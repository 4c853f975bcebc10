// Writes the logits of every position of a token sequence, as tools/accuracy.py reads them; also the speed of decoding
// with each type of the KV cache.
// usage: logits_dump MODEL IDS.i32 OUT.f32 NUMERICS [ISA [ROWS [KV]]]
//        logits_dump --decode MODEL CONTEXT STEPS
//        logits_dump --isas
//   ISA: as VT_CPU_ISA, "" for the best. ROWS: the positions in steps of 1, 2, ... ROWS in turn; absent or 0: all in
//   one. KV: as --kv-cache-dtype, but not auto; absent: what the numerics take.
//   --decode: a line for each type: its name, bytes a token, the median step after CONTEXT tokens in milliseconds, and
//   the median of the speed relative to bfloat16, whose steps take turns with those of the others.
//   --isas: prints the instruction sets of this machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/decoder.h"
#include "model/loaded_model.h"
#include "vt/cpu/isa.h"

namespace vllm {
namespace {

constexpr int kBlock = 32;
constexpr int64_t kRows = 64;  // of one pass of the head

constexpr const char* kIsas[] = {"avx2", "avxvnni", "avx512", "amx"};

int PrintIsas() {
  for (const char* isa : kIsas) {
    try {
      vt::ResolveIsa(isa);
    } catch (const base::Exception&) {
      continue;
    }
    std::puts(isa);
  }
  return 0;
}

std::vector<int32_t> ReadIds(const char* path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<int32_t> ids(bytes.size() / sizeof(int32_t));
  if (ids.empty()) base::Throw(base::ErrorCode::kInvalidArgument, path, ": no token ids");
  std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(int32_t));
  return ids;
}

// One sequence over a KV cache of its own that grows by a step at a time.
class Sequence {
 public:
  Sequence(const LoadedModel& model, vt::Platform& platform, vt::Numerics numerics, vt::DType kv, int64_t most,
           std::vector<int32_t> ids)
      : ids_(std::move(ids)), positions_(ids_.size()), queue_(platform.MakeQueue()) {
    const int64_t blocks = static_cast<int64_t>(ids_.size()) / kBlock + 2;
    table_.resize(blocks);
    std::iota(positions_.begin(), positions_.end(), 0);
    std::iota(table_.begin(), table_.end(), 0);
    const auto specs = KvCacheSpecsOf(model.spec(), kBlock, kv);
    const int64_t cache_bytes = specs[0].spec.page_bytes() * blocks;
    buffer_ = platform.Allocate(cache_bytes * specs.size());
    std::vector<KvCacheBinding> caches;
    for (size_t i = 0; i < specs.size(); ++i) {
      caches.push_back(BindKvCache(buffer_, i * cache_bytes, specs[i].spec, blocks));
      bytes_per_token_ += specs[i].spec.page_bytes() / kBlock;
    }
    decoder_ = std::make_unique<Decoder>(model.spec(), model.weights(), platform, caches,
                                         DecoderOptions{.numerics = numerics,
                                                        .max_tokens = most,
                                                        .max_sequences = 1,
                                                        .max_logit_rows = kRows,
                                                        .max_blocks = blocks});
  }

  // Computes positions [begin, begin + count).
  void Forward(int64_t begin, int64_t count) {
    const std::span<const int32_t> places = std::span(positions_).subspan(begin, count);
    const std::vector<int32_t> cu_q = {0, static_cast<int32_t>(count)};
    const std::vector<int32_t> lens = {static_cast<int32_t>(begin + count)};
    const std::vector<StepInputs::Group> groups = {{.slots = places, .block_table = table_}};
    decoder_->Forward(*queue_, {.token_ids = std::span(ids_).subspan(begin, count),
                                .positions = places,
                                .cu_q = cu_q,
                                .seq_lens = lens,
                                .groups = groups});
    queue_->Synchronize();
  }
  // Of `count` <= kRows positions of the last pass, from the first-th on.
  vt::Tensor Logits(int64_t first, int64_t count) {
    const ForwardLogits logits = decoder_->Logits(*queue_, std::span(positions_).subspan(first, count));
    queue_->Synchronize();
    return logits.device_tensor;
  }
  int64_t bytes_per_token() const { return bytes_per_token_; }

 private:
  std::vector<int32_t> ids_, positions_, table_;
  std::unique_ptr<vt::Queue> queue_;
  vt::Buffer buffer_;
  std::unique_ptr<Decoder> decoder_;
  int64_t bytes_per_token_ = 0;
};

vt::DType ReadKvType(const char* name) {
  const auto dtype = ParseKvCacheDType(name);
  if (!dtype) base::Throw(base::ErrorCode::kInvalidArgument, "KV type: '", name, "' is none of ", KvCacheDTypeNames());
  return *dtype;
}

int Dump(char** argv, int argc) {
  const auto numerics = vt::ParseNumerics(argv[4]);
  if (!numerics) base::Throw(base::ErrorCode::kInvalidArgument, "numerics: '", argv[4], "'");
  std::vector<int32_t> ids = ReadIds(argv[2]);
  const auto tokens = static_cast<int64_t>(ids.size());
  const int64_t most = argc > 6 ? std::max(0, std::atoi(argv[6])) : 0;  // of a step, 0: no steps

  const auto platform = vt::MakePlatform(vt::DeviceType::kCpu, {.isa = argc > 5 ? argv[5] : ""});
  const auto model = LoadedModel::FromModelDir(argv[1]);
  model->LoadWeights(*platform);
  const vt::DType dtype = argc > 7 ? ReadKvType(argv[7]) : DefaultKvCacheDType(*numerics);
  Sequence sequence(*model, *platform, *numerics, dtype, tokens, std::move(ids));
  std::ofstream out(argv[3], std::ios::binary);
  for (int64_t begin = 0, wanted = most > 0 ? 1 : tokens; begin < tokens;) {
    const int64_t size = std::min(wanted, tokens - begin);
    sequence.Forward(begin, size);
    for (int64_t first = 0; first < size; first += kRows) {
      const vt::Tensor logits = sequence.Logits(first, std::min(kRows, size - first));
      out.write(reinterpret_cast<const char*>(logits.data), logits.bytes());
    }
    begin += size;
    if (most > 0) wanted = wanted % most + 1;
  }
  return out ? 0 : 1;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

int Decode(const char* path, int64_t context, int64_t steps) {
  constexpr int64_t kPrompt = 512;
  if (context < kPrompt || context > 1 << 20 || steps < 1 || steps > 10000)
    base::Throw(base::ErrorCode::kInvalidArgument, "CONTEXT is not in 512 .. 1048576, or STEPS not in 1 .. 10000");
  constexpr vt::DType kTypes[] = {vt::DType::kBF16,   vt::DType::kF16,    vt::DType::kF32,
                                  vt::DType::kF8E4M3, vt::DType::kF8E5M2, vt::DType::kI8};
  const auto platform = vt::MakePlatform(vt::DeviceType::kCpu);
  const auto model = LoadedModel::FromModelDir(path);
  model->LoadWeights(*platform);
  std::vector<int32_t> ids(context + steps);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((i * 7919 + 11) % model->spec().vocab);
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (const vt::DType dtype : kTypes) {
    sequences.push_back(std::make_unique<Sequence>(*model, *platform, vt::Numerics::kDefault, dtype, kPrompt, ids));
    for (int64_t begin = 0; begin < context; begin += kPrompt)
      sequences.back()->Forward(begin, std::min(kPrompt, context - begin));
  }
  std::vector<std::vector<double>> times(std::size(kTypes)), speeds(std::size(kTypes));
  for (int64_t step = 0; step < steps; ++step) {
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      sequences[i]->Forward(context + step, 1);
      sequences[i]->Logits(0, 1);
      times[i].push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      speeds[i].push_back(times[0].back() / times[i].back());
    }
  }
  for (size_t i = 0; i < sequences.size(); ++i)
    std::printf("%s %lld %.3f %.3f\n", std::string(KvCacheDTypeName(kTypes[i])).c_str(),
                static_cast<long long>(sequences[i]->bytes_per_token()), Median(times[i]), Median(speeds[i]));
  return 0;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string_view(argv[1]) == "--isas") return vllm::PrintIsas();
    if (argc == 5 && std::string_view(argv[1]) == "--decode")
      return vllm::Decode(argv[2], std::atoll(argv[3]), std::atoll(argv[4]));
    if (argc >= 5) return vllm::Dump(argv, argc);
    std::fprintf(stderr,
                 "usage: logits_dump MODEL IDS.i32 OUT.f32 NUMERICS [ISA [ROWS [KV]]], logits_dump --decode MODEL "
                 "CONTEXT STEPS, or logits_dump --isas\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

// Writes the logits of every position of a token sequence, as tools/accuracy.py reads them.
// usage: logits_dump MODEL IDS.i32 OUT.f32 NUMERICS [ISA [ROWS [KV]]], or logits_dump --isas
//   ISA: as VT_CPU_ISA, "" for the best. ROWS: the positions in steps of 1, 2, ... ROWS in turn; absent or 0: all in
//   one. KV: as --kv-cache-dtype, but not auto; absent: what the numerics take.
//   --isas: prints the instruction sets of this machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
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

// One sequence that grows by a step at a time.
class Sequence {
 public:
  Sequence(Decoder& decoder, vt::Queue& queue, std::vector<int32_t> ids, int64_t blocks)
      : decoder_(decoder), queue_(queue), ids_(std::move(ids)), positions_(ids_.size()), table_(blocks) {
    std::iota(positions_.begin(), positions_.end(), 0);
    std::iota(table_.begin(), table_.end(), 0);
  }

  // Computes positions [begin, begin + count) and appends their logits.
  void Step(int64_t begin, int64_t count, std::ofstream& out) {
    const std::span<const int32_t> places = std::span(positions_).subspan(begin, count);
    const std::vector<int32_t> cu_q = {0, static_cast<int32_t>(count)};
    const std::vector<int32_t> lens = {static_cast<int32_t>(begin + count)};
    const std::vector<StepInputs::Group> groups = {{.slots = places, .block_table = table_}};
    decoder_.Forward(queue_, {.token_ids = std::span(ids_).subspan(begin, count),
                              .positions = places,
                              .cu_q = cu_q,
                              .seq_lens = lens,
                              .groups = groups});
    for (int64_t first = 0; first < count; first += kRows) {
      const std::span<const int32_t> rows = std::span(positions_).subspan(first, std::min(kRows, count - first));
      const ForwardLogits logits = decoder_.Logits(queue_, rows);
      queue_.Synchronize();
      out.write(reinterpret_cast<const char*>(logits.device_tensor.data), logits.device_tensor.bytes());
    }
  }

 private:
  Decoder& decoder_;
  vt::Queue& queue_;
  std::vector<int32_t> ids_, positions_, table_;
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
  const auto specs = KvCacheSpecsOf(model->spec(), kBlock, dtype);
  const int64_t blocks = tokens / kBlock + 2;
  const int64_t cache_bytes = specs[0].spec.page_bytes() * blocks;
  const vt::Buffer buffer = platform->Allocate(cache_bytes * specs.size());
  std::vector<KvCacheBinding> caches;
  for (size_t i = 0; i < specs.size(); ++i)
    caches.push_back(BindKvCache(buffer, i * cache_bytes, specs[i].spec, blocks));
  Decoder decoder(
      model->spec(), model->weights(), *platform, caches,
      {.numerics = *numerics, .max_tokens = tokens, .max_sequences = 1, .max_logit_rows = kRows, .max_blocks = blocks});
  const auto queue = platform->MakeQueue();
  Sequence sequence(decoder, *queue, std::move(ids), blocks);
  std::ofstream out(argv[3], std::ios::binary);
  for (int64_t begin = 0, wanted = most > 0 ? 1 : tokens; begin < tokens;) {
    const int64_t size = std::min(wanted, tokens - begin);
    sequence.Step(begin, size, out);
    begin += size;
    if (most > 0) wanted = wanted % most + 1;
  }
  return out ? 0 : 1;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string_view(argv[1]) == "--isas") return vllm::PrintIsas();
    if (argc >= 5) return vllm::Dump(argv, argc);
    std::fprintf(stderr,
                 "usage: logits_dump MODEL IDS.i32 OUT.f32 NUMERICS [ISA [ROWS [KV]]], or logits_dump --isas\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

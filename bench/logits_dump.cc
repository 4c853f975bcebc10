// Writes the logits of every position of a token sequence, as tools/accuracy.py reads them.
// usage: logits_dump MODEL IDS.i32 OUT.f32 exact|default [ISA]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/result.h"
#include "model/decoder.h"
#include "model/loaded_model.h"

namespace {

constexpr int kBlock = 32;
constexpr int64_t kRows = 64;  // of one pass of the head

int Dump(char** argv, int argc) {
  using namespace vllm;
  const auto numerics = vt::ParseNumerics(argv[4]);
  if (!numerics) base::Throw(base::ErrorCode::kInvalidArgument, "numerics: '", argv[4], "'");
  std::ifstream in(argv[2], std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<int32_t> ids(bytes.size() / 4), positions, slots, table;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(ids.data()));
  const auto tokens = static_cast<int64_t>(ids.size());

  const auto platform = vt::MakePlatform(vt::DeviceType::kCpu, {.isa = argc > 5 ? argv[5] : ""});
  const auto model = LoadedModel::FromModelDir(argv[1]);
  model->LoadWeights(*platform);
  const vt::DType dtype = *numerics == vt::Numerics::kExact ? vt::DType::kF32 : vt::DType::kBF16;
  const auto specs = KvCacheSpecsOf(model->spec(), kBlock, dtype);
  const int64_t blocks = tokens / kBlock + 2;
  const int64_t cache_bytes = specs[0].spec.page_bytes() * blocks;
  const vt::Buffer buffer = platform->Allocate(cache_bytes * specs.size());
  std::vector<KvCacheBinding> caches;
  for (size_t i = 0; i < specs.size(); ++i)
    caches.push_back({.cache = buffer.View(dtype, {blocks, 2, kBlock, specs[i].spec.kv_heads, specs[i].spec.head_dim},
                                           i * cache_bytes)});
  Decoder decoder(
      model->spec(), model->weights(), *platform, caches,
      {.numerics = *numerics, .max_tokens = tokens, .max_sequences = 1, .max_logit_rows = kRows, .max_blocks = blocks});
  for (int64_t b = 0; b < blocks; ++b) table.push_back(static_cast<int32_t>(b));
  for (int64_t p = 0; p < tokens; ++p) {
    positions.push_back(static_cast<int32_t>(p));
    slots.push_back(static_cast<int32_t>(p));
  }
  const std::vector<int32_t> cu_q = {0, static_cast<int32_t>(tokens)}, lens = {static_cast<int32_t>(tokens)};
  const std::vector<StepInputs::Group> groups = {{.slots = slots, .block_table = table}};
  const auto queue = platform->MakeQueue();
  decoder.Forward(*queue, {.token_ids = ids, .positions = positions, .cu_q = cu_q, .seq_lens = lens, .groups = groups});
  std::ofstream out(argv[3], std::ios::binary);
  for (int64_t first = 0; first < tokens; first += kRows) {
    const auto end = std::min(first + kRows, tokens);
    const std::vector<int32_t> rows(positions.begin() + first, positions.begin() + end);
    const ForwardLogits logits = decoder.Logits(*queue, rows);
    queue->Synchronize();
    out.write(reinterpret_cast<const char*>(logits.device_tensor.data), logits.device_tensor.bytes());
  }
  return out ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: logits_dump MODEL IDS.i32 OUT.f32 exact|default [ISA]\n");
    return 1;
  }
  try {
    return Dump(argv, argc);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

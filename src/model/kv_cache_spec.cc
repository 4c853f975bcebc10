// What a layer keeps in the KV cache, and the names of its types.
#include "model/kv_cache_spec.h"

#include <iterator>

namespace vllm {
namespace {

// Several names of one type: the first is the one that we print. float32 is ours, the others are vLLM's.
constexpr struct {
  std::string_view name;
  vt::DType dtype;
} kNames[] = {
    {"bfloat16", vt::DType::kBF16},
    {"float16", vt::DType::kF16},
    {"float32", vt::DType::kF32},
    {"fp8", vt::DType::kF8E4M3},
    {"fp8_e4m3", vt::DType::kF8E4M3},
    {"fp8_e5m2", vt::DType::kF8E5M2},
    {"int8_per_token_head", vt::DType::kI8},
};

}  // namespace

std::optional<vt::DType> ParseKvCacheDType(std::string_view name) {
  for (const auto& entry : kNames)
    if (entry.name == name) return entry.dtype;
  return std::nullopt;
}

std::string_view KvCacheDTypeName(vt::DType dtype) {
  for (const auto& entry : kNames)
    if (entry.dtype == dtype) return entry.name;
  return vt::DTypeName(dtype);
}

std::string KvCacheDTypeNames() {
  std::string names = "auto";
  for (const auto& entry : kNames) names.append(", ").append(entry.name);
  return names;
}

}  // namespace vllm

// The registry of paged attention backends: what each accepts, and the choice with a reason for every one passed over.
#include "vt/attention_backends.h"

#include <algorithm>
#include <array>

#include "base/result.h"
#include "base/strings.h"

namespace vt {
namespace {

constexpr std::array kActivations = {DType::kF32, DType::kBF16, DType::kF16};
constexpr std::array kCaches = {DType::kBF16, DType::kF16, DType::kF32, DType::kF8E4M3, DType::kF8E5M2, DType::kI8};

// Domains are those of the kernels behind OpId::kPagedAttention: head sizes in whole vectors of 8, blocks of whole
// groups of 16 tokens. CPU_ATTN comes first, so a plain configuration says what it runs on.
constexpr AttentionBackend kHostBackends[] = {
    {.name = "CPU_ATTN",
     .head_sizes = {.step = 8, .last = 256},
     .block_sizes = {.step = 16},
     .dtypes = kActivations,
     .kv_cache_dtypes = kCaches,
     .sliding_window = true,
     .batch_invariant = true},
    {.name = "FLASH_ATTN",
     .head_sizes = {.step = 8, .last = 256},
     .block_sizes = {.step = 16},
     .dtypes = kActivations,
     .kv_cache_dtypes = kCaches,
     .sliding_window = true,
     .batch_invariant = true},
};

std::string_view TypeName(AttentionType type) {
  switch (type) {
    case AttentionType::kDecoder:
      return "decoder";
    case AttentionType::kEncoder:
      return "encoder";
    case AttentionType::kEncoderOnly:
      return "encoder_only";
    case AttentionType::kEncoderDecoder:
      return "encoder_decoder";
  }
  return "?";
}

bool Contains(std::span<const DType> dtypes, DType dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

std::string ToUpper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return upper;
}

std::string SelectNamed(const AttentionSelectorConfig& config, std::string_view requested) {
  const std::string name = ToUpper(requested);
  std::vector<std::string> names;
  for (const AttentionBackend& backend : AttentionBackends(config.device)) {
    names.emplace_back(backend.name);
    if (backend.name != name) continue;
    const std::vector<std::string> reasons = ValidateAttentionBackend(backend, config);
    if (reasons.empty()) return name;
    base::Throw(base::ErrorCode::kUnsupported, "Selected backend AttentionBackendEnum.", name,
                " is not valid for this configuration. Reason: ['", base::Join(reasons, "', '"), "']");
  }
  base::Throw(base::ErrorCode::kInvalidArgument, "Unknown attention backend: '", requested,
              "'. Valid options are: ", base::Join(names, ", "));
}

}  // namespace

std::span<const AttentionBackend> AttentionBackends(DeviceType device) {
  switch (device) {
    case DeviceType::kCpu:
    case DeviceType::kRef:
    case DeviceType::kOpaque:
      return kHostBackends;
    case DeviceType::kCuda:
    case DeviceType::kVulkan:
      break;
  }
  return {};
}

std::vector<std::string> ValidateAttentionBackend(const AttentionBackend& backend,
                                                  const AttentionSelectorConfig& config) {
  std::vector<std::string> reasons;
  auto refuse_if = [&](bool refused, std::string_view reason) {
    if (refused) reasons.emplace_back(reason);
  };
  refuse_if(!backend.head_sizes.Contains(config.head_size), "head_size not supported");
  refuse_if(!Contains(backend.dtypes, config.dtype), "dtype not supported");
  refuse_if(!Contains(backend.kv_cache_dtypes, config.kv_cache_dtype), "kv_cache_dtype not supported");
  refuse_if(config.block_size && !backend.block_sizes.Contains(*config.block_size), "block_size not supported");
  refuse_if(config.use_mm_prefix, "partial multimodal token full attention not supported");
  refuse_if(config.use_mla, "MLA not supported");
  refuse_if(config.has_sink, "attention sinks not supported");
  refuse_if(config.use_sparse, "sparse not supported");
  refuse_if(config.use_per_head_quant_scales, "per-head quant scales not supported");
  refuse_if(config.attn_type != AttentionType::kDecoder,
            base::StrCat("attention type ", TypeName(config.attn_type), " not supported"));
  refuse_if(config.has_sliding_window && !backend.sliding_window, "sliding window not supported");
  refuse_if(config.use_rswa, "R-SWA not supported");
  refuse_if(config.use_non_causal, "non-causal attention not supported");
  refuse_if(config.use_batch_invariant && !backend.batch_invariant, "batch invariance not supported");
  refuse_if(config.use_kv_connector && !backend.kv_connector, "KV connector not supported");
  refuse_if(config.use_pcp, "PCP not supported");
  refuse_if(config.use_dcp, "DCP not supported");
  refuse_if(config.use_adaptive_verification,
            "device-cpu query lens mismatch not supported, this is needed for adaptive verification");
  return reasons;
}

std::string SelectAttentionBackend(const AttentionSelectorConfig& config, std::string_view requested) {
  if (!requested.empty() && ToUpper(requested) != "AUTO") return SelectNamed(config, requested);
  std::vector<std::string> refusals;
  for (const AttentionBackend& backend : AttentionBackends(config.device)) {
    const std::vector<std::string> reasons = ValidateAttentionBackend(backend, config);
    if (reasons.empty()) return std::string(backend.name);
    refusals.push_back(base::StrCat(backend.name, ": [", base::Join(reasons, ", "), "]"));
  }
  base::Throw(base::ErrorCode::kUnsupported, "No valid attention backend for device type ",
              static_cast<int>(config.device), " from {", base::Join(refusals, ", "), "}");
}

}  // namespace vt

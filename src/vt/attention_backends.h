// The registry of paged attention backends: what each accepts, and the choice with a reason for every one passed over.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vt/device.h"
#include "vt/dtype.h"

namespace vt {

enum class AttentionType : int8_t { kDecoder, kEncoder, kEncoderOnly, kEncoderDecoder };

// What one attention layer asks for; the fields of vLLM's AttentionSelectorConfig.
struct AttentionSelectorConfig {
  DeviceType device = DeviceType::kCpu;  // of the registry that is asked, and the number in the refusal
  int head_size = 0;
  DType dtype = DType::kF32;  // of the activations
  DType kv_cache_dtype = DType::kBF16;
  std::optional<int> block_size = std::nullopt;  // tokens; none: any that the backend likes
  AttentionType attn_type = AttentionType::kDecoder;
  bool use_mla = false, has_sink = false, use_sparse = false, use_mm_prefix = false;
  bool use_per_head_quant_scales = false, has_sliding_window = false, use_rswa = false, use_non_causal = false;
  bool use_batch_invariant = false, use_kv_connector = false, use_pcp = false, use_dcp = false;
  bool use_adaptive_verification = false;
};

// The numbers first, first + step, ..., up to last.
struct MultipleOf {
  int step = 1;
  int last = INT32_MAX;
  constexpr bool Contains(int n) const { return n > 0 && n % step == 0 && n <= last; }
};

// A named backend and its domain. All of them attend causally over the paged cache through OpId::kPagedAttention.
struct AttentionBackend {
  std::string_view name;
  MultipleOf head_sizes = {};
  MultipleOf block_sizes = {};
  std::span<const DType> dtypes = {};
  std::span<const DType> kv_cache_dtypes = {};
  bool sliding_window = false, batch_invariant = false, kv_connector = true;
};

// In order of preference. Immutable, thread-safe.
std::span<const AttentionBackend> AttentionBackends(DeviceType device);

// Every reason against the backend, in vLLM's words and order; empty: it can serve the layer.
std::vector<std::string> ValidateAttentionBackend(const AttentionBackend& backend,
                                                  const AttentionSelectorConfig& config);

// The name of the first backend that can serve the layer, or of the one requested ("" and "auto": the first; letter
// case does not matter). Throws base::Exception kUnsupported with vLLM's text: `No valid attention backend for device
// type 0 from {NAME: [reason, reason], ...}`, or `Selected backend AttentionBackendEnum.NAME is not valid for this
// configuration. Reason: ['reason']`; kInvalidArgument for a name that is none: `Unknown attention backend: 'X'. Valid
// options are: ...`.
std::string SelectAttentionBackend(const AttentionSelectorConfig& config, std::string_view requested = {});

}  // namespace vt

// The attention backend registry: its domains, and refusals word for word.
#include "vt/attention_backends.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace vt {
namespace {

std::string RefusalOf(const AttentionSelectorConfig& config, std::string_view requested = {}) {
  try {
    return "chose " + SelectAttentionBackend(config, requested);
  } catch (const base::Exception& error) {
    return error.what();
  }
}

TEST(AttentionBackends, TheFirstThatCanServesTheLayer) {
  EXPECT_EQ(SelectAttentionBackend({.head_size = 64, .block_size = 32, .has_sliding_window = true}), "CPU_ATTN");
}

TEST(AttentionBackends, AHeadSizeThatNoKernelHasIsRefusedWithEveryCandidate) {
  EXPECT_EQ(RefusalOf({.head_size = 20}),
            "No valid attention backend for device type 0 from "
            "{CPU_ATTN: [head_size not supported], FLASH_ATTN: [head_size not supported]}");
}

TEST(AttentionBackends, ABlockSizeOutsideTheDomainIsRefused) {
  EXPECT_EQ(RefusalOf({.head_size = 64, .block_size = 24}),
            "No valid attention backend for device type 0 from "
            "{CPU_ATTN: [block_size not supported], FLASH_ATTN: [block_size not supported]}");
}

TEST(AttentionBackends, AllReasonsComeInOrder) {
  const AttentionSelectorConfig all{.head_size = 257,
                                    .dtype = DType::kI32,
                                    .kv_cache_dtype = DType::kU8,
                                    .block_size = 8,
                                    .attn_type = AttentionType::kEncoderOnly,
                                    .use_mla = true,
                                    .has_sink = true,
                                    .use_sparse = true,
                                    .use_mm_prefix = true,
                                    .use_per_head_quant_scales = true,
                                    .has_sliding_window = true,
                                    .use_rswa = true,
                                    .use_non_causal = true,
                                    .use_batch_invariant = true,
                                    .use_kv_connector = true,
                                    .use_pcp = true,
                                    .use_dcp = true,
                                    .use_adaptive_verification = true};
  AttentionBackend none{.name = "NONE", .head_sizes = {8, 256}, .block_sizes = {16}, .kv_connector = false};
  EXPECT_EQ(
      ValidateAttentionBackend(none, all),
      (std::vector<std::string>{
          "head_size not supported", "dtype not supported", "kv_cache_dtype not supported", "block_size not supported",
          "partial multimodal token full attention not supported", "MLA not supported", "attention sinks not supported",
          "sparse not supported", "per-head quant scales not supported", "attention type encoder_only not supported",
          "sliding window not supported", "R-SWA not supported", "non-causal attention not supported",
          "batch invariance not supported", "KV connector not supported", "PCP not supported", "DCP not supported",
          "device-cpu query lens mismatch not supported, this is needed for adaptive verification"}));
}

TEST(AttentionBackends, EveryHeadSizeOfTheKernelsHasABackend) {
  for (int head_size = 16; head_size <= 256; head_size += 8)
    for (DType cache : {DType::kBF16, DType::kF16, DType::kF32, DType::kF8E4M3, DType::kF8E5M2, DType::kI8})
      for (int block_size : {16, 32, 48, 128})
        EXPECT_NO_THROW(
            SelectAttentionBackend({.head_size = head_size, .kv_cache_dtype = cache, .block_size = block_size}));
}

TEST(AttentionBackends, ARequestedBackendIsTakenWhateverItsLetterCase) {
  EXPECT_EQ(SelectAttentionBackend({.head_size = 64}, "flash_attn"), "FLASH_ATTN");
  EXPECT_EQ(SelectAttentionBackend({.head_size = 64}, "auto"), "CPU_ATTN");
}

TEST(AttentionBackends, ARequestedBackendThatCannotSaysWhy) {
  EXPECT_EQ(RefusalOf({.head_size = 20, .has_sink = true}, "FLASH_ATTN"),
            "Selected backend AttentionBackendEnum.FLASH_ATTN is not valid for this configuration. Reason: "
            "['head_size not supported', 'attention sinks not supported']");
}

TEST(AttentionBackends, AnUnknownNameListsTheValidOnes) {
  EXPECT_EQ(RefusalOf({.head_size = 64}, "TRITON"),
            "Unknown attention backend: 'TRITON'. Valid options are: CPU_ATTN, FLASH_ATTN");
}

TEST(AttentionBackends, ADeviceWithoutBackendsIsRefusedByItsNumber) {
  EXPECT_EQ(RefusalOf({.device = DeviceType::kCuda, .head_size = 64}),
            "No valid attention backend for device type 1 from {}");
}

}  // namespace
}  // namespace vt

// The planned decoder equals transformers, on every host-testable device, however the prompt is cut into steps.
#include "model/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/loaded_model.h"
#include "model/reference.h"
#include "tests/model/tiny_model_util.h"

namespace vllm {
namespace {

using namespace testing;
constexpr int kBlock = 16, kBlocks = 8;

// A model with its own cache of kBlocks blocks, in one group, blocks handed out from the end.
class Harness {
 public:
  Harness(const std::string& name, vt::DeviceType device, vt::Numerics numerics) {
    platform_ = vt::MakePlatform(device);
    model_ = LoadedModel::FromModelDir(WriteTinyModel(name));
    model_->LoadWeights(*platform_);
    const auto specs = KvCacheSpecsOf(model_->spec(), kBlock, DefaultKvCacheDType(numerics));
    const int64_t bytes = specs[0].spec.page_bytes() * kBlocks;
    buffer_ = platform_->Allocate(bytes * specs.size());
    std::vector<KvCacheBinding> caches;
    for (size_t i = 0; i < specs.size(); ++i)
      caches.push_back(BindKvCache(buffer_, i * bytes, specs[i].spec, kBlocks));
    decoder_ = std::make_unique<Decoder>(
        model_->spec(), model_->weights(), *platform_, caches,
        DecoderOptions{
            .numerics = numerics, .max_tokens = 64, .max_sequences = 4, .max_logit_rows = 64, .max_blocks = 4});
    queue_ = platform_->MakeQueue();
  }

  // Log-probabilities of all positions, the prompt in steps of `chunk`.
  std::vector<float> Logprobs(const std::vector<int32_t>& tokens, int chunk, ForwardTrace* trace = nullptr) {
    std::vector<float> all;
    for (int begin = 0; begin < static_cast<int>(tokens.size()); begin += chunk) {
      const int end = std::min(begin + chunk, static_cast<int>(tokens.size()));
      std::vector<int32_t> ids(tokens.begin() + begin, tokens.begin() + end), positions, slots, rows;
      const std::vector<int32_t> table = {7, 2, 5, 0}, cu_q = {0, end - begin}, lens = {end};
      for (int p = begin; p < end; ++p) {
        positions.push_back(p);
        slots.push_back(table[p / kBlock] * kBlock + p % kBlock);
        rows.push_back(p - begin);
      }
      const std::vector<StepInputs::Group> groups = {{.slots = slots, .block_table = table}};
      decoder_->Forward(*queue_,
                        {.token_ids = ids, .positions = positions, .cu_q = cu_q, .seq_lens = lens, .groups = groups});
      const ForwardLogits logits = decoder_->Logits(*queue_, rows, trace);
      const std::vector<float> host = Fetch<float>(logits.device_tensor), max = Fetch<float>(logits.max);
      const std::vector<int32_t> argmax = Fetch<int32_t>(logits.argmax);
      for (size_t r = 0; r < rows.size(); ++r) {
        const auto row = host.begin() + r * kTinyVocab, largest = std::max_element(row, row + kTinyVocab);
        EXPECT_EQ(argmax.at(r), largest - row);
        EXPECT_EQ(max.at(r), *largest);
      }
      all.insert(all.end(), host.begin(), host.end());
    }
    for (size_t t = 0; t < tokens.size(); ++t) {
      double total = 0;
      for (int v = 0; v < kTinyVocab; ++v) total += std::exp(static_cast<double>(all[t * kTinyVocab + v]));
      for (int v = 0; v < kTinyVocab; ++v) all[t * kTinyVocab + v] -= static_cast<float>(std::log(total));
    }
    return all;
  }

 private:
  template <class T>
  std::vector<T> Fetch(const vt::Tensor& from) {
    std::vector<T> host(from.elements());
    vt::Tensor view = from;
    view.data = reinterpret_cast<std::byte*>(host.data());
    view.device = {};
    queue_->CopyAsync(view, from);
    queue_->Synchronize();
    return host;
  }

  std::shared_ptr<vt::Platform> platform_;
  std::unique_ptr<LoadedModel> model_;
  vt::Buffer buffer_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<vt::Queue> queue_;
};

void ExpectNear(const std::vector<float>& got, const std::vector<float>& golden, double bound) {
  ASSERT_EQ(got.size(), golden.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(double{got[i]} - golden[i]));
  EXPECT_LT(worst, bound);
}

class DecoderTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DecoderTest, EqualsTransformersOnCpuInExactNumerics) {
  Harness harness(GetParam(), vt::DeviceType::kCpu, vt::Numerics::kExact);
  ExpectNear(harness.Logprobs(TinyTokens(), 40), TinyLogprobs(GetParam()), 1e-4);
}

TEST_P(DecoderTest, EqualsTransformersOnCpuTokenByToken) {
  Harness harness(GetParam(), vt::DeviceType::kCpu, vt::Numerics::kExact);
  ExpectNear(harness.Logprobs(TinyTokens(), 1), TinyLogprobs(GetParam()), 1e-4);
}

TEST_P(DecoderTest, EqualsTransformersInChunksOfFiveOnTheOpaqueDevice) {
  Harness harness(GetParam(), vt::DeviceType::kOpaque, vt::Numerics::kExact);
  ExpectNear(harness.Logprobs(TinyTokens(), 5), TinyLogprobs(GetParam()), 1e-4);
}

TEST_P(DecoderTest, StaysNearTransformersInDefaultNumerics) {
  Harness harness(GetParam(), vt::DeviceType::kCpu, vt::Numerics::kDefault);
  ExpectNear(harness.Logprobs(TinyTokens(), 13), TinyLogprobs(GetParam()), 0.2);
}

TEST_P(DecoderTest, ChunksDoNotChangeABitInExactNumerics) {
  Harness harness(GetParam(), vt::DeviceType::kCpu, vt::Numerics::kExact);
  const std::vector<float> whole = harness.Logprobs(TinyTokens(), 40);
  EXPECT_EQ(whole, harness.Logprobs(TinyTokens(), 5));
  EXPECT_EQ(whole, harness.Logprobs(TinyTokens(), 17));
}

INSTANTIATE_TEST_SUITE_P(Tiny, DecoderTest, ::testing::ValuesIn(TinyModels()),
                         [](const auto& info) { return info.param; });

TEST(DecoderTraceTest, CaptureCopiesTheRowsOfTheHeadAndChangesNothing) {
  Harness harness("llama", vt::DeviceType::kOpaque, vt::Numerics::kExact);
  ForwardTrace trace{.capture = true};
  const std::vector<float> with = harness.Logprobs(TinyTokens(), 40, &trace);
  EXPECT_EQ(trace.final_normed.size(), 40u * 64);
  EXPECT_EQ(with, harness.Logprobs(TinyTokens(), 40));
}

}  // namespace
}  // namespace vllm

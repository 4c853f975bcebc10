// Plans: lowering by table with reasons, placement by liveness, rows that follow the step, exact execution counts.
#include "vt/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/result.h"
#include "vt/weight.h"

namespace vt {
namespace {

constexpr int64_t kDim = 16;

// x -> x * W^T, `depth` times, then a norm; W in a format of choice.
struct Chain {
  std::shared_ptr<Platform> platform;
  std::vector<float> numbers = std::vector<float>(kDim * kDim);
  ResidentSlot slot;
  Graph graph;
  ValueId input, output;

  Chain(DeviceType device, int depth, FormatId format = FormatId::kF32) : platform(MakePlatform(device)) {
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i % (kDim + 1) == 0 ? 2.0f : 0.0f;  // twice the identity
    std::span<const std::byte> bytes = std::as_bytes(std::span(numbers));
    if (format != FormatId::kF32) bytes = bytes.first(*RowBytes(GetFormat(format), 256) * 1);
    const WeightSource source = format == FormatId::kF32
                                    ? WeightSource{.name = "w", .format = format, .n = kDim, .k = kDim, .bytes = bytes}
                                    : WeightSource{.name = "w", .format = format, .n = 1, .k = 256, .bytes = bytes};
    slot.Load(std::span(&source, 1), WeightUse::kMatrix, *platform);
    const int64_t width = slot.Get()->k;
    input = graph.Input(RowCount::kTokens, width, DType::kF32, "x");
    ValueId value = input;
    for (int i = 0; i < depth; ++i) {
      const ValueId next = graph.Activation(RowCount::kTokens, slot.Get()->n, "y");
      graph.Add(LinearOp<ValueId>{.x = value, .out = next, .weight = slot.Get().get()});
      value = next;
    }
    output = value;
    graph.MarkOutput(output);
  }

  std::vector<float> Run(Plan& plan, int64_t tokens) {
    const auto queue = platform->MakeQueue();
    std::vector<float> x(tokens * kDim, 1.0f), y(tokens * kDim);
    const StepSizes sizes{.tokens = tokens};
    Tensor in = plan.At(input, sizes), host = in;
    host.device = {};
    host.data = reinterpret_cast<std::byte*>(x.data());
    queue->CopyAsync(in, host);
    plan.Execute(*queue, sizes);
    host.data = reinterpret_cast<std::byte*>(y.data());
    queue->CopyAsync(host, plan.At(output, sizes));
    queue->Synchronize();
    return y;
  }
};

class PlanOnDevice : public ::testing::TestWithParam<DeviceType> {};

TEST_P(PlanOnDevice, RunsEveryStepAtItsOwnSize) {
  Chain chain(GetParam(), 3);
  Plan plan(chain.graph, *chain.platform, Numerics::kExact, {.tokens = 8});
  for (const int64_t tokens : {8, 1, 5}) EXPECT_EQ(chain.Run(plan, tokens), std::vector<float>(tokens * kDim, 8.0f));
}

TEST_P(PlanOnDevice, CountsOneExecutionForEachNodeAndNoneElsewhere) {
  Chain chain(GetParam(), 4);
  Plan plan(chain.graph, *chain.platform, Numerics::kExact, {.tokens = 2});
  ResetOpProviderStats();
  chain.Run(plan, 2);
  for (const OpProviderStats& row : GetOpProviderStats())
    EXPECT_EQ(row.executed, row.op == OpId::kLinear && row.device == GetParam() ? 4u : 0u) << OpName(row.op);
}

INSTANTIATE_TEST_SUITE_P(Devices, PlanOnDevice,
                         ::testing::Values(DeviceType::kCpu, DeviceType::kRef, DeviceType::kOpaque),
                         [](const auto& info) { return std::string(DeviceName(info.param)); });

TEST(PlanTest, ValuesThatAreDoneGiveTheirPlaceToLaterOnes) {
  Chain shallow(DeviceType::kCpu, 3), deep(DeviceType::kCpu, 40);
  Plan first(shallow.graph, *shallow.platform, Numerics::kExact, {.tokens = 8});
  Plan second(deep.graph, *deep.platform, Numerics::kExact, {.tokens = 8});
  EXPECT_EQ(first.arena_bytes(), second.arena_bytes());
}

TEST(PlanTest, RefusesAWeightWithoutAKernelByName) {
  Chain chain(DeviceType::kCpu, 1, FormatId::kIQ2_XXS);
  try {
    Plan plan(chain.graph, *chain.platform, Numerics::kDefault, {.tokens = 1});
    FAIL() << "a plan without a kernel";
  } catch (const base::Exception& error) {
    EXPECT_EQ(error.code(), base::ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("IQ2_XXS"), std::string::npos) << error.what();
  }
}

TEST(PlanTest, TheReferenceDeviceTakesEveryFormat) {
  Chain chain(DeviceType::kRef, 1, FormatId::kIQ2_XXS);
  EXPECT_NO_THROW(Plan(chain.graph, *chain.platform, Numerics::kExact, {.tokens = 1}));
}

TEST(PlanTest, TellsWhatWasChosen) {
  Chain chain(DeviceType::kCpu, 1);
  const Plan plan(chain.graph, *chain.platform, Numerics::kDefault, {.tokens = 1});
  ASSERT_EQ(plan.choices().size(), 1u);
  EXPECT_EQ(plan.choices()[0].lowering, "Linear");
  EXPECT_EQ(plan.choices()[0].provider, "cpu");
}

// A linear of [n, k] and the maxima of its rows.
struct Head {
  static constexpr int64_t kN = 5000, kK = 64;
  std::shared_ptr<Platform> platform;
  ResidentSlot slot;
  Graph graph;
  ValueId x, y, max, index;

  Head(std::shared_ptr<Platform> device, FormatId id, bool of_another_value = false) : platform(std::move(device)) {
    std::vector<float> numbers(kN * kK);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>((i * 7919) % 1009) / 1009 - 0.5f;
    std::vector<std::byte> packed(static_cast<size_t>(*RowBytes(GetFormat(id), kK) * kN));
    for (int64_t r = 0; r < kN; ++r)
      GetFormat(id).quantize(numbers.data() + r * kK, kK, packed.data() + r * *RowBytes(GetFormat(id), kK));
    const WeightSource source{.name = "head", .format = id, .n = kN, .k = kK, .bytes = packed};
    slot.Load(std::span(&source, 1), WeightUse::kMatrix, *platform);
    x = graph.Input(RowCount::kLogitRows, kK, DType::kF32, "x");
    y = graph.Activation(RowCount::kLogitRows, kN, "y");
    max = graph.Activation(RowCount::kLogitRows, 0, "max");
    index = graph.Activation(RowCount::kLogitRows, 0, "index", DType::kI32);
    for (const ValueId value : {y, max, index}) graph.MarkOutput(value);
    graph.Add(LinearOp<ValueId>{.x = x, .out = y, .weight = slot.Get().get()});
    graph.Add(RowMaxOp<ValueId>{.x = of_another_value ? x : y, .max = max, .index = index});
  }
};

TEST(PlanTest, ALinearAndItsMaximaAreOneOpThatFindsThemInItsOutput) {
  for (const char* isa : {"", "avx2"})
    for (const FormatId id : {FormatId::kF32, FormatId::kBF16, FormatId::kQ8_0}) {
      Head head(MakePlatform(DeviceType::kCpu, {.threads = 3, .isa = isa}), id);
      Plan plan(head.graph, *head.platform, Numerics::kDefault, {.logit_rows = 130});
      ASSERT_EQ(plan.choices().size(), 1u);
      EXPECT_EQ(plan.choices()[0].lowering, "LinearRowMax");
      const auto queue = head.platform->MakeQueue();
      for (const int64_t rows : {1, 2, 8, 9, 64, 130}) {
        const StepSizes sizes{.logit_rows = rows};
        float* x = plan.At(head.x, sizes).as<float>();
        for (int64_t i = 0; i < rows * Head::kK; ++i) x[i] = static_cast<float>((i * 31 + rows) % 17) - 8;
        if (rows > 1) x[Head::kK + 3] = NAN;                          // all outputs of row 1
        if (rows > 2) std::fill_n(x + 2 * Head::kK, Head::kK, 0.0f);  // all equal
        plan.Execute(*queue, sizes);
        const float* y = plan.At(head.y, sizes).as<float>();
        const float* max = plan.At(head.max, sizes).as<float>();
        const int32_t* index = plan.At(head.index, sizes).as<int32_t>();
        for (int64_t r = 0; r < rows; ++r) {
          const float* row = y + r * Head::kN;
          if (std::any_of(row, row + Head::kN, [](float v) { return v != v; })) {
            EXPECT_TRUE(std::isnan(max[r]) && index[r] == -1) << r << " of " << rows;
            continue;
          }
          const float* largest = std::max_element(row, row + Head::kN);
          EXPECT_EQ(max[r], *largest) << r << " of " << rows;
          EXPECT_EQ(index[r], largest - row) << r << " of " << rows;
        }
      }
    }
}

TEST(PlanTest, MaximaOfAnotherValueOrOnAnotherDeviceAreAnOpOfTheirOwn) {
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kRef}) {
    Head head(MakePlatform(device), FormatId::kF32, device == DeviceType::kCpu);
    const Plan plan(head.graph, *head.platform, Numerics::kExact, {.logit_rows = 1});
    ASSERT_EQ(plan.choices().size(), 2u);
    EXPECT_EQ(plan.choices()[0].lowering, "Linear");
    EXPECT_EQ(plan.choices()[0].passed_over.size(), device == DeviceType::kCpu ? 1u : 0u);
    EXPECT_EQ(plan.choices()[1].lowering, "RowMax");
  }
}

TEST(OpTableTest, FixesTheNumbersOfTheDenseRungs) {
  EXPECT_EQ(static_cast<int>(OpId::kAttention), 18);
  EXPECT_EQ(static_cast<int>(OpId::kAttentionDenseFlash), 21);
  EXPECT_TRUE(OpRegistered(OpId::kAttention, DeviceType::kCpu));
  for (const OpId rung : {OpId::kAttentionDenseFast, OpId::kAttentionDenseFlash, OpId::kAttentionDenseFa2})
    EXPECT_FALSE(OpRegistered(rung, DeviceType::kCpu)) << OpName(rung);
}

}  // namespace
}  // namespace vt

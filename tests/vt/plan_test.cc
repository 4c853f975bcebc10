// Plans: lowering by table with reasons, placement by liveness, rows that follow the step, exact execution counts.
#include "vt/plan.h"

#include <gtest/gtest.h>

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

TEST(OpTableTest, FixesTheNumbersOfTheDenseRungs) {
  EXPECT_EQ(static_cast<int>(OpId::kAttention), 18);
  EXPECT_EQ(static_cast<int>(OpId::kAttentionDenseFlash), 21);
  EXPECT_TRUE(OpRegistered(OpId::kAttention, DeviceType::kCpu));
  for (const OpId rung : {OpId::kAttentionDenseFast, OpId::kAttentionDenseFlash, OpId::kAttentionDenseFa2})
    EXPECT_FALSE(OpRegistered(rung, DeviceType::kCpu)) << OpName(rung);
}

}  // namespace
}  // namespace vt

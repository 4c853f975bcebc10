// The plain row ops against values worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/ref/kernels.h"
#include "vt/weight.h"

namespace vt {
namespace {

using testing::HostTensor;
using testing::IntTensor;
using testing::ThreadContext;

using Floats = std::vector<float>;

TEST(RefAddNorm, AddsTheScaledBranchAndNormalizes) {
  HostTensor<float> residual({1, 2}, Floats{1, 2}), branch({1, 2}, Floats{4, 2}), weight({2}, Floats{2, 10}),
      out({1, 2}, 0.0f);
  ThreadContext context;
  RefAddNorm(AddNormOp<Tensor>{.residual = residual.view(),
                               .branch = branch.view(),
                               .weight = weight.view(),
                               .out = out.view(),
                               .eps = 0,
                               .scale = 0.5f},
             context);
  EXPECT_EQ(residual.values, (Floats{3, 3}));
  EXPECT_EQ(out.values, (Floats{2, 10}));
}

TEST(RefAddNorm, OnePlusNormsOfBothSidesUseOnePlusTheWeight) {
  HostTensor<float> residual({1, 2}, Floats{0, 0}), branch({1, 2}, Floats{3, -3}), inner({2}, Floats{1, 3}),
      outer({2}, Floats{0, 0}), out({1, 2}, 0.0f);
  ThreadContext context;
  RefAddNorm(AddNormOp<Tensor>{.residual = residual.view(),
                               .branch = branch.view(),
                               .branch_weight = inner.view(),
                               .weight = outer.view(),
                               .out = out.view(),
                               .branch_norm = NormKind::kRmsOnePlus,
                               .norm = NormKind::kRmsOnePlus,
                               .branch_eps = 0,
                               .eps = 0},
             context);
  EXPECT_EQ(residual.values, (Floats{2, -4}));
  EXPECT_FLOAT_EQ(out.values[0], 2 / std::sqrt(10.0f));
  EXPECT_FLOAT_EQ(out.values[1], -4 / std::sqrt(10.0f));
}

TEST(RefAddNorm, WithoutWeightCopiesTheResidualAndWithoutBranchLeavesIt) {
  HostTensor<float> residual({1, 2}, Floats{5, -7}), out({1, 2}, 0.0f);
  ThreadContext context;
  RefAddNorm(AddNormOp<Tensor>{.residual = residual.view(), .out = out.view()}, context);
  EXPECT_EQ(residual.values, (Floats{5, -7}));
  EXPECT_EQ(out.values, (Floats{5, -7}));
}

TEST(RefAddNorm, RefusesANormWithoutItsWeight) {
  HostTensor<float> residual({1, 2}, 1.0f), branch({1, 2}, 1.0f);
  ThreadContext context;
  EXPECT_THROW(
      RefAddNorm(AddNormOp<Tensor>{.residual = residual.view(), .branch = branch.view(), .branch_norm = NormKind::kRms},
                 context),
      base::InternalError);
}

PackedWeight TwoSegments(HostTensor<float>& first, HostTensor<float>& second) {
  PackedWeight weight{.n = first.shape[0] + second.shape[0], .k = first.shape[1]};
  for (HostTensor<float>* rows : {&first, &second})
    weight.segments.push_back({.n = rows->shape[0], .row_bytes = rows->shape[1] * 4, .data = rows->view().data});
  return weight;
}

TEST(RefEmbed, ReadsRowsAcrossSegmentsAndScales) {
  HostTensor<float> first({1, 2}, Floats{1, 2}), second({2, 2}, Floats{3, 4, 5, 6}), out({3, 2}, 0.0f);
  HostTensor<int32_t> ids = IntTensor({2, 0, 1});
  const PackedWeight weight = TwoSegments(first, second);
  ThreadContext context;
  RefEmbed(EmbedOp<Tensor>{.ids = ids.view(), .out = out.view(), .weight = &weight, .scale = 10}, context);
  EXPECT_EQ(out.values, (Floats{50, 60, 10, 20, 30, 40}));
}

TEST(RefEmbed, RefusesAnIdOutsideTheVocabulary) {
  HostTensor<float> first({1, 2}, 1.0f), second({2, 2}, 1.0f), out({1, 2}, 0.0f);
  HostTensor<int32_t> ids = IntTensor({3});
  const PackedWeight weight = TwoSegments(first, second);
  ThreadContext context;
  EXPECT_THROW(RefEmbed(EmbedOp<Tensor>{.ids = ids.view(), .out = out.view(), .weight = &weight}, context),
               base::InternalError);
}

TEST(RefLinear, StacksItsSegmentsAndAddsTheBias) {
  HostTensor<float> first({1, 2}, Floats{1, 2}), second({2, 2}, Floats{3, 4, 5, 6}), bias({3}, Floats{100, 200, 300});
  HostTensor<float> x({2, 2}, Floats{1, 1, 2, -1}), out({2, 3}, 0.0f);
  const PackedWeight weight = TwoSegments(first, second);
  ThreadContext context;
  RefLinear(LinearOp<Tensor>{.x = x.view(), .out = out.view(), .bias = bias.view(), .weight = &weight}, context);
  EXPECT_EQ(out.values, (Floats{103, 207, 311, 100, 202, 304}));
}

TEST(RefGatedAct, MultipliesTheActivatedGateWithUp) {
  HostTensor<float> x({1, 4}, Floats{1, -2, 3, 5}), out({1, 2}, 0.0f);
  ThreadContext context;
  RefGatedAct(GatedActOp<Tensor>{.x = x.view(), .out = out.view(), .act = Activation::kSilu}, context);
  EXPECT_FLOAT_EQ(out.values[0], 3 * 0.73105857863f);
  EXPECT_FLOAT_EQ(out.values[1], 5 * -0.2384058440f);
  RefGatedAct(GatedActOp<Tensor>{.x = x.view(), .out = out.view(), .act = Activation::kGeluTanh}, context);
  EXPECT_FLOAT_EQ(out.values[0], 3 * 0.84119199f);
  EXPECT_FLOAT_EQ(out.values[1], 5 * -0.04540230f);
  RefGatedAct(GatedActOp<Tensor>{.x = x.view(), .out = out.view(), .act = Activation::kGelu}, context);
  EXPECT_FLOAT_EQ(out.values[0], 3 * 0.84134475f);
  EXPECT_FLOAT_EQ(out.values[1], 5 * -0.04550026f);
}

TEST(RefGatherRows, CopiesTheChosenRows) {
  HostTensor<float> x({3, 2}, Floats{1, 2, 3, 4, 5, 6}), out({2, 2}, 0.0f);
  HostTensor<int32_t> indices = IntTensor({2, 2});
  ThreadContext context;
  RefGatherRows(GatherRowsOp<Tensor>{.x = x.view(), .indices = indices.view(), .out = out.view()}, context);
  EXPECT_EQ(out.values, (Floats{5, 6, 5, 6}));
}

TEST(RefSoftcap, CapsOrOnlyScales) {
  HostTensor<float> x({1, 2}, Floats{30, -1000});
  ThreadContext context;
  RefSoftcap(SoftcapOp<Tensor>{.x = x.view(), .cap = 30}, context);
  EXPECT_FLOAT_EQ(x.values[0], 30 * 0.7615941560f);
  EXPECT_FLOAT_EQ(x.values[1], -30);
  RefSoftcap(SoftcapOp<Tensor>{.x = x.view(), .scale = 2}, context);
  EXPECT_FLOAT_EQ(x.values[1], -60);
}

TEST(RefRowMax, GivesTheLargestAndTheFirstColumnThatHoldsIt) {
  HostTensor<float> x({4, 3}, Floats{1, 7, 7, -INFINITY, -INFINITY, -INFINITY, 2, INFINITY, 3, 9, NAN, 1});
  HostTensor<float> max({4}, 0.0f);
  HostTensor<int32_t> index({4}, 0);
  ThreadContext context;
  RefRowMax(RowMaxOp<Tensor>{.x = x.view(), .max = max.view(), .index = index.view()}, context);
  EXPECT_EQ(index.values, (std::vector<int32_t>{1, 0, 1, -1}));
  EXPECT_EQ(Floats(max.values.begin(), max.values.begin() + 3), (Floats{7, -INFINITY, INFINITY}));
  EXPECT_TRUE(std::isnan(max.values[3]));
}

}  // namespace
}  // namespace vt

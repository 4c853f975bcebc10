// The parts of a spec and their names.
#include "model/bind/parts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"

namespace vllm {
namespace {

spec::Model OneLayer() {
  spec::Model model{.vocab = 32, .dim = 16};
  const spec::Attention attention{.heads = 4, .kv_heads = 2, .head_dim = 8};
  model.layers = {{{{.pre = spec::Norm(), .op = attention}, {.pre = spec::Norm(), .op = spec::Mlp{.hidden = 24}}}}};
  return model;
}

const Role* Find(const std::vector<Role>& roles, Part part) {
  const auto found = std::find_if(roles.begin(), roles.end(), [&](const Role& role) { return role.part == part; });
  return found == roles.end() ? nullptr : &*found;
}

TEST(PartsTest, ShapesFollowFromTheSpec) {
  const std::vector<Role> roles = RolesOf(OneLayer());
  const Role *q = Find(roles, Part::kQ), *k = Find(roles, Part::kK), *down = Find(roles, Part::kDown);
  ASSERT_TRUE(q && k && down);
  EXPECT_EQ(std::pair(q->n, q->k), std::pair(int64_t{32}, int64_t{16}));
  EXPECT_EQ(std::pair(k->n, k->k), std::pair(int64_t{16}, int64_t{16}));
  EXPECT_EQ(k->heads, 2);
  EXPECT_EQ(std::pair(down->n, down->k), std::pair(int64_t{16}, int64_t{24}));
}

TEST(PartsTest, ATiedHeadHasNoWeightOfItsOwn) {
  spec::Model model = OneLayer();
  EXPECT_NE(Find(RolesOf(model), Part::kHead), nullptr);
  model.head.tied = true;
  EXPECT_EQ(Find(RolesOf(model), Part::kHead), nullptr);
}

TEST(PartsTest, NormsAfterASublayerAreThereWhenTheSpecHasThem) {
  spec::Model model = OneLayer();
  EXPECT_EQ(Find(RolesOf(model), Part::kMlpPostNorm), nullptr);
  model.layers[0].subs[1].post = spec::Norm{.kind = spec::NormKind::kRmsOnePlus};
  const std::vector<Role> roles = RolesOf(model);
  ASSERT_NE(Find(roles, Part::kMlpPostNorm), nullptr);
  EXPECT_TRUE(Find(roles, Part::kMlpPostNorm)->one_plus);
}

TEST(PartsTest, AFamilysNamesComeBeforeTheDefaults) {
  const std::vector<PartName> own = {{Part::kQ, "h.{}.q", Transform::kUninterleave}};
  EXPECT_EQ(TensorName(FindPartName(Part::kQ, own, DefaultHfNames()), 12), "h.12.q");
  EXPECT_EQ(TensorName(FindPartName(Part::kK, own, DefaultGgufNames()), 12), "blk.12.attn_k.weight");
}

TEST(PartsTest, EveryPartThatADefaultDialectLacksIsOurBug) {
  EXPECT_THROW(FindPartName(Part::kAttnPostNorm, {}, DefaultHfNames()), base::InternalError);
}

}  // namespace
}  // namespace vllm

// The parts of a model that have weights, their default names in each dialect, and how a stored tensor becomes a part.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/spec.h"

namespace vllm {

enum class Part : int8_t {
  kEmbed,
  kHead,
  kFinalNorm,
  kAttnPreNorm,
  kAttnPostNorm,
  kQ,
  kK,
  kV,
  kOut,
  kQBias,
  kKBias,
  kVBias,
  kOutBias,
  kQNorm,
  kKNorm,
  kMlpPreNorm,
  kMlpPostNorm,
  kGate,
  kUp,
  kDown,
  kGateBias,
  kUpBias,
  kDownBias,
};

enum class Transform : int8_t {
  kNone,
  kAddOne,        // norms of (1 + w) that are stored as w
  kUninterleave,  // rows of each head: rotary pairs (2i, 2i + 1) move to (i, i + dim / 2)
};

// "{}" in the pattern stands for the layer number.
struct PartName {
  Part part = Part::kEmbed;
  std::string_view pattern = {};
  Transform transform = Transform::kNone;
};

// One weight that a spec needs. Vectors have k == 0.
struct Role {
  Part part = Part::kEmbed;
  int layer = -1;
  int64_t n = 0, k = 0;
  bool one_plus = false;  // a norm of (1 + w)
  int heads = 0;          // of q and k, for kUninterleave
};

// All weights of a spec, in order of use.
std::vector<Role> RolesOf(const spec::Model& model);

std::span<const PartName> DefaultHfNames();
std::span<const PartName> DefaultGgufNames();
// The row for a part: the family's if it has one, else the default's. CHECKs that there is one.
const PartName& FindPartName(Part part, std::span<const PartName> family, std::span<const PartName> defaults);
std::string TensorName(const PartName& name, int layer);

}  // namespace vllm

// The weights of a model on a device.
#include "model/weights.h"

#include "base/check.h"
#include "base/result.h"

namespace vllm {
namespace {

// Parts that share an input are stacked into one linear, named by the first.
std::vector<Part> MergedWith(Part first) {
  switch (first) {
    case Part::kQ:
      return {Part::kQ, Part::kK, Part::kV};
    case Part::kGate:
      return {Part::kGate, Part::kUp};
    case Part::kQBias:
      return {Part::kQBias, Part::kKBias, Part::kVBias};
    case Part::kGateBias:
      return {Part::kGateBias, Part::kUpBias};
    case Part::kK:
    case Part::kV:
    case Part::kUp:
    case Part::kKBias:
    case Part::kVBias:
    case Part::kUpBias:
      return {};  // inside another
    default:
      return {first};
  }
}

}  // namespace

ModelWeights::ModelWeights(const spec::Model& model, const Bindings& bindings, vt::Platform& platform,
                           const Progress& progress) {
  CHECK(!model.layers.empty(), "a model without layers");
  std::vector<float> values;
  std::vector<std::pair<std::pair<Part, int>, std::pair<int64_t, int64_t>>> places;  // part: offset, length
  const auto& roles = bindings.roles();
  for (size_t i = 0; i < roles.size(); ++i) {
    if (progress && !progress(static_cast<double>(i) / static_cast<double>(roles.size())))
      base::Throw(base::ErrorCode::kCancelled, "the load was cancelled");
    const Role& role = roles[i];
    const std::vector<Part> parts = MergedWith(role.part);
    if (parts.empty()) continue;
    if (role.k > 0) {
      std::vector<vt::WeightSource> sources;
      for (const Part part : parts) sources.push_back(bindings.Matrix(part, role.layer));
      vt::ResidentSlot& slot = slots_[{role.part, role.layer}];
      const bool rows_only = role.part == Part::kEmbed && !model.head.tied;
      slot.Load(sources, rows_only ? vt::WeightUse::kRows : vt::WeightUse::kMatrix, platform);
      source_bytes_ += slot.Get()->source_bytes;
      resident_bytes_ += slot.Get()->resident_bytes;
      continue;
    }
    const int64_t offset = static_cast<int64_t>(values.size());
    for (const Part part : parts) {
      const std::vector<float> vector = bindings.Vector(part, role.layer);
      values.insert(values.end(), vector.begin(), vector.end());
    }
    places.push_back({{role.part, role.layer}, {offset, static_cast<int64_t>(values.size()) - offset}});
    values.resize((values.size() + 15) / 16 * 16);  // each vector starts on a cache line
  }
  rope_factors_ = bindings.RopeFactors();
  const int64_t count = static_cast<int64_t>(values.size());
  constants_ = platform.Allocate(values.size() * sizeof(float));
  const auto queue = platform.MakeQueue();
  queue->CopyAsync(constants_.View(vt::DType::kF32, {count}),
                   vt::MakeTensor(reinterpret_cast<std::byte*>(values.data()), vt::DType::kF32, {count}, {}));
  queue->Synchronize();
  for (const auto& [part, place] : places)
    vectors_[part] = constants_.View(vt::DType::kF32, {place.second}, place.first * sizeof(float));
}

const vt::PackedWeight* ModelWeights::Linear(Part part, int layer) const {
  auto found = slots_.find({part, layer});
  if (found == slots_.end() && part == Part::kHead) found = slots_.find({Part::kEmbed, -1});
  CHECK(found != slots_.end(), "no linear for part ", static_cast<int>(part), " of layer ", layer);
  return found->second.Get().get();
}

vt::Tensor ModelWeights::Vector(Part part, int layer) const {
  const auto found = vectors_.find({part, layer});
  return found == vectors_.end() ? vt::Tensor{} : found->second;
}

}  // namespace vllm

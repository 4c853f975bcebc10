// Binding: the stored tensors of a checkpoint become the parts that a spec needs.
#include "model/bind/bind.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.h"
#include "base/result.h"

namespace vllm {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += base::StrCat(i ? ", " : "", shape[i]);
  return text + "]";
}

// Row `r` of the half-split order within heads of `dim` rows, in the order that keeps rotary pairs side by side.
int64_t InterleavedRow(int64_t r, int64_t dim) {
  const int64_t head = r / dim, at = r % dim, half = dim / 2;
  return head * dim + (at < half ? 2 * at : 2 * (at - half) + 1);
}

// Tensors that some exporters write and no forward pass reads.
bool IsIgnorable(const std::string& name, const spec::Model& model) {
  if (model.head.tied && (name == "lm_head.weight" || name == "output.weight")) return true;
  return name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace

Bindings::Bindings(const Checkpoint& checkpoint, const Family& family, const spec::Model& model)
    : roles_(RolesOf(model)), files_(checkpoint.files) {
  const bool gguf = checkpoint.dialect == Checkpoint::Dialect::kGguf;
  const auto family_names = gguf ? family.gguf_names : family.hf_names;
  const auto defaults = gguf ? DefaultGgufNames() : DefaultHfNames();
  std::set<std::string_view> used;
  for (const Role& role : roles_) {
    PartName name = FindPartName(role.part, family_names, defaults);
    if (role.one_plus && !gguf) name.transform = Transform::kAddOne;  // GGUF's norms hold the one already
    Add(checkpoint, role, name);
    used.insert(bound_.at({role.part, role.layer}).tensor->name);
  }
  if (gguf && (rope_factors_ = checkpoint.Find("rope_freqs.weight"))) used.insert(rope_factors_->name);
  for (const TensorInfo& tensor : checkpoint.tensors)
    if (!used.contains(tensor.name) && !IsIgnorable(tensor.name, model))
      base::Throw(base::ErrorCode::kBadFile, checkpoint.path, ": tensor '", tensor.name, "' is not part of a ",
                  model.type, " model of this configuration; the file and its configuration do not belong together");
}

void Bindings::Add(const Checkpoint& checkpoint, const Role& role, const PartName& name) {
  const std::string tensor_name = TensorName(name, role.layer);
  const TensorInfo* tensor = checkpoint.Find(tensor_name);
  if (!tensor) {
    std::vector<std::string> names;
    for (const TensorInfo& other : checkpoint.tensors) names.push_back(other.name);
    const std::string nearest = base::Nearest(tensor_name, names);
    base::Throw(base::ErrorCode::kBadFile, checkpoint.path, ": tensor '", tensor_name, "' is missing",
                nearest.empty() ? "" : base::StrCat("; nearest is '", nearest, "'"), "; fetch the model again");
  }
  checkpoint.RequireServed(*tensor);
  const std::vector<int64_t> expected = role.k ? std::vector{role.n, role.k} : std::vector{role.n};
  if (tensor->shape != expected)
    base::Throw(base::ErrorCode::kBadFile, checkpoint.path, ": tensor '", tensor_name, "' has shape ",
                ShapeText(tensor->shape), ", the configuration asks for ", ShapeText(expected));
  bound_[{role.part, role.layer}] = {role, name.transform, tensor};
}

const Bindings::Bound& Bindings::Get(Part part, int layer) const {
  const auto found = bound_.find({part, layer});
  CHECK(found != bound_.end(), "part ", static_cast<int>(part), " of layer ", layer, " is not bound");
  return found->second;
}

vt::WeightSource Bindings::Matrix(Part part, int layer) const {
  const Bound& bound = Get(part, layer);
  const TensorInfo& tensor = *bound.tensor;
  CHECK(bound.role.k > 0, tensor.name, " is a vector");
  vt::WeightSource source{
      .name = tensor.name, .format = tensor.format, .n = bound.role.n, .k = bound.role.k, .bytes = tensor.data};
  if (bound.transform == Transform::kUninterleave) {
    const int64_t row_bytes = static_cast<int64_t>(tensor.data.size()) / bound.role.n;
    auto moved = std::make_shared<std::vector<std::byte>>(tensor.data.size());
    for (int64_t r = 0; r < bound.role.n; ++r)
      std::memcpy(moved->data() + r * row_bytes,
                  tensor.data.data() + InterleavedRow(r, bound.role.n / bound.role.heads) * row_bytes, row_bytes);
    source.bytes = *moved;
    source.owner = moved;
    if (tensor.file_index >= 0) files_[tensor.file_index]->Drop(tensor.data);
  } else if (tensor.file_index >= 0) {
    source.owner = files_[tensor.file_index];
    source.drop = [file = files_[tensor.file_index]](std::span<const std::byte> part) { file->Drop(part); };
  }
  return source;
}

std::vector<float> Bindings::Vector(Part part, int layer) const {
  const Bound& bound = Get(part, layer);
  std::vector<float> values(bound.role.n);
  const vt::Format& format = vt::GetFormat(bound.tensor->format);
  CHECK(bound.role.k == 0 && bound.role.n % format.block_elements == 0, bound.tensor->name,
        " is no vector of whole blocks");
  format.dequantize(bound.tensor->data.data(), bound.role.n, values.data());
  if (bound.transform == Transform::kAddOne)
    for (float& value : values) value += 1;
  if (bound.transform == Transform::kUninterleave) {
    const std::vector<float> stored = values;
    for (int64_t r = 0; r < bound.role.n; ++r) values[r] = stored[InterleavedRow(r, bound.role.n / bound.role.heads)];
  }
  return values;
}

std::vector<float> Bindings::MatrixAsFloat(Part part, int layer) const {
  const vt::WeightSource source = Matrix(part, layer);
  std::vector<float> values(source.n * source.k);
  vt::GetFormat(source.format).dequantize(source.bytes.data(), source.n * source.k, values.data());
  return values;
}

std::vector<float> Bindings::RopeFactors() const {
  if (!rope_factors_) return {};
  std::vector<float> values(rope_factors_->elements());
  vt::GetFormat(rope_factors_->format).dequantize(rope_factors_->data.data(), rope_factors_->elements(), values.data());
  return values;
}

}  // namespace vllm

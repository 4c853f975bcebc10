// A checkpoint turned into a spec, its bindings and its weights on a device.
#include "model/loaded_model.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace vllm {

std::unique_ptr<LoadedModel> LoadedModel::FromModelDir(const std::string& path) {
  std::unique_ptr<LoadedModel> model(new LoadedModel(LoadCheckpoint(path)));
  const Checkpoint& checkpoint = model->checkpoint_;
  const Family* family = nullptr;
  if (checkpoint.dialect == Checkpoint::Dialect::kGguf) {
    family = &FindGgufFamily(checkpoint.config.need<std::string>("general.architecture"), checkpoint.path);
    model->spec_ = BuildModel(*family, ConfigOfGguf(checkpoint, *family));
  } else {
    family = &FindFamily(checkpoint.config.need<std::string>("model_type"), checkpoint.config.source());
    model->spec_ = BuildModel(*family, checkpoint.config);
  }
  model->bindings_ = std::make_unique<Bindings>(checkpoint, *family, model->spec_);
  return model;
}

void LoadedModel::LoadWeights(vt::Platform& platform, const ModelWeights::Progress& progress) {
  weights_ = std::make_unique<ModelWeights>(spec_, *bindings_, platform, progress);
}

const ModelWeights& LoadedModel::weights() const {
  CHECK(weights_ != nullptr, "weights were not loaded");
  return *weights_;
}

int64_t LoadedModel::parameters() const {
  int64_t count = 0;
  for (const Role& role : bindings_->roles()) count += role.n * std::max<int64_t>(role.k, 1);
  return count;
}

std::string LoadedModel::FormatSummary() const {
  std::map<std::string_view, uint64_t> bytes;
  for (const TensorInfo& tensor : checkpoint_.tensors) bytes[vt::GetFormat(tensor.format).name] += tensor.data.size();
  std::vector<std::pair<uint64_t, std::string_view>> order;
  for (const auto& [name, size] : bytes) order.push_back({size, name});
  std::sort(order.rbegin(), order.rend());
  std::vector<std::string> parts;
  for (const auto& [size, name] : order) parts.push_back(base::StrCat(name, " ", base::HumanBytes(size)));
  return base::Join(parts, ", ");
}

std::string LoadedModel::Card() const {
  std::string card =
      base::StrCat("type ", spec_.type, ", ", spec_.layers.size(), " layers, width ", spec_.dim, ", vocabulary ",
                   spec_.vocab, ", context ", spec_.max_position, ", ", parameters() / 1000000, "M parameters\n");
  std::map<std::string, int> kinds;
  for (const spec::Layer& layer : spec_.layers)
    for (const spec::Sublayer& sub : layer.subs) {
      if (const auto* attn = std::get_if<spec::Attention>(&sub.op)) {
        std::string text =
            base::StrCat("attention: ", attn->heads, " heads, ", attn->kv_heads, " KV heads of ", attn->head_dim);
        if (attn->window) text += base::StrCat(", window ", attn->window);
        if (attn->rope.dim) text += base::StrCat(", rope base ", attn->rope.base);
        if (attn->qk_norm != spec::QkNorm::kNone) text += ", QK norm";
        if (attn->qkv_bias) text += ", bias";
        if (attn->softcap > 0) text += base::StrCat(", soft-cap ", attn->softcap);
        ++kinds[text];
      } else {
        ++kinds[base::StrCat("gated MLP of ", std::get<spec::Mlp>(sub.op).hidden)];
      }
    }
  for (const auto& [text, count] : kinds) card += base::StrCat(count, " x ", text, "\n");
  card += base::StrCat("head: ", spec_.head.tied ? "tied to the embedding" : "own matrix");
  if (spec_.head.softcap > 0) card += base::StrCat(", soft-cap ", spec_.head.softcap);
  return card + "\n";
}

}  // namespace vllm

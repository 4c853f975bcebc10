// What a model is, as data. Nothing here computes: walkers over the spec name its tensors, size its caches, plan and
// run it.
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace vllm::spec {

enum class NormKind { kRms, kRmsOnePlus };  // x / rms(x) * w, and * (1 + w)
enum class Act { kSilu, kGeluTanh, kGelu };
enum class QkNorm { kNone, kPerHead };

struct Norm {
  NormKind kind = NormKind::kRms;
  double eps = 1e-6;
};

// How a rope's frequencies are stretched; formulas as transformers' modeling_rope_utils.
struct RopeScaling {
  enum class Kind { kNone, kLinear, kLlama3, kYarn };
  Kind kind = Kind::kNone;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;       // llama3
  double original_max_position = 0;                       // llama3, yarn
  double beta_fast = 32, beta_slow = 1;                   // yarn
  std::optional<double> attention_factor = std::nullopt;  // yarn
  double mscale = 0, mscale_all_dim = 0;                  // yarn
  bool truncate = true;                                   // yarn: correction range rounded to whole dimensions
};

struct Rope {
  int dim = 0;  // rotated elements of a head; 0: no position encoding
  double base = 10000;
  bool interleaved = false;
  RopeScaling scaling = {};
};

struct Attention {
  int heads = 0, kv_heads = 0, head_dim = 0;
  Rope rope = {};
  QkNorm qk_norm = QkNorm::kNone;
  Norm q_k_norm = {};
  bool qkv_bias = false, out_bias = false;
  int window = 0;      // a query sees itself and window - 1 keys before it; 0: all
  double scale = 0;    // of the scores
  double softcap = 0;  // 0: none
};

struct Mlp {
  int hidden = 0;
  Act act = Act::kSilu;
  bool bias = false;
};

using Op = std::variant<Attention, Mlp>;

// x = x + scale * post(op(pre(x))).
struct Sublayer {
  std::optional<Norm> pre = std::nullopt, post = std::nullopt;
  Op op = {};
  double scale = 1;
};

struct Layer {
  std::vector<Sublayer> subs = {};
};

struct Head {
  Norm norm = {};
  bool tied = false;  // uses the embedding
  double scale = 1, softcap = 0;
};

struct Model {
  std::string type = {};  // model_type of the configuration, for people
  int vocab = 0, dim = 0;
  int max_position = 0;  // tokens
  double embed_scale = 1;
  std::vector<Layer> layers = {};
  Head head = {};
};

}  // namespace vllm::spec

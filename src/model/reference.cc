// The slow oracle of a spec: one sequence, no cache, double precision, no code shared with the plan.
#include "model/reference.h"

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "model/rope.h"

namespace vllm {
namespace {

using Matrix = std::vector<std::vector<double>>;  // [rows][columns]

double Activate(spec::Act act, double x) {
  switch (act) {
    case spec::Act::kSilu:
      return x / (1 + std::exp(-x));
    case spec::Act::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case spec::Act::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  return 0;
}

// Binding has already turned (1 + w) into one weight.
void NormRow(std::span<double> row, std::span<const float> weight, double eps) {
  double squares = 0;
  for (double x : row) squares += x * x;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(row.size()) + eps);
  for (size_t i = 0; i < row.size(); ++i) row[i] *= scale * weight[i];
}

Matrix NormRows(Matrix x, const std::vector<float>& weight, double eps) {
  for (auto& row : x) NormRow(row, weight, eps);
  return x;
}

Matrix MatMul(const Matrix& x, const std::vector<float>& weight, const std::vector<float>& bias) {
  const size_t k = x[0].size(), n = weight.size() / k;
  Matrix out(x.size(), std::vector<double>(n));
  for (size_t row = 0; row < x.size(); ++row)
    for (size_t j = 0; j < n; ++j) {
      double sum = bias.empty() ? 0 : bias[j];
      for (size_t i = 0; i < k; ++i) sum += x[row][i] * weight[j * k + i];
      out[row][j] = sum;
    }
  return out;
}

void Rotate(std::span<double> head, const vt::RopeTable& rope, int position) {
  const int half = rope.dim / 2;
  for (int i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) * rope.inverse_frequency[i];
    const double cosine = std::cos(angle) * rope.attention_factor, sine = std::sin(angle) * rope.attention_factor;
    double& a = rope.interleaved ? head[2 * i] : head[i];
    double& b = rope.interleaved ? head[2 * i + 1] : head[i + half];
    const double rotated = a * cosine - b * sine;
    b = b * cosine + a * sine;
    a = rotated;
  }
}

class Reference {
 public:
  Reference(const spec::Model& model, const Bindings& bindings) : model_(model), bindings_(bindings) {}

  std::vector<float> Run(std::span<const int32_t> tokens) {
    const std::vector<float> embed = bindings_.MatrixAsFloat(Part::kEmbed);
    Matrix x;
    for (int32_t token : tokens) {
      CHECK(token >= 0 && token < model_.vocab, "token ", token);
      auto& row = x.emplace_back(model_.dim);
      for (int i = 0; i < model_.dim; ++i)
        row[i] = embed[int64_t{token} * model_.dim + i] * static_cast<double>(static_cast<float>(model_.embed_scale));
    }
    for (size_t layer = 0; layer < model_.layers.size(); ++layer)
      for (const spec::Sublayer& sub : model_.layers[layer].subs) RunSublayer(sub, static_cast<int>(layer), x);
    x = NormRows(x, bindings_.Vector(Part::kFinalNorm), model_.head.norm.eps);
    x = MatMul(x, model_.head.tied ? embed : bindings_.MatrixAsFloat(Part::kHead), {});
    std::vector<float> logits;
    for (const auto& row : x)
      for (double logit : row) {
        logit *= model_.head.scale;
        if (model_.head.softcap > 0) logit = model_.head.softcap * std::tanh(logit / model_.head.softcap);
        logits.push_back(static_cast<float>(logit));
      }
    return logits;
  }

 private:
  void RunSublayer(const spec::Sublayer& sub, int layer, Matrix& x) {
    const auto* attn = std::get_if<spec::Attention>(&sub.op);
    Matrix y = x;
    if (sub.pre) y = NormRows(y, bindings_.Vector(attn ? Part::kAttnPreNorm : Part::kMlpPreNorm, layer), sub.pre->eps);
    y = attn ? Attend(*attn, layer, y) : Feed(std::get<spec::Mlp>(sub.op), layer, y);
    if (sub.post)
      y = NormRows(y, bindings_.Vector(attn ? Part::kAttnPostNorm : Part::kMlpPostNorm, layer), sub.post->eps);
    for (size_t t = 0; t < x.size(); ++t)
      for (int i = 0; i < model_.dim; ++i) x[t][i] += sub.scale * y[t][i];
  }

  std::vector<float> Bias(bool present, Part part, int layer) const {
    return present ? bindings_.Vector(part, layer) : std::vector<float>();
  }

  Matrix Feed(const spec::Mlp& mlp, int layer, const Matrix& x) {
    Matrix gate = MatMul(x, bindings_.MatrixAsFloat(Part::kGate, layer), Bias(mlp.bias, Part::kGateBias, layer));
    const Matrix up = MatMul(x, bindings_.MatrixAsFloat(Part::kUp, layer), Bias(mlp.bias, Part::kUpBias, layer));
    for (size_t t = 0; t < x.size(); ++t)
      for (int i = 0; i < mlp.hidden; ++i) gate[t][i] = Activate(mlp.act, gate[t][i]) * up[t][i];
    return MatMul(gate, bindings_.MatrixAsFloat(Part::kDown, layer), Bias(mlp.bias, Part::kDownBias, layer));
  }

  Matrix Attend(const spec::Attention& attn, int layer, const Matrix& x) {
    Matrix q = MatMul(x, bindings_.MatrixAsFloat(Part::kQ, layer), Bias(attn.qkv_bias, Part::kQBias, layer));
    Matrix k = MatMul(x, bindings_.MatrixAsFloat(Part::kK, layer), Bias(attn.qkv_bias, Part::kKBias, layer));
    const Matrix v = MatMul(x, bindings_.MatrixAsFloat(Part::kV, layer), Bias(attn.qkv_bias, Part::kVBias, layer));
    Prepare(attn, attn.heads, Part::kQNorm, layer, q);
    Prepare(attn, attn.kv_heads, Part::kKNorm, layer, k);
    const int d = attn.head_dim, group = attn.heads / attn.kv_heads;
    Matrix mixed(x.size(), std::vector<double>(static_cast<size_t>(attn.heads) * d));
    for (int t = 0; t < static_cast<int>(x.size()); ++t)
      for (int h = 0; h < attn.heads; ++h) {
        const int first = attn.window > 0 ? std::max(0, t - attn.window + 1) : 0, kv = h / group;
        std::vector<double> score;
        double best = -INFINITY, total = 0;
        for (int s = first; s <= t; ++s) {
          double dot = 0;
          for (int i = 0; i < d; ++i) dot += q[t][h * d + i] * k[s][kv * d + i];
          dot *= attn.scale;
          if (attn.softcap > 0) dot = attn.softcap * std::tanh(dot / attn.softcap);
          score.push_back(dot);
          best = std::max(best, dot);
        }
        for (double& value : score) total += value = std::exp(value - best);
        for (int s = first; s <= t; ++s)
          for (int i = 0; i < d; ++i) mixed[t][h * d + i] += score[s - first] / total * v[s][kv * d + i];
      }
    return MatMul(mixed, bindings_.MatrixAsFloat(Part::kOut, layer), Bias(attn.out_bias, Part::kOutBias, layer));
  }

  // QK norm and rotation of every head.
  void Prepare(const spec::Attention& attn, int heads, Part norm, int layer, Matrix& x) {
    const std::vector<float> weight =
        attn.qk_norm == spec::QkNorm::kPerHead ? bindings_.Vector(norm, layer) : std::vector<float>();
    const vt::RopeTable rope = MakeRopeTable(attn.rope, model_.max_position, bindings_.RopeFactors());
    for (size_t t = 0; t < x.size(); ++t)
      for (int h = 0; h < heads; ++h) {
        const std::span<double> head(x[t].data() + static_cast<size_t>(h) * attn.head_dim, attn.head_dim);
        if (!weight.empty()) NormRow(head, weight, attn.q_k_norm.eps);
        if (attn.rope.dim > 0) Rotate(head, rope, static_cast<int>(t));
      }
  }

  const spec::Model& model_;
  const Bindings& bindings_;
};

}  // namespace

std::vector<float> ReferenceLogits(const spec::Model& model, const Bindings& bindings,
                                   std::span<const int32_t> tokens) {
  return Reference(model, bindings).Run(tokens);
}

}  // namespace vllm

// Rotary tables: default, linear, llama3 (Llama 3.1) and YaRN (arXiv:2309.00071) frequencies.
#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace vllm {
namespace {

using std::numbers::pi;

double ScaleLlama3(double frequency, const spec::RopeScaling& s) {
  const double wavelength = 2 * pi / frequency;
  const double low = s.original_max_position / s.low_freq_factor, high = s.original_max_position / s.high_freq_factor;
  if (wavelength < high) return frequency;
  if (wavelength > low) return frequency / s.factor;
  const double smooth =
      (s.original_max_position / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) * frequency / s.factor + smooth * frequency;
}

double YarnMscale(double scale, double mscale) { return scale <= 1 ? 1 : 0.1 * mscale * std::log(scale) + 1; }

double YarnAttentionFactor(const spec::RopeScaling& s) {
  if (s.attention_factor) return *s.attention_factor;
  if (s.mscale != 0 && s.mscale_all_dim != 0)
    return YarnMscale(s.factor, s.mscale) / YarnMscale(s.factor, s.mscale_all_dim);
  return YarnMscale(s.factor, 1);
}

// The share of the unscaled frequency at each dimension: 1 below the correction range, 0 above it.
std::vector<double> YarnExtrapolation(const spec::Rope& rope, int half) {
  const spec::RopeScaling& s = rope.scaling;
  const auto correction = [&](double rotations) {
    return rope.dim * std::log(s.original_max_position / (rotations * 2 * pi)) / (2 * std::log(rope.base));
  };
  double low = correction(s.beta_fast), high = correction(s.beta_slow);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, rope.dim - 1.0);
  if (low == high) high += 0.001;  // no division by zero
  std::vector<double> share(half);
  for (int i = 0; i < half; ++i) share[i] = 1 - std::clamp((i - low) / (high - low), 0.0, 1.0);
  return share;
}

}  // namespace

vt::RopeTable MakeRopeTable(const spec::Rope& rope, int max_position, std::span<const float> factors) {
  CHECK(rope.dim % 2 == 0, "rope over ", rope.dim, " elements");
  const int half = rope.dim / 2;
  CHECK(factors.empty() || static_cast<int>(factors.size()) == half, factors.size(), " factors for ", half);
  vt::RopeTable table{.dim = rope.dim, .interleaved = rope.interleaved};
  spec::Rope scaled = rope;
  if (scaled.scaling.original_max_position == 0) scaled.scaling.original_max_position = max_position;
  std::vector<double> extrapolation;
  if (rope.scaling.kind == spec::RopeScaling::Kind::kYarn) {
    extrapolation = YarnExtrapolation(scaled, half);
    table.attention_factor = static_cast<float>(YarnAttentionFactor(rope.scaling));
  }
  for (int i = 0; i < half; ++i) {
    double frequency = 1 / std::pow(rope.base, 2.0 * i / rope.dim);
    switch (rope.scaling.kind) {
      case spec::RopeScaling::Kind::kNone:
        break;
      case spec::RopeScaling::Kind::kLinear:
        frequency /= rope.scaling.factor;
        break;
      case spec::RopeScaling::Kind::kLlama3:
        frequency = ScaleLlama3(frequency, scaled.scaling);
        break;
      case spec::RopeScaling::Kind::kYarn:
        frequency = frequency / rope.scaling.factor * (1 - extrapolation[i]) + frequency * extrapolation[i];
        break;
    }
    if (!factors.empty()) frequency /= factors[i];
    table.inverse_frequency.push_back(static_cast<float>(frequency));
  }
  return table;
}

}  // namespace vllm

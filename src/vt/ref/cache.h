// Elements of the KV cache, one at a time: for reference kernels and tests.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "quant/float8.h"
#include "quant/half.h"
#include "vt/kv_page.h"
#include "vt/tensor.h"

namespace vt {

// The cache of one layer in host memory. A slot is block * block_size + offset.
class CacheView {
 public:
  CacheView(const Tensor& cache, const KvPage& page) : data_(cache.data), page_(page) {}

  float Load(int64_t slot, KvKind kind, int64_t head, int64_t i) const {
    const std::byte* p = Page(slot) + page_.Offset(kind, head, slot % page_.block_size, i);
    switch (page_.dtype) {
      case DType::kF16:
        return FloatFromHalf(Read<uint16_t>(p));
      case DType::kBF16:
        return FloatFromBf16(Read<uint16_t>(p));
      case DType::kF8E4M3:
        return FloatFromE4m3(Read<uint8_t>(p));
      case DType::kF8E5M2:
        return FloatFromE5m2(Read<uint8_t>(p));
      case DType::kI8:
        return Read<float>(Page(slot) + page_.ScaleOffset(kind, head, slot % page_.block_size)) *
               static_cast<float>(Read<int8_t>(p));
      default:
        return Read<float>(p);
    }
  }

  // Writes the key and the value of a token's head, [head_dim] each.
  void Store(int64_t slot, int64_t head, const float* key, const float* value) const {
    StoreRow(slot, KvKind::kKey, head, key);
    StoreRow(slot, KvKind::kValue, head, value);
    // The readers of i8 and E4M3 look for NaN in keys only.
    const bool i8 = page_.dtype == DType::kI8;
    if (!i8 && page_.dtype != DType::kF8E4M3) return;
    const auto bad = [i8](float x) { return i8 ? !std::isfinite(x) : std::isnan(x); };
    if (std::none_of(key, key + page_.head_dim, bad) && std::none_of(value, value + page_.head_dim, bad)) return;
    if (i8)
      Write(Page(slot) + page_.ScaleOffset(KvKind::kKey, head, slot % page_.block_size), std::nanf(""));
    else
      Write(Page(slot) + page_.Offset(KvKind::kKey, head, slot % page_.block_size, 0), kE4m3Nan);
  }

 private:
  template <class T>
  static T Read(const std::byte* p) {
    T value;
    std::memcpy(&value, p, sizeof(T));
    return value;
  }
  template <class T>
  static void Write(std::byte* p, T value) {
    std::memcpy(p, &value, sizeof(T));
  }
  std::byte* Page(int64_t slot) const { return data_ + slot / page_.block_size * page_.bytes(); }

  void StoreRow(int64_t slot, KvKind kind, int64_t head, const float* row) const {
    const int64_t token = slot % page_.block_size;
    float inverse = 1;
    if (page_.scaled()) {
      float largest = 0;
      for (int i = 0; i < page_.head_dim; ++i) largest = std::max(largest, std::abs(row[i]));
      const float scale = std::max(largest / 127.0f, 1e-6f);
      inverse = 1 / scale;
      Write(Page(slot) + page_.ScaleOffset(kind, head, token), scale);
    }
    for (int i = 0; i < page_.head_dim; ++i) {
      std::byte* p = Page(slot) + page_.Offset(kind, head, token, i);
      switch (page_.dtype) {
        case DType::kF16:
          Write(p, HalfFromFloat(row[i]));
          break;
        case DType::kBF16:
          Write(p, Bf16FromFloat(row[i]));
          break;
        case DType::kF8E4M3:
          Write(p, E4m3FromFloat(row[i]));
          break;
        case DType::kF8E5M2:
          Write(p, E5m2FromFloat(row[i]));
          break;
        case DType::kI8:
          Write(p, Int8FromFloat(row[i] * inverse));
          break;
        default:
          Write(p, row[i]);
      }
    }
  }

  // Half away from zero; NaN: 0.
  static int8_t Int8FromFloat(float x) {
    const float limited = std::clamp(x >= 0 ? x + 0.5f : x - 0.5f, -128.0f, 127.0f);
    return std::isnan(limited) ? int8_t{0} : static_cast<int8_t>(limited);
  }

  std::byte* data_;
  KvPage page_;
};

}  // namespace vt

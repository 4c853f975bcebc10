// How a row of floats enters the KV cache: rounded to its element, then spread over its unit (see KvPage). Over Vec:
// the unit includes its vec_*.h first. The loops without Vec have no branches, so that the compiler makes vectors of
// them.
#pragma once
#include <cstdint>
#include <cstring>

#include "vt/cpu/kv_places.h"

namespace vt {
namespace {

constexpr int64_t kUnitTokens = 16;
constexpr int64_t kWriteChunk = 64;  // elements that are rounded at once, on the stack

inline uint32_t BitsOf(float x) { return __builtin_bit_cast(uint32_t, x); }

// The bodies of quant/float8.h once more: a shared inline function must not be compiled for this instruction set.
inline uint8_t EncodeE4m3(float x) {
  const uint32_t bits = BitsOf(x), magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude + 0x7ffffu + ((magnitude >> 20) & 1) - (120u << 23)) >> 20;
  const uint32_t tiny = BitsOf(__builtin_bit_cast(float, magnitude) + 16384.0f) & 0xff;
  uint32_t code = magnitude < 0x3c800000u ? tiny : normal;
  code = magnitude >= 0x43e00000u ? 0x7eu : code;
  code |= (bits >> 24) & 0x80;
  return static_cast<uint8_t>(magnitude > 0x7f800000u ? 0x7fu : code);
}

inline uint8_t EncodeE5m2(float x) {
  const uint32_t bits = BitsOf(x), magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude + 0xfffffu + ((magnitude >> 21) & 1) - (112u << 23)) >> 21;
  const uint32_t tiny = BitsOf(__builtin_bit_cast(float, magnitude) + 128.0f) & 0xff;
  uint32_t code = magnitude < 0x38800000u ? tiny : normal;
  code = magnitude >= 0x47600000u ? 0x7bu : code;
  code |= (bits >> 24) & 0x80;
  return static_cast<uint8_t>(magnitude > 0x7f800000u ? 0x7fu : code);
}

// Half away from zero; what is no number becomes 0.
inline uint8_t EncodeI8(float x, float inverse) {
  float v = x * inverse;
  v += v >= 0 ? 0.5f : -0.5f;
  v = v < 127.0f ? v : 127.0f;
  v = v > -128.0f ? v : -128.0f;
  return static_cast<uint8_t>(static_cast<int32_t>(v));
}

// The bits of the largest magnitude; from 0x7f800000 on: an infinity, then NaN.
inline uint32_t LargestBits(const float* x, int64_t n) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude = BitsOf(x[i]) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

// Rounds n <= kWriteChunk floats into `codes`, elements of 1 or 2 bytes.
inline void Encode(KvElement element, const float* x, int64_t n, float inverse, uint8_t* codes) {
  switch (element) {
    case KvElement::kE4m3:
      for (int64_t i = 0; i < n; ++i) codes[i] = EncodeE4m3(x[i]);
      return;
    case KvElement::kE5m2:
      for (int64_t i = 0; i < n; ++i) codes[i] = EncodeE5m2(x[i]);
      return;
    case KvElement::kI8:
      for (int64_t i = 0; i < n; ++i) codes[i] = EncodeI8(x[i], inverse);
      return;
    default:
      break;
  }
  uint16_t* const words = reinterpret_cast<uint16_t*>(codes);
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int64_t count = n - i < Vec::kLanes ? n - i : Vec::kLanes;
    const Vec::F v = count == Vec::kLanes ? Vec::Load(x + i) : Vec::LoadPart(x + i, count);
    if (element == KvElement::kF16)
      Vec::StoreHalfPart(words + i, v, count);
    else
      Vec::StoreBf16Part(words + i, v, count);
  }
}

// out[i * stride] = in[i], T by T.
template <class T>
inline void Spread(const void* in, int64_t n, int64_t stride, uint8_t* out) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(out + i * stride * int64_t{sizeof(T)}, static_cast<const uint8_t*>(in) + i * int64_t{sizeof(T)},
                sizeof(T));
}

inline void WriteKeys(KvElement element, const float* x, int64_t head_dim, float inverse, int64_t token,
                      uint8_t* unit) {
  if (element == KvElement::kF32) return Spread<float>(x, head_dim, kUnitTokens, unit + token * 4);
  alignas(64) uint8_t codes[2 * kWriteChunk];
  for (int64_t i = 0; i < head_dim; i += kWriteChunk) {
    const int64_t n = head_dim - i < kWriteChunk ? head_dim - i : kWriteChunk;
    Encode(element, x + i, n, inverse, codes);
    if (element == KvElement::kF16)
      Spread<uint16_t>(codes, n, kUnitTokens, unit + i * 2 * kUnitTokens + token * 2);
    else if (element == KvElement::kBf16)
      Spread<uint32_t>(codes, n / 2, kUnitTokens, unit + i * 2 * kUnitTokens + token * 4);
    else
      Spread<uint16_t>(codes, n / 2, kUnitTokens, unit + i * kUnitTokens + token * 2);
  }
}

inline void WriteValues(KvElement element, const float* x, int64_t head_dim, float inverse, int64_t token,
                        uint8_t* unit) {
  if (element == KvElement::kF32) return Spread<float>(x, head_dim, 1, unit + token * head_dim * 4);
  alignas(64) uint8_t codes[2 * kWriteChunk];
  for (int64_t i = 0; i < head_dim; i += kWriteChunk) {
    const int64_t n = head_dim - i < kWriteChunk ? head_dim - i : kWriteChunk;
    Encode(element, x + i, n, inverse, codes);
    if (element == KvElement::kF16 || element == KvElement::kBf16)
      Spread<uint16_t>(codes, n, 1, unit + (token * head_dim + i) * 2);
    else  // byte by byte: another worker may write the neighbouring token
      Spread<uint8_t>(codes, n, 2, unit + token / 2 * (2 * head_dim) + i * 2 + token % 2);
  }
}

inline void WriteFloat(uint8_t* p, float x) { std::memcpy(p, &x, sizeof(x)); }

// Writes the key and the value of one head of the token at `slot`. NaN: as QkNormRopeCacheWriteOp says.
inline void WriteKv(const KvPlaces& places, int64_t slot, int64_t head, int64_t head_dim, const float* key,
                    const float* value) {
  const int64_t offset = slot % places.block_size, token = offset % kUnitTokens;
  uint8_t* const page = places.cache + slot / places.block_size * places.page_bytes;
  uint8_t* const keys = page + head * places.head_bytes + offset / kUnitTokens * places.unit_bytes;
  uint8_t* const values = keys + places.value_offset;
  const bool i8 = places.element == KvElement::kI8;
  if (!i8 && places.element != KvElement::kE4m3) {
    WriteKeys(places.element, key, head_dim, 1, token, keys);
    WriteValues(places.element, value, head_dim, 1, token, values);
    return;
  }
  const uint32_t largest_key = LargestBits(key, head_dim), largest_value = LargestBits(value, head_dim);
  const uint32_t largest = largest_key > largest_value ? largest_key : largest_value;
  const bool bad = largest > (i8 ? 0x7f7fffffu : 0x7f800000u);
  if (!i8) {
    WriteKeys(places.element, key, head_dim, 1, token, keys);
    WriteValues(places.element, value, head_dim, 1, token, values);
    if (bad) keys[token * 2] = 0x7f;
    return;
  }
  const auto scale = [](uint32_t bits) {
    const float s = __builtin_bit_cast(float, bits) / 127.0f;
    return s > 1e-6f ? s : 1e-6f;
  };
  const float key_scale = scale(largest_key), value_scale = scale(largest_value);
  WriteKeys(places.element, key, head_dim, 1 / key_scale, token, keys);
  WriteValues(places.element, value, head_dim, 1 / value_scale, token, values);
  const int64_t scale_offset = kUnitTokens * head_dim + token * 4;
  WriteFloat(keys + scale_offset, bad ? __builtin_nanf("") : key_scale);
  WriteFloat(values + scale_offset, value_scale);
}

}  // namespace
}  // namespace vt

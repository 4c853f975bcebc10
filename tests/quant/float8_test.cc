// The 8-bit floats against PyTorch's conversions: every code, every border between two codes, and what lies beyond.
#include "quant/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace vt {
namespace {

struct Type {
  const char* name;
  float (*decode)(uint8_t);
  uint8_t (*encode)(float);
  float largest;
};
constexpr Type kTypes[] = {{"e4m3", FloatFromE4m3, E4m3FromFloat, kE4m3Max},
                           {"e5m2", FloatFromE5m2, E5m2FromFloat, kE5m2Max}};

// The words behind `verb` and `name` in the golden file.
std::istringstream Golden(const std::string& verb, const std::string& name) {
  std::ifstream file(std::string(VLLM_SOURCE_DIR) + "/tests/data/kv_cache/float8.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first, second;
    if (words >> first >> second && first == verb && second == name) return words;
  }
  ADD_FAILURE() << "no golden line " << verb << " " << name;
  return std::istringstream();
}

float FloatOf(const std::string& hex) {
  return std::bit_cast<float>(static_cast<uint32_t>(std::strtoul(hex.c_str(), nullptr, 16)));
}

TEST(Float8, EveryCodeReadsAsInPyTorch) {
  for (const Type& type : kTypes) {
    std::istringstream words = Golden("decode", type.name);
    int code = 0;
    for (std::string word; words >> word; ++code) {
      const float expected = FloatOf(word), actual = type.decode(static_cast<uint8_t>(code));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(actual)) << type.name << " " << code;
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(actual), std::bit_cast<uint32_t>(expected)) << type.name << " " << code;
      }
    }
    EXPECT_EQ(code, 256);
  }
}

TEST(Float8, FloatsRoundAsInPyTorchAndSaturate) {
  for (const Type& type : kTypes) {
    std::istringstream words = Golden("encode", type.name);
    int count = 0;
    for (std::string word; words >> word; ++count) {
      const int expected = static_cast<int>(std::strtoul(word.substr(9).c_str(), nullptr, 16));
      EXPECT_EQ(type.encode(FloatOf(word.substr(0, 8))), expected) << type.name << " " << word;
    }
    EXPECT_GT(count, 350);
  }
}

TEST(Float8, EveryFiniteValueReturnsToItsCode) {
  for (const Type& type : kTypes)
    for (int code = 0; code < 256; ++code) {
      const float value = type.decode(static_cast<uint8_t>(code));
      if (std::isfinite(value)) {
        EXPECT_EQ(type.encode(value), code) << type.name;
      }
    }
}

TEST(Float8, WhatIsBeyondTheLargestBecomesTheLargestAndNanStaysNan) {
  for (const Type& type : kTypes) {
    for (const float value : {type.largest * 1.2f, 1e38f, HUGE_VALF}) {
      EXPECT_EQ(type.decode(type.encode(value)), type.largest) << type.name;
      EXPECT_EQ(type.decode(type.encode(-value)), -type.largest) << type.name;
    }
    EXPECT_TRUE(std::isnan(type.decode(type.encode(std::nanf("")))));
    EXPECT_TRUE(std::isnan(type.decode(type.encode(-std::nanf("")))));
  }
}

}  // namespace
}  // namespace vt

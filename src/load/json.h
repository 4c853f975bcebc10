// The three JSON texts of model files, each read in one bounded pass: configurations, safetensors headers, shard
// indexes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/config.h"
#include "load/safetensors.h"

namespace vllm {

// Errors are kBadFile and say what is wrong, without the file's name: the caller puts it before them.

// An object within kMaxConfigDepth and kMaxConfigValues. As Python reads it: of a key given twice the last value
// counts, and NaN, Infinity and -Infinity are numbers.
base::Result<ConfigValue> ParseConfigJson(std::string_view text);

// One entry of a safetensors header as it is written.
struct TensorEntry {
  std::string name = {};
  std::string dtype = {};
  std::vector<uint64_t> shape = {};
  uint64_t begin = 0;  // data_offsets
  uint64_t end = 0;
};
// In the order of the text; names may repeat.
base::Result<std::vector<TensorEntry>> ParseTensorEntries(std::string_view text);

// weight_map of model.safetensors.index.json, unchecked.
base::Result<SafetensorsIndex> ParseWeightMap(std::string_view text);

}  // namespace vllm

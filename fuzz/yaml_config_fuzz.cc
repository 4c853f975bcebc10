// Fuzz target: the YAML file of --config, and each value that it yields as every type of option.
// Covers: src/app/yaml_config.cc
#include <cstdint>
#include <string_view>

#include "app/yaml_config.h"
#include "base/options.h"
#include "base/result.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const vllm::YamlEntry& entry : vllm::ParseYamlConfig(text, "fuzz.yaml")) {
      for (const std::string& value : entry.values) {
        static_cast<void>(base::ParseBool(value));
        static_cast<void>(base::ParseDouble(value));
        static_cast<void>(base::ParseSize(value));
      }
    }
  } catch (const base::Exception&) {
    // A refusal is what a bad file gets; anything else ends the run.
  }
  return 0;
}

// Fuzz target: config.json as a tree that is read with every verb, and the other JSON texts of model files.
// Covers: src/load/config.cc src/load/json.cc src/load/text.cc
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/strings.h"
#include "load/config.h"
#include "load/json.h"

namespace {

// A refusal is what a wrong value gets, in one line of valid UTF-8; anything else ends the run.
template <class Call>
void Try(Call call) {
  try {
    call();
  } catch (const base::Exception& refusal) {
    const std::string_view message = refusal.what();
    if (message.find('\n') != message.npos || !base::IsValidUtf8(message)) abort();
  }
}

template <class T>
void Verbs(const vllm::Config& config, const std::string& key) {
  Try([&] { static_cast<void>(config.need<T>(key)); });
  Try([&] { static_cast<void>(config.get<T>(key, T())); });
  Try([&] { config.expect<T>(key, T()); });
}

void ReadAll(const vllm::Config& config, int depth) {
  Try([&] { config.CheckAllKnown({}); });
  for (const std::string& key : config.keys()) {
    Verbs<bool>(config, key);
    Verbs<int>(config, key);
    Verbs<int64_t>(config, key);
    Verbs<double>(config, key);
    Verbs<std::string>(config, key);
    Verbs<std::vector<bool>>(config, key);
    Verbs<std::vector<int>>(config, key);
    Verbs<std::vector<int64_t>>(config, key);
    Verbs<std::vector<double>>(config, key);
    Verbs<std::vector<std::string>>(config, key);
    Try([&] { static_cast<void>(config.need_in(key, 1, 64)); });
    Try([&] { static_cast<void>(config.get_in(key, 1, 1, 64)); });
    Try([&] { static_cast<void>(config.need_in_real(key, 0, 1)); });
    Try([&] { static_cast<void>(config.get_in_real(key, 0, 0, 1)); });
    Try([&] { static_cast<void>(config.list_size(key)); });
    Try([&] { config.Refuse(key, "is refused"); });
    if (depth < 4) Try([&] { ReadAll(config.object(key), depth + 1); });
    static_cast<void>(config.has(key + ".x"));
  }
  Try([&] { config.CheckAllKnown({}); });
  static_cast<void>(config.raw("a"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(vllm::ParseTensorEntries(text).ok());
  static_cast<void>(vllm::ParseWeightMap(text).ok());
  if (size > 4096) {  // the reads below are many; the parse alone is enough for long texts
    static_cast<void>(vllm::ParseConfigJson(text).ok());
    return 0;
  }
  Try([&] {
    const vllm::Config config = vllm::Config::Parse(text, "config.json");
    ReadAll(config, 0);
    const std::string_view ignored[] = {"b*", "c"};
    Try([&] { vllm::Config::Parse(text, "config.json").CheckAllKnown(ignored); });
  });
  return 0;
}

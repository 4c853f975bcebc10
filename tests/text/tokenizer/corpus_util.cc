// The seeded corpus of tools/golden/tokenizer.py, digests of ids, and the golden files.
#include "tests/text/tokenizer/corpus_util.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/result.h"
#include "text/tokenizer/unicode.h"

namespace vllm {

uint64_t Random::Next(uint64_t bound) {
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (z ^ (z >> 31)) % bound;
}

std::string Corpus(uint64_t seed, size_t size) {
  const base::Json table = Golden("corpus.json");
  Random random(seed);
  std::string out;
  const auto any = [&](const char* kind) {
    const base::Json& list = table.at(kind);
    return list[random.Next(list.size())].get<std::string>();
  };
  while (out.size() < size) {
    const uint64_t kind = random.Next(16);
    if (kind < 6) {
      out += any("words");
    } else if (kind < 10) {
      constexpr const char* kKinds[] = {"code", "emoji", "control", "tokens"};
      out += any(kKinds[kind - 6]);
    } else if (kind == 10) {
      const std::string unit = any("runs");
      for (uint64_t count = 1 + random.Next(40); count > 0; --count) out += unit;
    } else if (kind == 11) {
      for (uint64_t count = 1 + random.Next(12); count > 0; --count) out += static_cast<char>('0' + random.Next(10));
    } else {
      const base::Json& ranges = table.at("ranges");
      const base::Json& range = ranges[random.Next(ranges.size())];
      const auto low = range[0].get<uint64_t>(), high = range[1].get<uint64_t>();
      for (uint64_t count = 1 + random.Next(9); count > 0; --count) {
        tokenizer::AppendChar(out, static_cast<char32_t>(low + random.Next(high - low + 1)));
      }
    }
    out += any("separators");
  }
  return out;
}

std::vector<std::string> Chunks(const std::string& text, size_t size) {
  std::vector<std::string> out(1);
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = tokenizer::CharBytes(text[at]);
    out.back() += text.substr(at, bytes);
    at += bytes;
    if (out.back().size() >= size) out.emplace_back();
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

std::vector<std::string> LongInputs() {
  constexpr size_t kBytes = 128 * 1024;
  std::vector<std::string> texts;
  for (const std::string_view unit : {"a", "us", " ", "\n", "é", "1", "<start_of_turn>user\nhello<end_of_turn>\n"}) {
    std::string& text = texts.emplace_back();
    for (size_t count = kBytes / unit.size(); count > 0; --count) text += unit;
  }
  Random random(7);
  std::string& base64 = texts.emplace_back();
  while (base64.size() < kBytes)
    base64 += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.Next(64)];
  return texts;
}

std::string Digest(const std::string& text) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash);
  std::string out;
  for (int i = 0; i < 8; ++i) {
    out += "0123456789abcdef"[hash[i] >> 4];
    out += "0123456789abcdef"[hash[i] & 15];
  }
  return out;
}

std::string Digest(std::span<const int32_t> ids) {
  std::string bytes;
  for (const int32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(id >> shift & 0xFF);
  }
  return Digest(bytes);
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string GoldenPath(const std::string& name) { return std::string(VLLM_SOURCE_DIR "/tests/data/tokenizer/") + name; }

base::Json Golden(const std::string& name) { return base::ParseJson(ReadFile(GoldenPath(name)), 64).ValueOrThrow(); }

std::vector<int32_t> Ids(const base::Json& list) { return list.get<std::vector<int32_t>>(); }

tokenizer::Parts PartsWith(const std::string& kind, const base::Json& component) {
  base::Json json = {{"model", {{"type", "WordLevel"}, {"vocab", {{"<unk>", 0}}}, {"unk_token", "<unk>"}}}};
  json[kind] = component;
  return tokenizer::ReadTokenizerJson(base::DumpJson(json), "tokenizer.json", {});
}

std::string RefusalOf(const std::string& json, const std::string& config) {
  try {
    Tokenizer::FromTokenizerJson(json, config);
  } catch (const base::Exception& e) {
    return e.what();
  }
  return "";
}

void ExpectGolden(const Tokenizer& tokenizer, const base::Json& golden, EncodeOptions options) {
  const DecodeOptions all = {.skip_special_tokens = false};
  for (const base::Json& sample : golden.at("samples")) {
    const auto text = sample[0].get<std::string>();
    EXPECT_EQ(tokenizer.Encode(text, options), Ids(sample[1])) << text;
    EXPECT_EQ(tokenizer.Decode(Ids(sample[1]), all), sample[2].get<std::string>()) << text;
  }
  const std::vector<std::string> chunks = Chunks(Corpus(1, 200 * 1024), 2048);
  ASSERT_EQ(chunks.size(), golden.at("chunks").size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    options.parse_special = true;
    const std::vector<int32_t> ids = tokenizer.Encode(chunks[i], options);
    EXPECT_EQ(Digest(ids), golden.at("chunks")[i].get<std::string>()) << "chunk " << i;
    EXPECT_EQ(Digest(tokenizer.Decode(ids, all)), golden.at("texts")[i].get<std::string>()) << "chunk " << i;
    if (!golden.contains("raw_chunks")) continue;
    options.parse_special = false;
    EXPECT_EQ(Digest(tokenizer.Encode(chunks[i], options)), golden.at("raw_chunks")[i].get<std::string>())
        << "chunk " << i;
  }
}

}  // namespace vllm

// The seeded corpus of tools/golden/tokenizer.py, digests of ids, and the golden files.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/tokenizer/loaders.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {

class Random {  // splitmix64
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next(uint64_t bound);

 private:
  uint64_t state_;
};

std::string Corpus(uint64_t seed, size_t size);
// Pieces of at least `size` bytes, cut between characters.
std::vector<std::string> Chunks(const std::string& text, size_t size);
// 128 KiB each of one unit again and again, and of base64: what has taken quadratic time elsewhere.
std::vector<std::string> LongInputs();
// First 16 hexadecimal digits of the SHA-256 of the ids as little-endian 32-bit words, or of a text.
std::string Digest(std::span<const int32_t> ids);
std::string Digest(const std::string& text);

std::string ReadFile(const std::string& path);
std::string GoldenPath(const std::string& name);
base::Json Golden(const std::string& name);
std::vector<int32_t> Ids(const base::Json& list);
// The parts of a tokenizer.json whose model knows no word, with one more component.
tokenizer::Parts PartsWith(const std::string& kind, const base::Json& component);
// What FromTokenizerJson says when it refuses; "" when it does not.
std::string RefusalOf(const std::string& json, const std::string& config = "");
// Compares ids, digests and texts of a golden with what the tokenizer gives.
void ExpectGolden(const Tokenizer& tokenizer, const base::Json& golden, EncodeOptions options);

}  // namespace vllm

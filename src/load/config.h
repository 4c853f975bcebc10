// Typed reads of a model's configuration: config.json, generation_config.json or the metadata of a GGUF file.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

// One value of the tree. Objects keep the order of the file. A plain value.
struct ConfigValue {
  enum class Kind { kNull, kBool, kInt, kDouble, kString, kList, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;  // also set for kInt
  std::string text = {};
  std::vector<ConfigValue> items = {};  // of a list, or the values of an object
  std::vector<std::string> keys = {};   // of an object, parallel to items
};

// A view of an object of the tree; copies share the tree and the record of what was read.
//
// Keys: the literal key is tried first ("llama.block_count" of a GGUF file), then the path ("rope_scaling.type"). A
// null counts as absent. Every read marks its key as known, present or not; CheckAllKnown refuses whatever nobody read,
// because a key that we do not know may change the numbers. All errors are base::Exception (kBadFile, kUnsupported) of
// one line: "config.json: hidden_size '-3' is not in 1..1048576; …".
//
// T is one of bool, int, int64_t, double, std::string, and std::vector of int64_t, double, std::string, bool.
// An integer reads as double; a double with an integral value reads as integer. Not thread-safe (reads are recorded).
class Config {
 public:
  Config();  // an empty object
  Config(ConfigValue root, std::string source);
  // `source` names the file in messages. Throws kBadFile for text that is no JSON object within the limits.
  static Config Parse(std::string_view json, std::string source);
  // Reads a JSON file. Throws kNotFound when it is not there.
  static Config FromFile(const std::string& path);

  // The key must be there.
  template <class T>
  T need(std::string_view key) const;
  // The documented default holds when it is not.
  template <class T>
  T get(std::string_view key, T fallback) const;
  template <class T>
  std::optional<T> find(std::string_view key) const;
  // A value that we do not implement must not be there: absent, null or `only`.
  template <class T>
  void expect(std::string_view key, T only) const;
  // The same with a range, both ends included; the error names value and range.
  int64_t need_in(std::string_view key, int64_t lo, int64_t hi) const;
  int64_t get_in(std::string_view key, int64_t fallback, int64_t lo, int64_t hi) const;
  double need_in_real(std::string_view key, double lo, double hi) const;
  double get_in_real(std::string_view key, double fallback, double lo, double hi) const;

  // Present and not null. Marks the key as known.
  bool has(std::string_view key) const;
  // The value itself (null when absent), for values of several types. Marks the key, and all below it, as known.
  const ConfigValue* raw(std::string_view key) const;
  // The nested object; an empty one when absent. Reads below it are recorded in the same record.
  Config object(std::string_view key) const;
  // The length of a list, 0 when absent. Marks the key.
  size_t list_size(std::string_view key) const;
  // Keys that do not change the numbers. A name ending in '*' covers every key that starts so.
  void ignore(std::span<const std::string_view> keys) const;
  // Throws kUnsupported naming the first key, at any depth, that was neither read nor ignored.
  void CheckAllKnown(std::span<const std::string_view> also_ignored) const;

  std::vector<std::string> keys() const;
  bool empty() const;
  const std::string& source() const { return source_; }
  // "config.json: <path>.<key> '<value>' <complaint>" as an exception: for checks across keys.
  [[noreturn]] void Refuse(std::string_view key, std::string_view complaint) const;

 private:
  struct Record;
  const ConfigValue* Lookup(std::string_view key) const;
  std::string Full(std::string_view key) const;

  std::shared_ptr<const ConfigValue> tree_;
  const ConfigValue* node_ = nullptr;
  std::shared_ptr<Record> record_;
  std::string prefix_;
  std::string source_;
};

}  // namespace vllm

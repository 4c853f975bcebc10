// The YAML file of --config: a flat mapping of flag names, read from the parser's events so that nothing recurses over
// it.
#include "app/yaml_config.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/strings.h"

namespace vllm {
namespace {

using base::ErrorCode;

// Plain scalars are typed as YAML 1.2's core schema does; quoted ones are texts.
base::Json Typed(const std::string& text, bool quoted) {
  if (quoted) return text;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (const base::Result<int64_t> number = base::ParseInt(text); number.ok()) return *number;
  if (const base::Result<double> number = base::ParseDouble(text); number.ok()) return *number;
  return text;
}

// Builds one JSON value a top-level key, and keeps the text of scalars as it was written.
class Reader : public YAML::EventHandler {
 public:
  explicit Reader(std::string_view name) : name_(name) {}
  std::vector<YamlEntry> Take() && { return std::move(entries_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Scalar(mark, "", anchor, "", false); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Fail(mark, "an alias (*name); write the value out"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Scalar(mark, tag, anchor, value, tag == "!");
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, base::Json::array());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, base::Json::object());
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    base::Json value;
    std::string key;  // of a mapping: the key that waits for its value
    bool has_key = false;
  };

  [[noreturn]] void Fail(const YAML::Mark& mark, std::string_view what) {
    base::Throw(ErrorCode::kInvalidArgument, name_, ":", mark.line + 1, ": is ", what);
  }
  void CheckPlain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) Fail(mark, "an anchor (&name); write the value out");
    if (!tag.empty() && tag != "?" && tag != "!") Fail(mark, "a tagged value; write it without the tag");
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, base::Json empty) {
    CheckPlain(mark, tag, anchor);
    if (levels_.empty() && !empty.is_object()) Fail(mark, "no mapping; write 'flag: value' lines");
    if (!levels_.empty() && levels_.back().value.is_object() && !levels_.back().has_key)
      Fail(mark, "a key that is no text");
    if (levels_.size() >= static_cast<size_t>(base::kMaxYamlDepth)) Fail(mark, "nested too deep");
    levels_.push_back({std::move(empty), {}, false});
  }

  void Close() {
    base::Json value = std::move(levels_.back().value);
    levels_.pop_back();
    if (levels_.empty()) return;
    if (levels_.size() == 1) {
      AddEntry(std::move(value));
    } else {
      Add(std::move(value));
    }
  }

  void Scalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text,
              bool quoted) {
    CheckPlain(mark, tag, anchor);
    if (levels_.empty()) {
      if (text.empty()) return;  // an empty document
      Fail(mark, "no mapping; write 'flag: value' lines");
    }
    Level& level = levels_.back();
    if (level.value.is_object() && !level.has_key) {
      level.key = text;
      level.has_key = true;
      if (levels_.size() == 1) line_ = mark.line + 1;
      return;
    }
    if (levels_.size() > 1) {
      Add(Typed(text, quoted));
      if (levels_.size() == 2 && levels_.back().value.is_array()) texts_.push_back(text);
      return;
    }
    entries_.push_back({std::move(level.key), {text}, Typed(text, quoted).is_null(), line_});
    level.has_key = false;
  }

  // Puts a value into the innermost open collection.
  void Add(base::Json value) {
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else {
      level.value[level.key] = std::move(value);
      level.has_key = false;
    }
  }

  // A finished collection at top level: a sequence of scalars is a list of texts, anything else one JSON text.
  void AddEntry(base::Json value) {
    YamlEntry entry{std::move(levels_.back().key), {}, false, line_};
    const bool list = value.is_array() && texts_.size() == value.size();
    entry.values = list ? texts_ : std::vector<std::string>{base::DumpJson(value)};
    texts_.clear();
    entries_.push_back(std::move(entry));
    levels_.back().has_key = false;
  }

  std::string name_;
  std::vector<Level> levels_;
  std::vector<std::string> texts_;  // scalars of the top-level sequence that is open
  std::vector<YamlEntry> entries_;
  int line_ = 0;
};

}  // namespace

std::vector<YamlEntry> ParseYamlConfig(std::string_view text, std::string_view name) {
  if (text.size() > base::kMaxYamlBytes) {
    base::Throw(ErrorCode::kInvalidArgument, name, ": has ", text.size(), " bytes, at most ", base::kMaxYamlBytes);
  }
  if (!base::IsValidUtf8(text)) base::Throw(ErrorCode::kInvalidArgument, name, ": is not UTF-8 text");
  Reader reader(name);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(reader);
  } catch (const YAML::Exception& error) {
    base::Throw(ErrorCode::kInvalidArgument, name, ":", error.mark.line + 1, ": is not YAML: ", error.msg);
  }
  std::vector<YamlEntry> entries = std::move(reader).Take();
  std::vector<std::string> keys;
  for (const YamlEntry& entry : entries) {
    const std::string key = base::OptionName(entry.key);
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      base::Throw(ErrorCode::kInvalidArgument, name, ":", entry.line, ": '", entry.key, "' stands twice");
    }
    keys.push_back(key);
  }
  return entries;
}

}  // namespace vllm

// Log-probabilities in the two shapes of the OpenAI API.
#include "server/openai/logprobs_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/strings.h"

namespace vllm {
namespace {

// JSON has no infinity; this is what vLLM writes for it.
double Finite(float logprob) { return std::max(static_cast<double>(logprob), -9999.0); }

int64_t CodePoints(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// Position 0 is the token itself; where it shows again among the top entries it is left out there.
std::vector<Logprob> Listed(const PositionLogprobs& position, size_t most) {
  std::vector<Logprob> listed;
  for (const Logprob& entry : position) {
    if (listed.size() >= most) break;
    if (listed.empty() || entry.token_id != listed[0].token_id) listed.push_back(entry);
  }
  return listed;
}

// An object of many members: Json's own assignment searches all of them. The last value of a name counts.
class ObjectMembers {
 public:
  void Set(std::string name, base::Json value) {
    const auto [found, added] = places_.try_emplace(name, members_.size());
    if (added)
      members_.push_back({std::move(name), std::move(value)});
    else
      members_.begin()[static_cast<ptrdiff_t>(found->second)].second = std::move(value);
  }
  base::Json Take() { return base::Json(std::move(members_)); }

 private:
  base::Json::object_t members_;
  std::unordered_map<std::string, size_t> places_;
};

size_t MostEntries(const LogprobsStyle& style, size_t with_token) {
  return style.top < 0 || style.all_entries ? SIZE_MAX : static_cast<size_t>(style.top) + with_token;
}

base::Json ChatEntry(const Tokenizer& tokenizer, const Logprob& entry, bool as_token_ids) {
  base::Json json = base::Json::object();
  json["token"] = TokenLabel(tokenizer, entry.token_id, as_token_ids);
  json["logprob"] = Finite(entry.logprob);
  base::Json bytes = base::Json::array();
  for (unsigned char byte : tokenizer.TokenBytes(entry.token_id)) bytes.push_back(static_cast<int>(byte));
  json["bytes"] = std::move(bytes);
  return json;
}

}  // namespace

std::string TokenLabel(const Tokenizer& tokenizer, int32_t id, bool as_token_id) {
  if (as_token_id) return base::StrCat("token_id:", id);
  return base::ReplaceInvalidUtf8(tokenizer.TokenBytes(id));
}

base::Json CompletionLogprobs(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                              std::span<const std::optional<PositionLogprobs>> positions, const LogprobsStyle& style,
                              int64_t& offset) {
  base::Json offsets = base::Json::array(), token_logprobs = base::Json::array(), tokens = base::Json::array();
  base::Json top_logprobs = base::Json::array();
  for (size_t i = 0; i < ids.size() && i < positions.size(); ++i) {
    const std::string label = TokenLabel(tokenizer, ids[i], style.as_token_ids);
    offsets.push_back(offset);
    offset += CodePoints(label);
    tokens.push_back(label);
    if (!positions[i] || positions[i]->empty()) {
      token_logprobs.push_back(nullptr);
      top_logprobs.push_back(nullptr);
      continue;
    }
    token_logprobs.push_back(Finite(positions[i]->front().logprob));
    ObjectMembers top;
    for (const Logprob& entry : Listed(*positions[i], MostEntries(style, 1)))
      top.Set(TokenLabel(tokenizer, entry.token_id, style.as_token_ids), Finite(entry.logprob));
    top_logprobs.push_back(top.Take());
  }
  base::Json json = base::Json::object();
  json["text_offset"] = std::move(offsets);
  json["token_logprobs"] = std::move(token_logprobs);
  json["tokens"] = std::move(tokens);
  json["top_logprobs"] = std::move(top_logprobs);
  return json;
}

base::Json ChatLogprobs(const Tokenizer& tokenizer, std::span<const PositionLogprobs> positions,
                        const LogprobsStyle& style) {
  base::Json content = base::Json::array();
  for (const PositionLogprobs& position : positions) {
    if (position.empty()) continue;
    base::Json entry = ChatEntry(tokenizer, position.front(), style.as_token_ids);
    base::Json top = base::Json::array();
    for (const Logprob& other : Listed(position, MostEntries(style, 0)))
      top.push_back(ChatEntry(tokenizer, other, style.as_token_ids));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  base::Json json = base::Json::object();
  json["content"] = std::move(content);
  return json;
}

base::Json PromptLogprobs(const Tokenizer& tokenizer, std::span<const std::optional<PositionLogprobs>> positions) {
  base::Json list = base::Json::array();
  for (const auto& position : positions) {
    if (!position) {
      list.push_back(nullptr);
      continue;
    }
    ObjectMembers entries;
    for (const Logprob& entry : Listed(*position, SIZE_MAX)) {
      base::Json json = base::Json::object();
      json["logprob"] = Finite(entry.logprob);
      json["rank"] = entry.rank;
      json["decoded_token"] = TokenLabel(tokenizer, entry.token_id, false);
      entries.Set(std::to_string(entry.token_id), std::move(json));
    }
    list.push_back(entries.Take());
  }
  return list;
}

}  // namespace vllm

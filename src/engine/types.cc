// Names of the engine's enumerations, and pieces of a choice joined.
#include "engine/types.h"

#include <iterator>

namespace vllm {

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  CHECK(false, "finish reason ", static_cast<int>(reason));
}

void MergeChoice(ChoiceOutput& choice, ChoiceOutput&& news) {
  choice.text += news.text;
  choice.token_ids.insert(choice.token_ids.end(), news.token_ids.begin(), news.token_ids.end());
  choice.logprobs.insert(choice.logprobs.end(), std::make_move_iterator(news.logprobs.begin()),
                         std::make_move_iterator(news.logprobs.end()));
  if (news.finish) {
    choice.finish = news.finish;
    choice.stop_reason = std::move(news.stop_reason);
  }
}

}  // namespace vllm

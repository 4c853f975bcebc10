// Names of the engine's enumerations.
#include "engine/types.h"

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

}  // namespace vllm

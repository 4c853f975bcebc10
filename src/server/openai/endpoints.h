// The endpoints of the API, one file each. Handlers run on worker threads and answer through the responder.
#pragma once
#include <memory>

#include "server/openai/api_context.h"

namespace vllm {

void HandleCompletions(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder);
void HandleChatCompletions(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder);
void HandleModels(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder);
void HandleTokenize(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder);
void HandleDetokenize(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder);
void HandleHealth(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder);
void HandleVersion(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder);
void HandleMetrics(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder);
void HandleResetPrefixCache(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder);

}  // namespace vllm

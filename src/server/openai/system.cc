// Endpoints about the server itself: models, health, version, metrics, and the prefix cache's reset.
#include <nlohmann/json.hpp>

#include "base/metrics.h"
#include "base/version.h"
#include "server/openai/api_error.h"
#include "server/openai/endpoints.h"

namespace vllm {

void HandleModels(const ApiContext& context, HttpRequest, std::shared_ptr<Responder> responder) {
  const EngineInfo& info = context.engine->info();
  base::Json data = base::Json::array();
  for (const std::string& name : info.served_names) {
    base::Json permission = {{"id", "modelperm-" + name},
                             {"object", "model_permission"},
                             {"created", context.created},
                             {"allow_create_engine", false},
                             {"allow_sampling", true},
                             {"allow_logprobs", true},
                             {"allow_search_indices", false},
                             {"allow_view", true},
                             {"allow_fine_tuning", false},
                             {"organization", "*"},
                             {"group", nullptr},
                             {"is_blocking", false}};
    data.push_back({{"id", name},
                    {"object", "model"},
                    {"created", context.created},
                    {"owned_by", "vllm"},
                    {"root", context.engine->config().model},
                    {"parent", nullptr},
                    {"max_model_len", info.max_model_len},
                    {"permission", base::Json::array({std::move(permission)})}});
  }
  responder->Send(JsonResponse({{"object", "list"}, {"data", std::move(data)}}));
}

void HandleHealth(const ApiContext& context, HttpRequest, std::shared_ptr<Responder> responder) {
  responder->Send({.status = context.engine->healthy() ? 200 : 503, .content_type = ""});
}

void HandleVersion(const ApiContext&, HttpRequest, std::shared_ptr<Responder> responder) {
  responder->Send(JsonResponse({{"version", std::string(base::kVersion)}, {"vllm", std::string(base::kVllmVersion)}}));
}

void HandleMetrics(const ApiContext& context, HttpRequest, std::shared_ptr<Responder> responder) {
  responder->Send(
      {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = context.engine->metrics().Expose()});
}

void HandleResetPrefixCache(const ApiContext& context, HttpRequest, std::shared_ptr<Responder> responder) {
  responder->Send(JsonResponse({{"success", context.engine->ResetPrefixCache()}}));
}

}  // namespace vllm

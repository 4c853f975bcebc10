// ApiServer: routes, the key guard, and the HTTP server around one engine.
#include "server/api_server.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/version.h"
#include "server/openai/api_error.h"
#include "server/openai/endpoints.h"

namespace vllm {
namespace {

using Handler = void (*)(const ApiContext&, HttpRequest, std::shared_ptr<Responder>);

struct RouteRow {
  Route route;
  Handler handler;
  bool dev_only = false;
};

constexpr RouteRow kRoutes[] = {
    {{"GET", "/health", false}, HandleHealth},
    {{"GET", "/ping", false}, HandleHealth},
    {{"POST", "/ping", false}, HandleHealth},
    {{"GET", "/version", false}, HandleVersion},
    {{"GET", "/metrics", false}, HandleMetrics},
    {{"GET", "/v1/models"}, HandleModels},
    {{"POST", "/v1/completions"}, HandleCompletions},
    {{"POST", "/v1/chat/completions"}, HandleChatCompletions},
    {{"POST", "/tokenize"}, HandleTokenize},
    {{"POST", "/detokenize"}, HandleDetokenize},
    {{"POST", "/reset_prefix_cache"}, HandleResetPrefixCache, true},
};

std::string Digest(std::string_view key) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

HttpResponse HttpError(int status, const char* phrase) {
  return ErrorResponse({.status = status, .type = phrase, .message = phrase});
}

// Differs between configurations that may answer differently, so that clients can tell.
std::string Fingerprint(const EngineInfo& info) {
  const std::string digest = Digest(
      base::StrCat(info.model_name, "|", info.weight_summary, "|", info.device_summary, "|", info.max_model_len));
  char hash[9];
  std::snprintf(hash, sizeof hash, "%02x%02x%02x%02x", digest[0] & 255, digest[1] & 255, digest[2] & 255,
                digest[3] & 255);
  return base::StrCat("vllm-", base::kVllmVersion, "-", hash);
}

}  // namespace

ApiServer::ApiServer(LlmEngine& engine, const HttpServerOptions& http, ApiOptions api) {
  context_.engine = &engine;
  context_.options = std::move(api);
  context_.created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  context_.system_fingerprint = Fingerprint(engine.info());
  for (const std::string& key : context_.options.api_keys) key_digests_.push_back(Digest(key));
  http_ = HttpServer::Create(http, [this](HttpRequest request, std::shared_ptr<Responder> responder) {
    Handle(std::move(request), std::move(responder));
  });
}

ApiServer::~ApiServer() { http_.reset(); }

void ApiServer::Start() { http_->Start(); }

std::vector<Route> ApiServer::routes() const {
  std::vector<Route> routes;
  for (const RouteRow& row : kRoutes)
    if (!row.dev_only || context_.options.dev_mode) routes.push_back(row.route);
  return routes;
}

bool ApiServer::Authorized(const HttpRequest& request) const {
  if (key_digests_.empty() || request.method == "OPTIONS") return true;
  for (const RouteRow& row : kRoutes)
    if (!row.route.guarded && row.route.path == request.path) return true;
  const std::string_view header = request.Header("authorization");
  const size_t space = header.find(' ');
  if (space == std::string_view::npos || base::ToLower(header.substr(0, space)) != "bearer") return false;
  const std::string digest = Digest(header.substr(space + 1));
  bool found = false;  // every key is compared, in constant time
  for (const std::string& key : key_digests_) found |= CRYPTO_memcmp(key.data(), digest.data(), digest.size()) == 0;
  return found;
}

void ApiServer::Handle(HttpRequest request, std::shared_ptr<Responder> responder) const {
  if (context_.options.enable_log_requests)
    base::LogInfo(request.method, " ", request.path, " ", request.body.size(), " bytes");
  if (!Authorized(request)) return responder->Send({.status = 401, .body = R"({"error":"Unauthorized"})"});
  bool known_path = false;
  for (const RouteRow& row : kRoutes) {
    if (row.route.path != request.path || (row.dev_only && !context_.options.dev_mode)) continue;
    known_path = true;
    if (row.route.method != request.method) continue;
    try {
      return row.handler(context_, std::move(request), responder);
    } catch (const base::Exception& exception) {  // the tokenizer's refusal of a text
      return responder->Send(ErrorResponse(FromEngineError(exception.error())));
    }
  }
  responder->Send(known_path ? HttpError(405, "Method Not Allowed") : HttpError(404, "Not Found"));
}

}  // namespace vllm

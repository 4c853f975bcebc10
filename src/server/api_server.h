// ApiServer: routes, the key guard, and the HTTP server around one engine.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "server/http/http_server.h"
#include "server/openai/api_context.h"

namespace vllm {

struct Route {
  std::string_view method, path;
  bool guarded = true;
};

class ApiServer {
 public:
  // Binds; throws base::Exception naming the address. `engine` must outlive the server.
  ApiServer(LlmEngine& engine, const HttpServerOptions& http, ApiOptions api);
  ~ApiServer();

  void Start();
  int port() const { return http_->port(); }
  std::string url() const { return http_->url(); }
  // Waits for the requests in progress up to the time, cuts off the rest. True when none had to be cut.
  bool Stop(int64_t timeout_ms) { return http_->Stop(timeout_ms); }
  const HttpServer& http() const { return *http_; }
  // Every route that answers, for documentation and tests.
  std::vector<Route> routes() const;

 private:
  void Handle(HttpRequest request, std::shared_ptr<Responder> responder) const;
  bool Authorized(const HttpRequest& request) const;

  ApiContext context_;
  std::vector<std::string> key_digests_;  // SHA-256 of each key
  std::unique_ptr<HttpServer> http_;
};

}  // namespace vllm

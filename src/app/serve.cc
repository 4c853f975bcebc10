// vllm serve MODEL: the HTTP server, until a signal ends it.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "app/commands.h"
#include "app/interrupt.h"
#include "app/session.h"
#include "base/log.h"
#include "base/strings.h"
#include "server/api_server.h"

namespace vllm {
namespace {

constexpr int kHealthPollMs = 500;

ApiOptions ReadApiOptions(const base::Options& options) {
  ApiOptions api;
  api.api_keys = options.List("api_key");
  for (const std::string& key : api.api_keys) {
    if (key.empty())
      base::Throw(base::ErrorCode::kInvalidArgument, options.Origin("api_key"),
                  ": is empty; give a key or leave it out");
  }
  api.response_role = options.String("response_role", api.response_role);
  api.chat_template_content_format = options.String("chat_template_content_format", api.chat_template_content_format);
  api.default_chat_template_kwargs = options.String("default_chat_template_kwargs", "");
  api.trust_request_chat_template = options.Bool("trust_request_chat_template", false);
  api.enable_request_id_headers = options.Bool("enable_request_id_headers", false);
  api.enable_prompt_tokens_details = options.Bool("enable_prompt_tokens_details", false);
  api.enable_force_include_usage = options.Bool("enable_force_include_usage", false);
  api.return_tokens_as_token_ids = options.Bool("return_tokens_as_token_ids", false);
  api.exclude_tools_when_tool_choice_none = options.Bool("exclude_tools_when_tool_choice_none", false);
  api.enable_log_requests = options.Bool("enable_log_requests", false);
  api.dev_mode = options.Bool("dev_mode", false);
  return api;
}

HttpServerOptions ReadHttpOptions(const base::Options& options) {
  HttpServerOptions http;
  http.host = options.String("host", http.host);
  const int64_t port = options.Int("port", http.port);
  if (port < 0 || port > 65535) options.Refuse("port", "is not in 0 .. 65535");
  http.port = static_cast<int>(port);
  http.uds = options.String("uds", "");
  return http;
}

// Waits for the first signal; false when the engine died before.
bool WaitForEnd(const LlmEngine& engine) {
  while (InterruptCount() == 0) {
    if (!engine.healthy()) return false;
    WaitForInterrupt(0, kHealthPollMs);
  }
  return true;
}

}  // namespace

int RunServe(const CommandLine& line) {
  // Everything that a flag can get wrong is told before the model is loaded.
  const ApiOptions api = ReadApiOptions(line.options);
  const HttpServerOptions http = ReadHttpOptions(line.options);
  const int64_t shutdown_s = line.options.Int("shutdown_timeout", 0);
  if (shutdown_s < 0 || shutdown_s > 86400) line.options.Refuse("shutdown_timeout", "is not in 0 .. 86400 seconds");

  const auto engine = OpenEngine(line);
  ApiServer server(*engine, http, api);
  CatchInterrupts();
  server.Start();
  std::fputs(StartupSummary(*engine, server.url()).c_str(), stderr);
  base::LogInfo("listening on ", server.url());

  if (!WaitForEnd(*engine)) {
    base::LogError("the engine has died; the server ends");
    server.Stop(0);
    return 1;
  }
  base::LogInfo("shutting down; running requests get ", shutdown_s, " s, a second signal ends them at once");
  const int seen = InterruptCount();
  std::thread([seen] {
    while (WaitForInterrupt(seen, -1) == seen) {
    }
    std::_Exit(1);
  }).detach();
  if (!server.Stop(shutdown_s * 1000)) base::LogWarning("requests were cut off");
  return 0;
}

}  // namespace vllm

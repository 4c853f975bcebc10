// A real engine behind a real server on a free port, and clients that speak JSON to it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/api_server.h"
#include "tests/server/http_client_util.h"

namespace vllm::testing {

struct JsonAnswer {
  int status = 0;
  std::shared_ptr<const base::Json> json = {};  // null JSON when the body is none
  const base::Json& operator*() const { return *json; }
};

// One stream, checked for its framing as it is read.
struct StreamAnswer {
  int status = 0;
  std::string fault = {};                         // what is wrong with the framing; "" when nothing is
  std::shared_ptr<const base::Json> events = {};  // an array
  // The text of one choice, of completions or chat.
  std::string Text(int index = 0) const;
};

class TestServer {
 public:
  explicit TestServer(const EngineConfig& config, ApiOptions api = {});

  LlmEngine& engine() { return *engine_; }
  ApiServer& server() { return *server_; }
  int port() const { return server_->port(); }
  // `fields` is a JSON object.
  JsonAnswer Post(std::string_view path, std::string_view fields) const;
  JsonAnswer Get(std::string_view path) const;
  // Adds "stream": true.
  StreamAnswer Stream(std::string_view path, std::string_view fields) const;
  // Waits until no request runs and no block is used; false after a minute.
  bool BecomesIdle();

 private:
  std::unique_ptr<LlmEngine> engine_;
  std::unique_ptr<ApiServer> server_;
};

// float32 numerics, two threads, blocks of 16 tokens, 512 tokens of context, served as "m".
EngineConfig ExactConfig(const std::string& model);
// Polls until it holds; false after a minute.
bool Eventually(const std::function<bool()>& holds);

}  // namespace vllm::testing

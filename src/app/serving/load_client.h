// The load generator: keep-alive HTTP/1.1 clients that send requests when they are due, and the times at which the
// events of the streamed answers come.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm {

struct HttpTarget {
  std::string host = "127.0.0.1";  // a name or an address, IPv6 without brackets
  int port = 8000;
  std::string prefix = {};  // of every path: "/v1" in http://host:1/v1
};

// "http://host:port/prefix", the port and the prefix optional. Throws base::Exception for anything else; `origin` is
// how the user wrote the option.
HttpTarget ParseTarget(std::string_view url, std::string_view origin);

using RequestHeaders = std::vector<std::pair<std::string, std::string>>;

struct WholeAnswer {
  int status = 0;  // 0: there was none; `error` says why
  std::string body = {}, error = {};
};
// One request on a connection of its own; waits for its end, at most `timeout_s` seconds.
WholeAnswer Ask(const HttpTarget& target, std::string_view method, std::string_view path, std::string_view body = {},
                const RequestHeaders& headers = {}, double timeout_s = 60);

// A streamed completion or chat request.
struct TimedRequest {
  std::string path = {}, body = {};
  RequestHeaders headers = {};
  double due_s = 0;           // after the start of the run
  int64_t prompt_tokens = 0;  // as far as the client knows; the answer's usage replaces it
  int64_t cancel_after = 0;   // closes the connection after so many events; 0: never
};

// Times are seconds of the steady clock. An event counts when it has choices, as in vLLM.
struct TimedAnswer {
  bool success = false;    // HTTP 200, and at least one event
  bool cancelled = false;  // by cancel_after
  int status = 0;
  std::string error = {};
  double start_s = 0;              // when it was sent, since the clock's epoch
  double queue_s = 0;              // that it waited for max_concurrency
  double ttft_s = 0;               // from start_s to the first event
  double latency_s = 0;            // from start_s to the last event
  std::vector<double> itl_s = {};  // between one event and the next
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;  // of the answer's usage; 0: it told none
  std::string text = {};
};

struct LoadOptions {
  int64_t max_concurrency = 0;  // 0: no limit
  double timeout_s = 6 * 3600;  // of one request: vLLM's
  std::function<void(size_t done)> on_done = {};
};

struct LoadRun {
  std::vector<TimedAnswer> answers = {};  // by request
  double duration_s = 0;                  // from the start to the last end
};

// Runs the requests to their ends on the calling thread. They must be in the order in which they are due. A mistake of
// a server is a failed answer; throws base::Exception when the host cannot be found.
LoadRun RunLoad(const HttpTarget& target, const std::vector<TimedRequest>& requests, const LoadOptions& options = {});

}  // namespace vllm

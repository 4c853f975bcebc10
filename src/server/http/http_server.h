// The HTTP/1.1 server: sockets in, requests to a handler, whole or streamed answers out. Knows nothing of models.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vllm {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = {};   // "GET"
  std::string path = {};     // as sent, without the query
  std::string query = {};    // without '?'
  HttpHeaders headers = {};  // names in lower case
  std::string body = {};
  // The first header of this name (lower case), or "".
  std::string_view Header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  HttpHeaders headers = {};
};

// The answer to one request: either Send, or StartStream, any number of Writes, and End. Thread-safe; calls after the
// client has gone, or after the answer's end, do nothing.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Send(HttpResponse response) = 0;
  // Sends the head; its body is ignored.
  virtual void StartStream(HttpResponse head) = 0;
  // Sends bytes of a streamed body at once, or queues them while the client has not taken the earlier ones. Never
  // blocks: a client that lets more than base::kMaxStreamBacklogBytes pile up, or takes nothing for
  // base::kWriteTimeoutSeconds, is disconnected. False once the client has gone.
  virtual bool Write(std::string_view bytes) = 0;
  virtual void End() = 0;
  // `gone` is called once, on a server thread, if the client goes before the answer has ended (a half-closed connection
  // counts as gone); at once if it has gone already.
  virtual void OnGone(std::function<void()> gone) = 0;
};

// Called on a worker thread, so it may take its time; must not throw (what it throws becomes a plain 500).
using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<Responder>)>;

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // a name or address, "" or "::" for all; IPv6 with or without brackets
  int port = 8000;                 // 0: any free one
  std::string uds = {};            // a unix socket's path instead of host and port
  int io_threads = 1, worker_threads = 2;
  size_t max_body_bytes = 0;        // 0: base::kMaxRequestBodyBytes
  int request_timeout_seconds = 0;  // 0: base::kRequestTimeoutSeconds
};

class HttpServer {
 public:
  // Binds and listens; throws base::Exception naming address and reason. Nothing is accepted before Start.
  static std::unique_ptr<HttpServer> Create(const HttpServerOptions& options, HttpHandler handler);
  virtual ~HttpServer() = default;  // Stop(0)
  virtual void Start() = 0;
  // The bound port; 0 for a unix socket.
  virtual int port() const = 0;
  // "http://127.0.0.1:8000" or "unix:/path".
  virtual std::string url() const = 0;
  // Closes the listening sockets and idle connections, waits for the requests in progress, then cuts the rest off.
  // Returns true when none had to be cut. Thread-safe.
  virtual bool Stop(int64_t timeout_ms) = 0;
  // Connections that are open and requests that are being answered. Thread-safe.
  virtual int64_t open_connections() const = 0;
  virtual int64_t active_requests() const = 0;
};

}  // namespace vllm

// Fuzz target: the bytes of HTTP connections, sent to a running server over a unix socket.
// Covers: src/server/http/http_server.cc
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/check.h"
#include "base/log.h"
#include "server/http/http_server.h"
#include "tests/server/http_client_util.h"

namespace {

using vllm::testing::HttpConnection;

// Whole answers, streams, answers that never come, and handlers that fail.
void Handle(vllm::HttpRequest request, std::shared_ptr<vllm::Responder> responder) {
  responder->OnGone([] {});
  const size_t kind = request.path.size() % 5;
  if (kind == 0) throw std::runtime_error("a handler's fault");
  if (kind == 1) return;
  if (kind == 2) {
    responder->StartStream({.content_type = "text/event-stream"});
    for (size_t at = 0; at <= request.body.size(); at += 100) responder->Write(request.body.substr(at, 100));
    return responder->End();
  }
  responder->Send({.body = request.body, .headers = {{"X-Query", request.query}}});
}

std::string Path() {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/vllm-fuzz-" + std::to_string(::getpid());
}

vllm::HttpServer& Server() {
  static const std::string path = Path();
  static const std::unique_ptr<vllm::HttpServer> server = [] {
    // The other kind of socket, and a drain, once.
    auto tcp = vllm::HttpServer::Create({.host = "127.0.0.1", .port = 0}, Handle);
    tcp->Start();
    vllm::testing::Fetch(tcp->port(), "GET", "/abc");
    CHECK(tcp->Stop(10000), tcp->url());
    tcp.reset();
    auto made = vllm::HttpServer::Create({.uds = path, .max_body_bytes = 4096}, Handle);
    made->Start();
    return made;
  }();
  return *server;
}

}  // namespace

// The first byte says whether the client half-closes at once (which counts as gone) or reads an answer before.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  base::SetLogLevel(base::LogLevel::kOff);  // failing handlers are a part of the game
  vllm::HttpServer& server = Server();
  CHECK(server.port() == 0, server.url());
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  HttpConnection connection(Path());
  CHECK(connection.connected(), "the server takes no connection");
  connection.Send(bytes);
  // Only a request whose head is there gets an answer without more bytes; others would wait for the server's time.
  const size_t head = bytes.find("\r\n\r\n");
  if ((data[0] & 1) && head != std::string_view::npos && bytes.find("Content-Length") == std::string_view::npos &&
      bytes.find("Transfer-Encoding") == std::string_view::npos && bytes.substr(0, 4) == "GET ")
    connection.ReceiveUntil("\r\n\r\n");
  if (data[0] & 2)
    connection.Reset();
  else
    connection.HalfClose();
  while ((data[0] & 2) == 0 && !connection.Receive().empty()) {
  }
  return 0;
}

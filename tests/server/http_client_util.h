// A small HTTP client over raw sockets for tests, which can also speak badly, half-close and reset.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace vllm::testing {

struct HttpAnswer {
  int status = 0;                                // 0: the connection ended before a whole answer had come
  std::map<std::string, std::string> headers{};  // names in lower case
  std::string body{};                            // without the framing of chunks
  bool complete = false;                         // the body ended as its framing says
};

// One connection; closed at its end. Every read gives up after a minute, so that a test fails and does not hang.
class HttpConnection {
 public:
  explicit HttpConnection(int port, const std::string& address = "127.0.0.1");
  explicit HttpConnection(const std::string& unix_path);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  bool connected() const { return socket_ >= 0; }
  // False when the other side no longer takes bytes.
  bool Send(std::string_view bytes);
  // What has come, at least one byte; "" at the end or after the time.
  std::string Receive();
  // Reads on until `text` has come (it stays in the buffer) or the connection ends.
  bool ReceiveUntil(std::string_view text);
  // The next answer of the connection; `head_only` for answers to HEAD.
  HttpAnswer ReadAnswer(bool head_only = false);
  // True once the other side has closed or reset, within a minute.
  bool AtEnd();
  void HalfClose();
  void Reset();  // closes with RST
  void Close();

 private:
  void Guard();
  int socket_ = -1;
  std::string buffer_;
};

// "METHOD path HTTP/1.1" with Host, Content-Length and, when there is a body, a JSON content type.
std::string HttpText(std::string_view method, std::string_view path, std::string_view body = "",
                     std::string_view more_headers = "");
// One request on a connection of its own.
HttpAnswer Fetch(int port, std::string_view method, std::string_view path, std::string_view body = "",
                 std::string_view more_headers = "");

}  // namespace vllm::testing

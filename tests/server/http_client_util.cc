// A small HTTP client over raw sockets for tests.
#include "tests/server/http_client_util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace vllm::testing {

HttpConnection::HttpConnection(int port, const std::string& address) {
  const bool v6 = address.find(':') != std::string::npos;
  socket_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  Guard();
  int failed = -1;
  if (v6) {
    sockaddr_in6 to = {};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET6, address.c_str(), &to.sin6_addr);
    failed = ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to);
  } else {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
    failed = ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
  if (failed) Close();
}

HttpConnection::HttpConnection(const std::string& unix_path) {
  socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
  Guard();
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  std::strncpy(to.sun_path, unix_path.c_str(), sizeof to.sun_path - 1);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to)) Close();
}

HttpConnection::~HttpConnection() { Close(); }

void HttpConnection::Guard() {
  const timeval minute = {.tv_sec = 60, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof minute);
}

bool HttpConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string HttpConnection::Receive() {
  if (!buffer_.empty()) return std::exchange(buffer_, {});
  std::string bytes(65536, '\0');
  const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

bool HttpConnection::ReceiveUntil(std::string_view text) {
  while (buffer_.find(text) == std::string::npos) {
    std::string before = std::exchange(buffer_, {});
    const std::string more = Receive();
    buffer_ = std::move(before) + more;
    if (more.empty()) return false;
  }
  return true;
}

HttpAnswer HttpConnection::ReadAnswer(bool head_only) {
  HttpAnswer answer;
  if (!ReceiveUntil("\r\n\r\n")) return answer;
  const size_t end = buffer_.find("\r\n\r\n");
  const std::string head = buffer_.substr(0, end);
  buffer_.erase(0, end + 4);
  answer.status = std::atoi(head.c_str() + sizeof "HTTP/1.1");
  for (size_t line = head.find("\r\n"); line != std::string::npos;) {
    const size_t next = head.find("\r\n", line + 2);
    const std::string field = head.substr(line + 2, next == std::string::npos ? next : next - line - 2);
    const size_t colon = field.find(": ");
    if (colon != std::string::npos) answer.headers[base::ToLower(field.substr(0, colon))] = field.substr(colon + 2);
    line = next;
  }
  const auto length = answer.headers.find("content-length");
  if (head_only) {
    answer.complete = true;
  } else if (length != answer.headers.end()) {
    const size_t wanted = std::strtoull(length->second.c_str(), nullptr, 10);
    while (buffer_.size() < wanted) {
      std::string before = std::exchange(buffer_, {});
      const std::string more = Receive();
      buffer_ = std::move(before) + more;
      if (more.empty()) break;
    }
    answer.complete = buffer_.size() >= wanted;
    answer.body = buffer_.substr(0, wanted);
    buffer_.erase(0, wanted);
  } else if (answer.headers["transfer-encoding"] == "chunked") {
    while (ReceiveUntil("\r\n")) {
      const size_t size = std::strtoull(buffer_.c_str(), nullptr, 16), start = buffer_.find("\r\n") + 2;
      while (buffer_.size() < start + size + 2) {
        std::string before = std::exchange(buffer_, {});
        const std::string more = Receive();
        buffer_ = std::move(before) + more;
        if (more.empty()) return answer;
      }
      answer.body += buffer_.substr(start, size);
      buffer_.erase(0, start + size + 2);
      answer.complete = size == 0;
      if (answer.complete) break;
    }
  } else {
    for (std::string more = Receive(); !more.empty(); more = Receive()) answer.body += more;
    answer.complete = true;
  }
  return answer;
}

bool HttpConnection::AtEnd() {
  std::string byte(1, '\0');
  const ssize_t got = ::recv(socket_, byte.data(), 1, 0);
  if (got > 0) buffer_ += byte;
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

void HttpConnection::HalfClose() { ::shutdown(socket_, SHUT_WR); }

void HttpConnection::Reset() {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  Close();
}

void HttpConnection::Close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

std::string HttpText(std::string_view method, std::string_view path, std::string_view body,
                     std::string_view more_headers) {
  std::string text =
      base::StrCat(method, " ", path, " HTTP/1.1\r\nHost: test\r\nContent-Length: ", body.size(), "\r\n", more_headers);
  if (!body.empty() && more_headers.find("Content-Type") == std::string_view::npos)
    text += "Content-Type: application/json\r\n";
  return base::StrCat(text, "\r\n", body);
}

HttpAnswer Fetch(int port, std::string_view method, std::string_view path, std::string_view body,
                 std::string_view more_headers) {
  HttpConnection connection(port);
  if (!connection.connected()) return {};
  connection.Send(HttpText(method, path, body, more_headers));
  return connection.ReadAnswer(method == "HEAD");
}

}  // namespace vllm::testing

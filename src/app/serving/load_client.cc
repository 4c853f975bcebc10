// One thread, one loop: Asio's sockets and timers, and Beast's parser for the answers.
#include "app/serving/load_client.h"

#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/serving/sse.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/strings.h"

namespace vllm {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {

constexpr size_t kReadBytes = 65536;

double Seconds(Clock::time_point time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }
Clock::duration Span(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string RequestText(const HttpTarget& target, std::string_view method, std::string_view path, std::string_view body,
                        const RequestHeaders& headers) {
  const bool v6 = target.host.find(':') != std::string::npos;
  std::string text = base::StrCat(method, " ", target.prefix, path, " HTTP/1.1\r\nHost: ", v6 ? "[" : "", target.host,
                                  v6 ? "]:" : ":", target.port, "\r\n");
  for (const auto& [name, value] : headers) text += base::StrCat(name, ": ", value, "\r\n");
  if (!body.empty()) text += base::StrCat("Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n");
  return base::StrCat(text, "\r\n", body);
}

std::vector<tcp::endpoint> Resolve(asio::io_context& io, const HttpTarget& target, error_code& error) {
  tcp::resolver resolver(io);
  std::vector<tcp::endpoint> found;
  for (const auto& entry : resolver.resolve(target.host, std::to_string(target.port), error))
    found.push_back(entry.endpoint());
  return found;
}

// What one event of a stream says.
struct EventFacts {
  bool has_choices = false;
  std::optional<std::string> error = {};
};

// Adds the event's text and usage to the answer.
EventFacts ReadEvent(std::string_view data, TimedAnswer& answer) {
  EventFacts facts;
  const base::Result<base::Json> parsed = base::ParseJson(data, base::kMaxJsonDepth);
  if (!parsed.ok() || !parsed->is_object()) {
    facts.error = base::StrCat("an event is no JSON object: ", data.substr(0, 200));
    return facts;
  }
  const base::Json& event = *parsed;
  const auto error = event.find("error");
  if (error != event.end() && !error->is_null()) {
    facts.error = base::DumpJson(*error);
    return facts;
  }
  if (const auto choices = event.find("choices");
      choices != event.end() && choices->is_array() && !choices->empty() && (*choices)[0].is_object()) {
    facts.has_choices = true;
    const base::Json& choice = (*choices)[0];
    const auto delta = choice.find("delta");
    const base::Json& holder = delta != choice.end() && delta->is_object() ? *delta : choice;
    const auto text = holder.find(&holder == &choice ? "text" : "content");
    if (text != holder.end() && text->is_string()) answer.text += text->get_ref<const std::string&>();
  }
  if (const auto usage = event.find("usage"); usage != event.end() && usage->is_object()) {
    const auto read = [&](const char* name, int64_t& out) {
      const auto value = usage->find(name);
      if (value != usage->end() && value->is_number_integer()) out = value->get<int64_t>();
    };
    read("completion_tokens", answer.output_tokens);
    read("prompt_tokens", answer.prompt_tokens);
  }
  return facts;
}

class Run;

// A connection, and the request that it carries.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Run& run, asio::io_context& io) : run_(run), socket_(io), deadline_(io) {}
  void Start(size_t index);

 private:
  void Connect(size_t endpoint);
  void Send();
  void Read();
  void Received(error_code error, size_t bytes);
  bool Parse();
  bool TakeBody();
  void OnEvent(std::string_view data, Clock::time_point now);
  void Fail(std::string message);
  void Finish(bool reusable);
  bool Stale(const error_code& error);

  Run& run_;
  tcp::socket socket_;
  asio::steady_timer deadline_;
  beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::string_body>> parser_;
  SseParser events_;
  std::string text_, failure_;
  size_t index_ = 0;
  int64_t num_events_ = 0;
  Clock::time_point started_, last_event_;
  bool busy_ = false, reused_ = false, received_ = false, is_stream_ = false, timed_out_ = false;
};

class Run {
 public:
  Run(const HttpTarget& target, const std::vector<TimedRequest>& requests, const LoadOptions& options)
      : target(target), requests(requests), options(options), timer_(io) {
    answers.resize(requests.size());
    error_code error;
    endpoints = Resolve(io, target, error);
    if (error || endpoints.empty())
      base::Throw(base::ErrorCode::kInvalidArgument, "host: '", target.host, "' is not found (", error.message(), ")");
  }

  LoadRun Execute() {
    begin_ = Clock::now();
    Arrivals();
    io.run();
    idle.clear();
    return {std::move(answers), std::chrono::duration<double>(end_ - begin_).count()};
  }

  void Done() {
    end_ = Clock::now();
    --active_;
    if (options.on_done) options.on_done(++done_);
    while (!waiting_.empty() && HasRoom()) {
      const size_t index = waiting_.front();
      waiting_.pop_front();
      Launch(index);
    }
  }

  const HttpTarget& target;
  const std::vector<TimedRequest>& requests;
  const LoadOptions& options;
  asio::io_context io{1};
  std::vector<tcp::endpoint> endpoints;
  std::vector<TimedAnswer> answers;
  std::vector<std::shared_ptr<Connection>> idle;

 private:
  bool HasRoom() const { return options.max_concurrency <= 0 || active_ < options.max_concurrency; }

  // Starts what is due, and comes back for the next.
  void Arrivals() {
    for (; next_ < requests.size(); ++next_) {
      const Clock::time_point due = begin_ + Span(requests[next_].due_s);
      if (due > Clock::now()) {
        timer_.expires_at(due);
        timer_.async_wait([this](error_code) { Arrivals(); });
        return;
      }
      answers[next_].queue_s = Seconds(Clock::now());
      if (HasRoom() && waiting_.empty()) {
        Launch(next_);
      } else {
        waiting_.push_back(next_);
      }
    }
  }

  void Launch(size_t index) {
    ++active_;
    std::shared_ptr<Connection> connection;
    if (idle.empty()) {
      connection = std::make_shared<Connection>(*this, io);
    } else {
      connection = std::move(idle.back());
      idle.pop_back();
    }
    connection->Start(index);
  }

  asio::steady_timer timer_;
  Clock::time_point begin_, end_;
  std::deque<size_t> waiting_;  // arrived, but there is no room
  size_t next_ = 0, done_ = 0;
  int64_t active_ = 0;
};

void Connection::Start(size_t index) {
  index_ = index;
  const TimedRequest& request = run_.requests[index];
  TimedAnswer& answer = run_.answers[index];
  started_ = Clock::now();
  answer.start_s = Seconds(started_);
  answer.queue_s = answer.start_s - answer.queue_s;  // it held the time of its arrival
  answer.prompt_tokens = request.prompt_tokens;
  text_ = RequestText(run_.target, "POST", request.path, request.body, request.headers);
  busy_ = true;
  timed_out_ = false;
  failure_.clear();
  deadline_.expires_after(Span(run_.options.timeout_s));
  deadline_.async_wait([self = weak_from_this()](error_code error) {
    const auto connection = self.lock();
    if (error || !connection || !connection->busy_) return;
    connection->timed_out_ = true;
    error_code ignored;
    connection->socket_.close(ignored);
  });
  reused_ = socket_.is_open();
  reused_ ? Send() : Connect(0);
}

void Connection::Connect(size_t endpoint) {
  socket_.async_connect(run_.endpoints[endpoint], [self = shared_from_this(), endpoint](error_code error) {
    error_code ignored;
    if (!error) {
      self->socket_.set_option(tcp::no_delay(true), ignored);
      return self->Send();
    }
    self->socket_.close(ignored);
    if (!self->timed_out_ && endpoint + 1 < self->run_.endpoints.size()) return self->Connect(endpoint + 1);
    self->Fail("cannot connect: " + error.message());
  });
}

void Connection::Send() {
  parser_.emplace();
  parser_->eager(true);
  parser_->body_limit(boost::none);
  buffer_.clear();
  events_ = {};
  num_events_ = 0;
  received_ = is_stream_ = false;
  asio::async_write(socket_, asio::buffer(text_), [self = shared_from_this()](error_code error, size_t) {
    // A server that refuses a request may have answered before it read the whole.
    if (error && self->Stale(error)) return;
    self->Read();
  });
}

void Connection::Read() {
  socket_.async_read_some(buffer_.prepare(kReadBytes), [self = shared_from_this()](error_code error, size_t bytes) {
    self->Received(error, bytes);
  });
}

// A server may close a connection that it has kept just when it is used again: the request goes on a new one.
bool Connection::Stale(const error_code&) {
  if (!reused_ || received_ || timed_out_) return false;
  reused_ = false;
  error_code ignored;
  socket_.close(ignored);
  Connect(0);
  return true;
}

void Connection::Received(error_code error, size_t bytes) {
  if (error && Stale(error)) return;
  received_ = received_ || bytes > 0;
  buffer_.commit(bytes);
  if (error == asio::error::eof) {
    error = {};
    if (buffer_.size() > 0 && !Parse()) return;
    parser_->put_eof(error);
    if (!error && parser_->is_done()) {
      if (TakeBody()) Finish(false);
      return;
    }
    return Fail("the connection was closed before the answer's end");
  }
  if (error) return Fail(error.message());
  if (!Parse()) return;
  parser_->is_done() ? Finish(parser_->keep_alive()) : Read();
}

// False once the request has ended.
bool Connection::Parse() {
  while (buffer_.size() > 0 && !parser_->is_done()) {
    error_code error;
    const size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    if (error == http::error::need_more) break;
    if (error) return Fail("the answer is not valid HTTP: " + error.message()), false;
  }
  return TakeBody();
}

// Hands the part of the body that has come to the event parser; keeps it if it is no stream.
bool Connection::TakeBody() {
  if (!parser_->is_header_done()) return true;
  TimedAnswer& answer = run_.answers[index_];
  if (answer.status == 0) {
    answer.status = static_cast<int>(parser_->get().result_int());
    is_stream_ = answer.status == 200 && parser_->get()[http::field::content_type].starts_with("text/event-stream");
  }
  std::string& body = parser_->get().body();
  if (!is_stream_) {
    if (body.size() <= base::kMaxSseEventBytes) return true;
    return Fail("the answer is too large"), false;
  }
  const Clock::time_point now = Clock::now();
  const bool fits = events_.Feed(body, [&](std::string_view data) { OnEvent(data, now); });
  body.clear();
  if (!fits && failure_.empty()) failure_ = "an event is too large";
  if (failure_.empty()) return true;
  return Fail(std::move(failure_)), false;
}

void Connection::OnEvent(std::string_view data, Clock::time_point now) {
  if (data == "[DONE]" || !failure_.empty()) return;
  TimedAnswer& answer = run_.answers[index_];
  const EventFacts facts = ReadEvent(data, answer);
  if (facts.error) {
    failure_ = *facts.error;
    return;
  }
  if (!facts.has_choices) return;
  const auto since = [&](Clock::time_point from) { return std::chrono::duration<double>(now - from).count(); };
  if (num_events_++ == 0) {
    answer.ttft_s = since(started_);
  } else {
    answer.itl_s.push_back(since(last_event_));
  }
  last_event_ = now;
  answer.latency_s = since(started_);
  if (num_events_ != run_.requests[index_].cancel_after) return;
  answer.cancelled = true;
  failure_ = "cancelled";
}

void Connection::Fail(std::string message) {
  TimedAnswer& answer = run_.answers[index_];
  answer.error = timed_out_ ? base::StrCat("no end after ", run_.options.timeout_s, " s") : std::move(message);
  Finish(false);
}

void Connection::Finish(bool reusable) {
  busy_ = false;
  deadline_.cancel();
  TimedAnswer& answer = run_.answers[index_];
  if (answer.error.empty() && answer.status != 200) {
    answer.error = base::StrCat("HTTP ", answer.status, " ", std::string_view(parser_->get().reason()), ": ",
                                std::string_view(parser_->get().body()).substr(0, 300));
  } else if (answer.error.empty() && !is_stream_) {
    answer.error = "the answer is no event stream";
  } else if (answer.error.empty() && num_events_ == 0) {
    answer.error = "the stream had no event with choices";
  }
  answer.success = answer.error.empty();
  error_code ignored;
  if (!reusable) socket_.close(ignored);
  if (reusable) run_.idle.push_back(shared_from_this());
  run_.Done();
}

}  // namespace

HttpTarget ParseTarget(std::string_view url, std::string_view origin) {
  const auto refuse = [&](const char* why) {
    base::Throw(base::ErrorCode::kInvalidArgument, origin, ": '", url, "' ", why,
                "; write http://HOST:PORT, with a path if the server has one");
  };
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with("https://")) refuse("asks for TLS, which is not served");
  if (!url.starts_with(kScheme)) refuse("does not begin with http://");
  std::string_view rest = url.substr(kScheme.size());
  HttpTarget target;
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    target.prefix = std::string(rest.substr(slash));
    while (!target.prefix.empty() && target.prefix.back() == '/') target.prefix.pop_back();
    rest = rest.substr(0, slash);
  }
  const bool bracketed = rest.starts_with('[');
  const size_t bracket = bracketed ? rest.find(']') : 0;
  if (bracket == std::string_view::npos) refuse("has no ]");
  const size_t colon = rest.find(':', bracket);
  target.host = std::string(bracketed ? rest.substr(1, bracket - 1) : rest.substr(0, colon));
  target.port = 80;
  if (colon != std::string_view::npos) {
    const base::Result<int64_t> port = base::ParseInt(rest.substr(colon + 1));
    if (!port.ok() || *port < 1 || *port > 65535) refuse("has no port in 1 .. 65535");
    target.port = static_cast<int>(*port);
  }
  if (target.host.empty()) refuse("names no host");
  return target;
}

WholeAnswer Ask(const HttpTarget& target, std::string_view method, std::string_view path, std::string_view body,
                const RequestHeaders& headers, double timeout_s) {
  asio::io_context io{1};
  WholeAnswer answer;
  error_code error;
  const std::vector<tcp::endpoint> endpoints = Resolve(io, target, error);
  tcp::socket socket(io);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(base::kMaxRequestBodyBytes);
  const std::string text = RequestText(target, method, path, body, headers);
  error = error ? error : make_error_code(asio::error::timed_out);
  asio::async_connect(socket, endpoints, [&](error_code connected, const tcp::endpoint&) {
    if (connected) return void(error = connected);
    asio::async_write(socket, asio::buffer(text), [&](error_code, size_t) {
      http::async_read(socket, buffer, parser, [&](error_code read, size_t) { error = read; });
    });
  });
  io.run_for(Span(timeout_s));
  if (error) {
    answer.error = error.message();
    return answer;
  }
  answer.status = static_cast<int>(parser.get().result_int());
  answer.body = std::move(parser.get().body());
  return answer;
}

LoadRun RunLoad(const HttpTarget& target, const std::vector<TimedRequest>& requests, const LoadOptions& options) {
  return Run(target, requests, options).Execute();
}

}  // namespace vllm

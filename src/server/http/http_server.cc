// The HTTP/1.1 server over Boost.Beast and Asio: one session object a connection, each on its own strand; but an
// answer's bytes go to the socket on the thread that gives them, so that an event costs one system call and wakes
// nobody.
#include "server/http/http_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "base/limits.h"
#include "base/log.h"
#include "base/strings.h"

namespace vllm {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Protocol = asio::generic::stream_protocol;
using Socket = asio::basic_stream_socket<Protocol, asio::strand<asio::io_context::executor_type>>;
using Acceptor = asio::basic_socket_acceptor<Protocol>;
using ErrorCode = boost::system::error_code;

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

namespace {

class Session;

// What sessions share with their server.
struct Shared {
  HttpHandler handler;
  size_t max_body_bytes = 0;
  int request_timeout_seconds = 0;
  asio::io_context io;
  asio::thread_pool workers;
  std::atomic<int64_t> connections{0}, active{0};
  std::atomic<bool> draining{false};
  std::mutex mutex;
  std::condition_variable idle;
  std::set<Session*> sessions;  // guarded
  std::mutex post_mutex;
  bool over = false;  // guarded by post_mutex; the loops run out of work and end

  explicit Shared(int worker_threads) : workers(worker_threads) {}
};

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  for (char c : value)  // a line break in a value would be a header of the client's choice
    if (c != '\r' && c != '\n') out += c;
  out += "\r\n";
}

class Session : public Responder, public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Shared> shared, Socket socket)
      : shared_(std::move(shared)), socket_(std::move(socket)), deadline_(socket_.get_executor()) {
    ++shared_->connections;
    std::lock_guard lock(shared_->mutex);
    shared_->sessions.insert(this);
  }
  ~Session() override {
    {
      std::lock_guard lock(shared_->mutex);
      shared_->sessions.erase(this);
    }
    --shared_->connections;
  }

  void Start() {
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] { self->ReadHead(); });
  }
  // Ends the connection now; with `only_idle`, only if no request is in progress.
  void Close(bool only_idle) {
    Post([self = shared_from_this(), only_idle] {
      if (!only_idle || !self->answering_) self->Disconnect();
    });
  }

  // Answers go out on the thread that gives them, as far as the socket takes them; the rest follows on the strand.
  void Send(HttpResponse response) override {
    const std::lock_guard lock(out_mutex_);
    if (!answering_ || head_sent_) return;
    AppendHead(response);
    AppendHeader(pending_, "Content-Length", std::to_string(response.body.size()));
    pending_ += "\r\n";
    if (!head_request_) pending_ += response.body;
    head_sent_ = ended_ = true;
    Flush();
  }
  void StartStream(HttpResponse head) override {
    const std::lock_guard lock(out_mutex_);
    if (!answering_ || head_sent_) return;
    if (!chunked_) keep_alive_ = false;  // the end of the connection is the end of the body
    AppendHead(head);
    if (chunked_) AppendHeader(pending_, "Transfer-Encoding", "chunked");
    pending_ += "Cache-Control: no-cache\r\n\r\n";
    head_sent_ = true;
    Flush();
  }
  bool Write(std::string_view bytes) override {
    if (gone_.load(std::memory_order_acquire)) return false;
    if (bytes.empty()) return true;
    const std::lock_guard lock(out_mutex_);
    if (!answering_ || !head_sent_ || ended_) return !gone_.load(std::memory_order_acquire);
    if (head_request_) return true;
    AppendChunk(bytes);
    Flush();
    if (pending_.size() + out_.size() - written_ <= base::kMaxStreamBacklogBytes) return true;
    Post([self = shared_from_this()] { self->Disconnect(); });
    return false;
  }
  void End() override {
    const std::lock_guard lock(out_mutex_);
    if (!answering_ || !head_sent_ || ended_) return;
    ended_ = true;
    if (chunked_ && !head_request_) pending_ += "0\r\n\r\n";
    Flush();
  }
  void OnGone(std::function<void()> gone) override {
    if (gone_.load(std::memory_order_acquire)) return gone();
    // The pool of workers must not end before it has had the chance to call `gone`.
    auto work = asio::make_work_guard(shared_->workers);
    const bool posted = Post([self = shared_from_this(), gone, work]() mutable {
      if (self->gone_) {
        asio::post(self->shared_->workers, std::move(gone));
      } else if (self->answering_ && !self->HasEnded()) {
        self->on_gone_ = std::move(gone);
      }
    });
    if (!posted) gone();
  }

 private:
  // The answer of one request. Several may follow on a connection; a Responder call of an earlier one must not reach a
  // later one, so each request's handler holds a Turn instead of the session.
  class Turn;

  // Runs `task` on the session's strand; false, and drops it, once the server is over: a task that no loop runs would
  // own its session, the session its loop, and the loop the task.
  template <class Task>
  bool Post(Task task) {
    const std::lock_guard lock(shared_->post_mutex);
    if (shared_->over) return false;
    asio::post(socket_.get_executor(), std::move(task));
    return true;
  }

  void Arm(int seconds) {
    deadline_.expires_after(std::chrono::seconds(seconds));
    deadline_.async_wait([self = weak_from_this()](ErrorCode error) {
      auto session = self.lock();
      // A wait that had ended when it was cancelled comes without an error; the expiry tells it.
      if (error || !session || session->deadline_.expiry() > std::chrono::steady_clock::now()) return;
      session->TimedOut();
    });
  }
  void Disarm() { deadline_.expires_at(std::chrono::steady_clock::time_point::max()); }

  void TimedOut() {
    if (!answering_ && reading_body_ && !lingering_) {
      ErrorCode ignored;
      socket_.cancel(ignored);
      Refuse(408, "the request took too long to arrive");
    } else {
      Disconnect();
    }
  }

  void ReadHead() {
    if (shared_->draining) return Disconnect();
    parser_.emplace();
    parser_->body_limit(shared_->max_body_bytes);
    parser_->header_limit(base::kMaxRequestHeaderBytes);
    reading_body_ = false;
    Arm(base::kIdleConnectionSeconds);
    http::async_read_header(socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) {
      if (error) return self->ReadFailed(error);
      self->ReadBody();
    });
  }

  void ReadBody() {
    reading_body_ = true;
    Arm(shared_->request_timeout_seconds);
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
      interim_ = "HTTP/1.1 100 Continue\r\n\r\n";
      asio::async_write(socket_, asio::buffer(interim_), [self = shared_from_this()](ErrorCode error, size_t) {
        if (error) return self->Disconnect();
        self->ReadRest();
      });
    } else {
      ReadRest();
    }
  }

  void ReadRest() {
    http::async_read(socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) {
      if (error) return self->ReadFailed(error);
      if (!self->answering_ && !self->lingering_ && !self->gone_) self->Handle();
    });
  }

  void ReadFailed(ErrorCode error) {
    if (answering_ || lingering_) return;  // a refusal is on its way
    if (error == http::error::body_limit)
      return Refuse(413, base::StrCat("the body is larger than ", shared_->max_body_bytes, " bytes"));
    if (error == http::error::header_limit)
      return Refuse(431, base::StrCat("the headers are larger than ", base::kMaxRequestHeaderBytes, " bytes"));
    if (error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message)
      return Refuse(400, "the request is not valid HTTP: " + error.message());
    Disconnect();
  }

  // Answers a request that never reached a handler, and closes.
  void Refuse(int status, const std::string& message) {
    refused_ = true;
    BeginAnswer(false, parser_ && parser_->get().method() == http::verb::head, true);
    const std::string phrase(http::obsolete_reason(static_cast<http::status>(status)));
    Send({.status = status,
          .body = base::StrCat(R"({"error":{"message":")", message, R"(","type":")", phrase,
                               R"(","param":null,"code":)", status, "}}")});
  }

  void BeginAnswer(bool keep_alive, bool head_request, bool chunked) {
    Disarm();
    const std::lock_guard lock(out_mutex_);
    answering_ = true;
    head_sent_ = ended_ = false;
    keep_alive_ = keep_alive;
    head_request_ = head_request;
    chunked_ = chunked;
    ++shared_->active;
  }

  void Handle();

  // Notices that the client has gone while its answer is being made: reads what it may already send of its next
  // request.
  void Watch() {
    if (watching_ || buffer_.size() >= base::kMaxPipelinedBytes) return;
    watching_ = true;
    socket_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](ErrorCode error, size_t bytes) {
      self->watching_ = false;
      const bool resumes = std::exchange(self->resumes_, false);
      if (error && !(resumes && error == asio::error::operation_aborted)) return self->Disconnect();
      self->buffer_.commit(bytes);
      if (self->answering_) return self->Watch();
      self->ReadHead();
    });
  }

  bool HasEnded() {
    const std::lock_guard lock(out_mutex_);
    return ended_;
  }

  // With out_mutex_, as the next two.
  void AppendHead(const HttpResponse& response) {
    if (shared_->draining) keep_alive_ = false;
    pending_ +=
        base::StrCat("HTTP/1.1 ", response.status, " ",
                     std::string_view(http::obsolete_reason(static_cast<http::status>(response.status))), "\r\n");
    if (!response.content_type.empty()) AppendHeader(pending_, "Content-Type", response.content_type);
    for (const auto& [name, value] : response.headers) AppendHeader(pending_, name, value);
    AppendHeader(pending_, "Connection", keep_alive_ ? "keep-alive" : "close");
  }

  void AppendChunk(std::string_view bytes) {
    if (!chunked_) return void(pending_ += bytes);
    char size[2 * sizeof(size_t)];
    pending_.append(size, std::to_chars(size, size + sizeof size, bytes.size(), 16).ptr);
    pending_ += "\r\n";
    pending_ += bytes;
    pending_ += "\r\n";
  }

  // Sends what is pending, unless the strand is busy with earlier bytes. What the socket does not take at once, the
  // strand writes; it also turns to the next request when the answer is out, and ends a connection that is broken.
  void Flush() {
    if (writing_) return;
    size_t sent = 0;
    while (sent < pending_.size()) {
      const ssize_t took =
          ::send(socket_.native_handle(), pending_.data() + sent, pending_.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (took > 0) {
        sent += static_cast<size_t>(took);
      } else if (took == 0 || errno != EINTR) {
        break;
      }
    }
    if (sent == pending_.size()) {
      pending_.clear();
      if (ended_) Post([self = shared_from_this()] { self->FinishAnswer(); });
      return;
    }
    // A broken socket says so again to the strand.
    pending_.erase(0, sent);
    writing_ = true;
    Post([self = shared_from_this()] { self->WritePending(); });
  }

  // On the strand: writes all that is pending.
  void WritePending() {
    if (!answering_) return;
    bool ended = false;
    {
      const std::lock_guard lock(out_mutex_);
      out_.swap(pending_);
      written_ = 0;
      writing_ = !out_.empty();
      ended = ended_;
    }
    if (!out_.empty()) return WriteSome();
    if (ended) FinishAnswer();
  }

  // The deadline is for each piece that the client takes, not for the whole.
  void WriteSome() {
    Arm(base::kWriteTimeoutSeconds);
    socket_.async_write_some(asio::buffer(out_) + written_, [self = shared_from_this()](ErrorCode error, size_t bytes) {
      if (error) return self->Disconnect();
      if (!self->answering_) return;
      bool done = false;
      {
        const std::lock_guard lock(self->out_mutex_);
        self->written_ += bytes;
        done = self->written_ == self->out_.size();
        if (done) self->out_.clear(), self->written_ = 0;
      }
      if (!done) return self->WriteSome();
      self->Disarm();
      self->WritePending();
    });
  }

  void FinishAnswer() {
    if (!answering_) return;
    const bool keep_alive = EndAnswer();
    if (refused_) return Linger();
    if (!keep_alive || shared_->draining) return Disconnect();
    if (!watching_) return ReadHead();
    Arm(base::kIdleConnectionSeconds);  // the pending read goes on with the next request
    if (buffer_.size() == 0) return;
    resumes_ = true;  // a request may be here already, so the read must not wait for more
    ErrorCode ignored;
    socket_.cancel(ignored);
  }

  // Closes after a refusal. What the client still sends is read and dropped: unread bytes at close reset a connection,
  // and the client would lose the answer.
  void Linger() {
    ErrorCode ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    lingering_ = true;
    Arm(base::kLingerSeconds);
    Discard();
  }
  void Discard() {
    buffer_.clear();
    socket_.async_read_some(buffer_.prepare(base::kMaxPipelinedBytes),
                            [self = shared_from_this()](ErrorCode error, size_t bytes) {
                              self->discarded_bytes_ += bytes;
                              if (error || self->discarded_bytes_ > base::kMaxLingerBytes) return self->Disconnect();
                              self->Discard();
                            });
  }

  // Whether another may follow on this connection.
  bool EndAnswer() {
    if (!answering_) return false;
    bool keep_alive = false;
    {
      const std::lock_guard lock(out_mutex_);
      answering_ = false;
      keep_alive = keep_alive_;
      pending_.clear();
      if (pending_.capacity() > base::kMaxPipelinedBytes) std::string().swap(pending_);
      // An unfinished operation may still look at its bytes.
      if (!writing_ && out_.capacity() > base::kMaxPipelinedBytes) std::string().swap(out_);
    }
    on_gone_ = nullptr;
    --shared_->active;
    {
      const std::lock_guard lock(shared_->mutex);
    }  // a waiter is either before its look at `active` or asleep
    shared_->idle.notify_all();
    return keep_alive;
  }

  void Disconnect() {
    gone_ = true;
    if (answering_ && on_gone_ && !HasEnded()) asio::post(shared_->workers, std::move(on_gone_));
    Disarm();
    deadline_.cancel();
    EndAnswer();  // before the close: nobody may send on a descriptor that is another's by then
    ErrorCode ignored;
    socket_.shutdown(Socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  const std::shared_ptr<Shared> shared_;
  Socket socket_;
  asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>,
                             Socket::executor_type>
      deadline_;
  beast::flat_buffer buffer_{base::kMaxRequestHeaderBytes + base::kMaxPipelinedBytes};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::string interim_;
  std::function<void()> on_gone_;
  size_t discarded_bytes_ = 0;
  bool refused_ = false, lingering_ = false, resumes_ = false, reading_body_ = false, watching_ = false;

  std::mutex out_mutex_;    // guards what follows, and the descriptor while an answer is being given
  std::string pending_;     // to be sent
  std::string out_;         // what the strand is writing; it alone changes it
  size_t written_ = 0;      // of out_
  bool writing_ = false;    // the strand has bytes to write
  bool answering_ = false;  // changed on the strand only, which reads it without the lock
  bool head_sent_ = false, ended_ = false, keep_alive_ = true, head_request_ = false, chunked_ = true;
  std::atomic<bool> gone_{false};
};

// A request's own view of its session; dead once the next request has begun.
class Session::Turn : public Responder {
 public:
  explicit Turn(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~Turn() override {
    // A handler that lets go without an answer must not leave the client waiting.
    if (!answered_)
      session_->Send(
          {.status = 500,
           .body = R"({"error":{"message":"no answer","type":"InternalServerError","param":null,"code":500}})"});
    else if (streaming_ && !over_)
      session_->Close(false);
  }
  void Send(HttpResponse response) override {
    if (answered_.exchange(true)) return;
    over_ = true;
    session_->Send(std::move(response));
  }
  void StartStream(HttpResponse head) override {
    if (answered_.exchange(true)) return;
    streaming_ = true;
    session_->StartStream(std::move(head));
  }
  bool Write(std::string_view bytes) override { return !over_ && session_->Write(bytes); }
  void End() override {
    if (streaming_ && !over_.exchange(true)) session_->End();
  }
  void OnGone(std::function<void()> gone) override {
    if (!over_) session_->OnGone(std::move(gone));
  }

 private:
  const std::shared_ptr<Session> session_;
  std::atomic<bool> answered_{false}, streaming_{false}, over_{false};
};

void Session::Handle() {
  auto message = parser_->release();
  parser_.reset();
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view target = message.target();
  const size_t mark = target.find('?');
  request.path = std::string(target.substr(0, mark));
  if (mark != std::string_view::npos) request.query = std::string(target.substr(mark + 1));
  for (const auto& field : message)
    request.headers.emplace_back(base::ToLower(field.name_string()), std::string(field.value()));
  request.body = std::move(message.body());
  BeginAnswer(message.keep_alive(), message.method() == http::verb::head, message.version() >= 11);
  Watch();
  auto turn = std::make_shared<Turn>(shared_from_this());
  asio::post(shared_->workers, [shared = shared_, request = std::move(request), turn]() mutable {
    try {
      shared->handler(std::move(request), turn);
    } catch (const std::exception& error) {
      base::LogError("a handler failed: ", error.what());
      turn->Send(
          {.status = 500,
           .body =
               R"({"error":{"message":"Internal server error","type":"InternalServerError","param":null,"code":500}})"});
    }
  });
}

class Server : public HttpServer {
 public:
  Server(const HttpServerOptions& options, HttpHandler handler)
      : options_(options),
        shared_(std::make_shared<Shared>(options.worker_threads)),
        work_(shared_->io.get_executor()) {
    shared_->handler = std::move(handler);
    shared_->max_body_bytes = options.max_body_bytes ? options.max_body_bytes : base::kMaxRequestBodyBytes;
    shared_->request_timeout_seconds =
        options.request_timeout_seconds ? options.request_timeout_seconds : base::kRequestTimeoutSeconds;
    options.uds.empty() ? ListenTcp() : ListenUnix();
  }
  ~Server() override {
    Stop(0);
    {
      const std::lock_guard lock(shared_->post_mutex);
      shared_->over = true;
    }
    shared_->workers.join();
    work_.reset();  // every connection is closed, so the loops come to their ends and release the sessions
    for (std::thread& thread : threads_) thread.join();
    acceptors_.clear();
    if (!options_.uds.empty()) ::unlink(options_.uds.c_str());
  }

  void Start() override {
    for (auto& acceptor : acceptors_) Accept(*acceptor);
    for (int i = 0; i < options_.io_threads; ++i) threads_.emplace_back([this] { shared_->io.run(); });
  }
  int port() const override { return port_; }
  std::string url() const override {
    if (!options_.uds.empty()) return "unix:" + options_.uds;
    std::string host = options_.host.empty() ? "0.0.0.0" : options_.host;
    if (host.find(':') != std::string::npos && host[0] != '[') host = "[" + host + "]";
    return base::StrCat("http://", host, ":", port_);
  }

  bool Stop(int64_t timeout_ms) override {
    shared_->draining = true;
    asio::post(shared_->io, [this] {
      ErrorCode ignored;
      for (auto& acceptor : acceptors_) acceptor->close(ignored);
    });
    CloseSessions(/*only_idle=*/true);
    std::unique_lock lock(shared_->mutex);
    const bool clean =
        shared_->idle.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return shared_->active == 0; });
    lock.unlock();
    CloseSessions(/*only_idle=*/false);
    lock.lock();
    if (!threads_.empty())
      shared_->idle.wait_for(lock, std::chrono::seconds(2), [this] { return shared_->active == 0; });
    return clean;
  }
  int64_t open_connections() const override { return shared_->connections; }
  int64_t active_requests() const override { return shared_->active; }

 private:
  void CloseSessions(bool only_idle) {
    std::vector<std::shared_ptr<Session>> alive;  // released after the lock, which a session's end takes
    {
      std::lock_guard lock(shared_->mutex);
      for (Session* session : shared_->sessions)
        if (auto held = session->weak_from_this().lock()) alive.push_back(std::move(held));
    }
    for (const auto& session : alive) session->Close(only_idle);
  }

  void ListenTcp() {
    std::string host = options_.host;
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    asio::ip::tcp::resolver resolver(shared_->io);
    ErrorCode error;
    const auto found =
        resolver.resolve(host.empty() ? "0.0.0.0" : host, std::to_string(options_.port),
                         asio::ip::tcp::resolver::passive | asio::ip::tcp::resolver::numeric_service, error);
    if (error || found.empty())
      base::Throw(base::ErrorCode::kInvalidArgument, "host: '", options_.host, "' is not an address of this machine (",
                  error.message(), ")");
    for (const auto& entry : found) {
      asio::ip::tcp::endpoint endpoint = entry.endpoint();
      if (port_ != 0)
        endpoint.port(static_cast<uint16_t>(port_));  // all addresses of a name share the port that was free
      Listen(Protocol::endpoint(endpoint), base::StrCat("host ", options_.host, " port ", options_.port),
             endpoint.address().is_v6());
      if (port_ == 0) {
        asio::ip::tcp::endpoint bound;
        Protocol::endpoint local = acceptors_.back()->local_endpoint();
        std::memcpy(bound.data(), local.data(), local.size());
        bound.resize(local.size());
        port_ = bound.port();
      }
    }
  }

  void ListenUnix() {
    struct stat info = {};
    if (::lstat(options_.uds.c_str(), &info) == 0) {
      if (!S_ISSOCK(info.st_mode))
        base::Throw(base::ErrorCode::kInvalidArgument, "uds: ", options_.uds, " exists and is no socket");
      ErrorCode error;
      asio::local::stream_protocol::socket probe(shared_->io);
      probe.connect(asio::local::stream_protocol::endpoint(options_.uds), error);
      if (!error) base::Throw(base::ErrorCode::kInvalidArgument, "uds: ", options_.uds, " is in use by another server");
      ::unlink(options_.uds.c_str());  // left over by a server that was killed
    }
    if (options_.uds.size() >= sizeof(sockaddr_un::sun_path))
      base::Throw(base::ErrorCode::kInvalidArgument, "uds: a path of ", options_.uds.size(),
                  " bytes; the system takes ", sizeof(sockaddr_un::sun_path) - 1);
    Listen(Protocol::endpoint(asio::local::stream_protocol::endpoint(options_.uds)), "uds " + options_.uds, false);
  }

  void Listen(const Protocol::endpoint& endpoint, const std::string& what, bool v6) {
    auto acceptor = std::make_unique<Acceptor>(shared_->io);
    ErrorCode error;
    acceptor->open(endpoint.protocol(), error);
    if (!error) acceptor->set_option(asio::socket_base::reuse_address(true), error);
    if (!error && v6) acceptor->set_option(asio::ip::v6_only(true), error);
    if (!error) acceptor->bind(endpoint, error);
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
    if (error)
      base::Throw(base::ErrorCode::kInvalidArgument, what, ": cannot listen: ", error.message(),
                  "; choose another --port or --host");
    acceptors_.push_back(std::move(acceptor));
  }

  void Accept(Acceptor& acceptor) {
    acceptor.async_accept(asio::make_strand(shared_->io), [this, &acceptor](ErrorCode error, Socket socket) {
      if (shared_->draining || error == asio::error::operation_aborted) return;
      if (error) {  // out of descriptors: try again a little later, not in a tight loop
        auto timer = std::make_shared<asio::steady_timer>(shared_->io, std::chrono::milliseconds(50));
        timer->async_wait([this, &acceptor, timer](ErrorCode cancelled) {
          if (!cancelled) Accept(acceptor);
        });
        return;
      }
      if (shared_->connections < base::kMaxConnections) {
        ErrorCode ignored;
        if (options_.uds.empty()) socket.set_option(asio::ip::tcp::no_delay(true), ignored);
        std::make_shared<Session>(shared_, std::move(socket))->Start();
      }
      Accept(acceptor);
    });
  }

  const HttpServerOptions options_;
  std::shared_ptr<Shared> shared_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::vector<std::thread> threads_;
  int port_ = 0;
};

}  // namespace

std::unique_ptr<HttpServer> HttpServer::Create(const HttpServerOptions& options, HttpHandler handler) {
  return std::make_unique<Server>(options, std::move(handler));
}

}  // namespace vllm

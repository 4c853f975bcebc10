// What the server spends on an event: a real server and engine with a model that costs nothing, many streams, and the
// processor time of everything but the clients, beside that of one send of as many bytes over loopback.
//
// Usage: server_bench [TOKENIZER] [--streams N] [--tokens N] [--rate STEPS] [--chat] [--threads]
// TOKENIZER: a GGUF file or a folder; none: a vocabulary of bytes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "app/serving/load_client.h"
#include "base/check.h"
#include "base/strings.h"
#include "engine/frontend.h"
#include "engine/kv/kv_cache_config.h"
#include "engine/load_text.h"
#include "server/api_server.h"
#include "tests/server/fake_engine.h"

namespace vllm {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string tokenizer = {};
  int streams = 64;
  int64_t tokens = 1000;  // a stream
  double rate = 200;      // steps a second
  bool chat = false, threads = false;
};

// Processor time in seconds. The clocks are exact; getrusage counts a running thread by the scheduler's ticks, and only
// the shares of user and system are taken from it.
double ClockSeconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Cpu {
  double total = 0, user = 0, system = 0;
  static Cpu OfProcess() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return {ClockSeconds(CLOCK_PROCESS_CPUTIME_ID), seconds(usage.ru_utime), seconds(usage.ru_stime)};
  }
  Cpu operator-(const Cpu& other) const { return {total - other.total, user - other.user, system - other.system}; }
};

// Nanoseconds that each thread of this process has run, by its number.
std::map<int, double> ThreadTimes() {
  std::map<int, double> times;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    double run = 0;
    std::ifstream(entry.path() / "schedstat") >> run;
    times[std::atoi(entry.path().filename().c_str())] = run;
  }
  return times;
}

// Gives every sequence tokens of ordinary text in turn, at most so many steps a second: a model's pace, at which the
// threads of the server sleep between steps as they do behind a real one.
class PacedRunner final : public ModelRunner {
 public:
  PacedRunner(std::vector<int32_t> script, double rate) : script_(std::move(script)), step_(Span(rate)) {}

  std::future<ModelRunnerOutput> ExecuteModel(SchedulerOutput step) override {
    ModelRunnerOutput out;
    for (const ScheduledTokens& scheduled : step.scheduled) {
      SequenceOutput& sequence = out.sequences.emplace_back();
      sequence.id = scheduled.id;
      if (scheduled.samples) sequence.token_ids = {script_[(scheduled.id * 7 + step.step) % script_.size()]};
    }
    // The pace is that of the steps, whatever the time between them was spent on.
    next_ = std::max(next_ + step_, Clock::now());
    std::this_thread::sleep_until(next_);
    std::promise<ModelRunnerOutput> promise;
    promise.set_value(std::move(out));
    return promise.get_future();
  }

 private:
  static Clock::duration Span(double rate) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate));
  }
  const std::vector<int32_t> script_;
  const Clock::duration step_;
  Clock::time_point next_ = {};
};

constexpr std::string_view kText =
    "The quick brown fox jumps over the lazy dog, while \"quoted\" words, line\nbreaks and numbers such as 3.14159 or "
    "65,536 pass by; naïve café owners in São Paulo write Größe, 漢字 and emoji 🙂 too. All that a tokenizer has to "
    "give back piece by piece, again and again, is ordinary prose of this kind.\n";

std::shared_ptr<const Tokenizer> LoadTokens(const std::string& path) {
  if (path.empty()) return Tokenizer::FromTokenizerJson(testing::ByteTokenizerJson());
  if (std::filesystem::is_directory(path)) return Tokenizer::FromDirectory(path);
  return LoadTokenizer(LoadCheckpoint(path), "");
}

std::unique_ptr<LlmEngine> MakeEngine(const Arguments& arguments) {
  EngineParts parts;
  parts.tokenizer = LoadTokens(arguments.tokenizer);
  parts.chat_template = std::make_shared<ChatTemplate>(
      ChatTemplate::Create("{% for m in messages %}{{ m.content }}{% endfor %}").ValueOrThrow());
  parts.info.model_name = "scripted-model";
  parts.info.served_names = {"scripted-model"};
  parts.info.max_model_len = 1 << 16;
  parts.info.vocab_size = parts.tokenizer->vocab_size();
  const auto runner =
      std::make_shared<PacedRunner>(parts.tokenizer->Encode(kText, {.add_special_tokens = false}), arguments.rate);
  parts.resources = runner;
  const int64_t blocks = arguments.streams * (arguments.tokens / 16 + 8) + 16;
  const KvCacheConfig kv = MakeKvCacheConfig(
      MakeKvCacheGroups({{.layer = 0, .spec = {.block_size = 16, .kv_heads = 1, .head_dim = 32}}}), 0, blocks);
  parts.make_core = [=](EngineCore::OutputSink sink) {
    return std::make_unique<EngineCore>(EngineCore::Options{.scheduler = {.max_model_len = 1 << 16,
                                                                          .max_num_batched_tokens = 8192,
                                                                          .max_num_seqs = arguments.streams,
                                                                          .async_scheduling = true},
                                                            .kv_cache = kv},
                                        runner.get(), std::move(sink));
  };
  return MakeLlmEngine(std::move(parts));
}

// What the clients' process tells: events that came, their bytes on the wire are the server's to know.
struct ClientReport {
  int64_t events = 0, failed = 0;
  double seconds = 0;
};

void WriteAll(int to, const void* data, size_t size) {
  CHECK(::write(to, data, size) == static_cast<ssize_t>(size), "the pipe between the processes broke");
}
template <class T>
T ReadFrom(int from) {
  T value = {};
  CHECK(::read(from, &value, sizeof value) == static_cast<ssize_t>(sizeof value), "the other process ended early");
  return value;
}

// A connected pair of TCP sockets over loopback.
std::pair<int, int> LoopbackPair() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof address;
  CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  ::listen(listener, 1);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const int to = ::socket(AF_INET, SOCK_STREAM, 0);
  CHECK(::connect(to, reinterpret_cast<sockaddr*>(&address), size) == 0, "connect");
  const int from = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  return {to, from};
}

// Reads from many sockets as the clients do, until all are closed.
void Drain(const std::vector<int>& sockets) {
  const int epoll = ::epoll_create1(0);
  for (const int socket : sockets) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = socket}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
  }
  char bytes[65536];
  size_t open = sockets.size();
  while (open > 0) {
    epoll_event events[128];
    const int count = ::epoll_wait(epoll, events, 128, -1);
    for (int i = 0; i < count; ++i) {
      if (::recv(events[i].data.fd, bytes, sizeof bytes, 0) > 0) continue;
      ::epoll_ctl(epoll, EPOLL_CTL_DEL, events[i].data.fd, nullptr);
      --open;
    }
  }
}

// Microseconds of processor time of one send, in rounds over as many sockets at the same pace as the server's steps.
// The receivers are another process, forked before this one had threads.
class LoopbackCost {
 public:
  explicit LoopbackCost(int streams) {
    std::vector<int> theirs;
    for (int i = 0; i < streams; ++i) {
      const auto [to, from] = LoopbackPair();
      ours_.push_back(to);
      theirs.push_back(from);
    }
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (const int socket : ours_) ::close(socket);
      Drain(theirs);
      ::_exit(0);
    }
    for (const int socket : theirs) ::close(socket);
  }
  ~LoopbackCost() {
    for (const int socket : ours_) ::close(socket);
    ::waitpid(child_, nullptr, 0);
  }
  double Measure(size_t bytes, int rounds, double rate) const {
    const std::string payload(bytes, 'x');
    const auto step = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate));
    auto next = Clock::now();
    double cpu = 0;
    for (int round = 0; round < rounds; ++round) {
      std::this_thread::sleep_until(next += step);
      const double before = ClockSeconds(CLOCK_THREAD_CPUTIME_ID);
      for (const int socket : ours_) CHECK(::send(socket, payload.data(), payload.size(), MSG_NOSIGNAL) > 0, "send");
      cpu += ClockSeconds(CLOCK_THREAD_CPUTIME_ID) - before;
    }
    return cpu / rounds / static_cast<double>(ours_.size()) * 1e6;
  }

 private:
  std::vector<int> ours_;
  pid_t child_ = 0;
};

// The clients: another process, forked before this one had threads. It waits for the port, runs the streams, reports.
struct Clients {
  pid_t pid = 0;
  int to = -1, from = -1;

  static Clients Fork(const Arguments& arguments) {
    int down[2], up[2];
    CHECK(::pipe(down) == 0 && ::pipe(up) == 0, "pipe");
    Clients clients{.pid = ::fork(), .to = down[1], .from = up[0]};
    if (clients.pid != 0) {
      ::close(down[0]);
      ::close(up[1]);
      return clients;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int port = ReadFrom<int>(down[0]);
    const std::string tokens = base::StrCat(arguments.tokens);
    const TimedRequest request = {
        .path = arguments.chat ? "/v1/chat/completions" : "/v1/completions",
        .body = arguments.chat
                    ? base::StrCat(R"({"messages":[{"role":"user","content":"hello"}],"stream":true,"max_tokens":)",
                                   tokens, R"(,"ignore_eos":true})")
                    : base::StrCat(R"({"prompt":"hello","stream":true,"ignore_eos":true,"max_tokens":)", tokens, "}")};
    const LoadRun run = RunLoad({.port = port}, std::vector<TimedRequest>(arguments.streams, request));
    ClientReport report{.seconds = run.duration_s};
    for (const TimedAnswer& answer : run.answers) {
      report.failed += !answer.success;
      report.events += static_cast<int64_t>(answer.itl_s.size()) + 1;
      if (!answer.success) std::fprintf(stderr, "client: %s\n", answer.error.c_str());
    }
    WriteAll(up[1], &report, sizeof report);
    ::_exit(0);
  }
};

// Bytes of one event on the wire, with its chunk's frame.
size_t EventBytes(const Arguments& arguments, int port) {
  const WholeAnswer answer =
      Ask({.port = port}, "POST", arguments.chat ? "/v1/chat/completions" : "/v1/completions",
          arguments.chat
              ? R"({"messages":[{"role":"user","content":"x"}],"stream":true,"max_tokens":100,"ignore_eos":true})"
              : R"({"prompt":"x","stream":true,"ignore_eos":true,"max_tokens":100})");
  CHECK(answer.status == 200, "HTTP ", answer.status, " ", answer.body, answer.error);
  size_t events = 0;
  for (size_t at = answer.body.find("data: "); at != std::string::npos; at = answer.body.find("data: ", at + 1))
    ++events;
  return answer.body.size() / events + sizeof "100\r\n\r\n" - 1;
}

void Run(const Arguments& arguments) {
  const Clients clients = Clients::Fork(arguments);
  const LoopbackCost loopback(arguments.streams);
  const std::unique_ptr<LlmEngine> engine = MakeEngine(arguments);
  ApiServer server(*engine, {.port = 0}, {});
  server.Start();
  const int port = server.port();
  const size_t bytes = EventBytes(arguments, port);
  const double before_us = loopback.Measure(bytes, 500, arguments.rate);
  const std::map<int, double> threads_before = ThreadTimes();
  const Cpu before = Cpu::OfProcess();
  WriteAll(clients.to, &port, sizeof port);
  const auto report = ReadFrom<ClientReport>(clients.from);
  const Cpu used = Cpu::OfProcess() - before;
  const std::map<int, double> threads_after = ThreadTimes();
  const double after_us = loopback.Measure(bytes, 500, arguments.rate);
  ::waitpid(clients.pid, nullptr, 0);
  CHECK(report.failed == 0, report.failed, " streams failed");
  const auto events = static_cast<double>(report.events);
  const double send_us = (before_us + after_us) / 2, event_us = used.total / events * 1e6;
  std::printf("%d streams, %lld events of %zu bytes in %.1f s (%.2f a token)\n", arguments.streams,
              static_cast<long long>(report.events), bytes, report.seconds,
              events / static_cast<double>(arguments.streams * arguments.tokens));
  const double user_share = used.user / std::max(used.user + used.system, 1e-9);
  std::printf("server, an event:   %6.2f us (%.0f %% user)\n", event_us, 100 * user_share);
  std::printf("loopback, a send:   %6.2f us (%.2f before, %.2f after)\n", send_us, before_us, after_us);
  std::printf("beyond the send:    %6.2f us\n", event_us - send_us);
  if (!arguments.threads) return;
  for (const auto& [id, run] : threads_after) {
    const auto found = threads_before.find(id);
    const double us = (run - (found == threads_before.end() ? 0 : found->second)) * 1e-3 / events;
    if (us > 0.01) std::printf("thread %d: %.2f us an event\n", id, us);
  }
}

Arguments ReadArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::atof(argv[++i]) : 0; };
    if (word == "--streams") {
      arguments.streams = static_cast<int>(number());
    } else if (word == "--tokens") {
      arguments.tokens = static_cast<int64_t>(number());
    } else if (word == "--rate") {
      arguments.rate = number();
    } else if (word == "--chat") {
      arguments.chat = true;
    } else if (word == "--threads") {
      arguments.threads = true;
    } else {
      arguments.tokenizer = word;
    }
  }
  if (arguments.streams < 1 || arguments.tokens < 1 || !(arguments.rate > 0))
    base::Throw(base::ErrorCode::kInvalidArgument, "--streams, --tokens and --rate: above 0");
  return arguments;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  try {
    vllm::Run(vllm::ReadArguments(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "server_bench: %s\n", error.what());
    return 1;
  }
}

// The load generator against an HTTP server in this process.
#include "app/serving/load_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "server/http/http_server.h"

namespace vllm {
namespace {

using std::chrono::milliseconds;

std::string Event(std::string_view text) {
  return "data: {\"choices\":[{\"index\":0,\"text\":\"" + std::string(text) + "\"}]}\n\n";
}
constexpr std::string_view kUsage =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";

// Counts connections' worth of requests and answers by path.
class Server {
 public:
  Server()
      : http_(HttpServer::Create(
            {.port = 0, .worker_threads = 8},
            [this](HttpRequest request, std::shared_ptr<Responder> responder) { Handle(request, *responder); })) {
    http_->Start();
  }
  HttpTarget target() const { return {.port = http_->port()}; }
  int most_at_once() const { return most_; }
  int64_t connections() const { return http_->open_connections(); }
  std::string last_body() {
    const std::lock_guard lock(mutex_);
    return last_body_;
  }

 private:
  void Handle(const HttpRequest& request, Responder& responder) {
    {
      const std::lock_guard lock(mutex_);
      last_body_ = request.body;
    }
    const int now = ++running_;
    for (int seen = most_; now > seen && !most_.compare_exchange_weak(seen, now);) {
    }
    if (request.path == "/busy") return --running_, responder.Send({.status = 503, .body = "{\"why\":\"full\"}"});
    if (request.path == "/plain") return --running_, responder.Send({.body = "{}"});
    responder.StartStream({.content_type = "text/event-stream"});
    if (request.path == "/endless") {
      for (int i = 0; i < 1000 && responder.Write(Event("x")); ++i) std::this_thread::sleep_for(milliseconds(2));
    } else if (request.path == "/fault") {
      responder.Write("data: {\"error\":{\"message\":\"no\"}}\n\n");
    } else if (request.path == "/silent") {
      std::this_thread::sleep_for(milliseconds(1500));
    } else {
      responder.Write(Event("a"));
      std::this_thread::sleep_for(milliseconds(20));
      responder.Write(Event("b"));
      responder.Write(std::string(kUsage));
    }
    responder.Write("data: [DONE]\n\n");
    --running_;
    responder.End();
  }

  std::mutex mutex_;
  std::string last_body_;  // guarded
  std::atomic<int> running_{0}, most_{0};
  std::unique_ptr<HttpServer> http_;
};

std::vector<TimedRequest> Requests(size_t count, const char* path) {
  return std::vector<TimedRequest>(count, {.path = path, .body = "{}"});
}

TEST(LoadClient, TimesTheEventsOfAStreamAndReadsItsUsage) {
  Server server;
  const LoadRun run = RunLoad(server.target(), Requests(1, "/v1/completions"));
  const TimedAnswer& answer = run.answers[0];
  EXPECT_TRUE(answer.success) << answer.error;
  EXPECT_EQ(answer.text, "ab");
  EXPECT_EQ(answer.prompt_tokens, 7);
  EXPECT_EQ(answer.output_tokens, 2);
  ASSERT_EQ(answer.itl_s.size(), 1u);
  EXPECT_GE(answer.itl_s[0], 0.015);
  EXPECT_GT(answer.ttft_s, 0);
  EXPECT_NEAR(answer.latency_s, answer.ttft_s + answer.itl_s[0], 1e-9);
  EXPECT_GE(run.duration_s, answer.latency_s);
}

TEST(LoadClient, ReadsTheDeltasOfChat) {
  const auto server = HttpServer::Create({.port = 0}, [](HttpRequest, std::shared_ptr<Responder> responder) {
    responder->StartStream({.content_type = "text/event-stream; charset=utf-8"});
    responder->Write("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n");
    responder->Write("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n");
    responder->End();
  });
  server->Start();
  const LoadRun run = RunLoad({.port = server->port()}, Requests(1, "/v1/chat/completions"));
  EXPECT_TRUE(run.answers[0].success) << run.answers[0].error;
  EXPECT_EQ(run.answers[0].text, "hi");
  EXPECT_EQ(run.answers[0].itl_s.size(), 1u);
}

TEST(LoadClient, KeepsConnectionsForLaterRequests) {
  Server server;
  const LoadRun run = RunLoad(server.target(), Requests(6, "/v1/completions"), {.max_concurrency = 2});
  for (const TimedAnswer& answer : run.answers) EXPECT_TRUE(answer.success) << answer.error;
  EXPECT_LE(server.connections(), 2);
  EXPECT_EQ(server.most_at_once(), 2);
}

TEST(LoadClient, ARequestThatWaitsForItsTurnCountsTheWait) {
  Server server;
  const LoadRun run = RunLoad(server.target(), Requests(2, "/v1/completions"), {.max_concurrency = 1});
  EXPECT_GE(run.answers[1].queue_s, 0.9 * run.answers[0].latency_s);
  EXPECT_LT(run.answers[0].queue_s, run.answers[1].queue_s);
}

TEST(LoadClient, SendsARequestNoSoonerThanItIsDue) {
  Server server;
  std::vector<TimedRequest> requests = Requests(2, "/v1/completions");
  requests[1].due_s = 0.1;
  const LoadRun run = RunLoad(server.target(), requests);
  EXPECT_GE(run.answers[1].start_s - run.answers[0].start_s, 0.095);
}

TEST(LoadClient, CancelsAfterSoManyEventsAndGoesOn) {
  Server server;
  std::vector<TimedRequest> requests = Requests(2, "/endless");
  requests[0].cancel_after = 3;
  requests[1].path = "/v1/completions";
  const LoadRun run = RunLoad(server.target(), requests, {.max_concurrency = 1});
  EXPECT_TRUE(run.answers[0].cancelled);
  EXPECT_FALSE(run.answers[0].success);
  EXPECT_EQ(run.answers[0].itl_s.size(), 2u);
  EXPECT_TRUE(run.answers[1].success) << run.answers[1].error;
}

TEST(LoadClient, ARefusalIsAFailedAnswerWithItsStatusAndBody) {
  Server server;
  const LoadRun run = RunLoad(server.target(), Requests(2, "/busy"), {.max_concurrency = 1});
  EXPECT_FALSE(run.answers[1].success);
  EXPECT_EQ(run.answers[1].status, 503);
  EXPECT_EQ(run.answers[1].error, "HTTP 503 Service Unavailable: {\"why\":\"full\"}");
}

TEST(LoadClient, AnErrorEventAndAnAnswerWithoutStreamFail) {
  Server server;
  EXPECT_EQ(RunLoad(server.target(), Requests(1, "/fault")).answers[0].error, "{\"message\":\"no\"}");
  EXPECT_EQ(RunLoad(server.target(), Requests(1, "/plain")).answers[0].error, "the answer is no event stream");
}

TEST(LoadClient, ARequestEndsWhenItsTimeIsOver) {
  Server server;
  const LoadRun run = RunLoad(server.target(), Requests(1, "/silent"), {.timeout_s = 0.2});
  EXPECT_FALSE(run.answers[0].success);
  EXPECT_TRUE(run.answers[0].error.starts_with("no end after")) << run.answers[0].error;
}

TEST(LoadClient, NobodyListeningIsAFailedAnswer) {
  int port = 0;
  {
    Server server;
    port = server.target().port;
  }
  const LoadRun run = RunLoad({.port = port}, Requests(1, "/x"));
  EXPECT_TRUE(run.answers[0].error.starts_with("cannot connect")) << run.answers[0].error;
  EXPECT_EQ(Ask({.port = port}, "GET", "/").status, 0);
}

TEST(LoadClient, ASecondRequestGoesOnANewConnectionWhenTheServerHasClosedTheFirst) {
  int port = 0;
  std::vector<TimedRequest> requests = Requests(2, "/v1/completions");
  requests[1].due_s = 0.3;
  std::unique_ptr<Server> server = std::make_unique<Server>();
  port = server->target().port;
  std::thread restart([&] {
    std::this_thread::sleep_for(milliseconds(120));
    server.reset();
  });
  const LoadRun run = RunLoad({.port = port}, requests);
  restart.join();
  EXPECT_TRUE(run.answers[0].success) << run.answers[0].error;
  EXPECT_TRUE(run.answers[1].error.starts_with("cannot connect")) << run.answers[1].error;
}

TEST(LoadClient, AsksForOneAnswer) {
  Server server;
  const WholeAnswer answer = Ask(server.target(), "POST", "/plain", "{\"a\":1}");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "{}");
  EXPECT_EQ(server.last_body(), "{\"a\":1}");
}

TEST(ParseTarget, ReadsHostPortAndPrefix) {
  const HttpTarget plain = ParseTarget("http://a.b:81/x/", "--base-url");
  EXPECT_EQ(plain.host, "a.b");
  EXPECT_EQ(plain.port, 81);
  EXPECT_EQ(plain.prefix, "/x");
  const HttpTarget v6 = ParseTarget("http://[::1]:9", "--base-url");
  EXPECT_EQ(v6.host, "::1");
  EXPECT_EQ(v6.port, 9);
  EXPECT_EQ(ParseTarget("http://h", "--base-url").port, 80);
}

TEST(ParseTarget, RefusesWhatItCannotReach) {
  for (const char* url : {"https://h", "h:1", "http://", "http://h:0", "http://h:x", "http://[::1"})
    EXPECT_THROW(ParseTarget(url, "--base-url"), base::Exception) << url;
}

}  // namespace
}  // namespace vllm

// The HTTP server: framing, limits, clients that go, drains; with handlers made for each test.
#include "server/http/http_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/limits.h"
#include "base/result.h"
#include "tests/server/http_client_util.h"

namespace vllm {
namespace {

using testing::Fetch;
using testing::HttpAnswer;
using testing::HttpConnection;
using testing::HttpText;

std::unique_ptr<HttpServer> Serve(HttpHandler handler, HttpServerOptions options = {}) {
  options.port = 0;
  auto server = HttpServer::Create(options, std::move(handler));
  server->Start();
  return server;
}

void Echo(HttpRequest request, std::shared_ptr<Responder> responder) {
  responder->Send({.content_type = "text/plain",
                   .body = request.method + " " + request.path + "?" + request.query + " " + request.body});
}

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return holds();
}

// Keeps responders until the test answers, and counts clients that went.
struct Held {
  std::mutex mutex;
  std::vector<std::shared_ptr<Responder>> responders;
  std::atomic<int> gone{0}, begun{0};
  HttpHandler Handler() {
    return [this](HttpRequest, std::shared_ptr<Responder> responder) {
      responder->OnGone([this] { ++gone; });
      const std::lock_guard lock(mutex);
      responders.push_back(std::move(responder));
      ++begun;
    };
  }
  bool WaitBegun(int count) {
    return Eventually([&] { return begun >= count; });
  }
  std::shared_ptr<Responder> Last() {
    const std::lock_guard lock(mutex);
    return responders.back();
  }
  void Clear() {
    const std::lock_guard lock(mutex);
    responders.clear();
  }
};

TEST(HttpServer, PassesMethodPathQueryAndBody) {
  const auto server = Serve(Echo);
  const HttpAnswer answer = Fetch(server->port(), "POST", "/a%20b?c=d?e", "body");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "POST /a%20b?c=d?e body");
  EXPECT_EQ(answer.headers.at("content-type"), "text/plain");
}

TEST(HttpServer, HeaderNamesComeInLowerCase) {
  const auto server = Serve([](HttpRequest request, std::shared_ptr<Responder> responder) {
    responder->Send({.body = std::string(request.Header("x-thing")) + "|" + std::string(request.Header("x-none"))});
  });
  EXPECT_EQ(Fetch(server->port(), "GET", "/", "", "X-THING: Value\r\n").body, "Value|");
}

TEST(HttpServer, AConnectionServesOneRequestAfterTheOther) {
  const auto server = Serve(Echo);
  HttpConnection connection(server->port());
  for (int i = 0; i < 3; ++i) {
    connection.Send(HttpText("POST", "/" + std::to_string(i), "x"));
    EXPECT_EQ(connection.ReadAnswer().body, "POST /" + std::to_string(i) + "? x");
  }
  EXPECT_EQ(server->open_connections(), 1);
}

TEST(HttpServer, RequestsSentAheadAreAnsweredInOrder) {
  const auto server = Serve(Echo);
  HttpConnection connection(server->port());
  connection.Send(HttpText("POST", "/1", "a") + HttpText("POST", "/2", std::string(30000, 'b')) +
                  HttpText("GET", "/3"));
  EXPECT_EQ(connection.ReadAnswer().body, "POST /1? a");
  EXPECT_EQ(connection.ReadAnswer().body.size(), std::string("POST /2? ").size() + 30000);
  EXPECT_EQ(connection.ReadAnswer().body, "GET /3? ");
}

TEST(HttpServer, ConnectionCloseIsObeyed) {
  const auto server = Serve(Echo);
  HttpConnection connection(server->port());
  connection.Send(HttpText("GET", "/", "", "Connection: close\r\n"));
  EXPECT_EQ(connection.ReadAnswer().headers.at("connection"), "close");
  EXPECT_TRUE(connection.AtEnd());
}

TEST(HttpServer, AnAnswerToHeadHasNoBody) {
  const auto server = Serve(Echo);
  HttpConnection connection(server->port());
  connection.Send(HttpText("HEAD", "/x") + HttpText("GET", "/y"));
  const HttpAnswer head = connection.ReadAnswer(/*head_only=*/true);
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(std::string("HEAD /x? ").size()));
  EXPECT_EQ(connection.ReadAnswer().body, "GET /y? ");
}

TEST(HttpServer, ALineBreakInAHeaderValueMakesNoSecondHeader) {
  const auto server = Serve([](HttpRequest, std::shared_ptr<Responder> responder) {
    responder->Send({.headers = {{"X-Id", "a\r\nX-Evil: b"}}});
  });
  const HttpAnswer answer = Fetch(server->port(), "GET", "/");
  EXPECT_EQ(answer.headers.at("x-id"), "aX-Evil: b");
  EXPECT_FALSE(answer.headers.contains("x-evil"));
}

TEST(HttpServer, StreamsArriveInChunksAndTheConnectionGoesOn) {
  const auto server = Serve([](HttpRequest, std::shared_ptr<Responder> responder) {
    responder->StartStream({.content_type = "text/event-stream"});
    for (const char* part : {"one ", "", "two ", "three"}) responder->Write(part);
    responder->End();
  });
  HttpConnection connection(server->port());
  for (int i = 0; i < 2; ++i) {
    connection.Send(HttpText("GET", "/"));
    const HttpAnswer answer = connection.ReadAnswer();
    EXPECT_EQ(answer.body, "one two three");
    EXPECT_TRUE(answer.complete);
  }
}

TEST(HttpServer, AStreamToHttp10EndsWithTheConnection) {
  const auto server = Serve([](HttpRequest, std::shared_ptr<Responder> responder) {
    responder->StartStream({});
    responder->Write("text");
    responder->End();
  });
  HttpConnection connection(server->port());
  connection.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const HttpAnswer answer = connection.ReadAnswer();
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_EQ(answer.body, "text");
}

TEST(HttpServer, ExpectContinueIsAnsweredBeforeTheBody) {
  const auto server = Serve(Echo);
  HttpConnection connection(server->port());
  connection.Send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(connection.ReceiveUntil("100 Continue\r\n\r\n"));
  EXPECT_EQ(connection.ReadAnswer(true).status, 100);
  connection.Send("hi");
  EXPECT_EQ(connection.ReadAnswer().body, "POST /? hi");
}

TEST(HttpServer, ABodyAtTheLimitPassesAndOneMoreByteIsA413) {
  const auto server = Serve(Echo, {.max_body_bytes = 1000});
  EXPECT_EQ(Fetch(server->port(), "POST", "/", std::string(1000, 'a')).status, 200);
  EXPECT_EQ(Fetch(server->port(), "POST", "/", std::string(1001, 'a')).status, 413);
}

TEST(HttpServer, AClientThatPushesAHugeBodyStillReadsTheRefusal) {
  const auto server = Serve(Echo, {.max_body_bytes = 1000});
  HttpConnection connection(server->port());
  ASSERT_TRUE(connection.Send(HttpText("POST", "/", std::string(50 << 20, 'a'))));
  EXPECT_EQ(connection.ReadAnswer().status, 413);
}

TEST(HttpServer, ChunksWithoutEndAreRefusedAtTheLimit) {
  const auto server = Serve(Echo, {.max_body_bytes = 100000});
  HttpConnection connection(server->port());
  connection.Send("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(4096, 'a') + "\r\n";
  for (int i = 0; i < 30; ++i) connection.Send(chunk);
  EXPECT_EQ(connection.ReadAnswer().status, 413);
}

TEST(HttpServer, ABodyThatDoesNotArriveInTimeIsA408AndTheConnectionClosed) {
  const auto server = Serve(Echo, {.request_timeout_seconds = 1});
  HttpConnection stuck(server->port());
  stuck.Send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\nabc");
  EXPECT_EQ(stuck.ReadAnswer().status, 408);
  EXPECT_TRUE(stuck.AtEnd());
  // One byte after the other buys no time.
  HttpConnection dripping(server->port());
  dripping.Send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 10000\r\n\r\n");
  std::atomic<bool> answered{false};
  std::thread drip([&] {
    while (!answered && dripping.Send("a")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_EQ(dripping.ReadAnswer().status, 408);
  answered = true;
  drip.join();
  EXPECT_EQ(Fetch(server->port(), "GET", "/").status, 200);
}

TEST(HttpServer, HeadersBeyondTheLimitAreA431) {
  const auto server = Serve(Echo);
  const std::string header = "X-A: " + std::string(base::kMaxRequestHeaderBytes, 'a') + "\r\n";
  EXPECT_EQ(Fetch(server->port(), "GET", "/", "", header).status, 431);
}

TEST(HttpServer, ContradictoryLengthsAreRefusedAndTheConnectionClosed) {
  const auto server = Serve(Echo);
  for (const char* headers : {"Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: -1\r\n",
                              "Content-Length: 99999999999999999999\r\n", "Content-Length: 1 2\r\n",
                              "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"}) {
    HttpConnection connection(server->port());
    connection.Send(std::string("POST / HTTP/1.1\r\nHost: t\r\n") + headers + "\r\nabc");
    const int status = connection.ReadAnswer().status;
    EXPECT_TRUE(status == 400 || status == 413) << headers << status;
    EXPECT_TRUE(connection.AtEnd()) << headers;
  }
}

TEST(HttpServer, WhatIsNoHttpIsA400) {
  const auto server = Serve(Echo);
  for (const char* text : {"\x16\x03\x01\x02\x00\x01\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                           "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    HttpConnection connection(server->port());
    connection.Send(text);
    EXPECT_EQ(connection.ReadAnswer().status, 400) << text;
  }
}

TEST(HttpServer, AHandlerThatLetsGoWithoutAnAnswerGivesA500) {
  const auto server = Serve([](HttpRequest, std::shared_ptr<Responder>) {});
  EXPECT_EQ(Fetch(server->port(), "GET", "/").status, 500);
}

TEST(HttpServer, AHandlerThatThrowsGivesA500AndHarmsNobody) {
  const auto server = Serve([](HttpRequest request, std::shared_ptr<Responder> responder) {
    if (request.path == "/bad") throw std::runtime_error("on purpose");
    Echo(request, responder);
  });
  EXPECT_EQ(Fetch(server->port(), "GET", "/bad").status, 500);
  EXPECT_EQ(Fetch(server->port(), "GET", "/good").status, 200);
}

TEST(HttpServer, AStreamThatIsLetGoEndsTheConnectionUnfinished) {
  const auto server = Serve([](HttpRequest, std::shared_ptr<Responder> responder) {
    responder->StartStream({});
    responder->Write("half");
  });
  EXPECT_FALSE(Fetch(server->port(), "GET", "/").complete);
}

class ClientGone : public ::testing::TestWithParam<const char*> {};

TEST_P(ClientGone, IsToldOnceAndWritesThenSayNo) {
  Held held;
  const auto server = Serve(held.Handler());
  HttpConnection connection(server->port());
  connection.Send(HttpText("GET", "/"));
  ASSERT_TRUE(held.WaitBegun(1));
  held.Last()->StartStream({});
  ASSERT_TRUE(held.Last()->Write("some"));
  ASSERT_TRUE(connection.ReceiveUntil("some"));

  const std::string way = GetParam();
  way == "close" ? connection.Close() : way == "reset" ? connection.Reset() : connection.HalfClose();

  EXPECT_TRUE(Eventually([&] { return held.gone == 1; }));
  EXPECT_TRUE(Eventually([&] { return !held.Last()->Write("more"); }));
  held.Clear();
  EXPECT_TRUE(Eventually([&] { return server->open_connections() == 0 && server->active_requests() == 0; }));
  EXPECT_EQ(held.gone, 1);
}

TEST_P(ClientGone, IsNoticedBeforeAnyAnswer) {
  Held held;
  const auto server = Serve(held.Handler());
  HttpConnection connection(server->port());
  connection.Send(HttpText("GET", "/"));
  ASSERT_TRUE(held.WaitBegun(1));
  const std::string way = GetParam();
  way == "close" ? connection.Close() : way == "reset" ? connection.Reset() : connection.HalfClose();
  EXPECT_TRUE(Eventually([&] { return held.gone == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Ways, ClientGone, ::testing::Values("close", "reset", "half"),
                         [](const auto& info) { return std::string(info.param); });

TEST(HttpServer, OnGoneAfterTheClientHasGoneCallsAtOnce) {
  Held held;
  const auto server = Serve(held.Handler());
  {
    HttpConnection connection(server->port());
    connection.Send(HttpText("GET", "/"));
    ASSERT_TRUE(held.WaitBegun(1));
  }
  ASSERT_TRUE(Eventually([&] { return held.gone == 1; }));
  std::atomic<bool> called{false};
  held.Last()->OnGone([&] { called = true; });
  EXPECT_TRUE(Eventually([&] { return called.load(); }));
}

TEST(HttpServer, AClientThatReadsNothingIsCutOffWithoutBlockingTheWriter) {
  Held held;
  const auto server = Serve(held.Handler());
  HttpConnection connection(server->port());
  connection.Send(HttpText("GET", "/"));
  ASSERT_TRUE(held.WaitBegun(1));
  const auto responder = held.Last();
  responder->StartStream({});
  const std::string part(1 << 20, 'x');
  EXPECT_TRUE(Eventually([&] { return !responder->Write(part); }));
  EXPECT_TRUE(Eventually([&] { return held.gone == 1; }));
}

TEST(HttpServer, AnAnswerLargerThanAnySocketBufferArrivesWhole) {
  const auto server = Serve(
      [](HttpRequest, std::shared_ptr<Responder> responder) { responder->Send({.body = std::string(20 << 20, 'y')}); });
  HttpConnection connection(server->port());
  connection.Send(HttpText("GET", "/"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the buffers fill
  const HttpAnswer answer = connection.ReadAnswer();
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.body.size(), size_t{20} << 20);
}

TEST(HttpServer, StopWaitsForRequestsInProgress) {
  Held held;
  const auto server = Serve(held.Handler());
  HttpConnection connection(server->port()), idle(server->port());
  connection.Send(HttpText("GET", "/"));
  ASSERT_TRUE(held.WaitBegun(1));
  bool clean = false;
  std::thread stopper([&] { clean = server->Stop(60000); });
  EXPECT_TRUE(idle.AtEnd());
  held.Last()->Send({.body = "done"});
  stopper.join();
  EXPECT_TRUE(clean);
  const HttpAnswer answer = connection.ReadAnswer();
  EXPECT_EQ(answer.body, "done");
  EXPECT_EQ(answer.headers.at("connection"), "close");
}

TEST(HttpServer, StopCutsOffWhatTakesLonger) {
  Held held;
  const auto server = Serve(held.Handler());
  HttpConnection connection(server->port());
  connection.Send(HttpText("GET", "/"));
  ASSERT_TRUE(held.WaitBegun(1));
  EXPECT_FALSE(server->Stop(10));
  EXPECT_TRUE(connection.AtEnd());
  EXPECT_TRUE(Eventually([&] { return held.gone == 1; }));
}

TEST(HttpServer, AStoppedServerRefusesConnections) {
  const auto server = Serve(Echo);
  EXPECT_TRUE(server->Stop(1000));
  EXPECT_TRUE(Eventually([&] { return !HttpConnection(server->port()).connected(); }));
}

TEST(HttpServer, ItsEndReleasesEveryDescriptor) {
  const auto count = [] {
    int64_t descriptors = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++descriptors;
    return descriptors;
  };
  Serve(Echo).reset();
  const int64_t before = count();
  for (int round = 0; round < 20; ++round) {
    Held held;
    auto server = Serve(held.Handler());
    HttpConnection idle(server->port()), busy(server->port()), half(server->port());
    busy.Send(HttpText("GET", "/"));
    half.Send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
    ASSERT_TRUE(held.WaitBegun(1));
    server.reset();
    held.Clear();
  }
  EXPECT_EQ(count(), before);
}

TEST(HttpServer, AResponderThatOutlivesItKeepsNothingAlive) {
  auto token = std::make_shared<int>();
  const std::weak_ptr<int> handler_alive = token;
  Held held;
  auto server = Serve([&held, token](HttpRequest request, std::shared_ptr<Responder> responder) {
    held.Handler()(std::move(request), std::move(responder));
  });
  token.reset();
  HttpConnection connection(server->port());
  connection.Send(HttpText("GET", "/"));
  ASSERT_TRUE(held.WaitBegun(1));
  held.Last()->StartStream({});
  server.reset();
  EXPECT_FALSE(held.Last()->Write("late"));
  held.Clear();
  EXPECT_TRUE(handler_alive.expired());
}

TEST(HttpServer, ServesIPv6) {
  std::unique_ptr<HttpServer> server;
  try {
    server = Serve(Echo, {.host = "::1"});
  } catch (const base::Exception&) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  EXPECT_EQ(server->url(), "http://[::1]:" + std::to_string(server->port()));
  HttpConnection connection(server->port(), "::1");
  connection.Send(HttpText("GET", "/six"));
  EXPECT_EQ(connection.ReadAnswer().body, "GET /six? ");
}

TEST(HttpServer, ServesAUnixSocketAndRemovesItAtTheEnd) {
  const std::string path = std::filesystem::temp_directory_path() / ("vllm-uds-" + std::to_string(::getpid()));
  {
    const auto server = Serve(Echo, {.uds = path});
    EXPECT_EQ(server->url(), "unix:" + path);
    HttpConnection connection(path);
    connection.Send(HttpText("GET", "/u"));
    EXPECT_EQ(connection.ReadAnswer().body, "GET /u? ");
    EXPECT_THROW(Serve(Echo, {.uds = path}), base::Exception) << "in use";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(HttpServer, AFileInTheSocketsPlaceIsKept) {
  const std::string path = std::filesystem::temp_directory_path() / ("vllm-file-" + std::to_string(::getpid()));
  std::ofstream(path) << "precious";
  EXPECT_THROW(Serve(Echo, {.uds = path}), base::Exception);
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove(path);
}

TEST(HttpServer, ABusyPortIsNamedInTheError) {
  const auto server = Serve(Echo);
  try {
    HttpServer::Create({.port = server->port()}, Echo);
    FAIL() << "two servers on one port";
  } catch (const base::Exception& exception) {
    EXPECT_NE(std::string(exception.what()).find(std::to_string(server->port())), std::string::npos);
  }
}

TEST(HttpServer, AnUnknownHostIsRefused) {
  EXPECT_THROW(HttpServer::Create({.host = "no.such.host.invalid"}, Echo), base::Exception);
}

}  // namespace
}  // namespace vllm

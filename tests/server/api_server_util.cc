// A real engine behind a real server on a free port.
#include "tests/server/api_server_util.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

namespace vllm::testing {
namespace {

// The events of a server-sent stream that ends in [DONE], all of one id and time; what is wrong goes to `fault`.
base::Json ParseEvents(std::string_view body, std::string& fault) {
  base::Json events = base::Json::array();
  std::set<std::string> ids;
  bool done = false;
  while (!body.empty() && fault.empty()) {
    const size_t end = body.find("\n\n");
    if (end == std::string_view::npos) return fault = "an event without end", events;
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(end + 2);
    if (done) fault = "an event after [DONE]";
    if (!line.starts_with("data: ")) return fault = "a line without data", events;
    if (line == "data: [DONE]") {
      done = true;
      continue;
    }
    base::Json event = base::Json::parse(line.substr(6), nullptr, /*allow_exceptions=*/false);
    if (event.is_discarded()) return fault = "an event that is no JSON", events;
    if (!event.contains("error")) ids.insert(event["id"].dump() + event["created"].dump() + event["model"].dump());
    events.push_back(std::move(event));
  }
  if (!done) fault = "no [DONE]";
  if (ids.size() > 1) fault = "more than one id, time or model";
  return events;
}

}  // namespace

std::string StreamAnswer::Text(int index) const {
  std::string text;
  for (const base::Json& event : *events) {
    if (!event.contains("choices")) continue;
    for (const base::Json& choice : event["choices"])
      if (choice["index"] == index)
        text += choice.contains("text") ? choice["text"].get<std::string>() : choice["delta"].value("content", "");
  }
  return text;
}

TestServer::TestServer(const EngineConfig& config, ApiOptions api)
    : engine_(LlmEngine::Load(config)),
      server_(std::make_unique<ApiServer>(*engine_, HttpServerOptions{.port = 0}, std::move(api))) {
  server_->Start();
}

JsonAnswer TestServer::Post(std::string_view path, std::string_view fields) const {
  const HttpAnswer answer = Fetch(port(), "POST", path, fields);
  return {answer.status,
          std::make_shared<base::Json>(base::Json::parse(answer.body, nullptr, /*allow_exceptions=*/false))};
}

JsonAnswer TestServer::Get(std::string_view path) const {
  const HttpAnswer answer = Fetch(port(), "GET", path);
  return {answer.status,
          std::make_shared<base::Json>(base::Json::parse(answer.body, nullptr, /*allow_exceptions=*/false))};
}

StreamAnswer TestServer::Stream(std::string_view path, std::string_view fields) const {
  base::Json body = base::Json::parse(fields);
  body["stream"] = true;
  const HttpAnswer answer = Fetch(port(), "POST", path, body.dump());
  StreamAnswer stream{.status = answer.status};
  if (!answer.complete) stream.fault = "the body has no end";
  const auto type = answer.headers.find("content-type");
  if (type == answer.headers.end() || !type->second.starts_with("text/event-stream")) stream.fault = "no event stream";
  if (answer.status == 200) {
    stream.events = std::make_shared<base::Json>(ParseEvents(answer.body, stream.fault));
  } else {
    stream.events = std::make_shared<base::Json>(base::Json::array({base::Json::parse(answer.body)}));
  }
  return stream;
}

bool TestServer::BecomesIdle() {
  return Eventually([this] {
    const EngineStats stats = engine_->stats();
    return stats.num_running == 0 && stats.num_waiting == 0 && stats.kv_blocks_used == 0 &&
           server_->http().active_requests() == 0;
  });
}

EngineConfig ExactConfig(const std::string& model) {
  EngineConfig config;
  config.model = model;
  config.served_model_name = {"m"};
  config.numerics = vt::Numerics::kExact;
  config.threads = 2;
  config.block_size = 16;
  config.max_model_len = 512;
  config.max_num_seqs = 32;
  config.num_gpu_blocks_override = 200;
  return config;
}

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace vllm::testing

// vllm bench serve: vLLM's options, printed report and result file, against any server of the OpenAI API.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "app/commands.h"
#include "app/serving/dataset.h"
#include "app/serving/load_client.h"
#include "app/serving/plot.h"
#include "app/serving/report.h"
#include "app/session.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/py_text.h"
#include "base/strings.h"
#include "engine/load_text.h"
#include "load/model_path.h"

namespace vllm {
namespace {

using base::ErrorCode;

constexpr int kRetrySeconds = 5;  // between looks at a server that is not ready, as in vLLM
constexpr double kAskSeconds = 30;

// What is sent where.
struct Target {
  HttpTarget http = {};
  std::string endpoint = {};
  bool chat = false;
  RequestHeaders headers = {};
  std::string model_name = {};  // in requests
  std::string model_id = {};    // in the result, and where the tokenizer is looked for
};

// When requests are sent.
struct Traffic {
  std::optional<double> rate = {};  // a second; absent: all at once
  double burstiness = 1;
  std::optional<int64_t> max_concurrency = {};
};

double ReadRate(const base::Options& options, std::string_view name, std::string_view fallback) {
  const std::string text = options.String(name, fallback);
  if (text == "inf") return INFINITY;
  const base::Result<double> value = base::ParseDouble(text);
  if (!value.ok() || *value <= 0) options.Refuse(name, "is neither a number above 0 nor inf");
  return *value;
}

// "a=1" of list options.
std::vector<std::pair<std::string, std::string>> ReadPairs(const base::Options& options, std::string_view name,
                                                           char separator) {
  const auto stripped = [](std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return std::string(text);
  };
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& item : options.List(name)) {
    const size_t at = item.find(separator);
    if (at == std::string::npos) options.Refuse(name, base::StrCat("is not of the form KEY", separator, "VALUE"));
    pairs.emplace_back(stripped(std::string_view(item).substr(0, at)), stripped(std::string_view(item).substr(at + 1)));
  }
  return pairs;
}

// Asks the server for its first model, unless one is named.
void FindModel(const base::Options& options, Target& target) {
  if (const auto model = options.FindString("model")) {
    target.model_id = *model;
    target.model_name = options.String("served_model_name", *model);
    return;
  }
  std::puts("Model not specified, fetching first model from server...");
  const WholeAnswer answer = Ask(target.http, "GET", "/v1/models", {}, target.headers, kAskSeconds);
  const auto refuse = [&](std::string_view why) {
    base::Throw(ErrorCode::kNotFound, "--model: none given, and the server at ", target.http.host, ":",
                target.http.port, " tells none (", why, "); start it, or correct --base-url, --host, --port");
  };
  if (answer.status != 200) refuse(answer.status ? base::StrCat("HTTP ", answer.status) : answer.error);
  const base::Result<base::Json> json = base::ParseJson(answer.body, base::kMaxJsonDepth);
  const bool listed = json.ok() && json->is_object() && json->contains("data") && (*json)["data"].is_array() &&
                      !(*json)["data"].empty() && (*json)["data"][0].is_object();
  if (!listed) refuse("its list is empty or no JSON");
  const base::Json& first = (*json)["data"][0];
  const auto text = [&](const char* name) {
    return first.contains(name) && first[name].is_string() ? first[name].get<std::string>() : std::string();
  };
  target.model_name = text("id");
  target.model_id = text("root").empty() ? target.model_name : text("root");
  std::printf("First model name: %s, first model id: %s\n", target.model_name.c_str(), target.model_id.c_str());
}

Target ReadTarget(const base::Options& options) {
  Target target;
  if (const auto url = options.FindString("base_url")) {
    target.http = ParseTarget(*url, options.Origin("base_url"));
  } else {
    target.http.host = options.String("host", target.http.host);
    const int64_t port = options.Int("port", target.http.port);
    if (port < 1 || port > 65535) options.Refuse("port", "is not in 1 .. 65535");
    target.http.port = static_cast<int>(port);
  }
  target.chat = options.String("backend", "openai") == "openai-chat";
  target.endpoint = options.String("endpoint", target.chat ? "/v1/chat/completions" : "/v1/completions");
  if (!target.endpoint.ends_with(target.chat ? "chat/completions" : "completions"))
    options.Refuse("endpoint", base::StrCat("is not where --backend ", options.String("backend", "openai"), " asks"));
  if (const auto key = options.FindString("openai_api_key"))
    target.headers.emplace_back("Authorization", "Bearer " + *key);
  for (auto& pair : ReadPairs(options, "header", '=')) target.headers.push_back(std::move(pair));
  for (const auto& [name, value] : target.headers)
    if ((name + value).find_first_of("\r\n") != std::string::npos) options.Refuse("header", "holds a line break");
  FindModel(options, target);
  return target;
}

Traffic ReadTraffic(const base::Options& options) {
  Traffic traffic;
  if (const double rate = ReadRate(options, "request_rate", "inf"); std::isfinite(rate)) traffic.rate = rate;
  traffic.burstiness = ReadRate(options, "burstiness", "1.0");
  traffic.max_concurrency = options.FindInt("max_concurrency");
  if (traffic.max_concurrency && *traffic.max_concurrency < 1) options.Refuse("max_concurrency", "is not above 0");
  return traffic;
}

ReportOptions ReadReport(const base::Options& options, const Traffic& traffic, bool counts_tokens) {
  ReportOptions report{
      .max_concurrency = traffic.max_concurrency, .request_rate = traffic.rate, .counts_tokens = counts_tokens};
  constexpr std::string_view kKnown[] = {
      "ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue"};
  const std::string metrics = options.String("percentile_metrics", "ttft,tpot,itl");
  for (const std::string_view metric : base::Split(metrics, ',')) {
    if (std::find(std::begin(kKnown), std::end(kKnown), metric) == std::end(kKnown))
      options.Refuse("percentile_metrics",
                     "names more than ttft, tpot, itl, e2el, client_queue_time and e2el_including_client_queue");
    report.metrics.emplace_back(metric);
  }
  const std::string percentiles = options.String("metric_percentiles", "99");
  for (const std::string_view percent : base::Split(percentiles, ',')) {
    const base::Result<double> value = base::ParseDouble(percent);
    if (!value.ok() || *value < 0 || *value > 100) options.Refuse("metric_percentiles", "is no list of 0 .. 100");
    report.percentiles.push_back(*value);
  }
  for (const auto& [name, text] : ReadPairs(options, "goodput", ':')) {
    const base::Result<double> value = base::ParseDouble(text);
    if ((name != "ttft" && name != "tpot" && name != "e2el") || !value.ok() || *value < 0)
      options.Refuse("goodput", "is not ttft, tpot or e2el, a colon, and milliseconds");
    report.goodput.emplace_back(name, *value);
  }
  return report;
}

struct Texts {
  std::unique_ptr<Tokenizer> tokenizer = {};
  std::unique_ptr<ChatTemplate> chat_template = {};
};

Texts LoadTexts(const base::Options& options, const Target& target) {
  Texts texts;
  if (options.Bool("skip_tokenizer_init", false)) return texts;
  const HubLocations hub = {.hf_hub_cache = options.String("hf_hub_cache", ""),
                            .hf_home = options.String("hf_home", ""),
                            .xdg_cache_home = options.String("xdg_cache_home", ""),
                            .home = options.String("home", "")};
  const std::string typed = options.String("tokenizer", target.model_id);
  std::string path;
  try {
    path = ResolveModelPath(typed, hub).path;
  } catch (const base::Exception& error) {
    base::Throw(ErrorCode::kNotFound, "--tokenizer: '", typed, "' is not here (", error.what(),
                "); give the model's GGUF file or folder by --tokenizer PATH");
  }
  std::error_code ignored;
  texts.tokenizer = std::filesystem::is_directory(path, ignored) ? Tokenizer::FromDirectory(path)
                                                                 : LoadTokenizer(LoadCheckpoint(path), "");
  texts.chat_template = LoadChatTemplate(*texts.tokenizer, "");
  return texts;
}

// Where the server's tokenizer makes more of a prompt than was meant, the prompt is cut to its length.
void AlignPrompts(const Target& target, std::vector<SampleRequest>& samples) {
  const auto post = [&](const char* path, base::Json body, const char* field) -> base::Json {
    body["model"] = target.model_name;
    const WholeAnswer answer = Ask(target.http, "POST", path, base::DumpJson(body), target.headers, kAskSeconds);
    const base::Result<base::Json> json = base::ParseJson(answer.body, base::kMaxJsonDepth);
    if (answer.status != 200 || !json.ok() || !json->is_object() || !json->contains(field)) return nullptr;
    return (*json)[field];
  };
  const auto tokens = [&](const std::string& prompt) {
    return post("/tokenize", {{"prompt", prompt}, {"add_special_tokens", false}}, "tokens");
  };
  const base::Json first = tokens(samples[0].prompt);
  if (!first.is_array() || first.empty()) return void(std::puts("WARNING: /tokenize unavailable, skipping alignment."));
  if (static_cast<int64_t>(first.size()) == samples[0].prompt_len) return;
  std::printf("WARNING: tokenizer mismatch (server=%zu, expected=%lld), re-aligning prompts.\n", first.size(),
              static_cast<long long>(samples[0].prompt_len));
  for (SampleRequest& sample : samples) {
    base::Json ids = tokens(sample.prompt);
    if (!ids.is_array() || static_cast<int64_t>(ids.size()) <= sample.prompt_len) continue;
    ids.erase(ids.begin() + sample.prompt_len, ids.end());
    const base::Json text = post("/detokenize", {{"tokens", ids}}, "prompt");
    if (text.is_string()) sample.prompt = text.get<std::string>();
  }
}

// The body of every request, without its prompt and length.
base::Json BodyTemplate(const base::Options& options, const Target& target) {
  base::Json body = base::Json::object();
  body["model"] = target.model_name;
  if (!target.chat) {
    body["repetition_penalty"] = 1.0;
    body["logprobs"] = options.Has("logprobs") ? base::Json(options.Int("logprobs", 0)) : base::Json();
  }
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const bool random = options.String("dataset_name", "random") == "random";
  if (random || options.Bool("ignore_eos", false)) body["ignore_eos"] = true;
  for (const char* name :
       {"top_p", "min_p", "temperature", "frequency_penalty", "presence_penalty", "repetition_penalty"})
    if (options.Has(name)) body[name] = options.Double(name, 0);
  if (options.Has("top_k")) body["top_k"] = options.Int("top_k", 0);
  if (!options.Has("temperature"))
    std::puts("WARNING: the temperature is the server's default; --temperature=0 asks for greedy answers.");
  if (const auto extra = options.FindJson("extra_body")) {
    if (!extra->is_object()) options.Refuse("extra_body", "is no JSON object");
    body.update(*extra);
  }
  return body;
}

TimedRequest MakeRequest(const Target& target, const base::Json& body_template, const SampleRequest& sample,
                         std::string_view id) {
  base::Json body = body_template;
  if (target.chat) {
    const base::Json part = {{"type", "text"}, {"text", sample.prompt}};
    body["messages"] = base::Json::array({{{"role", "user"}, {"content", base::Json::array({part})}}});
    body["max_completion_tokens"] = sample.output_len;
  } else {
    body["prompt"] = sample.prompt;
    body["max_tokens"] = sample.output_len;
  }
  TimedRequest request{.path = target.endpoint,
                       .body = base::DumpJson(body),
                       .headers = target.headers,
                       .prompt_tokens = sample.prompt_len};
  if (!id.empty()) request.headers.emplace_back("x-request-id", id);
  return request;
}

// Gaps of a gamma distribution (of an exponential one with burstiness 1), stretched so that the last request is sent at
// requests / rate.
void SetArrivals(const Traffic& traffic, uint64_t seed, std::vector<TimedRequest>& requests) {
  if (!traffic.rate) return;
  std::mt19937_64 random(seed);
  std::gamma_distribution<double> gap(traffic.burstiness, 1 / (*traffic.rate * traffic.burstiness));
  double at = 0;
  for (TimedRequest& request : requests) {
    at += std::isinf(traffic.burstiness) ? 1 / *traffic.rate : gap(random);
    request.due_s = at;
  }
  const double whole = static_cast<double>(requests.size()) / *traffic.rate;
  for (TimedRequest& request : requests) request.due_s *= whole / at;
}

// Sends the first request until the server answers it, if asked to.
void AwaitServer(const base::Options& options, const Target& target, const TimedRequest& request) {
  std::puts("Starting initial single prompt test run...");
  const int64_t patience = options.Int("ready_check_timeout_sec", 0);
  if (patience <= 0) return void(std::puts("Skipping endpoint ready check."));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(patience);
  for (;;) {
    const LoadRun run = RunLoad(target.http, {request});
    if (run.answers[0].success) return void(std::puts("Initial test run completed."));
    if (std::chrono::steady_clock::now() + std::chrono::seconds(kRetrySeconds) > deadline)
      base::Throw(ErrorCode::kNotFound, "--ready-check-timeout-sec ", patience,
                  ": the server did not answer: ", run.answers[0].error);
    std::this_thread::sleep_for(std::chrono::seconds(kRetrySeconds));
  }
}

void WarmUp(const base::Options& options, const Target& target, const TimedRequest& request, const LoadOptions& load) {
  const int64_t count = options.Int("num_warmups", 0);
  if (count <= 0) return;
  std::printf("Warming up with %lld requests...\n", static_cast<long long>(count));
  RunLoad(target.http, std::vector<TimedRequest>(static_cast<size_t>(count), request), load);
  std::puts("Warmup run completed.");
}

std::string TimeNow() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return text;
}

// vLLM's name of the result file.
std::string ResultPath(const base::Options& options, const Target& target, const Traffic& traffic,
                       const std::string& now) {
  const std::string label = options.String("label", options.String("backend", "openai"));
  const std::string rate = traffic.rate ? base::PyRepr(*traffic.rate) : "inf";
  const std::string clients = traffic.max_concurrency ? base::StrCat("-concurrency", *traffic.max_concurrency) : "";
  const std::string model = target.model_id.substr(target.model_id.rfind('/') + 1);
  std::string name =
      options.String("result_filename", base::StrCat(label, "-", rate, "qps", clients, "-", model, "-", now, ".json"));
  const auto folder = options.FindString("result_dir");
  if (!folder) return name;
  std::error_code error;
  std::filesystem::create_directories(*folder, error);
  return (std::filesystem::path(*folder) / name).string();
}

void WriteFile(const std::string& path, std::string_view origin, const std::string& text, bool append) {
  std::ofstream out(path, append ? std::ios::app : std::ios::trunc);
  if (append && out && out.tellp() != 0) out << '\n';
  out << text;
  out.close();
  if (!out) base::Throw(ErrorCode::kInvalidArgument, origin, ": '", path, "' cannot be written");
}

base::Json ResultHead(const base::Options& options, const Target& target, const Traffic& traffic,
                      const std::string& now, bool has_tokenizer) {
  const std::string backend = options.String("backend", "openai");
  const auto optional = [&](const char* name) {
    return options.Has(name) ? base::Json(options.String(name, "")) : base::Json();
  };
  base::Json json = base::Json::object();
  json["date"] = now;
  json["endpoint_type"] = backend;
  json["backend"] = backend;
  json["label"] = optional("label");
  json["model_id"] = target.model_id;
  json["tokenizer_id"] = has_tokenizer ? base::Json(options.String("tokenizer", target.model_id)) : base::Json();
  json["num_prompts"] = options.Int("num_prompts", 1000);
  for (const auto& [name, value] : ReadPairs(options, "metadata", '=')) json[name] = value;
  json["request_rate"] = traffic.rate ? base::Json(*traffic.rate) : base::Json("inf");
  json["burstiness"] = std::isinf(traffic.burstiness) ? base::Json("inf") : base::Json(traffic.burstiness);
  json["max_concurrency"] = traffic.max_concurrency ? base::Json(*traffic.max_concurrency) : base::Json();
  return json;
}

std::array<double, 2> ReadThresholds(const base::Options& options) {
  const std::string text = options.String("timeline_itl_thresholds", "25,50");
  std::array<double, 2> thresholds = {};
  const auto parts = base::Split(text, ',');
  for (size_t i = 0; i < 2; ++i) {
    const base::Result<double> value = base::ParseDouble(i < parts.size() ? parts[i] : "");
    if (parts.size() != 2 || !value.ok()) options.Refuse("timeline_itl_thresholds", "is not two numbers, as 25,50");
    thresholds[i] = *value;
  }
  return thresholds;
}

void PrintTraffic(const Traffic& traffic) {
  std::puts("Starting main benchmark run...");
  std::printf("Traffic request rate: %s\n", traffic.rate ? base::PyRepr(*traffic.rate).c_str() : "inf");
  std::printf("Burstiness factor: %s (%s)\n",
              std::isinf(traffic.burstiness) ? "inf" : base::PyRepr(traffic.burstiness).c_str(),
              traffic.burstiness == 1 ? "Poisson process" : "Gamma distribution");
  std::printf("Maximum request concurrency: %s\n",
              traffic.max_concurrency ? base::StrCat(*traffic.max_concurrency).c_str() : "None");
  std::fflush(stdout);
}

void PrintErrors(const LoadRun& run) {
  constexpr int kMost = 10;
  int printed = 0;
  for (const TimedAnswer& answer : run.answers) {
    if (answer.success || printed == kMost) continue;
    if (printed == 0) std::puts("Failed requests during benchmark run detected (capping to 10):");
    std::printf("Error %d: %s\n", printed++, answer.error.c_str());
  }
}

}  // namespace

int RunBenchServe(const CommandLine& line) {
  const base::Options& options = line.options;
  SetUpLog(line);
  // Everything that a flag can get wrong is told before anything is asked of the server.
  const Traffic traffic = ReadTraffic(options);
  const std::array<double, 2> thresholds = ReadThresholds(options);
  const ReportOptions report = ReadReport(options, traffic, !options.Bool("skip_tokenizer_init", false));
  ReadPairs(options, "metadata", '=');
  const auto seed = static_cast<uint64_t>(options.Int("seed", 0));

  const Target target = ReadTarget(options);
  const Texts texts = LoadTexts(options, target);
  std::vector<SampleRequest> samples = MakeDataset(
      options, {.tokenizer = texts.tokenizer.get(), .chat_template = texts.chat_template.get(), .seed = seed});
  const std::string dataset = options.String("dataset_name", "random");
  if (dataset == "random" || dataset == "prefix_repetition") AlignPrompts(target, samples);
  const base::Json body = BodyTemplate(options, target);
  const std::string prefix = options.String("request_id_prefix", base::StrCat("bench-", std::random_device()(), "-"));
  std::vector<TimedRequest> requests;
  for (size_t i = 0; i < samples.size(); ++i)
    requests.push_back(MakeRequest(target, body, samples[i], base::StrCat(prefix, i)));
  const TimedRequest first = requests.at(0);
  SetArrivals(traffic, seed, requests);

  const LoadOptions load{.max_concurrency = traffic.max_concurrency.value_or(0)};
  AwaitServer(options, target, first);
  WarmUp(options, target, first, load);
  PrintTraffic(traffic);
  const std::string now = TimeNow();
  const LoadRun run = RunLoad(target.http, requests, load);
  std::function<int64_t(const std::string&)> count;
  if (texts.tokenizer)
    count = [&](const std::string& text) {
      return static_cast<int64_t>(texts.tokenizer->Encode(text, {.add_special_tokens = false}).size());
    };
  const ServeMetrics metrics = ComputeMetrics(run, report, count);
  PrintErrors(run);
  std::fputs(ReportText(metrics, report).c_str(), stdout);

  const bool append = options.Bool("append_result", false), timeline = options.Bool("plot_timeline", false);
  const std::string path = ResultPath(options, target, traffic, now);
  if (options.Bool("save_result", false) || append) {
    base::Json json = ResultHead(options, target, traffic, now, texts.tokenizer != nullptr);
    json.update(ReportJson(run, metrics, report, options.Bool("save_detailed", false)));
    WriteFile(path, "--save-result", base::DumpJson(json), append);
  }
  const std::string title = base::StrCat(target.model_id, ", ", samples.size(), " requests");
  if (const auto plot = options.FindString("plot")) WriteFile(*plot, "--plot", PlotSvg(run, thresholds, title), false);
  if (timeline)
    WriteFile(std::filesystem::path(path).replace_extension(".timeline.svg").string(), "--plot-timeline",
              PlotSvg(run, thresholds, title), false);
  return metrics.completed > 0 ? 0 : 1;
}

}  // namespace vllm

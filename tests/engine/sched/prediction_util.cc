// Predicts how a server does under load, from recorded step times.
#include "tests/engine/sched/prediction_util.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/sched/scheduler.h"
#include "tests/engine/sched/simulation_random.h"

namespace vllm {
namespace {

// Tokens are numbers below it, different in every prompt.
constexpr int64_t kVocab = 32000;
constexpr int kMaxTraceDepth = 8;

// The scheduler's clock. A prediction stays on one thread.
thread_local int64_t now_us = 0;
int64_t Now() { return now_us; }

int64_t Size(const auto& container) { return static_cast<int64_t>(container.size()); }

}  // namespace

std::vector<StepTime> ReadStepTimes(const std::string& path) {
  std::ifstream file(path);
  if (!file) base::Throw(base::ErrorCode::kInvalidArgument, "'", path, "' cannot be read");
  std::vector<StepTime> steps;
  std::string line;
  while (std::getline(file, line)) {
    if (line.find("\"name\":\"update\"") == std::string::npos) continue;
    if (line.back() == ',') line.pop_back();
    const base::Result<base::Json> event = base::ParseJson(line, kMaxTraceDepth);
    if (!event.ok()) continue;  // the last line of a process that was killed
    const auto args = event.value().find("args");
    if (args == event.value().end() || !args->is_object()) continue;
    const auto number = [&](const char* name) { return args->value(name, int64_t{0}); };
    if (number("elapsed_us") <= 0 || number("tokens") <= 0) continue;
    steps.push_back({.load = {.tokens = number("tokens"),
                              .samples = number("samples"),
                              .context = number("context"),
                              .attended = number("attended")},
                     .elapsed_us = number("elapsed_us")});
  }
  if (steps.empty()) {
    base::Throw(base::ErrorCode::kInvalidArgument, "'", path,
                "' has no steps; record one with VLLM_TRACE=FILE while the server is under load");
  }
  return steps;
}

// --------------------------------------------------------------------------------------------------------- step times

StepTimeModel::Terms StepTimeModel::TermsOf(const StepLoad& load) {
  Terms terms = {1};
  int64_t below = 0;
  for (size_t i = 0; i <= kBounds.size(); ++i) {
    const int64_t bound = i < kBounds.size() ? kBounds[i] : std::numeric_limits<int64_t>::max();
    terms[1 + i] = static_cast<double>(std::clamp<int64_t>(load.tokens, below, bound) - below);
    below = bound;
  }
  terms[kTerms - 3] = static_cast<double>(load.samples);
  terms[kTerms - 2] = static_cast<double>(load.context);
  terms[kTerms - 1] = static_cast<double>(load.attended);
  return terms;
}

StepTimeModel StepTimeModel::Fit(std::span<const StepTime> steps) {
  CHECK(!steps.empty(), "no steps");
  std::array<Terms, kTerms> products = {};
  Terms targets = {};
  for (const StepTime& step : steps) {
    const Terms terms = TermsOf(step.load);
    const double time = static_cast<double>(step.elapsed_us);
    for (size_t i = 0; i < kTerms; ++i) {
      targets[i] += terms[i];
      for (size_t j = 0; j < kTerms; ++j) products[i][j] += terms[i] * terms[j] / time;
    }
  }
  // Each price in turn takes its best value, given the others; the sum of squares only falls.
  StepTimeModel model;
  for (int round = 0; round < 100000; ++round) {
    double change = 0;
    for (size_t i = 0; i < kTerms; ++i) {
      if (products[i][i] <= 0) continue;  // no step has the term
      double rest = targets[i];
      for (size_t j = 0; j < kTerms; ++j) rest -= j == i ? 0 : products[i][j] * model.prices_[j];
      const double price = std::max(0.0, rest / products[i][i]);
      change = std::max(change, std::abs(price - model.prices_[i]) * std::sqrt(products[i][i]));
      model.prices_[i] = price;
    }
    if (change < 1e-9 * std::sqrt(targets[0])) break;
  }
  for (const StepTime& step : steps) {
    model.ratios_.push_back(static_cast<double>(step.elapsed_us) / std::max(1.0, model.Us(step.load)));
  }
  std::sort(model.ratios_.begin(), model.ratios_.end());
  return model;
}

double StepTimeModel::Us(const StepLoad& load) const {
  const Terms terms = TermsOf(load);
  double us = 0;
  for (size_t i = 0; i < kTerms; ++i) us += prices_[i] * terms[i];
  return us;
}

std::string StepTimeModel::Describe() const {
  std::string text = base::StrCat(prices_[0], " us a step");
  const auto add = [&](double price, const std::string& name) {
    if (price > 0) text += base::StrCat(", ", price, " ", name);
  };
  for (size_t i = 0; i <= kBounds.size(); ++i) {
    add(prices_[1 + i], i < kBounds.size() ? base::StrCat("a token up to ", kBounds[i]) : "a further token");
  }
  add(prices_[kTerms - 3], "a sample");
  add(prices_[kTerms - 2] * 1000, "for 1000 tokens of context");
  add(prices_[kTerms - 1] * 1000, "for 1000 attended pairs");
  return text;
}

// ------------------------------------------------------------------------------------------------------------- traffic

namespace {

struct Client {
  int64_t arrival_us = 0;
  int64_t input_len = 0, output_len = 0;
  int64_t last_us = 0;  // of its last token
  bool started = false;
};

// An engine core whose runner is a formula.
class PredictedServer {
 public:
  PredictedServer(const SchedulerConfig& config, const KvCacheConfig& kv, const StepTimeModel& model,
                  const Traffic& traffic)
      : traffic_(traffic), model_(model), random_(traffic.seed), scheduler_(config, kv, Now) {
    now_us = 0;
    for (int64_t i = 0; i < traffic.prefix_len; ++i) prefix_.push_back(static_cast<int32_t>(random_.Below(kVocab)));
    DrawClients();
  }

  Prediction Run() {
    const auto depth = static_cast<size_t>(scheduler_.config().max_steps_in_flight());
    while (num_ended_ < traffic_.num_requests) {
      Arrive();
      const bool started = flights_.size() < depth && scheduler_.has_requests() && StartStep();
      if (started && flights_.size() < depth) continue;
      if (!flights_.empty()) {
        FinishOldestStep();
      } else {
        CHECK(next_ < Size(clients_), "nothing can be scheduled and nothing is in flight");
        now_us = std::max(now_us, clients_[static_cast<size_t>(next_)].arrival_us);
      }
    }
    const EngineStats stats = scheduler_.stats();
    result_.steps = static_cast<int64_t>(stats.steps);
    result_.preemptions = static_cast<int64_t>(stats.preemptions);
    result_.hit_tokens = static_cast<int64_t>(stats.prefix_cache_hits);
    result_.seconds = static_cast<double>(now_us - clients_.front().arrival_us) * 1e-6;
    std::sort(result_.ttft_ms.begin(), result_.ttft_ms.end());
    std::sort(result_.itl_ms.begin(), result_.itl_ms.end());
    return std::move(result_);
  }

 private:
  struct Flight {
    SchedulerOutput step = {};
    int64_t elapsed_us = 0, end_us = 0;
  };

  double Uniform() { return (static_cast<double>(random_.Next() >> 11) + 0.5) * 0x1p-53; }

  int64_t Length(int64_t length) {
    const auto mean = static_cast<double>(length);
    const auto least = static_cast<int64_t>(std::floor(mean * (1 - traffic_.range_ratio)));
    const auto most = static_cast<int64_t>(std::ceil(mean * (1 + traffic_.range_ratio)));
    return std::max<int64_t>(1, random_.Between(least, most));
  }

  void DrawClients() {
    double at_us = 0;
    for (int64_t i = 0; i < traffic_.num_requests; ++i) {
      if (i > 0 && traffic_.requests_per_s > 0) at_us -= std::log(Uniform()) * 1e6 / traffic_.requests_per_s;
      Client client{.arrival_us = static_cast<int64_t>(at_us)};
      client.input_len = traffic_.prefix_len + Length(traffic_.input_len);
      client.output_len = Length(traffic_.output_len);
      clients_.push_back(client);
      const base::Status admissible = scheduler_.CheckAdmissible(client.input_len);
      if (!admissible.ok()) base::Throw(admissible.error().code, admissible.error().message);
    }
  }

  void Arrive() {
    for (; next_ < Size(clients_); ++next_) {
      Client& client = clients_[static_cast<size_t>(next_)];
      if (client.arrival_us > now_us) return;
      if (traffic_.max_concurrency > 0) {
        if (next_ - num_ended_ >= traffic_.max_concurrency) return;
        client.arrival_us = std::max(client.arrival_us, last_end_us_);
      }
      std::vector<int32_t> prompt = prefix_;
      while (Size(prompt) < client.input_len) prompt.push_back(static_cast<int32_t>(random_.Below(kVocab)));
      SamplingParams params;
      params.max_tokens = client.output_len;
      result_.input_tokens += client.input_len;
      scheduler_.Add({.id = static_cast<RequestId>(next_ + 1),
                      .prompt_token_ids = std::move(prompt),
                      .params = std::make_shared<const SamplingParams>(std::move(params)),
                      .arrival_us = client.arrival_us});
    }
  }

  bool StartStep() {
    SchedulerOutput step = scheduler_.Schedule();
    for (const CoreOutput& output : scheduler_.TakeEnded()) {
      base::Throw(base::ErrorCode::kOutOfMemory, "request ", output.id, ": ",
                  output.error ? output.error->message : std::string("ended early"));
    }
    if (step.total_tokens == 0) return false;
    // A step that takes its time is drawn like those that were measured.
    const std::span<const double> ratios = model_.ratios();
    const double us = model_.Us(LoadOf(step)) * ratios[static_cast<size_t>(random_.Below(Size(ratios)))];
    Flight flight{.elapsed_us = std::max<int64_t>(1, std::llround(us))};
    flight.end_us = std::max(now_us, runner_free_us_) + flight.elapsed_us;
    runner_free_us_ = flight.end_us;
    flight.step = {.step = step.step, .scheduled = std::move(step.scheduled)};
    flights_.push_back(std::move(flight));
    return true;
  }

  void FinishOldestStep() {
    const Flight flight = std::move(flights_.front());
    flights_.pop_front();
    now_us = std::max(now_us, flight.end_us);
    ModelRunnerOutput output{.elapsed_us = flight.elapsed_us};
    for (const ScheduledTokens& scheduled : flight.step.scheduled) {
      output.sequences.push_back({.id = scheduled.id});
      if (scheduled.samples) output.sequences.back().token_ids.push_back(static_cast<int32_t>(random_.Below(kVocab)));
    }
    for (const CoreOutput& news : scheduler_.UpdateFromOutput(flight.step, std::move(output))) {
      Client& client = clients_[static_cast<size_t>(news.id - 1)];
      const double ms = static_cast<double>(now_us - (client.started ? client.last_us : client.arrival_us)) * 1e-3;
      (std::exchange(client.started, true) ? result_.itl_ms : result_.ttft_ms).push_back(ms);
      client.last_us = now_us;
      result_.output_tokens += Size(news.new_token_ids);
      if (!news.finish) continue;
      ++num_ended_;
      last_end_us_ = now_us;
    }
  }

  const Traffic traffic_;
  const StepTimeModel& model_;
  Random random_;
  Scheduler scheduler_;
  std::vector<int32_t> prefix_;
  std::vector<Client> clients_;
  int64_t next_ = 0, num_ended_ = 0, last_end_us_ = 0, runner_free_us_ = 0;
  std::deque<Flight> flights_;
  Prediction result_;
};

}  // namespace

double PercentileOf(std::span<const double> sorted, double percent) {
  CHECK(!sorted.empty(), "no values");
  const double at = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at), above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

Prediction Predict(const SchedulerConfig& config, const KvCacheConfig& kv, const StepTimeModel& model,
                   const Traffic& traffic) {
  CHECK(traffic.num_requests > 0, "no requests");
  return PredictedServer(config, kv, model, traffic).Run();
}

}  // namespace vllm

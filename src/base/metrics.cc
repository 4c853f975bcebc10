// The registry over prometheus-cpp. The exposition is ours: its serializer neither escapes help texts nor writes
// numbers as Python's client does (le="1.0"), and dashboards made for vLLM match on those.
#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

#include "base/check.h"
#include "base/py_text.h"
#include "base/strings.h"

namespace base {
namespace {

using Labels = MetricsRegistry::Labels;

double UnixTime() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// Python's floatToGoString: repr, but an exponent from a million on.
std::string Number(double value) {
  if (std::isinf(value)) return value < 0 ? "-Inf" : "+Inf";
  if (std::isnan(value)) return "NaN";
  std::string text = PyRepr(value);
  const size_t dot = text.find('.');
  if (value <= 0 || dot == text.npos || dot <= 6 || text.find('e') != text.npos) return text;
  std::string mantissa = StrCat(text.substr(0, 1), ".", text.substr(1, dot - 1), text.substr(dot + 1));
  while (mantissa.back() == '0') mantissa.pop_back();
  if (mantissa.back() == '.') mantissa.pop_back();
  return StrCat(mantissa, "e+", dot - 1 < 10 ? "0" : "", dot - 1);
}

std::string Escape(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

// {a="1",b="2"}, or nothing.
std::string LabelText(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    out += StrCat(out.empty() ? "{" : ",", name, "=\"", Escape(value, true), "\"");
  }
  return out.empty() ? out : out += "}";
}

Labels LabelsOf(const prometheus::ClientMetric& series) {
  Labels labels;
  for (const prometheus::ClientMetric::Label& label : series.label) labels[label.name] = label.value;
  return labels;
}

void AppendHead(std::string& out, std::string_view name, std::string_view help, std::string_view type) {
  out += StrCat("# HELP ", name, " ", Escape(help, false), "\n# TYPE ", name, " ", type, "\n");
}

void AppendSample(std::string& out, std::string_view name, const Labels& labels, double value) {
  out += StrCat(name, LabelText(labels), " ", Number(value), "\n");
}

void AppendHistogram(std::string& out, const std::string& name, const prometheus::ClientMetric& series) {
  Labels labels = LabelsOf(series);
  for (const prometheus::ClientMetric::Bucket& bucket : series.histogram.bucket) {
    labels["le"] = Number(bucket.upper_bound);
    AppendSample(out, name + "_bucket", labels, static_cast<double>(bucket.cumulative_count));
  }
  labels.erase("le");
  AppendSample(out, name + "_count", labels, static_cast<double>(series.histogram.sample_count));
  AppendSample(out, name + "_sum", labels, series.histogram.sample_sum);
}

template <class Register>
auto Guarded(const std::string& name, Register registration) {
  try {
    return registration();
  } catch (const std::exception& error) {
    throw InternalError(StrCat("metric ", name, ": ", error.what()));
  }
}

}  // namespace

struct MetricsRegistry::State {
  prometheus::Registry registry;
  mutable std::mutex mutex;  // guards what follows
  std::vector<std::function<void()>> refreshers;
  std::map<std::string, double> created;  // by name and label text

  void NoteCreated(const std::string& name, const Labels& labels) {
    const std::lock_guard lock(mutex);
    created.emplace(name + LabelText(labels), UnixTime());
  }
};

void Counter::Increment(double by) const { series_->Increment(by); }
double Counter::Value() const { return series_->Value(); }
void Gauge::Set(double value) const { series_->Set(value); }
void Gauge::Add(double by) const { series_->Increment(by); }
double Gauge::Value() const { return series_->Value(); }
void Histogram::Observe(double value) const { series_->Observe(value); }

MetricsRegistry::MetricsRegistry() : state_(std::make_unique<State>()) {}
MetricsRegistry::~MetricsRegistry() = default;

Counter MetricsRegistry::AddCounter(const std::string& name, const std::string& help, const Labels& labels) {
  CHECK(name.size() > 6 && name.ends_with("_total"), "counter ", name);
  return Guarded(name, [&] {
    auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry);
    Counter counter(&family.Add(labels));
    state_->NoteCreated(name, labels);
    return counter;
  });
}

Gauge MetricsRegistry::AddGauge(const std::string& name, const std::string& help, const Labels& labels) {
  return Guarded(name, [&] {
    return Gauge(&prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry).Add(labels));
  });
}

Histogram MetricsRegistry::AddHistogram(const std::string& name, const std::string& help,
                                        const std::vector<double>& buckets, const Labels& labels) {
  return Guarded(name, [&] {
    auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry);
    Histogram histogram(&family.Add(labels, buckets));
    state_->NoteCreated(name, labels);
    return histogram;
  });
}

void MetricsRegistry::OnCollect(std::function<void()> refresh) {
  const std::lock_guard lock(state_->mutex);
  state_->refreshers.push_back(std::move(refresh));
}

std::string MetricsRegistry::Expose() const {
  const std::lock_guard lock(state_->mutex);
  for (const std::function<void()>& refresh : state_->refreshers) refresh();
  std::vector<prometheus::MetricFamily> families = state_->registry.Collect();
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string out;
  for (const prometheus::MetricFamily& family : families) {
    const bool histogram = family.type == prometheus::MetricType::Histogram;
    const bool counter = family.type == prometheus::MetricType::Counter;
    AppendHead(out, family.name, family.help, histogram ? "histogram" : counter ? "counter" : "gauge");
    for (const prometheus::ClientMetric& series : family.metric) {
      if (histogram) {
        AppendHistogram(out, family.name, series);
      } else {
        AppendSample(out, family.name, LabelsOf(series), counter ? series.counter.value : series.gauge.value);
      }
    }
    if (!histogram && !counter) continue;
    const std::string created = (counter ? family.name.substr(0, family.name.size() - 6) : family.name) + "_created";
    AppendHead(out, created, family.help, "gauge");
    for (const prometheus::ClientMetric& series : family.metric) {
      const Labels labels = LabelsOf(series);
      const auto found = state_->created.find(family.name + LabelText(labels));
      if (found != state_->created.end()) AppendSample(out, created, labels, found->second);
    }
  }
  return out;
}

}  // namespace base

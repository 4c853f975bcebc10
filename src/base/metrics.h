// Prometheus metrics: registration, recording and the text exposition, as Python's client library writes it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace base {

// Handles to one time series; they live as long as their registry. Recording is thread-safe and takes well under a
// microsecond.
class Counter {
 public:
  explicit Counter(prometheus::Counter* series = nullptr) : series_(series) {}
  void Increment(double by = 1) const;  // by >= 0
  double Value() const;

 private:
  prometheus::Counter* series_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge* series = nullptr) : series_(series) {}
  void Set(double value) const;
  void Add(double by) const;
  double Value() const;

 private:
  prometheus::Gauge* series_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram* series = nullptr) : series_(series) {}
  void Observe(double value) const;

 private:
  prometheus::Histogram* series_;
};

// Every method may be called from any thread.
class MetricsRegistry {
 public:
  using Labels = std::map<std::string, std::string>;

  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // One series of a family. The same name with other labels adds a series; with the same labels gives the same series.
  // A name used as another type throws base::InternalError. Names of counters end in _total.
  Counter AddCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge AddGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // `buckets`: ascending upper bounds without +Inf.
  Histogram AddHistogram(const std::string& name, const std::string& help, const std::vector<double>& buckets,
                         const Labels& labels = {});

  // Runs before every exposition, to set gauges whose truth lies elsewhere. Calls do not overlap.
  void OnCollect(std::function<void()> refresh);

  // Text format 0.0.4, families by name, with the _created series that Python's client adds.
  std::string Expose() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace base

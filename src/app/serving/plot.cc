// A timeline above, and below it one curve a latency: the share of values at most so large.
#include "app/serving/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.h"

namespace vllm {
namespace {

constexpr double kWidth = 960, kLeft = 60, kRight = 20, kTop = 50, kTimeline = 360, kCurves = 200, kGap = 60;
constexpr std::string_view kWaiting = "#b8bec8", kGood = "#2f9e5f", kSlow = "#e8912d", kBad = "#cf3a3a";

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}
std::string Place(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string Text(double x, double y, std::string_view anchor, std::string_view text) {
  return base::StrCat("<text x=\"", Place(x), "\" y=\"", Place(y), "\" text-anchor=\"", anchor, "\">", Escaped(text),
                      "</text>\n");
}

std::string Line(double x1, double y1, double x2, double y2) {
  return base::StrCat("<line x1=\"", Place(x1), "\" y1=\"", Place(y1), "\" x2=\"", Place(x2), "\" y2=\"", Place(y2),
                      "\" stroke=\"#888\"/>\n");
}

// Five marks of an axis from 0 to `most`.
std::string Axis(double x, double y, double width, double most, std::string_view unit) {
  std::string out = Line(x, y, x + width, y);
  for (int i = 0; i <= 4; ++i) {
    const double at = x + width * i / 4;
    out += Line(at, y, at, y + 4);
    out += Text(at, y + 16, "middle", base::StrCat(Number(std::round(most * i / 4 * 1000) / 1000), i == 4 ? unit : ""));
  }
  return out;
}

// Neighbours of one colour are one bar, so that a long answer takes a few.
std::string Bars(const TimedAnswer& answer, double begin, double scale, double y, double height,
                 const std::array<double, 2>& thresholds) {
  std::string out;
  double from = answer.start_s - begin, to = from + answer.ttft_s;
  std::string_view color = kWaiting;
  const auto flush = [&] {
    out += base::StrCat("<rect x=\"", Place(kLeft + from * scale), "\" y=\"", Place(y), "\" width=\"",
                        Place(std::max((to - from) * scale, 0.01)), "\" height=\"", Place(height), "\" fill=\"", color,
                        "\"/>\n");
  };
  for (const double itl : answer.itl_s) {
    const std::string_view next = itl * 1000 <= thresholds[0] ? kGood : itl * 1000 <= thresholds[1] ? kSlow : kBad;
    if (next != color) {
      flush();
      from = to;
      color = next;
    }
    to += itl;
  }
  flush();
  return out;
}

std::string Timeline(const std::vector<const TimedAnswer*>& answers, const std::array<double, 2>& thresholds) {
  double begin = INFINITY, end = 0;
  for (const TimedAnswer* answer : answers) {
    begin = std::min(begin, answer->start_s);
    end = std::max(end, answer->start_s + answer->latency_s);
  }
  if (answers.empty()) begin = end = 0;
  const double span = std::max(end - begin, 1e-9), scale = (kWidth - kLeft - kRight) / span;
  const double row = kTimeline / static_cast<double>(std::max<size_t>(answers.size(), 1));
  std::string out;
  for (size_t i = 0; i < answers.size(); ++i) {
    out += Bars(*answers[i], begin, scale, kTop + row * static_cast<double>(i), std::min(row * 0.85, 18.0), thresholds);
  }
  out += Axis(kLeft, kTop + kTimeline, kWidth - kLeft - kRight, span, " s");
  const std::string legend[] = {"until the first token", base::StrCat("gap ≤ ", Number(thresholds[0]), " ms"),
                                base::StrCat("≤ ", Number(thresholds[1]), " ms"), "longer"};
  const std::string_view colors[] = {kWaiting, kGood, kSlow, kBad};
  for (int i = 0; i < 4; ++i) {
    const double x = kLeft + 180 * i;
    out += base::StrCat("<rect x=\"", Place(x), "\" y=\"30\" width=\"12\" height=\"12\" fill=\"", colors[i], "\"/>\n");
    out += Text(x + 18, 40, "start", legend[i]);
  }
  return out;
}

// The share of values at most x, from 0 to the largest.
std::string Curve(std::vector<double> milliseconds, std::string_view name, double x, double width) {
  const double top = kTop + kTimeline + kGap, bottom = top + kCurves;
  std::sort(milliseconds.begin(), milliseconds.end());
  const double most = milliseconds.empty() ? 1 : std::max(milliseconds.back(), 1e-6);
  constexpr size_t kPoints = 200;
  std::string points;
  const size_t steps = std::min(kPoints, milliseconds.size());
  for (size_t i = 0; i < steps; ++i) {
    const size_t at = steps == 1 ? 0 : i * (milliseconds.size() - 1) / (steps - 1);
    const double share = static_cast<double>(at + 1) / static_cast<double>(milliseconds.size());
    points += base::StrCat(Place(x + width * milliseconds[at] / most), ",", Place(bottom - kCurves * share), " ");
  }
  return base::StrCat("<polyline fill=\"none\" stroke=\"#2b5fb3\" stroke-width=\"1.5\" points=\"", points, "\"/>\n",
                      Line(x, top, x, bottom), Axis(x, bottom, width, most, " ms"),
                      Text(x + width / 2, top - 8, "middle", name));
}

}  // namespace

std::string PlotSvg(const LoadRun& run, const std::array<double, 2>& itl_thresholds_ms, std::string_view title) {
  std::vector<const TimedAnswer*> answers;
  std::vector<double> ttft, tpot, itl, e2el;
  for (const TimedAnswer& answer : run.answers) {
    if (answer.latency_s <= 0) continue;
    answers.push_back(&answer);
    ttft.push_back(answer.ttft_s * 1000);
    e2el.push_back(answer.latency_s * 1000);
    for (const double gap : answer.itl_s) itl.push_back(gap * 1000);
    if (!answer.itl_s.empty())
      tpot.push_back((answer.latency_s - answer.ttft_s) * 1000 / static_cast<double>(answer.itl_s.size()));
  }
  std::sort(answers.begin(), answers.end(),
            [](const TimedAnswer* a, const TimedAnswer* b) { return a->start_s < b->start_s; });
  const double height = kTop + kTimeline + kGap + kCurves + 40;
  std::string out = base::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", Place(kWidth), " ",
                                 Place(height), "\" font-family=\"sans-serif\" font-size=\"11\">\n",
                                 "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                                 Text(kLeft, 18, "start", title), Timeline(answers, itl_thresholds_ms));
  const double width = (kWidth - kLeft - kRight) / 4;
  const auto curve = [&](int i, std::vector<double> values, std::string_view name) {
    out += Curve(std::move(values), name, kLeft + width * i, width - 40);
  };
  curve(0, std::move(ttft), "time to first token");
  curve(1, std::move(tpot), "time per output token");
  curve(2, std::move(itl), "inter-token latency");
  curve(3, std::move(e2el), "end-to-end latency");
  return out + "</svg>\n";
}

}  // namespace vllm

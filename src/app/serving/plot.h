// An SVG of a load run: when each request waited and got its tokens, and the distributions of its latencies.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "app/serving/load_client.h"

namespace vllm {

// `itl_thresholds_ms`: gaps between tokens up to the first are green, up to the second orange, above red. Requests that
// failed before their first event are left out. Stands alone: no script, no font, no link.
std::string PlotSvg(const LoadRun& run, const std::array<double, 2>& itl_thresholds_ms, std::string_view title);

}  // namespace vllm

// Plan: a graph lowered for one device and numeric policy, ready to run step after step.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vt/buffer.h"
#include "vt/graph.h"

namespace vt {

struct LoweringContext {
  DeviceType device = DeviceType::kCpu;
  Numerics numerics = Numerics::kDefault;
  const PlatformInfo* platform = nullptr;
};

// One way to run the nodes that `pattern` names. The longest pattern that matches and can run wins; among equals, the
// first.
struct Lowering {
  std::string_view name;
  std::vector<OpId> pattern;
  // Absent: it can. Otherwise the reason why not, for messages and `inspect`.
  std::optional<std::string> (*refusal)(std::span<const OpNode> nodes, const LoweringContext& context);
  // The op that stands for the nodes; its kernel comes from the op table.
  OpNode (*emit)(std::span<const OpNode> nodes);
};

// The table of a device, in preference order.
std::span<const Lowering> Lowerings(DeviceType device);

// What was chosen for a node, and what was passed over and why.
struct LoweringChoice {
  OpId op = OpId::kEmbed;
  std::string lowering = {};
  std::string provider = {};
  std::vector<std::string> passed_over = {};  // "name: reason"
};

// Largest sizes that a plan is built for.
struct PlanLimits {
  int64_t tokens = 0, logit_rows = 0, sequences = 0;
};

// Sizes of one step, each at most its limit.
struct StepSizes {
  int64_t tokens = 0, logit_rows = 0, sequences = 0;
};

// Execute allocates nothing and takes no lock. One thread at a time.
class Plan {
 public:
  // Throws base::Exception kUnsupported listing all refusals when a node has no lowering that can run.
  Plan(const Graph& graph, Platform& platform, Numerics numerics, const PlanLimits& limits);
  Plan(const Plan&) = delete;  // steps point into the plan
  Plan& operator=(const Plan&) = delete;

  // Queues one step. Its inputs must have been filled for the same sizes.
  void Execute(Queue& queue, const StepSizes& sizes);
  // The storage of an input or output at the sizes of a step.
  Tensor At(ValueId value, const StepSizes& sizes) const;

  std::span<const LoweringChoice> choices() const { return choices_; }
  uint64_t arena_bytes() const { return arena_.size(); }

 private:
  struct Step {
    const OpKernel* kernel = nullptr;
    OpArgs args;
  };
  void Lower(const Graph& graph, const LoweringContext& context, std::vector<OpNode>& out);
  void PlaceValues(const Graph& graph, std::span<const OpNode> nodes, Platform& platform, const PlanLimits& limits);
  OpArgs Resolve(const OpNode& node) const;
  void SetRows(const StepSizes& sizes);

  std::vector<Value> values_;
  std::vector<Tensor> places_;  // per value, at the limits
  std::vector<Step> steps_;
  std::vector<std::pair<Tensor*, RowCount>> symbolic_;  // operands of steps_ whose rows follow the step
  std::vector<LoweringChoice> choices_;
  Buffer arena_;
  KernelOptions options_;
  StepSizes bound_ = {-1, -1, -1};
};

}  // namespace vt

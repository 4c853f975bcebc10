// The lowering tables: which nodes a device runs as which op. A fusion is one more row here.
#include "vt/plan.h"

#include "base/check.h"
#include "vt/cpu/linear.h"
#include "vt/weight.h"

namespace vt {
namespace {

OpNode EmitSame(std::span<const OpNode> nodes) { return nodes[0]; }

// Every segment of the weight needs a kernel of its format: a type without one is refused by name, never dequantized.
std::optional<std::string> RefuseWeight(const PackedWeight* weight, const LoweringContext& context) {
  CHECK(weight != nullptr, "a linear or embedding without a weight");
  for (const Segment& segment : weight->segments) {
    std::string reason;
    if (!CpuLinearSupports(segment.format, *context.platform, &reason)) return reason;
  }
  return std::nullopt;
}

std::optional<std::string> RefuseLinear(std::span<const OpNode> nodes, const LoweringContext& context) {
  return RefuseWeight(std::get<LinearOp<ValueId>>(nodes[0]).weight, context);
}

std::optional<std::string> RefuseEmbed(std::span<const OpNode> nodes, const LoweringContext& context) {
  return RefuseWeight(std::get<EmbedOp<ValueId>>(nodes[0]).weight, context);
}

constexpr OpId kAllOps[] = {OpId::kEmbed,          OpId::kAddNorm,  OpId::kLinear,     OpId::kQkNormRopeCacheWrite,
                            OpId::kPagedAttention, OpId::kGatedAct, OpId::kGatherRows, OpId::kSoftcap,
                            OpId::kRowMax};

// Plain kernels run every node as it stands, in any weight format.
std::vector<Lowering> PlainTable() {
  std::vector<Lowering> table;
  for (const OpId op : kAllOps)
    table.push_back({.name = OpName(op), .pattern = {op}, .refusal = nullptr, .emit = EmitSame});
  return table;
}

std::optional<std::string> RefuseLinearRowMax(std::span<const OpNode> nodes, const LoweringContext& context) {
  if (std::get<RowMaxOp<ValueId>>(nodes[1]).x != std::get<LinearOp<ValueId>>(nodes[0]).out)
    return "the maxima are of another value";
  return RefuseLinear(nodes, context);
}

OpNode EmitLinearRowMax(std::span<const OpNode> nodes) {
  const auto& linear = std::get<LinearOp<ValueId>>(nodes[0]);
  const auto& maxima = std::get<RowMaxOp<ValueId>>(nodes[1]);
  return LinearRowMaxOp<ValueId>{.x = linear.x,
                                 .out = linear.out,
                                 .bias = linear.bias,
                                 .max = maxima.max,
                                 .index = maxima.index,
                                 .weight = linear.weight};
}

std::vector<Lowering> CpuTable() {
  std::vector<Lowering> table = PlainTable();
  for (Lowering& row : table) {
    if (row.pattern[0] == OpId::kLinear) row.refusal = RefuseLinear;
    if (row.pattern[0] == OpId::kEmbed) row.refusal = RefuseEmbed;
  }
  table.push_back({.name = OpName(OpId::kLinearRowMax),
                   .pattern = {OpId::kLinear, OpId::kRowMax},
                   .refusal = RefuseLinearRowMax,
                   .emit = EmitLinearRowMax});
  return table;
}

}  // namespace

std::span<const Lowering> Lowerings(DeviceType device) {
  static const std::vector<Lowering> plain = PlainTable(), cpu = CpuTable();
  switch (device) {
    case DeviceType::kCpu:
      return cpu;
    case DeviceType::kRef:
    case DeviceType::kOpaque:
      return plain;
    default:
      return {};
  }
}

}  // namespace vt

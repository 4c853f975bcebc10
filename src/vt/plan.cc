// Plan: lowering, placement of values by liveness, and execution.
#include "vt/plan.h"

#include <algorithm>

#include "base/check.h"
#include "base/result.h"

namespace vt {
namespace {

constexpr int64_t kAlignment = 64;  // bytes; a cache line and the widest vector

int64_t RowsOf(RowCount rows, int64_t fixed, const StepSizes& sizes) {
  switch (rows) {
    case RowCount::kTokens:
      return sizes.tokens;
    case RowCount::kLogitRows:
      return sizes.logit_rows;
    case RowCount::kSequences:
      return sizes.sequences;
    case RowCount::kSequencesPlusOne:
      return sizes.sequences + 1;
    case RowCount::kFixed:
      return fixed;
  }
  return 0;
}

int64_t AlignedBytes(const Value& value, const StepSizes& largest) {
  const int64_t rows = RowsOf(value.rows, value.fixed_rows, largest);
  const int64_t bytes = rows * std::max<int64_t>(value.columns, 1) * DTypeBytes(value.dtype);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <class F>
void ForEachOperand(OpNode& node, F&& f) {
  std::visit([&](auto& op) { op.ForEach(f); }, node);
}

// Free ranges of the arena in order of offset; the arena grows at its end.
class FirstFit {
 public:
  int64_t Take(int64_t bytes) {
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->bytes < bytes) continue;
      const int64_t offset = hole->offset;
      hole->offset += bytes, hole->bytes -= bytes;
      if (hole->bytes == 0) holes_.erase(hole);
      return offset;
    }
    const int64_t offset = end_;
    end_ += bytes;
    return offset;
  }
  void Give(int64_t offset, int64_t bytes) {
    auto next = std::find_if(holes_.begin(), holes_.end(), [&](const Hole& hole) { return hole.offset > offset; });
    next = holes_.insert(next, {offset, bytes});
    if (next + 1 != holes_.end() && next->offset + next->bytes == (next + 1)->offset) {
      next->bytes += (next + 1)->bytes;
      holes_.erase(next + 1);
    }
    if (next != holes_.begin() && (next - 1)->offset + (next - 1)->bytes == next->offset) {
      (next - 1)->bytes += next->bytes;
      holes_.erase(next);
    }
  }
  int64_t end() const { return end_; }

 private:
  struct Hole {
    int64_t offset, bytes;
  };
  std::vector<Hole> holes_;
  int64_t end_ = 0;
};

template <class Dst, class Src>
void CopyOperands(Dst& dst, Src& src, const std::vector<Tensor>& places) {
  std::vector<Tensor> resolved;
  src.ForEach([&](const ValueId& value) { resolved.push_back(value ? places[value.index] : Tensor{}); });
  size_t i = 0;
  dst.ForEach([&](Tensor& tensor) { tensor = resolved[i++]; });
}

}  // namespace

Plan::Plan(const Graph& graph, Platform& platform, Numerics numerics, const PlanLimits& limits)
    : values_(graph.values()), options_{.numerics = numerics} {
  std::vector<OpNode> nodes;
  Lower(graph, {.device = platform.info().type, .numerics = numerics, .platform = &platform.info()}, nodes);
  PlaceValues(graph, nodes, platform, limits);
  steps_.reserve(nodes.size());
  for (const OpNode& node : nodes) {
    const OpKernel* kernel = FindOp(NodeOp(node), platform.info().type);
    CHECK(kernel != nullptr, "lowering emitted op ", OpName(NodeOp(node)), " without a kernel");
    steps_.push_back({kernel, Resolve(node)});
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    OpNode node = nodes[i];
    std::vector<RowCount> rows;
    ForEachOperand(node, [&](ValueId& value) { rows.push_back(value ? values_[value.index].rows : RowCount::kFixed); });
    size_t operand = 0;
    std::visit(
        [&](auto& op) {
          op.ForEach([&](Tensor& tensor) {
            if (rows[operand] != RowCount::kFixed) symbolic_.push_back({&tensor, rows[operand]});
            ++operand;
          });
        },
        steps_[i].args);
  }
}

void Plan::Lower(const Graph& graph, const LoweringContext& context, std::vector<OpNode>& out) {
  const std::span<const OpNode> nodes = graph.nodes();
  for (size_t at = 0; at < nodes.size();) {
    const Lowering* best = nullptr;
    LoweringChoice choice{.op = NodeOp(nodes[at])};
    for (const Lowering& row : Lowerings(context.device)) {
      const size_t length = row.pattern.size();
      if (at + length > nodes.size() || (best && length <= best->pattern.size())) continue;
      const auto window = nodes.subspan(at, length);
      if (!std::equal(window.begin(), window.end(), row.pattern.begin(),
                      [](const OpNode& node, OpId op) { return NodeOp(node) == op; }))
        continue;
      auto reason = row.refusal ? row.refusal(window, context) : std::nullopt;
      if (!reason && !OpRegistered(NodeOp(row.emit(window)), context.device)) reason = "no kernel is registered";
      if (reason) {
        choice.passed_over.push_back(base::StrCat(row.name, ": ", *reason));
      } else {
        best = &row;
      }
    }
    if (!best) {
      std::string reasons = base::Join(choice.passed_over, "; ");
      base::Throw(base::ErrorCode::kUnsupported, "no lowering of ", OpName(choice.op), " for device ",
                  DeviceName(context.device), ": ", reasons.empty() ? "none is registered" : reasons);
    }
    out.push_back(best->emit(nodes.subspan(at, best->pattern.size())));
    choice.lowering = best->name;
    for (const OpProviderStats& row : GetOpProviderStats())
      if (row.op == NodeOp(out.back()) && row.device == context.device) choice.provider = row.provider;
    choices_.push_back(std::move(choice));
    at += best->pattern.size();
  }
}

void Plan::PlaceValues(const Graph& graph, std::span<const OpNode> nodes, Platform& platform,
                       const PlanLimits& limits) {
  const StepSizes largest = {limits.tokens, limits.logit_rows, limits.sequences};
  const auto& values = graph.values();
  std::vector<int> last_use(values.size(), -1), first_use(values.size(), -1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    OpNode node = nodes[i];
    ForEachOperand(node, [&](ValueId& value) {
      if (!value) return;
      if (first_use[value.index] < 0) first_use[value.index] = static_cast<int>(i);
      last_use[value.index] = static_cast<int>(i);
    });
  }
  std::vector<int64_t> offsets(values.size(), -1);
  FirstFit arena;
  const auto placed = [&](const Value& value) { return value.kind != Value::Kind::kConstant; };
  const auto permanent = [&](const Value& value) { return value.kind == Value::Kind::kInput || value.output; };
  for (size_t v = 0; v < values.size(); ++v)
    if (placed(values[v]) && permanent(values[v])) offsets[v] = arena.Take(AlignedBytes(values[v], largest));
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t v = 0; v < values.size(); ++v)
      if (placed(values[v]) && !permanent(values[v]) && first_use[v] == static_cast<int>(i))
        offsets[v] = arena.Take(AlignedBytes(values[v], largest));
    for (size_t v = 0; v < values.size(); ++v)
      if (placed(values[v]) && !permanent(values[v]) && last_use[v] == static_cast<int>(i))
        arena.Give(offsets[v], AlignedBytes(values[v], largest));
  }
  arena_ = platform.Allocate(std::max<int64_t>(arena.end(), kAlignment));
  for (size_t v = 0; v < values.size(); ++v) {
    const Value& value = values[v];
    if (value.kind == Value::Kind::kConstant) {
      places_.push_back(value.constant);
    } else if (offsets[v] < 0) {
      places_.push_back({});  // no node uses it
    } else {
      const int64_t rows = RowsOf(value.rows, value.fixed_rows, largest);
      places_.push_back(value.columns ? arena_.View(value.dtype, {rows, value.columns}, offsets[v])
                                      : arena_.View(value.dtype, {rows}, offsets[v]));
    }
  }
}

OpArgs Plan::Resolve(const OpNode& node) const {
  return std::visit(
      [&](auto op) -> OpArgs {
        auto resolved = op.template WithoutOperands<Tensor>();
        CopyOperands(resolved, op, places_);
        return resolved;
      },
      node);
}

void Plan::SetRows(const StepSizes& sizes) {
  if (sizes.tokens == bound_.tokens && sizes.logit_rows == bound_.logit_rows && sizes.sequences == bound_.sequences)
    return;
  for (auto& [tensor, rows] : symbolic_) tensor->shape[0] = RowsOf(rows, 0, sizes);
  bound_ = sizes;
}

void Plan::Execute(Queue& queue, const StepSizes& sizes) {
  SetRows(sizes);
  for (const Step& step : steps_) queue.Launch(*step.kernel, step.args, options_);
}

Tensor Plan::At(ValueId value, const StepSizes& sizes) const {
  const Value& info = values_.at(value.index);
  Tensor place = places_[value.index];
  CHECK(place.data != nullptr, "value '", info.name, "' has no place: no node uses it");
  const int64_t rows = info.rows == RowCount::kFixed ? place.shape[0] : RowsOf(info.rows, 0, sizes);
  return FirstRows(place, rows);
}

}  // namespace vt

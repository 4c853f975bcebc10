// The linear IR that a model is planned from: values with symbolic row counts, and op nodes in execution order.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "vt/ops.h"
#include "vt/tensor.h"

namespace vt {

struct ValueId {
  int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  friend bool operator==(ValueId, ValueId) = default;
};

// The first dimension of a value: a size of the step, or fixed.
enum class RowCount : int8_t { kTokens, kLogitRows, kSequences, kSequencesPlusOne, kFixed };

struct Value {
  enum class Kind : int8_t {
    kActivation,  // lives in the plan's arena while something needs it
    kInput,       // filled before each step; keeps its place
    kConstant,    // weights, caches: storage of others
  };
  Kind kind = Kind::kActivation;
  RowCount rows = RowCount::kTokens;
  int64_t fixed_rows = 0;  // for kFixed
  int64_t columns = 0;     // 0: the value is a vector of `rows` entries
  DType dtype = DType::kF32;
  Tensor constant = {};
  bool output = false;  // stays readable after the step
  std::string name = {};
};

using OpNode = OpOver<ValueId>;

// Built once by a decoder, then consumed by Plan::Build. Not thread-safe.
class Graph {
 public:
  ValueId Activation(RowCount rows, int64_t columns, std::string name, DType dtype = DType::kF32);
  ValueId Input(RowCount rows, int64_t columns, DType dtype, std::string name);
  ValueId Constant(Tensor tensor, std::string name);
  void MarkOutput(ValueId value) { values_[value.index].output = true; }
  void Add(OpNode node) { nodes_.push_back(std::move(node)); }

  const std::vector<Value>& values() const { return values_; }
  const std::vector<OpNode>& nodes() const { return nodes_; }

 private:
  std::vector<Value> values_;
  std::vector<OpNode> nodes_;
};

OpId NodeOp(const OpNode& node);

}  // namespace vt

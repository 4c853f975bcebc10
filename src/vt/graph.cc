// The linear IR that a model is planned from.
#include "vt/graph.h"

namespace vt {

ValueId Graph::Activation(RowCount rows, int64_t columns, std::string name, DType dtype) {
  values_.push_back({.rows = rows, .columns = columns, .dtype = dtype, .name = std::move(name)});
  return {static_cast<int32_t>(values_.size() - 1)};
}

ValueId Graph::Input(RowCount rows, int64_t columns, DType dtype, std::string name) {
  values_.push_back(
      {.kind = Value::Kind::kInput, .rows = rows, .columns = columns, .dtype = dtype, .name = std::move(name)});
  return {static_cast<int32_t>(values_.size() - 1)};
}

ValueId Graph::Constant(Tensor tensor, std::string name) {
  values_.push_back({.kind = Value::Kind::kConstant,
                     .rows = RowCount::kFixed,
                     .dtype = tensor.dtype,
                     .constant = tensor,
                     .name = std::move(name)});
  return {static_cast<int32_t>(values_.size() - 1)};
}

OpId NodeOp(const OpNode& node) {
  return std::visit([](const auto& op) { return op.kId; }, node);
}

}  // namespace vt

// Iteration over every kind of value, dict views, and the `loop` variable's bookkeeping.
#include "text/template/objects.h"

#include "text/template/macro.h"
#include "text/template/pystring.h"

namespace vllm::jinja {

Value View::At(size_t index) const {
  const auto& [key, value] = dict.dict().entries()[index];
  switch (what) {
    case What::kKeys:
      return key;
    case What::kValues:
      return value;
    case What::kItems:
      break;
  }
  return Value::Tuple({key, value});
}

bool IsIterable(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kString:
    case Value::Kind::kList:
    case Value::Kind::kDict:
      return true;
    case Value::Kind::kObject: {
      const auto tag = value.object()->tag();
      return tag == Object::Tag::kGenerator || tag == Object::Tag::kRange || tag == Object::Tag::kView;
    }
    default:
      return false;
  }
}

Iterator::Iterator(Budget& budget, const Value& value) : budget_(budget), value_(value) {
  if (!IsIterable(value)) Fail("'", TypeName(value), "' object is not iterable");
}

bool Iterator::Next(Value& item) {
  budget_.Step();
  switch (value_.kind()) {
    case Value::Kind::kString: {
      const std::string& text = value_.text();
      if (position_ >= text.size()) return false;
      const size_t length = SequenceLength(text, position_);
      item = Value::String(text.substr(position_, length));
      position_ += length;
      return true;
    }
    case Value::Kind::kList:
      if (position_ >= value_.items().size()) return false;
      item = value_.items()[position_++];
      return true;
    case Value::Kind::kDict:
      if (position_ >= value_.dict().size()) return false;
      item = value_.dict().entries()[position_++].first;
      return true;
    case Value::Kind::kObject:
      break;
    default:
      return false;
  }
  if (auto* generator = As<Generator>(value_)) return generator->next(item);
  if (auto* range = As<Range>(value_)) {
    if (static_cast<Int>(position_) >= range->size()) return false;
    item = Value::Integer(range->start + static_cast<Int>(position_++) * range->step);
    return true;
  }
  const auto* view = As<View>(value_);
  if (position_ >= view->dict.dict().size()) return false;
  item = view->At(position_++);
  return true;
}

int64_t LengthOf(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return 0;
    case Value::Kind::kString:
      return value.str().length;
    case Value::Kind::kList:
      return static_cast<int64_t>(value.items().size());
    case Value::Kind::kDict:
      return static_cast<int64_t>(value.dict().size());
    case Value::Kind::kObject:
      break;
    default:
      return -1;
  }
  if (const auto* range = As<Range>(value)) return static_cast<int64_t>(range->size());
  if (const auto* view = As<View>(value)) return static_cast<int64_t>(view->dict.dict().size());
  return -1;
}

std::vector<Value> Collect(Budget& budget, const Value& value) {
  Iterator source(budget, value);
  std::vector<Value> items;
  if (const int64_t length = LengthOf(value); length > 0)
    items.reserve(static_cast<size_t>(std::min<int64_t>(length, 4096)));
  for (Value item; source.Next(item);) {
    budget.Bytes(sizeof(Value));
    items.push_back(std::move(item));
  }
  return items;
}

bool Contains(Budget& budget, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) Fail("'in <string>' requires string as left operand, not ", TypeName(item));
    budget.Step(static_cast<int64_t>(container.text().size() >> 6));
    return FindText(container.text(), item.text()) != std::string_view::npos;
  }
  if (container.is_dict()) return container.dict().Find(budget, item) != nullptr;
  if (const auto* view = As<View>(container); view != nullptr && view->what == View::What::kKeys) {
    return view->dict.dict().Find(budget, item) != nullptr;
  }
  if (const auto* range = As<Range>(container); range != nullptr && item.is_integral()) {
    const Int value = item.integer(), offset = value - range->start;
    const bool inside =
        range->step > 0 ? value >= range->start && value < range->stop : value <= range->start && value > range->stop;
    return inside && offset % range->step == 0;
  }
  if (!IsIterable(container)) Fail("argument of type '", TypeName(container), "' is not iterable");
  Iterator source(budget, container);
  for (Value other; source.Next(other);) {
    if (Equal(budget, other, item)) return true;
  }
  return false;
}

bool Loop::Pull(Value& item) {
  if (ahead_used_ < ahead_.size()) {
    item = std::move(ahead_[ahead_used_++]);
    return true;
  }
  if (ended_ || !source_.Next(item)) {
    ended_ = true;
    return false;
  }
  return true;
}

bool Loop::Next(Budget& budget, Value& item) {
  budget.Step();
  if (peeked_) {
    peeked_ = false;
    item = std::move(after_);
  } else if (!Pull(item)) {
    return false;
  }
  ++index0;
  previous = std::move(current);
  current = item;
  return true;
}

const Value* Loop::Peek() {
  if (!peeked_) peeked_ = Pull(after_);
  return peeked_ ? &after_ : nullptr;
}

Int Loop::Length(Budget& budget) {
  if (length_ >= 0) return length_;
  length_ = LengthOf(iterable_);
  if (length_ >= 0) return length_;
  std::vector<Value> rest;
  for (Value item; Pull(item);) {
    budget.Bytes(sizeof(Value));
    rest.push_back(std::move(item));
  }
  length_ = static_cast<Int>(rest.size()) + index0 + 1 + (peeked_ ? 1 : 0);
  ahead_ = std::move(rest);
  ahead_used_ = 0;
  return length_;
}

}  // namespace vllm::jinja

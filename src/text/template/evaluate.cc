// Expressions of a template.
#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

constexpr Int kRangeMax = Int{1} << 100;  // sums and differences of such numbers do not overflow

std::string Described(const Value& value) {
  if (value.is_none()) return "None";
  const std::string_view type = TypeName(value);
  std::string module;
  if (value.is_object()) {
    switch (value.object()->tag()) {
      case Object::Tag::kNamespace:
      case Object::Tag::kCycler:
      case Object::Tag::kJoiner:
        module = "jinja2.utils.";
        break;
      case Object::Tag::kMacro:
      case Object::Tag::kLoop:
        module = "jinja2.runtime.";
        break;
      default:
        break;
    }
  }
  return module + std::string(type) + " object";
}

Value NoAttribute(const Value& object, std::string_view name) {
  std::string quoted, owner;
  AppendQuoted(quoted, name);
  AppendQuoted(owner, Described(object));
  return Value::Undefined(owner + " has no attribute " + quoted);
}

bool Hashable(Budget& budget, const Value& value) {
  budget.Step();
  if (value.is_dict() || value.is_list() || As<View>(value) != nullptr) return false;
  if (!value.is_tuple()) return true;
  for (const Value& item : value.items()) {
    if (!Hashable(budget, item)) return false;
  }
  return true;
}

Value LoopAttribute(Interpreter& interpreter, Loop& loop, std::string_view name) {
  if (name == "index") return Value::Integer(loop.index0 + 1);
  if (name == "index0") return Value::Integer(loop.index0);
  if (name == "first") return Value::Bool(loop.index0 == 0);
  if (name == "last") return Value::Bool(loop.Peek() == nullptr);
  if (name == "length") return Value::Integer(loop.Length(interpreter.budget()));
  if (name == "revindex") return Value::Integer(loop.Length(interpreter.budget()) - loop.index0);
  if (name == "revindex0") return Value::Integer(loop.Length(interpreter.budget()) - loop.index0 - 1);
  if (name == "depth") return Value::Integer(loop.depth0 + 1);
  if (name == "depth0") return Value::Integer(loop.depth0);
  if (name == "previtem") return loop.index0 == 0 ? Value::Undefined("there is no previous item") : loop.previous;
  if (name == "nextitem") {
    const Value* next = loop.Peek();
    return next == nullptr ? Value::Undefined("there is no next item") : *next;
  }
  return Value::FromObject(nullptr);
}

Value NumberAttribute(const Value& value, std::string_view name) {
  if (name == "real") return value.is_bool() ? Value::Integer(value.integer()) : value;
  if (name == "imag") return value.is_float() ? Value::Float(0) : Value::Integer(0);
  if (value.is_integral() && name == "numerator") return Value::Integer(value.integer());
  if (value.is_integral() && name == "denominator") return Value::Integer(1);
  return Value::FromObject(nullptr);
}

Value MacroAttribute(const Macro& macro, std::string_view name) {
  if (name == "name") return macro.name.empty() ? Value() : Value::String(macro.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const Node* parameter : macro.node.list) names.push_back(Value::String(parameter->name));
    return Value::Tuple(std::move(names));
  }
  const FunctionCode& code = *macro.node.function;
  if (name == "caller") return Value::Bool(code.caller_slot >= 0);
  if (name == "catch_kwargs") return Value::Bool(code.kwargs_slot >= 0);
  if (name == "catch_varargs") return Value::Bool(code.varargs_slot >= 0);
  return Value::FromObject(nullptr);
}

// A data attribute of the value's type; missing when there is none.
Value DataAttribute(Interpreter& interpreter, const Value& object, std::string_view name) {
  if (object.is_number()) return NumberAttribute(object, name);
  if (object.is_sequence() && object.list().grouped) {
    if (name == "grouper") return object.items()[0];
    if (name == "list") return object.items()[1];
  }
  if (auto* loop = As<Loop>(object)) return LoopAttribute(interpreter, *loop, name);
  if (auto* macro = As<Macro>(object)) return MacroAttribute(*macro, name);
  if (auto* ns = As<Namespace>(object)) {
    if (const Value* found = ns->attributes.Find(name)) {
      if (!name.starts_with('_')) return *found;
      return Value::Undefined("access to attribute '" + std::string(name) + "' of 'Namespace' object is unsafe.");
    }
  }
  if (auto* cycler = As<Cycler>(object)) {
    if (name == "current") return cycler->items[cycler->position];
    if (name == "items") return Value::Tuple(cycler->items);
    if (name == "pos") return Value::Integer(static_cast<Int>(cycler->position));
  }
  if (auto* range = As<Range>(object)) {
    if (name == "start") return Value::Integer(range->start);
    if (name == "stop") return Value::Integer(range->stop);
    if (name == "step") return Value::Integer(range->step);
  }
  return Value::FromObject(nullptr);
}

// What Python's getattr finds under the sandbox; missing when there is none.
Value GetAttribute(Interpreter& interpreter, const Value& object, const std::string& name) {
  if (const Method* method = FindMethod(object, name)) {
    if (method->body != nullptr) return Value::FromObject(interpreter.Make<Bound>(object, method));
    return Value::Undefined("access to attribute '" + name + "' of '" + std::string(TypeName(object)) +
                            "' object is unsafe.");
  }
  return DataAttribute(interpreter, object, name);
}

// The index of an item, or -1 when it is outside.
int64_t ItemIndex(Int index, Int size) {
  if (index < 0) index += size;
  return index < 0 || index >= size ? -1 : static_cast<int64_t>(index);
}

Value Character(const Str& text, int64_t index) {
  const size_t begin = text.ascii() ? static_cast<size_t>(index) : ByteOffset(text.text, index);
  std::string character = text.text.substr(begin, SequenceLength(text.text, begin));
  return text.markup ? Value::Markup(std::move(character)) : Value::String(std::move(character));
}

}  // namespace

Value Interpreter::Attribute(const Value& object, const std::string& name) {
  RequireDefined(object);
  Value found = GetAttribute(*this, object, name);
  if (!IsMissing(found)) return found;
  if (object.is_dict()) {
    if (const Value* value = object.dict().Find(name)) return *value;
  }
  return NoAttribute(object, name);
}

Value Interpreter::Item(const Value& object, const Value& key) {
  RequireDefined(object);
  if (object.is_dict()) {
    if (key.is_string()) {
      if (const Value* value = object.dict().Find(key.text())) return *value;
    } else if (Hashable(budget_, key)) {
      if (const Value* value = object.dict().Find(budget_, key)) return *value;
    }
  } else if (key.is_integral()) {
    const auto* range = As<Range>(object);
    if (object.is_string() || object.is_sequence() || range != nullptr) {
      const int64_t index = ItemIndex(key.integer(), LengthOf(object));
      if (index >= 0 && object.is_string()) {
        if (!object.str().ascii()) budget_.Step(index >> 6);
        return Character(object.str(), index);
      }
      if (index >= 0 && object.is_sequence()) return object.items()[static_cast<size_t>(index)];
      if (index >= 0) return Value::Integer(range->start + Int{index} * range->step);
    }
  }
  if (key.is_string()) {
    Value found = GetAttribute(*this, object, key.text());
    if (!IsMissing(found)) return found;
    return NoAttribute(object, key.text());
  }
  return Value::Undefined(Described(object) + " has no element " + ToRepr(budget_, key));
}

Value Interpreter::Call(const Value& callee, Args& args) {
  RequireDefined(callee);
  if (const auto* function = As<jinja::Function>(callee)) return function->body(*this, args);
  if (const auto* bound = As<Bound>(callee)) return bound->method->body(*this, bound->self, args);
  if (const auto* macro = As<Macro>(callee)) return CallMacro(*macro, args);
  if (auto* loop = As<Loop>(callee)) {
    const Arguments bound("__call__", {.names = {"iterable"}, .required = 1}, args);
    return CallLoop(*loop, bound[0]);
  }
  if (auto* joiner = As<Joiner>(callee)) {
    if (std::exchange(joiner->used, true)) return joiner->separator;
    return Value::String("");
  }
  Fail("'", TypeName(callee), "' object is not callable");
}

Value Interpreter::Evaluate(const Node& node, Activation& at) {
  budget_.Step();
  if (node.kind == NodeKind::kConst) return node.value;
  line_ = node.line;
  if (node.kind == NodeKind::kName) return Name(node, at);
  const Deeper deeper(*this);
  switch (node.kind) {
    case NodeKind::kAttribute:
      return Attribute(Evaluate(*node.a, at), node.name);
    case NodeKind::kItem:
      return ItemNode(node, at);
    case NodeKind::kCall:
      return CallNode(node, at, nullptr);
    case NodeKind::kFilter:
      return Filter(node, at);
    case NodeKind::kBinary:
      return Binary(node, at);
    case NodeKind::kCompare:
      return Compare(node, at);
    case NodeKind::kConcat:
      return Concat(node, at);
    default:
      return EvaluateOther(node, at);
  }
}

Value Interpreter::EvaluateOther(const Node& node, Activation& at) {
  switch (node.kind) {
    case NodeKind::kTuple:
    case NodeKind::kList:
    case NodeKind::kDict:
      return Collection(node, at);
    case NodeKind::kConditional:
      return Conditional(node, at);
    case NodeKind::kTest:
      return Test(node, at);
    case NodeKind::kAnd: {
      Value left = Evaluate(*node.a, at);
      return Truthy(left) ? Evaluate(*node.b, at) : left;
    }
    case NodeKind::kOr: {
      Value left = Evaluate(*node.a, at);
      return Truthy(left) ? left : Evaluate(*node.b, at);
    }
    case NodeKind::kNot:
      return Value::Bool(!Truthy(Evaluate(*node.a, at)));
    case NodeKind::kNegative:
    case NodeKind::kPositive:
      return Sign(node, at);
    default:
      break;
  }
  CHECK(false, "not an expression: ", static_cast<int>(node.kind));
  return Value();
}

Value Interpreter::Name(const Node& node, Activation& at) {
  const Value& value = Variable(node.slot, at);
  if (!IsMissing(value)) return value;
  return Value::Undefined("'" + node.name + "' is undefined");
}

Value Interpreter::Collection(const Node& node, Activation& at) {
  if (node.kind == NodeKind::kDict) {
    Dict dict;
    for (size_t i = 0; i < node.list.size(); ++i) {
      Value key = Evaluate(*node.list[i], at);
      Value value = Evaluate(*node.list2[i], at);
      dict.Set(budget_, std::move(key), std::move(value));
    }
    return NewDict(budget_, std::move(dict));
  }
  std::vector<Value> items;
  items.reserve(node.list.size());
  for (const Node* item : node.list) items.push_back(Evaluate(*item, at));
  return NewList(budget_, std::move(items), node.kind == NodeKind::kTuple);
}

Value Interpreter::Conditional(const Node& node, Activation& at) {
  if (Truthy(Evaluate(*node.b, at))) return Evaluate(*node.a, at);
  if (node.c != nullptr) return Evaluate(*node.c, at);
  return Value::Undefined(base::StrCat("the inline if-expression on line ", node.line,
                                       " evaluated to false and no else section was defined."));
}

Args Interpreter::EvaluateArguments(const Node& node, Activation& at) {
  Args args;
  args.positional.reserve(node.arguments.size());
  for (const Node* argument : node.arguments) args.positional.push_back(Evaluate(*argument, at));
  for (const Node* keyword : node.keywords) args.keywords.emplace_back(keyword->name, Evaluate(*keyword->a, at));
  if (node.dynamic_arguments != nullptr) {
    for (Value& value : Collect(budget_, Evaluate(*node.dynamic_arguments, at)))
      args.positional.push_back(std::move(value));
  }
  if (node.dynamic_keywords != nullptr) {
    const Value more = Evaluate(*node.dynamic_keywords, at);
    if (!more.is_dict()) Fail("argument after ** must be a mapping, not ", TypeName(more));
    for (const auto& [key, value] : more.dict().entries()) {
      if (!key.is_string()) Fail("keywords must be strings");
      for (const auto& [name, other] : args.keywords) {
        if (name == key.text()) Fail("got multiple values for keyword argument '", name, "'");
      }
      args.keywords.emplace_back(key.text(), value);
      budget_.Step(static_cast<int64_t>(args.keywords.size()));
    }
  }
  return args;
}

Value Interpreter::ApplyFilterNode(const Node& node, Activation& at, const Value& value) {
  const Args args = EvaluateArguments(node, at);
  line_ = node.line;
  if (node.filter == nullptr) Fail("No filter named '", node.name, "' found.");
  return node.filter->body(*this, value, args);
}

Value Interpreter::Filter(const Node& node, Activation& at) {
  if (node.a != nullptr) return ApplyFilterNode(node, at, Evaluate(*node.a, at));
  CHECK(block_text_ != nullptr, "a filter without a value outside of a block");
  return ApplyFilterNode(node, at, NewString(budget_, *block_text_));
}

Value Interpreter::Test(const Node& node, Activation& at) {
  const Value value = Evaluate(*node.a, at);
  const Args args = EvaluateArguments(node, at);
  if (node.test == nullptr) Fail("No test named '", node.name, "' found.");
  return Value::Bool(node.test->body(*this, value, args));
}

Value Interpreter::ApplyFilter(const std::string& name, const Value& value, const Args& args) {
  const FilterDef* filter = FindFilter(name);
  if (filter == nullptr && IsRefusedFilter(name)) Refuse("the filter '", name, "' is not supported");
  if (filter == nullptr) Fail("No filter named '", name, "'.");
  const Deeper deeper(*this);
  return filter->body(*this, value, args);
}

bool Interpreter::ApplyTest(const std::string& name, const Value& value, const Args& args) {
  const TestDef* test = FindTest(name);
  if (test == nullptr) Fail("No test named '", name, "'.");
  const Deeper deeper(*this);
  return test->body(*this, value, args);
}

Value Interpreter::CallNode(const Node& node, Activation& at, const Value* caller) {
  const Method* method = nullptr;
  Value callee;
  if (node.a->kind == NodeKind::kAttribute) {  // no bound method is made for x.method(…)
    const Value self = Evaluate(*node.a->a, at);
    line_ = node.line;
    if (!self.is_undefined()) method = FindMethod(self, node.a->name);
    if (method != nullptr && method->body == nullptr) method = nullptr;
    callee = method != nullptr ? self : Attribute(self, node.a->name);
  } else {
    callee = Evaluate(*node.a, at);
  }
  Args args = EvaluateArguments(node, at);
  if (caller != nullptr) args.keywords.emplace_back("caller", *caller);
  line_ = node.line;
  if (method != nullptr) return method->body(*this, callee, args);
  return Call(callee, args);
}

Value Interpreter::ItemNode(const Node& node, Activation& at) {
  const Value object = Evaluate(*node.a, at);
  if (node.b->kind == NodeKind::kSlice) return SliceOf(object, *node.b, at);
  return Item(object, Evaluate(*node.b, at));
}

Value Interpreter::SliceOf(const Value& value, const Node& slice, Activation& at) {
  const auto bound = [&](const Node* node) { return node == nullptr ? Value() : Evaluate(*node, at); };
  const Value first = bound(slice.a), last = bound(slice.b), stride = bound(slice.c);
  RequireDefined(value);
  if (value.is_dict()) Fail("unhashable type: 'slice'");
  const auto* range = As<Range>(value);
  if (!value.is_string() && !value.is_sequence() && range == nullptr) {
    Fail("'", TypeName(value), "' object is not subscriptable");
  }
  const int64_t size = LengthOf(value);
  const int64_t step = stride.is_none() ? 1 : ToIndex(stride);
  if (step == 0) Fail("slice step cannot be zero");
  const auto clamp = [&](const Value& index, int64_t otherwise) {
    if (index.is_none()) return otherwise;
    int64_t i = ToIndex(index);
    if (i < 0) i = std::max<int64_t>(i + size, step < 0 ? -1 : 0);
    return std::min(i, step < 0 ? size - 1 : size);
  };
  const int64_t start = clamp(first, step < 0 ? size - 1 : 0), stop = clamp(last, step < 0 ? -1 : size);
  if (range != nullptr) {
    const auto at_index = [&](int64_t index) {
      Int offset = 0, value = 0;
      if (__builtin_mul_overflow(Int{index}, range->step, &offset) ||
          __builtin_add_overflow(range->start, offset, &value) || value > kRangeMax || value < -kRangeMax) {
        Fail("integer overflow: a range reaches beyond 100 bits");
      }
      return value;
    };
    Int stride_value = 0;
    if (__builtin_mul_overflow(range->step, Int{step}, &stride_value) || stride_value > kRangeMax ||
        stride_value < -kRangeMax) {
      Fail("integer overflow: a range's step has more than 100 bits");
    }
    return Value::FromObject(Make<Range>(at_index(start), at_index(stop), stride_value));
  }
  const int64_t stride_size = step < 0 ? -(step + 1) : step - 1;
  const int64_t span = step > 0 ? stop - start : start - stop;
  const int64_t count = span <= 0 ? 0 : stride_size >= span ? 1 : (span - 1) / (stride_size + 1) + 1;
  if (value.is_sequence()) {
    std::vector<Value> items;
    for (int64_t i = 0, at_index = start; i < count; ++i, at_index += i < count ? step : 0) {
      items.push_back(value.items()[static_cast<size_t>(at_index)]);
    }
    return NewList(budget_, std::move(items), value.is_tuple());
  }
  const Str& text = value.str();
  std::string out;
  budget_.Step(static_cast<int64_t>(text.text.size() >> 6));
  if (step == 1 && count > 0) {
    const size_t begin = text.ascii() ? static_cast<size_t>(start) : ByteOffset(text.text, start);
    const std::string_view rest = std::string_view(text.text).substr(begin);
    out = rest.substr(0, text.ascii() ? static_cast<size_t>(count) : ByteOffset(rest, count));
  } else if (count > 0) {
    std::vector<uint32_t> offsets;  // of every character
    budget_.Bytes(static_cast<int64_t>(text.text.size()) * 4);
    for (size_t pos = 0; pos < text.text.size(); pos += SequenceLength(text.text, pos))
      offsets.push_back(static_cast<uint32_t>(pos));
    for (int64_t i = 0, at_index = start; i < count; ++i, at_index += i < count ? step : 0) {
      const size_t begin = offsets[static_cast<size_t>(at_index)];
      out.append(text.text, begin, SequenceLength(text.text, begin));
    }
  }
  if (text.markup) return Value::Markup(std::move(out));
  return NewString(budget_, std::move(out));
}

Value Interpreter::Concat(const Node& node, Activation& at) {
  std::string text;
  for (const Node* part : node.list) AppendStr(budget_, text, Evaluate(*part, at));
  return NewString(budget_, std::move(text));
}

bool Interpreter::CompareOnce(Operator op, const Value& a, const Value& b) {
  switch (op) {
    case Operator::kEq:
      return Equal(budget_, a, b);
    case Operator::kNe:
      return !Equal(budget_, a, b);
    case Operator::kLt:
      return Less(budget_, a, b, "<");
    case Operator::kLe:
      return LessEqual(budget_, a, b, "<=");
    case Operator::kGt:
      return Less(budget_, b, a, ">");
    case Operator::kGe:
      return LessEqual(budget_, b, a, ">=");
    case Operator::kIn:
      return Contains(budget_, b, a);
    case Operator::kNotIn:
      return !Contains(budget_, b, a);
    default:
      break;
  }
  CHECK(false, "not a comparison: ", static_cast<int>(op));
  return false;
}

Value Interpreter::Compare(const Node& node, Activation& at) {
  Value left = Evaluate(*node.a, at);
  for (size_t i = 0; i < node.list.size(); ++i) {
    Value right = Evaluate(*node.list[i], at);
    if (!CompareOnce(node.operators[i], left, right)) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Value Interpreter::Binary(const Node& node, Activation& at) {
  const Value a = Evaluate(*node.a, at);
  const Value b = Evaluate(*node.b, at);
  line_ = node.line;
  return BinaryOperation(budget_, node.operators[0], a, b);
}

Value Interpreter::Sign(const Node& node, Activation& at) {
  const Value value = Evaluate(*node.a, at);
  RequireDefined(value);
  const bool negative = node.kind == NodeKind::kNegative;
  if (value.is_float()) return Value::Float(negative ? -value.number() : value.number());
  if (value.is_integral()) {
    if (!negative) return Value::Integer(value.integer());
    return BinaryOperation(budget_, Operator::kSub, Value::Integer(0), value);
  }
  Fail("bad operand type for unary ", negative ? "-" : "+", ": '", TypeName(value), "'");
}

}  // namespace vllm::jinja

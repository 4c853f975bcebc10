// Python's arithmetic on template values.
#include <cmath>

#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void Unsupported(Operator op, const Value& a, const Value& b) {
  Fail("unsupported operand type(s) for ", kSigns[static_cast<size_t>(op)], ": '", TypeName(a), "' and '", TypeName(b),
       "'");
}

[[noreturn]] void Overflow() { Fail("integer overflow: the result does not fit in 128 bits"); }

Int FloorDivide(Int a, Int b) {
  if (b == 0) Fail("integer division or modulo by zero");
  if (b == -1) {
    Int result = 0;
    if (__builtin_sub_overflow(Int{0}, a, &result)) Overflow();
    return result;
  }
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

Int Modulo(Int a, Int b) {
  if (b == 0) Fail("integer modulo by zero");
  if (b == -1) return 0;
  const Int rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double Modulo(double a, double b) {
  if (b == 0) Fail("float modulo");
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  if ((b < 0) != (rest < 0)) rest += b;
  return rest;
}

double FloorDivide(double a, double b) {
  if (b == 0) Fail("float floor division by zero");
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value Power(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral() && b.integer() >= 0) {
    Int base = a.integer(), result = 1;
    for (Int exponent = b.integer(); exponent > 0; exponent >>= 1) {
      if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) Overflow();
      if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) Overflow();
    }
    return Value::Integer(result);
  }
  const double x = a.number(), y = b.number();
  if (x == 0 && y < 0) Fail("0.0 cannot be raised to a negative power");
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && std::floor(y) != y)
    Refuse("complex numbers are not supported: ", FloatText(x), " ** ", FloatText(y));
  const double result = std::pow(x, y);
  if (std::isinf(result) && std::isfinite(x) && std::isfinite(y)) Fail("(34, 'Numerical result out of range')");
  return Value::Float(result);
}

Value Numbers(Operator op, const Value& a, const Value& b) {
  if (op == Operator::kPow) return Power(a, b);
  if (op == Operator::kDiv) {
    const bool integers = a.is_integral() && b.is_integral();
    if (b.number() == 0) Fail(integers ? "division by zero" : "float division by zero");
    if (integers)
      return Value::Float(
          static_cast<double>(static_cast<long double>(a.integer()) / static_cast<long double>(b.integer())));
    return Value::Float(a.number() / b.number());
  }
  if (a.is_float() || b.is_float()) {
    const double x = a.number(), y = b.number();
    switch (op) {
      case Operator::kAdd:
        return Value::Float(x + y);
      case Operator::kSub:
        return Value::Float(x - y);
      case Operator::kMul:
        return Value::Float(x * y);
      case Operator::kFloorDiv:
        return Value::Float(FloorDivide(x, y));
      default:
        return Value::Float(Modulo(x, y));
    }
  }
  const Int x = a.integer(), y = b.integer();
  Int result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::kAdd:
      overflow = __builtin_add_overflow(x, y, &result);
      break;
    case Operator::kSub:
      overflow = __builtin_sub_overflow(x, y, &result);
      break;
    case Operator::kMul:
      overflow = __builtin_mul_overflow(x, y, &result);
      break;
    case Operator::kFloorDiv:
      result = FloorDivide(x, y);
      break;
    default:
      result = Modulo(x, y);
      break;
  }
  if (overflow) Overflow();
  return Value::Integer(result);
}

Value AddStrings(Budget& budget, const Str& a, const Str& b) {
  budget.String(static_cast<int64_t>(a.text.size() + b.text.size()));
  if (!a.markup && !b.markup) return NewString(budget, a.text + b.text);
  return Value::Markup((a.markup ? a.text : EscapeHtml(a.text)) + (b.markup ? b.text : EscapeHtml(b.text)));
}

Value AddLists(Budget& budget, const List& a, const List& b) {
  budget.Bytes(static_cast<int64_t>((a.items.size() + b.items.size()) * sizeof(Value)));
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return NewList(budget, std::move(items), a.tuple);
}

Value Repeat(Budget& budget, const Value& what, Int count) {
  if (count < 0) count = 0;
  const Int unit =
      what.is_string() ? static_cast<Int>(what.text().size()) : static_cast<Int>(what.items().size() * sizeof(Value));
  if (unit != 0 && count > INT64_MAX / unit) count = INT64_MAX / unit;
  if (unit == 0) count = 0;
  if (what.is_string()) {
    budget.String(static_cast<int64_t>(unit * count));
    std::string text;
    text.reserve(static_cast<size_t>(unit * count));
    for (Int i = 0; i < count; ++i) text += what.text();
    return what.str().markup ? Value::Markup(std::move(text)) : Value::String(std::move(text));
  }
  budget.Bytes(static_cast<int64_t>(unit * count));
  std::vector<Value> items;
  items.reserve(what.items().size() * static_cast<size_t>(count));
  for (Int i = 0; i < count; ++i) items.insert(items.end(), what.items().begin(), what.items().end());
  return NewList(budget, std::move(items), what.is_tuple());
}

Value Add(Budget& budget, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) return AddStrings(budget, a.str(), b.str());
  if (a.is_sequence() && b.is_sequence() && a.list().tuple == b.list().tuple)
    return AddLists(budget, a.list(), b.list());
  if (a.is_string() || a.is_sequence()) {
    Fail("can only concatenate ", TypeName(a), " (not \"", TypeName(b), "\") to ", TypeName(a));
  }
  Unsupported(Operator::kAdd, a, b);
}

Value Multiply(Budget& budget, const Value& a, const Value& b) {
  const bool left = a.is_string() || a.is_sequence(), right = b.is_string() || b.is_sequence();
  if (left && b.is_integral()) return Repeat(budget, a, b.integer());
  if (right && a.is_integral()) return Repeat(budget, b, a.integer());
  if (left || right) Fail("can't multiply sequence by non-int of type '", TypeName(left ? b : a), "'");
  Unsupported(Operator::kMul, a, b);
}

// text % values, where a Markup escapes what it takes in.
Value Percent(Budget& budget, const Value& a, const Value& b) {
  if (!a.str().markup) return NewString(budget, PercentFormat(budget, a.str(), b));
  const auto escape = [](const Value& value) {
    return value.is_string() && !value.str().markup ? Value::String(EscapeHtml(value.text())) : value;
  };
  if (b.is_tuple()) {
    std::vector<Value> items;
    for (const Value& item : b.items()) items.push_back(escape(item));
    return Value::Markup(PercentFormat(budget, a.str(), Value::Tuple(std::move(items))));
  }
  return Value::Markup(PercentFormat(budget, a.str(), escape(b)));
}

}  // namespace

Value BinaryOperation(Budget& budget, Operator op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return Numbers(op, a, b);
  if (op == Operator::kMod && a.is_string()) return Percent(budget, a, b);
  RequireDefined(a);
  RequireDefined(b);
  if (op == Operator::kAdd) return Add(budget, a, b);
  if (op == Operator::kMul) return Multiply(budget, a, b);
  Unsupported(op, a, b);
}

}  // namespace vllm::jinja

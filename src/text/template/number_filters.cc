// Filters on numbers and single values.
#include <cmath>

#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

Value Abs(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("abs", {}, args);
  if (value.is_float()) return Value::Float(std::fabs(value.number()));
  if (!value.is_integral()) Fail("bad operand type for abs(): '", TypeName(value), "'");
  if (value.integer() >= 0) return Value::Integer(value.integer());
  return BinaryOperation(interpreter.budget(), Operator::kSub, Value::Integer(0), value);
}

Value Default(Interpreter&, const Value& value, const Args& args) {
  const Arguments a("default", {.names = {"default_value", "boolean"}}, args);
  if (value.is_undefined() || (a.truthy(1, false) && !Truthy(value))) return a.get(0, Value::String(""));
  return value;
}

// int(value) of a float; nothing where Python raises ValueError.
std::optional<Int> Whole(double value) {
  if (std::isnan(value)) return std::nullopt;
  if (std::isinf(value)) Fail("cannot convert float infinity to integer");
  if (std::fabs(value) > 1.7e38) Fail("integer overflow: ", FloatText(value), " does not fit in 128 bits");
  return static_cast<Int>(value);
}

Value IntFilter(Interpreter&, const Value& value, const Args& args) {
  const Arguments a("int", {.names = {"default", "base"}}, args);
  RequireDefined(value);
  const Value otherwise = a.get(0, Value::Integer(0));
  if (value.is_integral()) return Value::Integer(value.integer());
  std::optional<Int> whole;
  if (value.is_float()) {
    whole = Whole(value.number());
  } else if (value.is_string()) {
    whole = ParseInt(value.text(), static_cast<int>(std::min<int64_t>(a.integer(1, 10), 100)));
    if (!whole) {
      const auto number = ParseFloat(value.text());
      if (number && std::isfinite(*number)) whole = Whole(*number);
    }
  }
  return whole ? Value::Integer(*whole) : otherwise;
}

Value FloatFilter(Interpreter&, const Value& value, const Args& args) {
  const Arguments a("float", {.names = {"default"}}, args);
  RequireDefined(value);
  const Value otherwise = a.get(0, Value::Float(0));
  if (value.is_number()) return Value::Float(value.number());
  if (!value.is_string()) return otherwise;
  const auto number = ParseFloat(value.text());
  return number ? Value::Float(*number) : otherwise;
}

// round(value, digits): half to even on the exact decimal value.
double RoundTo(Budget& budget, double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -309) return std::copysign(0.0, value);
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / unit) * unit;
  }
  const std::string text = FormatValue(budget, Value::Float(value), "." + std::to_string(digits) + "f");
  return ParseFloat(text).value_or(value);
}

Int RoundInt(Int value, int64_t digits) {
  if (digits >= 0) return value;
  if (digits < -37) return 0;
  Int unit = 1;
  for (int64_t i = 0; i < -digits; ++i) unit *= 10;
  Int rest = value % unit;
  Int base = value - rest;
  if (rest < 0) rest += unit, base -= unit;
  const bool odd = (base / unit) % 2 != 0;
  if (rest * 2 > unit || (rest * 2 == unit && odd)) base += unit;
  return base;
}

Value Round(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("round", {.names = {"precision", "method"}}, args);
  RequireDefined(value);
  const std::string method = a.has(1) && a[1].is_string() ? a[1].text() : "common";
  if ((a.has(1) && !a[1].is_string()) || (method != "common" && method != "ceil" && method != "floor")) {
    Fail("method must be common, ceil or floor");
  }
  if (!value.is_number()) Fail("type ", TypeName(value), " doesn't define __round__ method");
  if (method == "common") {
    const int64_t digits = a.integer(0, 0);
    if (value.is_integral()) return Value::Integer(RoundInt(value.integer(), digits));
    return Value::Float(RoundTo(interpreter.budget(), value.number(), digits));
  }
  const Value scale =
      BinaryOperation(interpreter.budget(), Operator::kPow, Value::Integer(10), a.get(0, Value::Integer(0)));
  const Value scaled = BinaryOperation(interpreter.budget(), Operator::kMul, value, scale);
  Value whole = scaled;
  if (scaled.is_float()) {
    const auto rounded = Whole(method == "ceil" ? std::ceil(scaled.number()) : std::floor(scaled.number()));
    if (!rounded) Fail("cannot convert float NaN to integer");
    whole = Value::Integer(*rounded);
  }
  return BinaryOperation(interpreter.budget(), Operator::kDiv, whole, scale);
}

Value FileSizeFormat(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("filesizeformat", {.names = {"binary"}}, args);
  const auto number = value.is_number()   ? std::optional<double>(value.number())
                      : value.is_string() ? ParseFloat(value.text())
                                          : std::nullopt;
  if (!number) Fail("could not convert to float: ", ToRepr(interpreter.budget(), value));
  const bool binary = a.truthy(0, false);
  const double bytes = *number, unit = binary ? 1024 : 1000;
  if (bytes == 1) return Value::String("1 Byte");
  if (bytes < unit) {
    const auto whole = Whole(bytes);
    return Value::String(IntText(whole.value_or(0)) + " Bytes");
  }
  constexpr std::string_view kPrefixes = "KMGTPEZY";
  double size = unit;
  size_t i = 0;
  while (i < kPrefixes.size()) {
    size *= unit;
    if (bytes < size || i + 1 == kPrefixes.size()) break;
    ++i;
  }
  std::string text = FormatValue(interpreter.budget(), Value::Float(unit * bytes / size), ".1f") + " ";
  text += binary || i > 0 ? kPrefixes[i] : 'k';
  return Value::String(text + (binary ? "iB" : "B"));
}

Value Attr(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("attr", {.names = {"name"}, .required = 1}, args);
  if (!a[0].is_string()) Fail("attribute name must be string, not '", TypeName(a[0]), "'");
  RequireDefined(value);
  // Attributes only: a dict's keys are not looked at.
  if (!value.is_dict() || FindMethod(value, a[0].text()) != nullptr) return interpreter.Attribute(value, a[0].text());
  return Value::Undefined("'dict object' has no attribute " + ToRepr(interpreter.budget(), a[0]));
}

Value Length(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("len", {}, args);
  if (auto* loop = As<Loop>(value)) return Value::Integer(loop->Length(interpreter.budget()));
  const int64_t length = LengthOf(value);
  if (length < 0) Fail("object of type '", TypeName(value), "' has no len()");
  return Value::Integer(length);
}

constexpr FilterDef kFilters[] = {
    {"abs", Abs},           {"attr", Attr},       {"count", Length},
    {"d", Default},         {"default", Default}, {"filesizeformat", FileSizeFormat},
    {"float", FloatFilter}, {"int", IntFilter},   {"length", Length},
    {"round", Round},
};

}  // namespace

std::span<const FilterDef> NumberFilters() { return kFilters; }

}  // namespace vllm::jinja

// The tests behind `is`, and the search through the filter and test tables.
#include <algorithm>
#include <cmath>

#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

void NoArguments(const Args& args) { const Arguments none("test", {}, args); }

const Value& Other(const Args& args) {
  if (args.positional.size() != 1 || !args.keywords.empty()) {
    Fail("this test takes one argument, not ", args.positional.size() + args.keywords.size());
  }
  return args.positional[0];
}

template <bool (*Check)(const Value&)>
bool Plain(Interpreter&, const Value& value, const Args& args) {
  NoArguments(args);
  return Check(value);
}

bool IsDefined(const Value& v) { return !v.is_undefined(); }
bool IsUndefined(const Value& v) { return v.is_undefined(); }
bool IsNone(const Value& v) { return v.is_none(); }
bool IsBoolean(const Value& v) { return v.is_bool(); }
bool IsTrue(const Value& v) { return v.is_bool() && v.boolean(); }
bool IsFalse(const Value& v) { return v.is_bool() && !v.boolean(); }
bool IsInteger(const Value& v) { return v.is_int(); }
bool IsFloat(const Value& v) { return v.is_float(); }
bool IsNumber(const Value& v) { return v.is_number(); }
bool IsString(const Value& v) { return v.is_string(); }
bool IsMapping(const Value& v) { return v.is_dict(); }
bool IsEscaped(const Value& v) { return v.is_string() && v.str().markup; }
bool IsSequence(const Value& v) {
  return v.is_string() || v.is_sequence() || v.is_dict() || v.is_undefined() || As<Range>(v) != nullptr;
}
bool IsIterableTest(const Value& v) { return IsIterable(v) || As<Loop>(v) != nullptr; }
bool IsCallable(const Value& v) {
  if (v.is_undefined()) return true;  // Undefined has a __call__, which fails
  if (!v.is_object()) return false;
  switch (v.object()->tag()) {
    case Object::Tag::kFunction:
    case Object::Tag::kBound:
    case Object::Tag::kMacro:
    case Object::Tag::kLoop:
    case Object::Tag::kJoiner:
      return true;
    default:
      return false;
  }
}

Value Remainder(Interpreter& interpreter, const Value& value, const Value& by) {
  return BinaryOperation(interpreter.budget(), Operator::kMod, value, by);
}

bool Odd(Interpreter& interpreter, const Value& value, const Args& args) {
  NoArguments(args);
  return Equal(interpreter.budget(), Remainder(interpreter, value, Value::Integer(2)), Value::Integer(1));
}
bool Even(Interpreter& interpreter, const Value& value, const Args& args) {
  NoArguments(args);
  return Equal(interpreter.budget(), Remainder(interpreter, value, Value::Integer(2)), Value::Integer(0));
}
bool DivisibleBy(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("divisibleby", {.names = {"num"}, .required = 1}, args);
  return Equal(interpreter.budget(), Remainder(interpreter, value, a[0]), Value::Integer(0));
}
bool Lower(Interpreter& interpreter, const Value& value, const Args& args) {
  NoArguments(args);
  return StrIsLower(ToStr(interpreter.budget(), value));
}
bool Upper(Interpreter& interpreter, const Value& value, const Args& args) {
  NoArguments(args);
  return StrIsUpper(ToStr(interpreter.budget(), value));
}
bool FilterTest(Interpreter&, const Value& value, const Args& args) {
  NoArguments(args);
  return value.is_string() && (FindFilter(value.text()) != nullptr || IsRefusedFilter(value.text()));
}
bool TestTest(Interpreter&, const Value& value, const Args& args) {
  NoArguments(args);
  return value.is_string() && FindTest(value.text()) != nullptr;
}
bool SameAs(Interpreter&, const Value& value, const Args& args) {
  const Arguments a("sameas", {.names = {"other"}, .required = 1}, args);
  return value.SameAs(a[0]);
}
bool In(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("in", {.names = {"seq"}, .required = 1}, args);
  return Contains(interpreter.budget(), a[0], value);
}
bool Eq(Interpreter& interpreter, const Value& value, const Args& args) {
  return Equal(interpreter.budget(), value, Other(args));
}
bool Ne(Interpreter& interpreter, const Value& value, const Args& args) {
  return !Equal(interpreter.budget(), value, Other(args));
}
bool Lt(Interpreter& interpreter, const Value& value, const Args& args) {
  return Less(interpreter.budget(), value, Other(args), "<");
}
bool Le(Interpreter& interpreter, const Value& value, const Args& args) {
  return LessEqual(interpreter.budget(), value, Other(args), "<=");
}
bool Gt(Interpreter& interpreter, const Value& value, const Args& args) {
  return Less(interpreter.budget(), Other(args), value, ">");
}
bool Ge(Interpreter& interpreter, const Value& value, const Args& args) {
  return LessEqual(interpreter.budget(), Other(args), value, ">=");
}

constexpr TestDef kTests[] = {
    {"!=", Ne},
    {"<", Lt},
    {"<=", Le},
    {"==", Eq},
    {">", Gt},
    {">=", Ge},
    {"boolean", Plain<IsBoolean>},
    {"callable", Plain<IsCallable>},
    {"defined", Plain<IsDefined>},
    {"divisibleby", DivisibleBy},
    {"eq", Eq},
    {"equalto", Eq},
    {"escaped", Plain<IsEscaped>},
    {"even", Even},
    {"false", Plain<IsFalse>},
    {"filter", FilterTest},
    {"float", Plain<IsFloat>},
    {"ge", Ge},
    {"greaterthan", Gt},
    {"gt", Gt},
    {"in", In},
    {"integer", Plain<IsInteger>},
    {"iterable", Plain<IsIterableTest>},
    {"le", Le},
    {"lessthan", Lt},
    {"lower", Lower},
    {"lt", Lt},
    {"mapping", Plain<IsMapping>},
    {"ne", Ne},
    {"none", Plain<IsNone>},
    {"number", Plain<IsNumber>},
    {"odd", Odd},
    {"sameas", SameAs},
    {"sequence", Plain<IsSequence>},
    {"string", Plain<IsString>},
    {"test", TestTest},
    {"true", Plain<IsTrue>},
    {"undefined", Plain<IsUndefined>},
    {"upper", Upper},
};

}  // namespace

const TestDef* FindTest(std::string_view name) {
  for (const TestDef& test : kTests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

const FilterDef* FindFilter(std::string_view name) {
  for (const auto table : {TextFilters(), SequenceFilters(), NumberFilters()}) {
    for (const FilterDef& filter : table) {
      if (filter.name == name) return &filter;
    }
  }
  return nullptr;
}

bool IsRefusedFilter(std::string_view name) {
  return name == "pprint" || name == "random" || name == "striptags" || name == "urlize" || name == "wordwrap";
}

Value MakeGenerator(Interpreter& interpreter, Generator::Next next) {
  interpreter.budget().Bytes(256);
  // Generators that read generators are evaluations inside evaluations too.
  return Value::FromObject(interpreter.Make<Generator>([&interpreter, next = std::move(next)](Value& item) {
    const Interpreter::Deeper deeper(interpreter);
    return next(item);
  }));
}

}  // namespace vllm::jinja

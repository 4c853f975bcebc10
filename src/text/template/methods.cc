// The methods of list, tuple, dict, numbers, ranges, loops and cyclers, and the search through all method tables.
#include <cmath>

#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

constexpr Signature kNone = {.positional_only = true};

template <View::What kWhat>
Value DictView(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments none("dict method", kNone, args);
  return Value::FromObject(interpreter.Make<View>(kWhat, self));
}

Value DictGet(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("get", {.names = {"key", "default"}, .required = 1, .positional_only = true}, args);
  const Value* found = a[0].is_string() ? self.dict().Find(a[0].text()) : self.dict().Find(interpreter.budget(), a[0]);
  return found != nullptr ? *found : a.get(1, Value());
}

Value Copy(Interpreter&, const Value& self, Args& args) {
  const Arguments none("copy", kNone, args);
  return self;  // values never change
}

Value FromKeys(Interpreter& interpreter, const Value&, Args& args) {
  const Arguments a("fromkeys", {.names = {"iterable", "value"}, .required = 1, .positional_only = true}, args);
  Dict dict;
  for (Value& key : Collect(interpreter.budget(), a[0]))
    dict.Set(interpreter.budget(), std::move(key), a.get(1, Value()));
  return NewDict(interpreter.budget(), std::move(dict));
}

Value SequenceIndex(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("index", {.names = {"value", "start", "stop"}, .required = 1, .positional_only = true}, args);
  const int64_t size = LengthOf(self);
  const auto clamp = [&](int index, int64_t otherwise) {
    int64_t at = a.integer(index, otherwise);
    return at < 0 ? std::max<int64_t>(0, at + size) : at;
  };
  const int64_t start = clamp(1, 0), stop = std::min(clamp(2, size), size);
  Iterator source(interpreter.budget(), self);
  int64_t index = 0;
  for (Value item; source.Next(item) && index < stop; ++index) {
    if (index >= start && Equal(interpreter.budget(), item, a[0])) return Value::Integer(index);
  }
  Fail(ToRepr(interpreter.budget(), a[0]), " is not in ", TypeName(self));
}

Value SequenceCount(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("count", {.names = {"value"}, .required = 1, .positional_only = true}, args);
  Iterator source(interpreter.budget(), self);
  Int count = 0;
  for (Value item; source.Next(item);) count += Equal(interpreter.budget(), item, a[0]);
  return Value::Integer(count);
}

Value BitLength(Interpreter&, const Value& self, Args& args) {
  const Arguments none("bit_length", kNone, args);
  const Int value = self.integer();
  auto rest = value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  Int bits = 0;
  for (; rest != 0; rest >>= 1) ++bits;
  return Value::Integer(bits);
}

Value BitCount(Interpreter&, const Value& self, Args& args) {
  const Arguments none("bit_count", kNone, args);
  const Int value = self.integer();
  auto rest = value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  Int bits = 0;
  for (; rest != 0; rest >>= 1) bits += static_cast<int>(rest & 1);
  return Value::Integer(bits);
}

Value Conjugate(Interpreter&, const Value& self, Args& args) {
  const Arguments none("conjugate", kNone, args);
  return self.is_bool() ? Value::Integer(self.integer()) : self;
}

Value IsInteger(Interpreter&, const Value& self, Args& args) {
  const Arguments none("is_integer", kNone, args);
  return Value::Bool(std::isfinite(self.number()) && std::floor(self.number()) == self.number());
}

Value LoopCycle(Interpreter&, const Value& self, Args& args) {
  if (!args.keywords.empty()) Fail("cycle() got an unexpected keyword argument '", args.keywords[0].first, "'");
  if (args.positional.empty()) Fail("no items for cycling given");
  const Int size = static_cast<Int>(args.positional.size());
  return args.positional[static_cast<size_t>(((As<Loop>(self)->index0 % size) + size) % size)];
}

Value LoopChanged(Interpreter& interpreter, const Value& self, Args& args) {
  if (!args.keywords.empty()) Fail("changed() got an unexpected keyword argument '", args.keywords[0].first, "'");
  auto* loop = As<Loop>(self);
  Value value = NewList(interpreter.budget(), args.positional, true);
  if (loop->changed_before && Equal(interpreter.budget(), loop->changed_value, value)) return Value::Bool(false);
  loop->changed_before = true;
  loop->changed_value = std::move(value);
  return Value::Bool(true);
}

Value CyclerNext(Interpreter&, const Value& self, Args& args) {
  const Arguments none("next", kNone, args);
  auto* cycler = As<Cycler>(self);
  Value value = cycler->items[cycler->position];
  cycler->position = (cycler->position + 1) % cycler->items.size();
  return value;
}

Value CyclerReset(Interpreter&, const Value& self, Args& args) {
  const Arguments none("reset", kNone, args);
  As<Cycler>(self)->position = 0;
  return Value();
}

constexpr Method kDictMethods[] = {{"clear", nullptr},
                                   {"copy", Copy},
                                   {"fromkeys", FromKeys},
                                   {"get", DictGet},
                                   {"items", DictView<View::What::kItems>},
                                   {"keys", DictView<View::What::kKeys>},
                                   {"pop", nullptr},
                                   {"popitem", nullptr},
                                   {"setdefault", nullptr},
                                   {"update", nullptr},
                                   {"values", DictView<View::What::kValues>}};
constexpr Method kListMethods[] = {{"append", nullptr},      {"clear", nullptr},  {"copy", Copy},
                                   {"count", SequenceCount}, {"extend", nullptr}, {"index", SequenceIndex},
                                   {"insert", nullptr},      {"pop", nullptr},    {"remove", nullptr},
                                   {"reverse", nullptr},     {"sort", nullptr}};
constexpr Method kTupleMethods[] = {{"count", SequenceCount}, {"index", SequenceIndex}};
constexpr Method kIntMethods[] = {{"bit_count", BitCount}, {"bit_length", BitLength}, {"conjugate", Conjugate}};
constexpr Method kFloatMethods[] = {{"conjugate", Conjugate}, {"is_integer", IsInteger}};
constexpr Method kLoopMethods[] = {{"changed", LoopChanged}, {"cycle", LoopCycle}};
constexpr Method kCyclerMethods[] = {{"next", CyclerNext}, {"reset", CyclerReset}};

std::span<const Method> MethodsOf(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return StringMethods();
    case Value::Kind::kDict:
      return kDictMethods;
    case Value::Kind::kList:
      return value.is_tuple() ? std::span<const Method>(kTupleMethods) : kListMethods;
    case Value::Kind::kBool:
    case Value::Kind::kInt:
      return kIntMethods;
    case Value::Kind::kFloat:
      return kFloatMethods;
    case Value::Kind::kObject:
      break;
    default:
      return {};
  }
  switch (value.object()->tag()) {
    case Object::Tag::kRange:
      return kTupleMethods;
    case Object::Tag::kLoop:
      return kLoopMethods;
    case Object::Tag::kCycler:
      return kCyclerMethods;
    default:
      return {};
  }
}

}  // namespace

const Method* FindMethod(const Value& value, std::string_view name) {
  const auto methods = MethodsOf(value);
  const auto it = std::lower_bound(methods.begin(), methods.end(), name,
                                   [](const Method& method, std::string_view n) { return method.name < n; });
  return it != methods.end() && it->name == name ? &*it : nullptr;
}

}  // namespace vllm::jinja

// The functions that every template can call: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
#include <chrono>
#include <clocale>
#include <ctime>

#include "base/limits.h"
#include "text/template/interpreter.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

Value RangeFunction(Interpreter& interpreter, Args& args) {
  const Arguments a("range", {.names = {"start", "stop", "step"}, .required = 1, .positional_only = true}, args);
  const bool one = !a.has(1);
  const auto need = [&](int index, Int otherwise) {
    if (!a.has(index)) return otherwise;
    if (!a[index].is_integral()) Fail("'", TypeName(a[index]), "' object cannot be interpreted as an integer");
    const Int value = a[index].integer();
    if (value > INT64_MAX || value < INT64_MIN) Fail("Python int too large for range()");
    return value;
  };
  const Int start = one ? 0 : need(0, 0), stop = one ? need(0, 0) : need(1, 0), step = need(2, 1);
  if (step == 0) Fail("range() arg 3 must not be zero");
  auto* range = interpreter.Make<Range>(start, stop, step);
  if (range->size() > base::kMaxTemplateRange) {
    Fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (", base::kMaxTemplateRange, ").");
  }
  return Value::FromObject(range);
}

// dict(mapping or pairs, **more)
Dict MakeDict(Interpreter& interpreter, std::string_view name, const Args& args) {
  Budget& budget = interpreter.budget();
  if (args.positional.size() > 1) Fail(name, " expected at most 1 argument, got ", args.positional.size());
  Dict dict;
  if (!args.positional.empty()) {
    const Value& given = args.positional[0];
    if (given.is_dict()) {
      dict = given.dict();
    } else {
      Iterator source(budget, given);
      for (Value pair; source.Next(pair);) {
        if (!IsIterable(pair)) Fail("cannot convert dictionary update sequence element to a sequence");
        std::vector<Value> both = Collect(budget, pair);
        if (both.size() != 2) Fail("dictionary update sequence element has length ", both.size(), "; 2 is required");
        budget.Bytes(sizeof(Dict::Entry) + 32);
        dict.Set(budget, std::move(both[0]), std::move(both[1]));
      }
    }
  }
  for (const auto& [key, value] : args.keywords) dict.Set(key, value);
  return dict;
}

Value DictFunction(Interpreter& interpreter, Args& args) {
  return NewDict(interpreter.budget(), MakeDict(interpreter, "dict", args));
}

Value NamespaceFunction(Interpreter& interpreter, Args& args) {
  auto* ns = interpreter.Make<Namespace>();
  ns->attributes = MakeDict(interpreter, "namespace", args);
  interpreter.budget().Bytes(static_cast<int64_t>(ns->attributes.size() * sizeof(Dict::Entry)));
  return Value::FromObject(ns);
}

Value CyclerFunction(Interpreter& interpreter, Args& args) {
  if (!args.keywords.empty()) Fail("cycler() got an unexpected keyword argument '", args.keywords[0].first, "'");
  if (args.positional.empty()) Fail("at least one item has to be provided");
  interpreter.budget().Bytes(static_cast<int64_t>(args.positional.size() * sizeof(Value)));
  return Value::FromObject(interpreter.Make<Cycler>(args.positional));
}

Value JoinerFunction(Interpreter& interpreter, Args& args) {
  const Arguments a("joiner", {.names = {"sep"}}, args);
  return Value::FromObject(interpreter.Make<Joiner>(a.get(0, Value::String(", "))));
}

Value RaiseException(Interpreter& interpreter, Args& args) {
  const Arguments a("raise_exception", {.names = {"message"}, .required = 1}, args);
  throw Failure{.message = ToStr(interpreter.budget(), a[0]), .verbatim = true};
}

Value StrftimeNow(Interpreter& interpreter, Args& args) {
  const Arguments a("strftime_now", {.names = {"format"}, .required = 1}, args);
  if (!a[0].is_string()) Fail("strftime() argument 1 must be str, not ", TypeName(a[0]));
  const auto now = interpreter.options().now.value_or(std::chrono::system_clock::now());
  const auto micros = std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>((micros - ((micros % 1000000) + 1000000) % 1000000) / 1000000);
  std::tm local{};
  localtime_r(&seconds, &local);
  // Python fills in %f, and leaves %z and %Z of a time without zone empty.
  std::string format;
  const std::string& given = a[0].text();
  if (given.size() > 4096) Fail("strftime_now: the format is longer than 4096 bytes");
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '%' || i + 1 >= given.size()) {
      format += given[i];
      continue;
    }
    const char kind = given[++i];
    if (kind == 'f') {
      const std::string digits = std::to_string(((micros % 1000000) + 1000000) % 1000000);
      format.append(6 - digits.size(), '0').append(digits);
    } else if (kind != 'z' && kind != 'Z') {
      format += '%';
      format += kind;
    }
  }
  if (format.empty()) return Value::String("");
  static const locale_t kPlain = newlocale(LC_ALL_MASK, "C", nullptr);
  std::string out;
  for (size_t size = format.size() + 256; size <= (size_t{1} << 22); size *= 4) {
    out.assign(size, '\0');
    const size_t length = strftime_l(out.data(), size, (format + ".").c_str(), &local, kPlain);  // never empty
    if (length == 0) continue;
    out.resize(length - 1);
    return NewString(interpreter.budget(), base::IsValidUtf8(out) ? out : base::ReplaceInvalidUtf8(out));
  }
  Fail("strftime_now: the result is too long");
}

Value Lipsum(Interpreter&, Args&) { Refuse("lipsum() is not supported"); }

}  // namespace

Object* FindGlobal(std::string_view name) {
  static Function functions[] = {
      {"range", RangeFunction},      {"dict", DictFunction},     {"namespace", NamespaceFunction},
      {"cycler", CyclerFunction},    {"joiner", JoinerFunction}, {"raise_exception", RaiseException},
      {"strftime_now", StrftimeNow}, {"lipsum", Lipsum},
  };
  for (Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

}  // namespace vllm::jinja

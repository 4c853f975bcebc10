// Filters on sequences and dicts. Those that are generators in jinja2 are lazy and can be read once here too.
#include <algorithm>
#include <memory>

#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

constexpr Signature kNone = {};

Value IgnoreCase(const Value& value) { return value.is_string() ? Value::String(ToLower(value.text())) : value; }

// A lazy reader of `value`, shared by the copies of a generator's function.
std::shared_ptr<Iterator> Reader(Interpreter& interpreter, const Value& value) {
  return std::make_shared<Iterator>(interpreter.budget(), value);
}

// Items with the keys they are ordered by, sorted stably as Python's sorted().
struct Keyed {
  Value key, item;
};

void SortKeyed(Budget& budget, std::vector<Keyed>& items, bool reverse) {
  const auto before = [&](const Keyed& a, const Keyed& b) {
    budget.Step();
    return reverse ? Less(budget, b.key, a.key) : Less(budget, a.key, b.key);
  };
  // A merge sort of our own: it stays in bounds whatever the comparison says.
  std::vector<Keyed> other(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size()), end = std::min(begin + 2 * width, items.size());
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        const bool take_right = right < end && (left >= middle || before(items[right], items[left]));
        other[out] = std::move(take_right ? items[right++] : items[left++]);
      }
    }
    items.swap(other);
  }
}

std::vector<Value> PathParts(Budget& budget, const Value& path) {
  std::vector<Value> parts;
  if (path.is_none()) return parts;
  if (!path.is_string()) return {path};
  for (const std::string_view part : SplitOn(path.text(), ".", -1)) {
    budget.Step();
    const bool number = AllIn(part, IsDigit);
    const auto index = number ? ParseInt(part, 10) : std::nullopt;
    parts.push_back(index ? Value::Integer(*index) : Value::String(std::string(part)));
  }
  return parts;
}

// make_attrgetter: an item, or what a path leads to in it, with a default for what is undefined on the way.
class Getter {
 public:
  Getter(Interpreter& interpreter, const Value& path, bool ignore_case, Value otherwise = Value())
      : interpreter_(interpreter),
        parts_(PathParts(interpreter.budget(), path)),
        ignore_case_(ignore_case),
        otherwise_(std::move(otherwise)) {}
  Value operator()(Value item) const {
    for (const Value& part : parts_) {
      item = interpreter_.Item(item, part);
      if (item.is_undefined() && !otherwise_.is_none()) item = otherwise_;
    }
    return ignore_case_ ? IgnoreCase(item) : item;
  }

 private:
  Interpreter& interpreter_;
  std::vector<Value> parts_;
  bool ignore_case_;
  Value otherwise_;
};

Value First(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("first", kNone, args);
  Iterator source(interpreter.budget(), value);
  Value item;
  return source.Next(item) ? item : Value::Undefined("No first item, sequence was empty.");
}

bool IsReversible(const Value& value) {
  return value.is_string() || value.is_sequence() || value.is_dict() || As<Range>(value) != nullptr ||
         As<View>(value) != nullptr;
}

Value Last(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("last", kNone, args);
  // reversed() of an Undefined asks its length, 0, and never reads an item.
  if (value.is_undefined()) return Value::Undefined("No last item, sequence was empty.");
  if (!IsReversible(value)) Fail("'", TypeName(value), "' object is not reversible");
  const int64_t length = LengthOf(value);
  if (length == 0) return Value::Undefined("No last item, sequence was empty.");
  if (value.is_dict()) return value.dict().entries().back().first;
  if (const auto* view = As<View>(value)) return view->At(static_cast<size_t>(length - 1));
  return interpreter.Item(value, Value::Integer(-1));
}

Value ListFilter(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("list", kNone, args);
  return NewList(interpreter.budget(), Collect(interpreter.budget(), value));
}

Value Reverse(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("reverse", kNone, args);
  if (!value.is_string() && !IsIterable(value)) Fail("argument must be iterable");
  std::vector<Value> items = Collect(interpreter.budget(), value);
  std::reverse(items.begin(), items.end());
  if (value.is_string()) {
    std::string out;
    for (const Value& item : items) out += item.text();
    return value.str().markup ? Value::Markup(std::move(out)) : NewString(interpreter.budget(), std::move(out));
  }
  if (!IsReversible(value) && !value.is_undefined()) return NewList(interpreter.budget(), std::move(items));
  auto rest = Reader(interpreter, NewList(interpreter.budget(), std::move(items)));
  return MakeGenerator(interpreter, [rest](Value& item) { return rest->Next(item); });
}

Value Join(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("join", {.names = {"d", "attribute"}}, args);
  Budget& budget = interpreter.budget();
  const std::string separator = ToStr(budget, a.get(0, Value::String("")));
  const Getter getter(interpreter, a.get(1, Value()), false);
  Iterator source(budget, value);
  std::string out;
  bool first = true;
  for (Value item; source.Next(item);) {
    if (!first) out += separator;
    first = false;
    AppendStr(budget, out, getter(item));
    budget.CheckString(static_cast<int64_t>(out.size()));
  }
  return NewString(budget, std::move(out));
}

Value Items(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("items", kNone, args);
  const bool fine = value.is_dict(), empty = value.is_undefined();
  const Value view = fine ? Value::FromObject(interpreter.Make<View>(View::What::kItems, value)) : Value();
  auto reader = fine ? Reader(interpreter, view) : nullptr;
  return MakeGenerator(interpreter, [reader, empty](Value& item) {
    if (empty) return false;
    if (reader == nullptr) Fail("Can only get item pairs from a mapping.");
    return reader->Next(item);
  });
}

Value DictSort(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("dictsort", {.names = {"case_sensitive", "by", "reverse"}}, args);
  Budget& budget = interpreter.budget();
  const std::string by = a.has(1) ? ToStr(budget, a[1]) : "key";
  if (by != "key" && by != "value") Fail("You can only sort by either \"key\" or \"value\"");
  RequireDefined(value);
  if (!value.is_dict()) Fail("'", TypeName(value), "' object has no attribute 'items'");
  std::vector<Keyed> sorted;
  for (const auto& [key, item] : value.dict().entries()) {
    const Value& chosen = by == "key" ? key : item;
    sorted.push_back({a.truthy(0, false) ? chosen : IgnoreCase(chosen), Value::Tuple({key, item})});
  }
  SortKeyed(budget, sorted, a.truthy(2, false));
  std::vector<Value> out;
  for (Keyed& entry : sorted) out.push_back(std::move(entry.item));
  return NewList(budget, std::move(out));
}

Value Sort(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("sort", {.names = {"reverse", "case_sensitive", "attribute"}}, args);
  Budget& budget = interpreter.budget();
  const bool ignore_case = !a.truthy(1, false);
  std::vector<Getter> getters;
  const Value path = a.get(2, Value());
  if (path.is_string()) {
    for (const std::string_view part : SplitOn(path.text(), ",", -1)) {
      getters.emplace_back(interpreter, Value::String(std::string(part)), ignore_case);
    }
  } else {
    getters.emplace_back(interpreter, path, ignore_case);
  }
  std::vector<Keyed> sorted;
  for (Value& item : Collect(budget, value)) {
    std::vector<Value> keys;
    for (const Getter& getter : getters) keys.push_back(getter(item));
    sorted.push_back({NewList(budget, std::move(keys)), std::move(item)});
  }
  SortKeyed(budget, sorted, a.truthy(0, false));
  std::vector<Value> out;
  for (Keyed& entry : sorted) out.push_back(std::move(entry.item));
  return NewList(budget, std::move(out));
}

Value Unique(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("unique", {.names = {"case_sensitive", "attribute"}}, args);
  struct State {
    Getter getter;
    Iterator source;
    Dict seen;
  };
  auto state = std::make_shared<State>(State{Getter(interpreter, a.get(1, Value()), !a.truthy(0, false)),
                                             Iterator(interpreter.budget(), value), Dict()});
  return MakeGenerator(interpreter, [&interpreter, state](Value& item) {
    while (state->source.Next(item)) {
      Value key = state->getter(item);
      if (state->seen.Find(interpreter.budget(), key) != nullptr) continue;
      interpreter.budget().Bytes(sizeof(Dict::Entry) + 32);
      state->seen.Set(interpreter.budget(), std::move(key), Value());
      return true;
    }
    return false;
  });
}

template <bool kMax>
Value Extreme(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a(kMax ? "max" : "min", {.names = {"case_sensitive", "attribute"}}, args);
  const Getter getter(interpreter, a.get(1, Value()), !a.truthy(0, false));
  Iterator source(interpreter.budget(), value);
  Value best, item;
  if (!source.Next(best)) return Value::Undefined("No aggregated item, sequence was empty.");
  Value best_key = getter(best);
  while (source.Next(item)) {
    Value key = getter(item);
    const bool better =
        kMax ? Less(interpreter.budget(), best_key, key, ">") : Less(interpreter.budget(), key, best_key, "<");
    if (!better) continue;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

Value GroupBy(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("groupby", {.names = {"attribute", "default", "case_sensitive"}, .required = 1}, args);
  Budget& budget = interpreter.budget();
  const bool sensitive = a.truthy(2, false);
  const Getter key_of(interpreter, a[0], !sensitive, a.get(1, Value())),
      shown(interpreter, a[0], false, a.get(1, Value()));
  std::vector<Keyed> sorted;
  for (Value& item : Collect(budget, value)) sorted.push_back({key_of(item), item});
  SortKeyed(budget, sorted, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < sorted.size();) {
    size_t end = begin;
    std::vector<Value> members;
    while (end < sorted.size() && Equal(budget, sorted[end].key, sorted[begin].key))
      members.push_back(sorted[end++].item);
    if (end == begin) members.push_back(sorted[end++].item);  // a key that does not equal itself
    Value key = sensitive ? sorted[begin].key : shown(members[0]);
    groups.push_back(Value::Grouped(std::move(key), NewList(budget, std::move(members))));
    begin = end;
  }
  return NewList(budget, std::move(groups));
}

Value Sum(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("sum", {.names = {"attribute", "start"}}, args);
  const Getter getter(interpreter, a.get(0, Value()), false);
  Value total = a.get(1, Value::Integer(0));
  if (total.is_string()) Fail("sum() can't sum strings [use ''.join(seq) instead]");
  Iterator source(interpreter.budget(), value);
  for (Value item; source.Next(item);)
    total = BinaryOperation(interpreter.budget(), Operator::kAdd, total, getter(item));
  return total;
}

Value Batch(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("batch", {.names = {"linecount", "fill_with"}, .required = 1}, args);
  const Value fill = a.get(1, Value());
  const Value count = a[0];
  auto source = Reader(interpreter, value);
  auto held = std::make_shared<std::vector<Value>>();
  auto ended = std::make_shared<bool>(false);
  return MakeGenerator(interpreter, [&interpreter, source, held, ended, fill, count](Value& row) {
    const double width = count.is_number() ? count.number() : -1;
    for (Value item; !*ended && source->Next(item);) {
      const bool full = static_cast<double>(held->size()) == width;
      if (full) {
        row = NewList(interpreter.budget(), std::exchange(*held, {item}));
        return true;
      }
      interpreter.budget().Bytes(sizeof(Value));
      held->push_back(std::move(item));
    }
    *ended = true;
    if (held->empty()) return false;
    if (!fill.is_none() && static_cast<double>(held->size()) < width) {
      const int64_t missing = ToIndex(count) - static_cast<int64_t>(held->size());
      interpreter.budget().Bytes(missing * static_cast<int64_t>(sizeof(Value)));
      held->resize(static_cast<size_t>(ToIndex(count)), fill);
    }
    row = NewList(interpreter.budget(), std::exchange(*held, {}));
    return true;
  });
}

Value SliceFilter(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("slice", {.names = {"slices", "fill_with"}, .required = 1}, args);
  struct State {
    Value source, slices, fill;
    std::vector<Value> items;
    int64_t number = -1, offset = 0;
  };
  auto state = std::make_shared<State>(State{.source = value, .slices = a[0], .fill = a.get(1, Value()), .items = {}});
  return MakeGenerator(interpreter, [&interpreter, state](Value& row) {
    Budget& budget = interpreter.budget();
    if (state->number < 0) state->items = Collect(budget, state->source);
    const int64_t slices = ToIndex(state->slices);
    if (slices == 0) Fail("integer division or modulo by zero");
    if (++state->number >= slices) return false;
    const int64_t length = static_cast<int64_t>(state->items.size());
    const int64_t per = length / slices, extra = length % slices;
    const int64_t start = state->offset + state->number * per;
    if (state->number < extra) ++state->offset;
    const int64_t end = state->offset + (state->number + 1) * per;
    std::vector<Value> items(state->items.begin() + start, state->items.begin() + end);
    if (!state->fill.is_none() && state->number >= extra) items.push_back(state->fill);
    row = NewList(budget, std::move(items));
    return true;
  });
}

std::string FilterName(const Value& name, std::string_view what) {
  if (!name.is_string()) Fail("No ", what, " named ", TypeName(name), ".");
  return name.text();
}

Value Map(Interpreter& interpreter, const Value& value, const Args& args) {
  struct State {
    Value value;
    Args args;
    std::shared_ptr<Iterator> source;
    std::optional<Getter> getter;
  };
  auto state = std::make_shared<State>(State{.value = value, .args = args, .source = nullptr, .getter = {}});
  return MakeGenerator(interpreter, [&interpreter, state](Value& item) {
    if (state->source == nullptr) {
      if (!Truthy(state->value)) return false;
      const Args& given = state->args;
      if (given.positional.empty() && !given.keywords.empty()) {
        const Arguments a("map", {.names = {"attribute", "default"}, .required = 1}, given);
        state->getter.emplace(interpreter, a[0], false, a.get(1, Value()));
      } else if (given.positional.empty()) {
        Fail("map requires a filter argument");
      }
      state->source = Reader(interpreter, state->value);
    }
    Value next;
    if (!state->source->Next(next)) return false;
    if (state->getter) {
      item = (*state->getter)(next);
      return true;
    }
    const Args rest{.positional = {state->args.positional.begin() + 1, state->args.positional.end()},
                    .keywords = state->args.keywords};
    item = interpreter.ApplyFilter(FilterName(state->args.positional[0], "filter"), next, rest);
    return true;
  });
}

template <bool kAttribute, bool kReject>
Value Select(Interpreter& interpreter, const Value& value, const Args& args) {
  struct State {
    Value value;
    Args args;
    std::shared_ptr<Iterator> source;
    std::optional<Getter> getter;
  };
  auto state = std::make_shared<State>(State{.value = value, .args = args, .source = nullptr, .getter = {}});
  return MakeGenerator(interpreter, [&interpreter, state](Value& item) {
    auto& positional = state->args.positional;
    if (state->source == nullptr) {
      if (!Truthy(state->value)) return false;
      if (kAttribute) {
        if (positional.empty()) Fail("Missing parameter for attribute name");
        state->getter.emplace(interpreter, positional[0], false);
        positional.erase(positional.begin());
      }
      state->source = Reader(interpreter, state->value);
    }
    while (state->source->Next(item)) {
      const Value tested = state->getter ? (*state->getter)(item) : item;
      bool passes = false;
      if (positional.empty()) {
        passes = Truthy(tested);
      } else {
        const Args rest{.positional = {positional.begin() + 1, positional.end()}, .keywords = state->args.keywords};
        passes = interpreter.ApplyTest(FilterName(positional[0], "test"), tested, rest);
      }
      if (passes != kReject) return true;
    }
    return false;
  });
}

constexpr FilterDef kFilters[] = {
    {"batch", Batch},
    {"dictsort", DictSort},
    {"first", First},
    {"groupby", GroupBy},
    {"items", Items},
    {"join", Join},
    {"last", Last},
    {"list", ListFilter},
    {"map", Map},
    {"max", Extreme<true>},
    {"min", Extreme<false>},
    {"reject", Select<false, true>},
    {"rejectattr", Select<true, true>},
    {"reverse", Reverse},
    {"select", Select<false, false>},
    {"selectattr", Select<true, false>},
    {"slice", SliceFilter},
    {"sort", Sort},
    {"sum", Sum},
    {"unique", Unique},
};

}  // namespace

std::span<const FilterDef> SequenceFilters() { return kFilters; }

}  // namespace vllm::jinja

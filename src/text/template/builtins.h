// The tables of filters, tests, methods and globals, and how their arguments are bound.
#pragma once
#include <array>
#include <span>
#include <string_view>

#include "text/template/objects.h"

namespace vllm::jinja {

constexpr int kMaxParameters = 6;

struct Signature {
  std::array<std::string_view, kMaxParameters> names = {};
  int required = 0;
  bool positional_only = false;
};

// Arguments matched to a signature.
class Arguments {
 public:
  // Fails as Python does on missing, surplus, repeated and unknown arguments.
  Arguments(std::string_view function, const Signature& signature, const Args& args);
  bool has(int index) const { return values_[static_cast<size_t>(index)] != nullptr; }
  const Value& operator[](int index) const { return *values_[static_cast<size_t>(index)]; }
  Value get(int index, Value otherwise) const { return has(index) ? (*this)[index] : std::move(otherwise); }
  bool truthy(int index, bool otherwise) const { return has(index) ? Truthy((*this)[index]) : otherwise; }
  // An int within int64; fails on anything else.
  int64_t integer(int index, int64_t otherwise) const;
  bool given(int index) const { return has(index) && !(*this)[index].is_none(); }  // and not None

 private:
  std::array<const Value*, kMaxParameters> values_ = {};
};

// An index or count as int64: an int or a bool, clamped.
int64_t ToIndex(const Value& value);

struct FilterDef {
  std::string_view name;
  Value (*body)(Interpreter&, const Value& value, const Args& args);
};
struct TestDef {
  std::string_view name;
  bool (*body)(Interpreter&, const Value& value, const Args& args);
};

const FilterDef* FindFilter(std::string_view name);  // null: there is none
bool IsRefusedFilter(std::string_view name);         // jinja2 has it, we do not
const TestDef* FindTest(std::string_view name);
Object* FindGlobal(std::string_view name);  // null: there is none

// The method of a value's type, or null.
const Method* FindMethod(const Value& value, std::string_view name);

Value ToJson(Budget& budget, const Value& value, const Args& args);
// A value that reads another one lazily.
Value MakeGenerator(Interpreter& interpreter, Generator::Next next);

// Parts of the filter table, by file.
std::span<const FilterDef> TextFilters();
std::span<const FilterDef> SequenceFilters();
std::span<const FilterDef> NumberFilters();
std::span<const Method> StringMethods();

}  // namespace vllm::jinja

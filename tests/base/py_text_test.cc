// Python's repr of numbers and lists.
#include "base/py_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace base {
namespace {

TEST(PyReprTest, WritesNumbersAsPython) {
  EXPECT_EQ(PyRepr(1.0), "1.0");
  EXPECT_EQ(PyRepr(0.1), "0.1");
  EXPECT_EQ(PyRepr(-0.0), "-0.0");
  EXPECT_EQ(PyRepr(0.0001), "0.0001");
  EXPECT_EQ(PyRepr(0.00001), "1e-05");
  EXPECT_EQ(PyRepr(1e15), "1000000000000000.0");
  EXPECT_EQ(PyRepr(1e16), "1e+16");
  EXPECT_EQ(PyRepr(1.7976931348623157e308), "1.7976931348623157e+308");
}

TEST(PyReprTest, WritesListsAsPython) {
  EXPECT_EQ(PyRepr(std::vector<int32_t>{}), "[]");
  EXPECT_EQ(PyRepr(std::vector<int32_t>{1, -2}), "[1, -2]");
  EXPECT_EQ(PyRepr(std::vector<std::string>{"a", "it's", "\"'", "\n\x01"}), R"(['a', "it's", '"\'', '\n\x01'])");
}

}  // namespace
}  // namespace base

// The content format of chat templates against vLLM's detection.
#include "text/template/content_format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/text/template/template_cases_util.h"

namespace vllm {
namespace {

TEST(ContentFormat, IsDetectedAsVllmDetectsIt) {
  const base::Json rows = ReadJson("detection.json");
  ASSERT_GT(rows.size(), 60u);
  int openai = 0;
  for (const auto& row : rows) {
    const bool named = row.contains("t");
    const std::string source = named ? ChatSource(row["t"]) : row["source"].get<std::string>();
    const auto compiled = JinjaTemplate::Parse(source);
    const ContentFormat format = compiled ? jinja::DetectContentFormat(compiled->tree()) : ContentFormat::kString;
    EXPECT_EQ(ContentFormatName(format), row["format"].get<std::string>()) << source;
    openai += format == ContentFormat::kOpenai;
  }
  EXPECT_GT(openai, 20);
  EXPECT_LT(openai, static_cast<int>(rows.size()) - 20);
}

TEST(ContentFormat, VariablesThatStandForEachOtherEndTheSearch) {
  const auto compiled = JinjaTemplate::Parse(
      "{% set a = messages %}{% set b = a %}{% set a = b %}{% for m in b %}{% for c in m.content %}{% endfor %}{% "
      "endfor %}");
  ASSERT_TRUE(compiled);
  EXPECT_EQ(jinja::DetectContentFormat(compiled->tree()), ContentFormat::kOpenai);
}

}  // namespace
}  // namespace vllm

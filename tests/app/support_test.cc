// The support table says what the registries say.
#include "app/support.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

std::string RowOf(const std::string& label) {
  const std::string table = SupportTable();
  const size_t at = table.find("| " + label);
  return at == std::string::npos ? "" : table.substr(at, table.find('\n', at) - at);
}

TEST(Support, NamesFamiliesInBothDialects) {
  EXPECT_NE(RowOf("model types").find("llama, mistral"), std::string::npos);
  EXPECT_NE(RowOf("architectures").find("gemma3"), std::string::npos);
}

TEST(Support, TellsFastFormatsFromRefusedOnes) {
  EXPECT_NE(RowOf("weights with fast").find("Q4_1"), std::string::npos);
  EXPECT_EQ(RowOf("weights that are refused").find("Q4_1"), std::string::npos);
  EXPECT_NE(RowOf("weights that are refused").find("IQ2_XXS"), std::string::npos);
}

TEST(Support, NamesTheAttentionBackends) {
  EXPECT_NE(RowOf("attention").find("CPU_ATTN, FLASH_ATTN"), std::string::npos);
}

}  // namespace
}  // namespace vllm

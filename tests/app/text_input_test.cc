// Files given on the command line are read whole or refused by name.
#include "app/text_input.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/result.h"

namespace vllm {
namespace {

TEST(TextInput, AFileIsReadAsItIs) {
  const std::string path = testing::TempDir() + "text_input.txt";
  std::ofstream(path, std::ios::binary) << "a\r\nb\xC3\xA9";
  EXPECT_EQ(ReadTextFile(path), "a\r\nb\xC3\xA9");
}

TEST(TextInput, AMissingFileIsNamed) {
  try {
    ReadTextFile("/nonexistent.txt");
    FAIL() << "no exception";
  } catch (const base::Exception& exception) {
    EXPECT_STREQ(exception.what(), "/nonexistent.txt: cannot be opened: No such file or directory");
  }
}

}  // namespace
}  // namespace vllm

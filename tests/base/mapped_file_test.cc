// Mapped files: content, refusals, and pages given back.
#include "base/mapped_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/result.h"

namespace base {
namespace {

std::string WriteTemporary(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string MessageOf(const std::string& path) {
  try {
    MappedFile::Open(path);
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "opened";
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const std::string path = WriteTemporary("mapped_content", std::string("a\0b", 3));
  const auto file = MappedFile::Open(path);
  ASSERT_EQ(file->bytes().size(), 3u);
  EXPECT_EQ(file->bytes()[2], std::byte{'b'});
  EXPECT_EQ(file->path(), path);
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  EXPECT_TRUE(MappedFile::Open(WriteTemporary("mapped_empty", ""))->bytes().empty());
}

TEST(MappedFile, AMissingFileIsRefusedWithTheSystemsReason) {
  EXPECT_EQ(MessageOf("/nonexistent/model.gguf"),
            "/nonexistent/model.gguf: cannot be opened: No such file or directory");
}

TEST(MappedFile, AFolderIsRefused) { EXPECT_EQ(MessageOf("/tmp"), "/tmp: is not a regular file"); }

TEST(MappedFile, ANamedPipeIsRefusedWithoutWaiting) {
  const std::string path = testing::TempDir() + "mapped_pipe";
  std::filesystem::remove(path);
  ASSERT_EQ(std::system(("mkfifo '" + path + "'").c_str()), 0);
  EXPECT_EQ(MessageOf(path), path + ": is not a regular file");
}

TEST(MappedFile, DroppedPagesReadTheSameAgain) {
  const std::string path = WriteTemporary("mapped_drop", std::string(20000, 'x'));
  const auto file = MappedFile::Open(path);
  file->Drop(file->bytes());
  EXPECT_EQ(file->bytes()[9999], std::byte{'x'});
}

TEST(MappedFile, APathOutsideAsciiOpens) {
  EXPECT_EQ(MappedFile::Open(WriteTemporary("m\xC3\xB6"
                                            "del \xE6\xA8\xA1",
                                            "1"))
                ->bytes()
                .size(),
            1u);
}

}  // namespace
}  // namespace base

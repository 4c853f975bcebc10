// Texts that the user hands over: a file, or standard input.
#include "app/text_input.h"

#include <cstdio>

#include "base/limits.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "base/strings.h"

namespace vllm {

std::string ReadTextFile(const std::string& path) {
  const auto file = base::MappedFile::Open(path);
  if (file->bytes().size() > base::kMaxTextFileBytes) {
    base::Throw(base::ErrorCode::kInvalidArgument, path, ": has ", base::HumanBytes(file->bytes().size()), ", at most ",
                base::HumanBytes(base::kMaxTextFileBytes));
  }
  return std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
}

std::string ReadStandardInput() {
  std::string text;
  char buffer[65536];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, count);
    if (text.size() > base::kMaxTextFileBytes) {
      base::Throw(base::ErrorCode::kInvalidArgument, "standard input: more than ",
                  base::HumanBytes(base::kMaxTextFileBytes));
    }
  }
  return text;
}

}  // namespace vllm

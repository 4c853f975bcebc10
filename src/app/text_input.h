// Texts that the user hands over: a file, or standard input.
#pragma once
#include <string>

namespace vllm {

// Whole content of a file. Throws base::Exception: kNotFound, or kInvalidArgument above base::kMaxTextFileBytes.
std::string ReadTextFile(const std::string& path);
// Standard input to its end, with the same bound.
std::string ReadStandardInput();

}  // namespace vllm

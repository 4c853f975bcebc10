// Writers of GGUF and safetensors files for tests.
#include "tests/load/model_files_util.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/strings.h"

namespace vllm::testing {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "vllm-test-XXXXXX").string();
  CHECK(::mkdtemp(pattern.data()) != nullptr, pattern);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempFolder::Write(std::string_view name, std::string_view bytes) const {
  const fs::path path = fs::path(path_) / name;
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  CHECK(file.good(), path.string());
  return path.string();
}

std::string Floats(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

namespace {

void PutString(std::string& out, std::string_view text) {
  Put(out, uint64_t{text.size()});
  out += text;
}

}  // namespace

void GgufWriter::AddString(std::string name, std::string_view value) {
  std::string bytes;
  Put(bytes, static_cast<uint32_t>(MetaType::kString));
  PutString(bytes, value);
  keys.emplace_back(std::move(name), std::move(bytes));
}

void GgufWriter::AddStrings(std::string name, std::span<const std::string> values) {
  std::string elements;
  for (const std::string& value : values) PutString(elements, value);
  AddArray(std::move(name), static_cast<uint32_t>(MetaType::kString), values.size(), elements);
}

void GgufWriter::AddArray(std::string name, uint32_t element_type, uint64_t count, std::string_view elements) {
  std::string bytes;
  Put(bytes, static_cast<uint32_t>(MetaType::kArray));
  Put(bytes, element_type);
  Put(bytes, count);
  bytes += elements;
  keys.emplace_back(std::move(name), std::move(bytes));
}

void GgufWriter::AddTensor(std::string name, std::vector<int64_t> shape, std::span<const float> values) {
  tensors.push_back({.name = std::move(name), .dims = {shape.rbegin(), shape.rend()}, .data = Floats(values)});
}

namespace {

std::string Header(const GgufWriter& writer) {
  std::string out = "GGUF";
  Put(out, writer.version);
  Put(out, writer.tensor_count < 0 ? writer.tensors.size() : static_cast<uint64_t>(writer.tensor_count));
  Put(out, writer.key_count < 0 ? writer.keys.size() : static_cast<uint64_t>(writer.key_count));
  for (const auto& [name, value] : writer.keys) {
    PutString(out, name);
    out += value;
  }
  uint64_t at = 0;
  for (const GgufWriter::Tensor& tensor : writer.tensors) {
    PutString(out, tensor.name);
    Put(out, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t extent : tensor.dims) Put(out, extent);
    Put(out, tensor.type);
    Put(out, tensor.offset < 0 ? at : static_cast<uint64_t>(tensor.offset));
    at += (tensor.data.size() + writer.alignment - 1) / writer.alignment * writer.alignment;
  }
  return out;
}

void Pad(std::string& out, uint64_t alignment) { out.resize((out.size() + alignment - 1) / alignment * alignment); }

}  // namespace

size_t GgufWriter::HeaderBytes() const { return Header(*this).size(); }

std::string GgufWriter::Bytes() const {
  std::string out = Header(*this);
  Pad(out, alignment);
  const size_t begin = out.size();
  for (const Tensor& tensor : tensors) {
    out += tensor.data;
    out.resize(begin + (out.size() - begin + alignment - 1) / alignment * alignment);
  }
  return out;
}

GgufWriter SmallModel() {
  GgufWriter out;
  out.AddString("general.architecture", "llama");
  out.AddNumber("general.alignment", MetaType::kU32, uint32_t{32});
  out.AddNumber("llama.block_count", MetaType::kU32, uint32_t{2});
  out.AddNumber("llama.embedding_length", MetaType::kU32, uint32_t{16});
  out.AddNumber("llama.attention.layer_norm_rms_epsilon", MetaType::kF32, 1e-6f);
  const std::vector<std::string> tokens = {"a", "b", "漢", ""};
  out.AddStrings("tokenizer.ggml.tokens", tokens);
  out.AddNumber("tokenizer.ggml.add_bos_token", MetaType::kBool, uint8_t{1});
  float next = 0;
  const auto fill = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = next += 0.25f;
    return values;
  };
  out.AddTensor("token_embd.weight", {4, 16}, fill(64));
  out.AddTensor("output_norm.weight", {16}, fill(16));
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = base::StrCat("blk.", layer, ".");
    out.AddTensor(prefix + "attn_norm.weight", {16}, fill(16));
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
      out.AddTensor(prefix + name + ".weight", {16, 16}, fill(256));
    }
    out.AddTensor(prefix + "ffn_up.weight", {48, 16}, fill(768));
    out.AddTensor(prefix + "ffn_down.weight", {16, 48}, fill(768));
  }
  return out;
}

std::string SafetensorsBytes(std::string_view header, std::string_view data) {
  std::string out;
  Put(out, uint64_t{header.size()});
  out += header;
  return out += data;
}

std::string SafetensorsBytes(std::span<const SafetensorsTensor> tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})", data;
  for (const SafetensorsTensor& tensor : tensors) {
    std::string shape;
    for (const int64_t extent : tensor.shape) shape += base::StrCat(shape.empty() ? "" : ",", extent);
    header += base::StrCat(",\"", tensor.name, "\":{\"dtype\":\"", tensor.dtype, "\",\"shape\":[", shape,
                           "],\"data_offsets\":[", data.size(), ",", data.size() + tensor.data.size(), "]}");
    data += tensor.data;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return SafetensorsBytes(header, data);
}

}  // namespace vllm::testing

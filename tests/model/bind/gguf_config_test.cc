// A GGUF file gives the same model as the checkpoint that it was converted from, and keys that nobody knows are
// refused.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/loaded_model.h"
#include "model/reference.h"
#include "tests/load/model_files_util.h"
#include "tests/model/tiny_model_util.h"

namespace vllm {
namespace {

using namespace testing;

std::vector<float> FloatsOf(const TensorInfo& tensor) {
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

// What GGUF converters do to Llama's q and k: the two halves of each head interleaved, row by row.
std::vector<float> Interleaved(const std::vector<float>& rows, int64_t count, int heads) {
  const int64_t width = static_cast<int64_t>(rows.size()) / count, dim = count / heads, half = dim / 2;
  std::vector<float> out(rows.size());
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t i = 0; i < dim; ++i) {
      const int64_t to = head * dim + (i < half ? 2 * i : 2 * (i - half) + 1);
      std::copy_n(rows.begin() + (head * dim + i) * width, width, out.begin() + to * width);
    }
  return out;
}

// The keys that a converter writes for a configuration of the tests.
void AddKeys(GgufWriter& out, const std::string& arch, const Config& c) {
  out.AddString("general.architecture", arch);
  const auto number = [&](const char* gguf, const char* hf) {
    if (const auto value = c.find<int64_t>(hf))
      out.AddNumber(arch + "." + gguf, MetaType::kU32, static_cast<uint32_t>(*value));
  };
  const auto real = [&](const char* gguf, const char* hf) {
    if (const auto value = c.find<double>(hf))
      out.AddNumber(arch + "." + gguf, MetaType::kF32, static_cast<float>(*value));
  };
  number("context_length", "max_position_embeddings");
  number("embedding_length", "hidden_size");
  number("block_count", "num_hidden_layers");
  number("feed_forward_length", "intermediate_size");
  number("attention.head_count", "num_attention_heads");
  number("attention.head_count_kv", "num_key_value_heads");
  number("attention.key_length", "head_dim");
  number("attention.value_length", "head_dim");
  if (arch == "gemma2") number("attention.sliding_window", "sliding_window");
  real("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  real("attn_logit_softcapping", "attn_logit_softcapping");
  real("final_logit_softcapping", "final_logit_softcapping");
  out.AddNumber(arch + ".rope.freq_base", MetaType::kF32, 10000.0f);
  std::vector<std::string> tokens;
  for (int id = 0; id < kTinyVocab; ++id) tokens.push_back("t" + std::to_string(id));
  out.AddStrings("tokenizer.ggml.tokens", tokens);
}

// A tiny checkpoint as the GGUF file that a converter makes of it.
GgufWriter Convert(const LoadedModel& model, const std::string& arch) {
  const Family& family = FindGgufFamily(arch, "test");
  GgufWriter out;
  AddKeys(out, arch, model.checkpoint().config);
  for (const Role& role : RolesOf(model.spec())) {
    const PartName& hf = FindPartName(role.part, family.hf_names, DefaultHfNames());
    const PartName& gguf = FindPartName(role.part, family.gguf_names, DefaultGgufNames());
    const TensorInfo* tensor = model.checkpoint().Find(TensorName(hf, role.layer));
    CHECK(tensor != nullptr, TensorName(hf, role.layer));
    std::vector<float> values = FloatsOf(*tensor);
    if (arch == "llama" && (role.part == Part::kQ || role.part == Part::kK))
      values = Interleaved(values, role.n, role.heads);
    if (role.one_plus)
      for (float& value : values) value += 1;
    out.AddTensor(TensorName(gguf, role.layer), tensor->shape, values);
  }
  return out;
}

// Converts and loads; both models' logits.
void ExpectSameLogits(const std::string& folder, const std::string& arch) {
  const auto hf = LoadedModel::FromModelDir(folder);
  const TempFolder temp;
  const auto gguf = LoadedModel::FromModelDir(temp.Write("model.gguf", Convert(*hf, arch).Bytes()));
  const std::vector<int32_t> tokens = TinyTokens();
  const std::vector<float> expected = ReferenceLogits(hf->spec(), hf->bindings(), tokens);
  const std::vector<float> logits = ReferenceLogits(gguf->spec(), gguf->bindings(), tokens);
  ASSERT_EQ(logits.size(), expected.size());
  for (size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 1e-4) << i;
}

TEST(GgufConfigTest, LlamasInterleavedRowsGiveTheCheckpointsLogits) {
  ExpectSameLogits(WriteTinyModel("llama"), "llama");
}

TEST(GgufConfigTest, QwensRowsAndBiasesStayInOrder) { ExpectSameLogits(WriteTinyModel("qwen2"), "qwen2"); }

TEST(GgufConfigTest, AMissingOutputMatrixMeansATiedHead) { ExpectSameLogits(WriteTinyModel("qwen3"), "qwen3"); }

TEST(GgufConfigTest, GemmasNormsHoldTheOneAlready) {
  const std::string folder = WriteTinyModel("gemma2");
  nlohmann::json config = nlohmann::json::parse(std::ifstream(folder + "/config.json"));
  config["query_pre_attn_scalar"] = config.at("head_dim");  // the file cannot say otherwise
  std::ofstream(folder + "/config.json") << config;
  ExpectSameLogits(folder, "gemma2");
}

base::Error Refusal(const GgufWriter& writer) {
  const TempFolder temp;
  const std::string path = temp.Write("model.gguf", writer.Bytes());
  return ErrorOf([&] { LoadedModel::FromModelDir(path); });
}

TEST(GgufConfigTest, AKeyThatNobodyKnowsIsRefused) {
  GgufWriter writer = Convert(*LoadedModel::FromModelDir(WriteTinyModel("llama")), "llama");
  writer.AddNumber("llama.residual_scale", MetaType::kF32, 0.5f);
  EXPECT_EQ(Refusal(writer).code, base::ErrorCode::kUnsupported);
  EXPECT_NE(Refusal(writer).message.find("metadata key 'llama.residual_scale' is not known"), std::string::npos);
}

TEST(GgufConfigTest, WithoutTokensTheVocabularyIsUnknown) {
  GgufWriter writer = Convert(*LoadedModel::FromModelDir(WriteTinyModel("llama")), "llama");
  std::erase_if(writer.keys, [](const auto& key) { return key.first == "tokenizer.ggml.tokens"; });
  EXPECT_NE(Refusal(writer).message.find("tokenizer.ggml.tokens is missing"), std::string::npos);
}

TEST(GgufConfigTest, AnImpossibleSizeIsTold) {
  GgufWriter writer = Convert(*LoadedModel::FromModelDir(WriteTinyModel("llama")), "llama");
  std::erase_if(writer.keys, [](const auto& key) { return key.first == "llama.block_count"; });
  writer.AddNumber("llama.block_count", MetaType::kU32, uint32_t{1} << 31);
  EXPECT_NE(Refusal(writer).message.find("num_hidden_layers"), std::string::npos) << Refusal(writer).message;
}

TEST(GgufConfigTest, AnArchitectureThatIsNotServedIsTold) {
  GgufWriter writer;
  writer.AddString("general.architecture", "rwkv7");
  writer.AddTensor("token_embd.weight", {1}, std::vector<float>{0});
  EXPECT_NE(Refusal(writer).message.find("general.architecture 'rwkv7' is not served; served: llama"),
            std::string::npos)
      << Refusal(writer).message;
}

TEST(GgufConfigTest, ARopeNarrowerThanTheHeadIsPartial) {
  GgufWriter writer = Convert(*LoadedModel::FromModelDir(WriteTinyModel("llama")), "llama");
  writer.AddNumber("llama.rope.dimension_count", MetaType::kU32, uint32_t{8});
  const TempFolder temp;
  const auto model = LoadedModel::FromModelDir(temp.Write("model.gguf", writer.Bytes()));
  EXPECT_EQ(std::get<spec::Attention>(model->spec().layers[0].subs[0].op).rope.dim, 8);
}

TEST(GgufConfigTest, YarnIsReadFromTheFile) {
  GgufWriter writer = Convert(*LoadedModel::FromModelDir(WriteTinyModel("llama")), "llama");
  writer.AddString("llama.rope.scaling.type", "yarn");
  writer.AddNumber("llama.rope.scaling.factor", MetaType::kF32, 4.0f);
  writer.AddNumber("llama.rope.scaling.original_context_length", MetaType::kU32, uint32_t{64});
  const TempFolder temp;
  const auto model = LoadedModel::FromModelDir(temp.Write("model.gguf", writer.Bytes()));
  const spec::RopeScaling& scaling = std::get<spec::Attention>(model->spec().layers[0].subs[0].op).rope.scaling;
  EXPECT_EQ(scaling.kind, spec::RopeScaling::Kind::kYarn);
  EXPECT_EQ(scaling.factor, 4);
  EXPECT_EQ(scaling.original_max_position, 64);
}

}  // namespace
}  // namespace vllm

// Opening models by path: what a path may be, what is refused before weights are opened, and paths of every spelling.
#include "load/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <clocale>
#include <cstring>

#include "base/strings.h"
#include "tests/load/model_files_util.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;
using testing::ErrorOf;
using testing::SafetensorsTensor;
using testing::SmallModel;
using testing::TempFolder;

std::string Weights(std::string dtype = "F32") {
  const std::vector<SafetensorsTensor> tensors = {{"w", std::move(dtype), {1}, std::string(4, 'x')}};
  return testing::SafetensorsBytes(tensors);
}

std::string Message(const std::string& path) {
  const std::string message = ErrorOf([&] { LoadCheckpoint(path); }).message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

void ExpectContains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(Checkpoint, AnHfFolderGivesConfigGenerationConfigAndTensors) {
  const TempFolder folder;
  folder.Write("config.json", R"({"model_type": "llama"})");
  folder.Write("model.safetensors", Weights());
  EXPECT_TRUE(LoadCheckpoint(folder.path()).generation_config.empty());
  folder.Write("generation_config.json", R"({"temperature": 0.5})");
  const Checkpoint checkpoint = LoadCheckpoint(folder.path());
  EXPECT_EQ(checkpoint.dialect, Checkpoint::Dialect::kHf);
  EXPECT_EQ(checkpoint.config.need<std::string>("model_type"), "llama");
  EXPECT_EQ(checkpoint.generation_config.need<double>("temperature"), 0.5);
  EXPECT_EQ(checkpoint.tensor_bytes(), 4u);
  ASSERT_NE(checkpoint.Find("w"), nullptr);
  EXPECT_EQ(checkpoint.Find("w")->name, "w");
  EXPECT_EQ(checkpoint.Find("v"), nullptr);
  EXPECT_EQ(checkpoint.Meta("w"), nullptr);
}

TEST(Checkpoint, AGgufFileGivesMetadataAndTensorsWhateverItsName) {
  const TempFolder folder;
  for (const char* name : {"m.gguf", "blob"}) {
    const Checkpoint checkpoint = LoadCheckpoint(folder.Write(name, SmallModel().Bytes()));
    EXPECT_EQ(checkpoint.dialect, Checkpoint::Dialect::kGguf);
    EXPECT_EQ(checkpoint.config.need<int>("llama.block_count"), 2);
    ASSERT_NE(checkpoint.Meta("general.architecture"), nullptr);
    ASSERT_NE(checkpoint.Find("output_norm.weight"), nullptr);
    EXPECT_EQ(checkpoint.Find("output_norm.weight")->shape, (std::vector<int64_t>{16}));
    EXPECT_NO_THROW(checkpoint.RequireServed(checkpoint.tensors[0]));
  }
}

TEST(Checkpoint, AMovedCheckpointStillFindsItsTensors) {
  const TempFolder folder;
  Checkpoint first = LoadCheckpoint(folder.Write("m.gguf", SmallModel().Bytes()));
  const Checkpoint second = std::move(first);
  ASSERT_NE(second.Find("blk.1.attn_q.weight"), nullptr);
  EXPECT_EQ(second.Find("blk.1.attn_q.weight")->name, "blk.1.attn_q.weight");
}

TEST(Checkpoint, AFolderWithOneGgufModelIsThatModel) {
  const TempFolder folder;
  folder.Write("m.gguf", SmallModel().Bytes());
  EXPECT_EQ(LoadCheckpoint(folder.path()).path, folder.path() + "/m.gguf");
  folder.Write("config.json", "{}");  // as some repositories of GGUF files have
  EXPECT_EQ(LoadCheckpoint(folder.path()).dialect, Checkpoint::Dialect::kGguf);
  folder.Write("n.gguf", SmallModel().Bytes());
  ExpectContains(Message(folder.path()), ": holds 2 GGUF models; give the path of one: m.gguf, n.gguf");
}

TEST(Checkpoint, APathThatIsNeitherIsRefusedWithTheLoadersWords) {
  const TempFolder folder;
  ExpectContains(Message("/no/such/model"), "model path is not a directory: /no/such/model does not exist");
  EXPECT_EQ(ErrorOf([] { LoadCheckpoint("/no/such/model"); }).code, base::ErrorCode::kNotFound);
  ExpectContains(Message(""), "model path is not a directory: ''");
  ExpectContains(Message(folder.Write("notes.txt", "hello")), "model path is not a directory: ");
  ExpectContains(Message(folder.Write("empty", "")), "is not a GGUF file either");
  ExpectContains(Message(folder.Write("model.safetensors", Weights())), "is one file of a model; give the folder");
  ExpectContains(Message("/dev/null"), "is neither a folder nor a file");
  ASSERT_EQ(::mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  ExpectContains(Message(folder.path() + "/pipe"), "is neither a folder nor a file");
}

TEST(Checkpoint, AFolderWithoutAModelIsRefused) {
  const TempFolder folder;
  ExpectContains(Message(folder.path()), "holds neither config.json nor a .gguf file");
  folder.Write("config.json", "{}");
  ExpectContains(Message(folder.path()), "holds no weights");
}

TEST(Checkpoint, PicklesAndAdaptersAreRefusedByName) {
  const TempFolder pickle;
  pickle.Write("config.json", "{}");
  pickle.Write("pytorch_model.bin", "x");
  ExpectContains(Message(pickle.path()), "pytorch_model.bin: is a pickle");
  ExpectContains(Message(pickle.path() + "/pytorch_model.bin"), ": is a pickle");
  const TempFolder adapter;
  adapter.Write("adapter_config.json", "{}");
  adapter.Write("adapter_model.safetensors", Weights());
  ExpectContains(Message(adapter.path()), ": is an adapter (adapter_config.json), not a model");
}

TEST(Checkpoint, QuantizationSchemesAreRefusedBeforeWeightsAreOpened) {
  const TempFolder folder;
  folder.Write("model.safetensors", "not even a header");
  folder.Write("config.json", R"({"quantization_config": {"quant_method": "awq", "bits": 4}})");
  ExpectContains(Message(folder.path()), "/config.json: quantization_config.quant_method 'awq' is not supported yet");
  folder.Write("config.json", R"({"compression_config": {}})");
  ExpectContains(Message(folder.path()), "compression_config.quant_method '(unnamed)' is not supported yet");
  folder.Write("config.json", R"({"quantization_config": null})");
  ExpectContains(Message(folder.path()), "model.safetensors: header length");
}

TEST(Checkpoint, AnUnservedDtypeIsRefusedWhereItIsUsed) {
  const TempFolder folder;
  folder.Write("config.json", "{}");
  for (const char* dtype : {"I32", "U32"}) {
    folder.Write("model.safetensors", Weights(dtype));
    const Checkpoint checkpoint = LoadCheckpoint(folder.path());
    ExpectContains(
        ErrorOf([&] { checkpoint.RequireServed(checkpoint.tensors[0]); }).message,
        base::StrCat("model.safetensors: tensor 'w' has dtype ", dtype, ", which is not supported for weights"));
  }
}

TEST(Checkpoint, PathsOfEverySpellingLoad) {
  ASSERT_STREQ(std::setlocale(LC_ALL, "C"), "C");
  const TempFolder folder;
  const std::vector<std::string> names = {
      "модели/漢字 é/🦙 m.gguf", "with space/m.gguf", "100%/#1/m.gguf",       "new\nline/m.gguf",
      "e\xCC\x81/m.gguf",        "a'b\"c/m.gguf",     "not-utf8-\xff/m.gguf", std::string(245, 'l') + ".gguf"};
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string path = folder.Write(name, SmallModel().Bytes());
    EXPECT_EQ(LoadCheckpoint(path).path, path);
    EXPECT_EQ(LoadCheckpoint(path).tensors.size(), 16u);
  }
}

TEST(Checkpoint, AnHfFolderOfEverySpellingLoads) {
  const TempFolder folder;
  for (const std::string name : {"модели/漢字 é/🦙", "with space", "100%#", "new\nline", "e\xCC\x81"}) {
    SCOPED_TRACE(name);
    folder.Write(name + "/config.json", "{}");
    folder.Write(name + "/model.safetensors", Weights());
    EXPECT_EQ(LoadCheckpoint(folder.path() + "/" + name).tensors.size(), 1u);
  }
}

TEST(Checkpoint, ErrorsShowOddPathsAsOneLineOfValidUtf8) {
  const TempFolder folder;
  const std::string path = folder.Write("new\nline \xff 漢/m.gguf", "x");
  const std::string message = Message(path);
  ExpectContains(message, "/new\\nline \xEF\xBF\xBD 漢/m.gguf: ");
  EXPECT_TRUE(base::IsValidUtf8(message));
  ExpectContains(Message(folder.path() + "/a\nb"), "/a\\nb does not exist");
}

}  // namespace
}  // namespace vllm

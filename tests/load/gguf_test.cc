// GGUF files: what is read from good ones, and one-line refusals of damaged and hostile ones.
#include "load/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/check.h"
#include "base/strings.h"
#include "load/gguf_split.h"
#include "tests/load/model_files_util.h"

namespace vllm {
namespace {

using testing::ErrorOf;
using testing::GgufWriter;
using testing::Put;
using testing::SmallModel;
using testing::TempFolder;

std::shared_ptr<const GgufFile> FromText(std::string_view bytes) {
  return GgufFile::FromBytes(std::as_bytes(std::span(bytes)), "m.gguf");
}

// Refused with one line that starts with the file's name and holds `part`.
void ExpectRefused(std::string_view bytes, std::string_view part) {
  const base::Error error = ErrorOf([&] { FromText(bytes); });
  EXPECT_TRUE(error.message.starts_with("m.gguf: ")) << error.message;
  EXPECT_NE(error.message.find(part), std::string::npos) << "'" << part << "' is not in: " << error.message;
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
}
void ExpectRefused(const GgufWriter& writer, std::string_view part) { ExpectRefused(writer.Bytes(), part); }

TEST(Gguf, AGoodFileGivesItsKeysShapesAndBytes) {
  const TempFolder folder;
  const auto file = GgufFile::Open(folder.Write("m.gguf", SmallModel().Bytes()));
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->metadata().size(), 7u);
  EXPECT_EQ(file->Meta("general.architecture")->AsString(), "llama");
  EXPECT_EQ(file->Meta("llama.block_count")->AsInt(), 2);
  EXPECT_EQ(file->Meta("tokenizer.ggml.add_bos_token")->AsBool(), true);
  EXPECT_EQ(file->Meta("tokenizer.ggml.tokens")->AsStrings(), (std::vector<std::string_view>{"a", "b", "漢", ""}));
  EXPECT_EQ(file->Meta("llama.no_such_key"), nullptr);
  ASSERT_EQ(file->tensors().size(), 16u);
  const TensorInfo& up = file->tensors()[7];
  EXPECT_EQ(up.name, "blk.0.ffn_up.weight");
  EXPECT_EQ(up.shape, (std::vector<int64_t>{48, 16}));
  EXPECT_EQ(up.format, vt::FormatId::kF32);
  EXPECT_EQ(up.dtype, "F32");
  EXPECT_EQ(up.data.size(), 48u * 16 * 4);
  float first = 0;
  std::memcpy(&first, up.data.data(), sizeof first);
  EXPECT_EQ(first, (64 + 16 + 16 + 4 * 256 + 1) * 0.25f);
}

TEST(Gguf, GgufPyWritesWhatWeRead) {
  std::ifstream expected(VLLM_SOURCE_DIR "/tests/data/load/gguf_py.txt");
  ASSERT_TRUE(expected.good());
  const auto file = GgufFile::Open(VLLM_SOURCE_DIR "/tests/data/load/gguf_py.gguf");
  std::ostringstream out;
  for (const MetaValue& value : file->metadata()) {
    out << "key " << value.key << ' ' << static_cast<int>(value.type) << ' ' << value.is_array << ' ' << value.count;
    if (const auto text = value.AsString()) out << ' ' << *text;
    if (const auto boolean = value.AsBool()) out << ' ' << *boolean;
    if (const auto integer = value.AsInt()) out << ' ' << *integer;
    if (const auto strings = value.AsStrings()) {
      for (const auto text : *strings) out << ' ' << text;
    }
    if (const auto integers = value.AsInts()) {
      for (const int64_t integer : *integers) out << ' ' << integer;
    }
    out << '\n';
  }
  for (const TensorInfo& tensor : file->tensors()) {
    out << "tensor " << tensor.name << ' ' << tensor.dtype;
    for (const int64_t extent : tensor.shape) out << ' ' << extent;
    uint32_t sum = 0;
    for (const std::byte byte : tensor.data) sum = sum * 31 + std::to_integer<uint32_t>(byte);
    out << " bytes " << tensor.data.size() << " hash " << sum << '\n';
  }
  std::stringstream text;
  text << expected.rdbuf();
  EXPECT_EQ(out.str(), text.str());
}

TEST(Gguf, VersionTwoIsReadToo) {
  GgufWriter writer = SmallModel();
  writer.version = 2;
  EXPECT_EQ(FromText(writer.Bytes())->version(), 2u);
}

TEST(Gguf, AFileCutAnywhereIsRefused) {
  const GgufWriter writer = SmallModel();
  const std::string good = writer.Bytes();
  for (const size_t length : {size_t{0}, size_t{3}, size_t{4}, size_t{23}, writer.HeaderBytes() - 1, good.size() - 1}) {
    SCOPED_TRACE(length);
    ExpectRefused(good.substr(0, length), length == 0 ? "is empty" : "truncated");
  }
  for (size_t length = 1; length < good.size(); ++length) {
    ASSERT_NE(ErrorOf([&] { FromText(std::string_view(good).substr(0, length)); }).message, "") << length;
  }
}

TEST(Gguf, WrappingAndEmptyDimensionsAreRefused) {
  const auto with_dims = [](std::vector<uint64_t> dims) {
    GgufWriter writer = SmallModel();
    writer.tensors[1].dims = std::move(dims);
    return writer;
  };
  ExpectRefused(with_dims({uint64_t{1} << 62, 8}), "tensor 'output_norm.weight': its dimensions multiply");
  ExpectRefused(with_dims({(uint64_t{1} << 63) - 1, 2}), "its dimensions multiply");
  ExpectRefused(with_dims({8, uint64_t{1} << 62, 8}), "its dimensions multiply");
  ExpectRefused(with_dims({16, 0}), "dimension 1 is 0");
  ExpectRefused(with_dims({0}), "dimension 0 is 0");
  ExpectRefused(with_dims({UINT64_MAX}), "dimension 0 is 18446744073709551615");
  ExpectRefused(with_dims({(uint64_t{1} << 62) - 1}), "its dimensions multiply");
  ExpectRefused(with_dims({uint64_t{1} << 60}), "do not fit into the data section");
}

TEST(Gguf, OffsetsBesideTheDataAreRefused) {
  const auto with_offset = [](int64_t offset) {
    GgufWriter writer = SmallModel();
    writer.tensors[1].offset = offset;
    return writer;
  };
  std::string wrapping = with_offset(1).Bytes();
  const auto size = static_cast<int64_t>(wrapping.size());
  ExpectRefused(with_offset(1), "offset 1 is not a multiple of the alignment 32");
  ExpectRefused(with_offset((size + 31) / 32 * 32), "do not fit into the data section");
  ExpectRefused(with_offset(0), "'token_embd.weight' and 'output_norm.weight' overlap");
  // 2^64 - 32 cannot be given as an int64, so it is written over the small one.
  GgufWriter writer = SmallModel();
  writer.tensors.resize(1);
  std::string bytes = writer.Bytes();
  const uint64_t offset = ~uint64_t{31};
  std::memcpy(bytes.data() + writer.HeaderBytes() - 8, &offset, 8);
  ExpectRefused(bytes, "at offset 18446744073709551584 do not fit");
}

TEST(Gguf, AbsurdCountsAreRefusedBeforeAnythingIsAllocated) {
  for (const int64_t count : {int64_t{1} << 60, INT64_MAX}) {
    GgufWriter writer = SmallModel();
    writer.tensor_count = count;
    ExpectRefused(writer, "tensor count");
  }
  std::string bytes = SmallModel().Bytes();
  const uint64_t all = UINT64_MAX, keys = uint64_t{1} << 61;
  std::memcpy(bytes.data() + 8, &all, 8);
  ExpectRefused(bytes, "tensor count 18446744073709551615 is above the limit");
  bytes = SmallModel().Bytes();
  std::memcpy(bytes.data() + 16, &keys, 8);
  ExpectRefused(bytes, "key count 2305843009213693952 is above the limit");
  GgufWriter many;
  many.tensor_count = 1000;
  ExpectRefused(many, "tensor count 1000 does not fit");
}

TEST(Gguf, AbsurdStringAndArrayLengthsAreRefused) {
  std::string length;
  Put(length, static_cast<uint32_t>(MetaType::kString));
  Put(length, uint64_t{1} << 63);
  GgufWriter writer = SmallModel();
  writer.keys.emplace_back("long", length + "x");
  ExpectRefused(writer, "the value of key 'long' needs 9223372036854775808 bytes");
  for (const MetaType type : {MetaType::kU8, MetaType::kF64, MetaType::kString}) {
    GgufWriter array = SmallModel();
    array.AddArray("many", static_cast<uint32_t>(type), uint64_t{1} << 62, "");
    ExpectRefused(array, "the value of key 'many' needs 4611686018427387904");
  }
  std::string name = "GGUF";
  for (const uint64_t word : {uint64_t{1}, uint64_t{1}}) Put(name, word);
  GgufWriter empty_name = SmallModel();
  empty_name.keys[0].first = "";
  ExpectRefused(empty_name, "a key's name at byte 24 is empty");
  GgufWriter long_name = SmallModel();
  long_name.tensors[0].name = std::string(2000, 'x');
  ExpectRefused(long_name, "is 2000 bytes long");
}

TEST(Gguf, UnknownTypesAndRanksAreRefused) {
  GgufWriter writer = SmallModel();
  std::string bad;
  Put(bad, uint32_t{13});
  Put(bad, uint64_t{0});
  writer.keys.emplace_back("odd", bad);
  ExpectRefused(writer, "key 'odd' has type 13");
  writer = SmallModel();
  writer.AddArray("odd", 13, 1, "x");
  ExpectRefused(writer, "key 'odd' has type 13");
  writer = SmallModel();
  writer.tensors[0].type = 255;
  ExpectRefused(writer, "tensor 'token_embd.weight': type 255 is unknown");
  writer.tensors[0].type = 4;  // Q4_2, withdrawn
  ExpectRefused(writer, "type 4 is unknown or no longer in use");
  writer = SmallModel();
  writer.tensors[0].dims = {1, 1, 1, 1, 64};
  ExpectRefused(writer, "has 5 dimensions");
  writer.tensors[0].dims = {};
  ExpectRefused(writer, "has 0 dimensions");
}

TEST(Gguf, OtherVersionsAndByteOrdersAreNamed) {
  GgufWriter writer = SmallModel();
  for (const uint32_t version : {0u, 1u, 4u}) {
    writer.version = version;
    ExpectRefused(writer, base::StrCat("version ", version, " of GGUF is not supported"));
  }
  writer.version = 0x03000000;
  ExpectRefused(writer, "byte-swapped");
  ExpectRefused(std::string(64, 'x'), "is not a GGUF file");
}

TEST(Gguf, ArraysOfArraysAreRefusedAtAnyDepth) {
  std::string elements;
  for (int i = 0; i < 100'000; ++i) {
    Put(elements, static_cast<uint32_t>(MetaType::kArray));
    Put(elements, uint64_t{1});
  }
  GgufWriter writer = SmallModel();
  writer.AddArray("deep", static_cast<uint32_t>(MetaType::kArray), 1, elements);
  ExpectRefused(writer, "key 'deep' is an array of arrays");
}

TEST(Gguf, AFileWithoutTensorsIsRefused) {
  GgufWriter writer = SmallModel();
  writer.tensors.clear();
  ExpectRefused(writer, "holds no tensors");
}

TEST(Gguf, RepeatedKeysAndTensorsAreRefused) {
  GgufWriter writer = SmallModel();
  writer.keys.push_back(writer.keys[2]);
  ExpectRefused(writer, "key 'llama.block_count' is given twice");
  writer = SmallModel();
  writer.tensors[3].name = writer.tensors[4].name;
  ExpectRefused(writer, "tensor 'blk.0.attn_k.weight' is given twice");
}

TEST(Gguf, RowsThatDoNotFillBlocksAreRefused) {
  GgufWriter writer = SmallModel();
  writer.tensors[0].type = static_cast<uint32_t>(vt::FormatId::kQ4_0);
  ExpectRefused(writer, "rows of 16 weights do not divide into Q4_0 blocks of 32");
}

TEST(Gguf, TheAlignmentKeyMovesTheDataAndIsChecked) {
  GgufWriter writer = SmallModel();
  const auto set = [&](uint32_t alignment) {
    writer.keys[1].second.clear();
    Put(writer.keys[1].second, static_cast<uint32_t>(MetaType::kU32));
    Put(writer.keys[1].second, alignment);
    writer.alignment = alignment == 0 ? 32 : alignment;
  };
  set(4096);
  const std::string bytes = writer.Bytes();
  const auto file = FromText(bytes);
  EXPECT_EQ(file->alignment(), 4096u);
  float first = 0;
  std::memcpy(&first, file->tensors()[0].data.data(), sizeof first);
  EXPECT_EQ(first, 0.25f);
  for (const uint32_t bad : {0u, 4u, 24u, 1u << 21}) {
    set(bad);
    ExpectRefused(writer, base::StrCat("general.alignment '", bad, "' is not a power of two"));
  }
}

TEST(Gguf, NamesWithControlCharactersStayOnOneLine) {
  GgufWriter writer = SmallModel();
  writer.tensors[0].name = "a\nb\xff\x01";
  writer.tensors[0].type = 255;
  ExpectRefused(writer, "tensor 'a\\nb\xEF\xBF\xBD\\x01'");
}

TEST(Gguf, ValuesReadAsTheTypesThatHoldThem) {
  GgufWriter writer = SmallModel();
  writer.AddNumber("u8", MetaType::kU8, uint8_t{200});
  writer.AddNumber("i8", MetaType::kI8, int8_t{-3});
  writer.AddNumber("u16", MetaType::kU16, uint16_t{60000});
  writer.AddNumber("i16", MetaType::kI16, int16_t{-300});
  writer.AddNumber("i32", MetaType::kI32, int32_t{-70000});
  writer.AddNumber("u64", MetaType::kU64, UINT64_MAX);
  writer.AddNumber("i64", MetaType::kI64, INT64_MIN);
  writer.AddNumber("f64", MetaType::kF64, 0.1);
  std::string floats = testing::Floats(std::vector<float>{1.5f, -2});
  writer.AddArray("floats", static_cast<uint32_t>(MetaType::kF32), 2, floats);
  const std::string bytes = writer.Bytes();
  const auto file = FromText(bytes);
  EXPECT_EQ(file->Meta("u8")->AsInt(), 200);
  EXPECT_EQ(file->Meta("i8")->AsInt(), -3);
  EXPECT_EQ(file->Meta("u16")->AsInt(), 60000);
  EXPECT_EQ(file->Meta("i16")->AsInt(), -300);
  EXPECT_EQ(file->Meta("i32")->AsInt(), -70000);
  EXPECT_EQ(file->Meta("u64")->AsInt(), std::nullopt);
  EXPECT_EQ(file->Meta("u64")->AsDouble(), 0x1p64);
  EXPECT_EQ(file->Meta("i64")->AsInt(), INT64_MIN);
  EXPECT_EQ(file->Meta("f64")->AsDouble(), 0.1);
  EXPECT_EQ(file->Meta("f64")->AsInt(), std::nullopt);
  EXPECT_EQ(file->Meta("floats")->AsFloats(), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(file->Meta("floats")->AsDoubles(), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(file->Meta("floats")->AsInts(), std::nullopt);
  EXPECT_EQ(file->Meta("floats")->AsStrings(), std::nullopt);
  EXPECT_EQ(file->Meta("floats")->AsString(), std::nullopt);
  EXPECT_EQ(file->Meta("u8")->AsBool(), std::nullopt);
  EXPECT_EQ(file->Meta("u8")->AsFloats(), std::nullopt);
}

TEST(Gguf, TheConfigHoldsAllButTheTokenizersLists) {
  GgufWriter writer = SmallModel();
  std::string counts;
  for (const int32_t count : {4, 2}) Put(counts, count);
  writer.AddArray("llama.attention.head_count_kv", static_cast<uint32_t>(MetaType::kI32), 2, counts);
  writer.AddStrings("general.tags", std::vector<std::string>{"x", "y"});
  const std::string bytes = writer.Bytes();
  const Config config = FromText(bytes)->ToConfig();
  EXPECT_EQ(config.need<int>("llama.block_count"), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(config.need<double>("llama.attention.layer_norm_rms_epsilon")), 1e-6f);
  EXPECT_EQ(config.need<std::vector<int>>("llama.attention.head_count_kv"), (std::vector<int>{4, 2}));
  EXPECT_EQ(config.need<std::vector<std::string>>("general.tags"), (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(config.need<bool>("tokenizer.ggml.add_bos_token"));
  EXPECT_FALSE(config.has("tokenizer.ggml.tokens"));
  const base::Error error = ErrorOf([&] { config.need<int>("llama.context_length"); });
  EXPECT_EQ(error.message.substr(0, 46), "m.gguf: llama.context_length is missing; add i");
}

TEST(Gguf, AConfigOfTooManyValuesIsRefused) {
  GgufWriter writer = SmallModel();
  writer.AddArray("llama.many", static_cast<uint32_t>(MetaType::kU8), 300'000, std::string(300'000, 'x'));
  const std::string bytes = writer.Bytes();
  const auto file = FromText(bytes);
  const base::Error error = ErrorOf([&] { file->ToConfig(); });
  EXPECT_NE(error.message.find("key 'llama.many' brings the metadata to more than"), std::string::npos)
      << error.message;
}

// The small model in three parts; the first holds no tensor.
struct SplitModel {
  std::vector<GgufWriter> parts;
  std::vector<std::string> names = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"};

  SplitModel() {
    const GgufWriter whole = SmallModel();
    parts.resize(3);
    parts[0].keys = whole.keys;
    for (uint16_t i = 0; i < 3; ++i) {
      parts[i].AddNumber("split.no", MetaType::kU16, i);
      parts[i].AddNumber("split.count", MetaType::kU16, uint16_t{3});
      parts[i].AddNumber("split.tensors.count", MetaType::kI32, int32_t{16});
    }
    parts[1].tensors.assign(whole.tensors.begin(), whole.tensors.begin() + 5);
    parts[2].tensors.assign(whole.tensors.begin() + 5, whole.tensors.end());
  }
  void Write(const TempFolder& folder) const {
    for (size_t i = 0; i < parts.size(); ++i) folder.Write(names[i], parts[i].Bytes());
  }
};

TEST(GgufSplit, OpeningTheFirstPartOpensAll) {
  const TempFolder folder;
  SplitModel().Write(folder);
  const auto file = GgufFile::Open(folder.path() + "/m-00001-of-00003.gguf");
  ASSERT_EQ(file->tensors().size(), 16u);
  EXPECT_EQ(file->files().size(), 3u);
  EXPECT_EQ(file->tensors()[4].file_index, 1);
  EXPECT_EQ(file->tensors()[5].file_index, 2);
  EXPECT_EQ(file->Meta("general.architecture")->AsString(), "llama");
}

TEST(GgufSplit, AnotherPartNamesTheFirst) {
  const TempFolder folder;
  SplitModel().Write(folder);
  const base::Error error = ErrorOf([&] { GgufFile::Open(folder.path() + "/m-00002-of-00003.gguf"); });
  EXPECT_NE(error.message.find(": is part 2 of 3; give the first part instead: "), std::string::npos) << error.message;
  EXPECT_TRUE(error.message.ends_with("/m-00001-of-00003.gguf")) << error.message;
}

TEST(GgufSplit, AMissingPartIsNamed) {
  const TempFolder folder;
  SplitModel().Write(folder);
  std::filesystem::remove(folder.path() + "/m-00003-of-00003.gguf");
  const base::Error error = ErrorOf([&] { GgufFile::Open(folder.path() + "/m-00001-of-00003.gguf"); });
  EXPECT_NE(error.message.find("m-00003-of-00003.gguf"), std::string::npos) << error.message;
}

TEST(GgufSplit, PartsThatDoNotBelongTogetherAreRefused) {
  const auto message = [](const SplitModel& model) {
    const TempFolder folder;
    model.Write(folder);
    return ErrorOf([&] { GgufFile::Open(folder.path() + "/m-00001-of-00003.gguf"); }).message;
  };
  SplitModel swapped;
  std::swap(swapped.parts[1], swapped.parts[2]);
  EXPECT_NE(message(swapped).find("says it is part 3 of 3, not 2 of 3"), std::string::npos) << message(swapped);
  SplitModel fewer;
  fewer.parts[2].tensors.pop_back();
  EXPECT_NE(message(fewer).find("split.tensors.count is 16, the 3 parts hold 15"), std::string::npos) << message(fewer);
  SplitModel twice;
  twice.parts[2].tensors[0].name = "output_norm.weight";
  EXPECT_NE(message(twice).find("tensor 'output_norm.weight' is given twice"), std::string::npos) << message(twice);
  SplitModel renamed;
  renamed.parts[0].keys[7].second.back() = 1;
  EXPECT_NE(message(renamed).find("split.no"), std::string::npos) << message(renamed);
}

TEST(GgufSplit, APartUnderAnotherNameIsRefused) {
  const TempFolder folder;
  const std::string path = folder.Write("model.gguf", SplitModel().parts[0].Bytes());
  const base::Error error = ErrorOf([&] { GgufFile::Open(path); });
  EXPECT_NE(error.message.find("rename all parts to NAME-00001-of-0000N.gguf"), std::string::npos) << error.message;
}

TEST(GgufSplit, PartNamesParseAndPrint) {
  const auto part = ParseGgufPartName("a/m-00002-of-00012.gguf");
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->prefix, "a/m");
  EXPECT_EQ(part->index, 1);
  EXPECT_EQ(part->count, 12);
  EXPECT_EQ(GgufPartName("a/m", 1, 12), "a/m-00002-of-00012.gguf");
  for (const char* name : {"m.gguf", "m-00003-of-00002.gguf", "m-00000-of-00002.gguf", "m-0001-of-00002.gguf",
                           "-00001-of-00002.gguf", "m-00001-of-00002.bin", "m-+0001-of-00002.gguf"}) {
    EXPECT_FALSE(ParseGgufPartName(name).has_value()) << name;
  }
}

TEST(Gguf, AFolderOrPipeIsNoFile) {
  const TempFolder folder;
  const base::Error error = ErrorOf([&] { GgufFile::Open(folder.path()); });
  EXPECT_NE(error.message.find("is not a regular file"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace vllm

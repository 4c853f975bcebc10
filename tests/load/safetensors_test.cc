// Safetensors: what the library accepts is accepted, what it refuses is refused in one line, and no index leaves its
// folder.
#include "load/safetensors.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/strings.h"
#include "tests/load/model_files_util.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;
using testing::ErrorOf;
using testing::SafetensorsBytes;
using testing::SafetensorsTensor;
using testing::TempFolder;

std::vector<TensorInfo> Read(std::string_view bytes) {
  return ReadSafetensorsHeader(std::as_bytes(std::span(bytes)), "m.safetensors");
}

void ExpectRefused(std::string_view bytes, std::string_view part) {
  const base::Error error = ErrorOf([&] { Read(bytes); });
  EXPECT_TRUE(error.message.starts_with("m.safetensors: ")) << error.message;
  EXPECT_NE(error.message.find(part), std::string::npos) << "'" << part << "' is not in: " << error.message;
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
}

// A header with one F32 tensor `t`.
std::string Header(std::string_view shape, std::string_view offsets, std::string_view dtype = "F32") {
  return base::StrCat(R"({"t":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, "}}");
}

void ExpectHeaderRefused(std::string_view header, std::string_view data, std::string_view part) {
  ExpectRefused(SafetensorsBytes(header, data), part);
}

constexpr std::string_view kFour("\0\0\x80\x3f", 4);  // 1.0f

TEST(Safetensors, AGoodFileGivesNamesShapesAndBytes) {
  const std::vector<SafetensorsTensor> tensors = {{"a", "F32", {2, 1}, std::string(8, 'x')},
                                                  {"b", "BF16", {3}, std::string(6, 'y')},
                                                  {"c", "I64", {1}, std::string(8, 'z')}};
  const std::string bytes = SafetensorsBytes(tensors);
  const auto read = Read(bytes);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].name, "a");
  EXPECT_EQ(read[0].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(read[0].format, vt::FormatId::kF32);
  EXPECT_EQ(read[1].format, vt::FormatId::kBF16);
  EXPECT_EQ(read[1].data.size(), 6u);
  EXPECT_EQ(std::to_integer<char>(read[1].data[0]), 'y');
  EXPECT_EQ(read[2].dtype, "I64");
  EXPECT_EQ(read[2].elements(), 1);
}

TEST(Safetensors, SpacesScalarsAndEmptyTensorsLoad) {
  EXPECT_EQ(Read(SafetensorsBytes("  " + Header("[1]", "[0,4]") + "   ", kFour)).size(), 1u);
  EXPECT_EQ(Read(SafetensorsBytes("\n\t" + Header("[1]", "[0,4]"), kFour)).size(), 1u);
  const std::string scalar = SafetensorsBytes(Header("[]", "[0,4]"), kFour);
  EXPECT_TRUE(Read(scalar)[0].shape.empty());
  EXPECT_EQ(Read(scalar)[0].elements(), 1);
  EXPECT_EQ(Read(SafetensorsBytes(Header("[0,5]", "[0,0]"), ""))[0].elements(), 0);
  EXPECT_TRUE(Read(SafetensorsBytes("{}", "")).empty());
  EXPECT_EQ(Read(SafetensorsBytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                  R"("b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
                                  kFour))
                .size(),
            2u);
}

TEST(Safetensors, MetadataAndUnknownFieldsAreSkipped) {
  EXPECT_EQ(
      Read(SafetensorsBytes(R"({"__metadata__":{"format":"pt","x":"y"},"t":{"extra":[1,{"a":[null,true,"s",2.5]}],)"
                            R"("dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                            kFour))
          .size(),
      1u);
  EXPECT_TRUE(Read(SafetensorsBytes(R"({"__metadata__":null})", "")).empty());
  ExpectHeaderRefused(R"({"__metadata__":{"a":1}})", "", "a value of __metadata__ is not a string");
  ExpectHeaderRefused(R"({"__metadata__":[]})", "", "__metadata__ is not an object");
}

TEST(Safetensors, ShapeAndRangeMustAgree) {
  ExpectHeaderRefused(Header("[1000,1000]", "[0,8]"), std::string(8, 'x'),
                      "tensor 't': data_offsets span 8 bytes, shape and dtype F32 need 4000000");
  ExpectHeaderRefused(Header("[4611686018427387904,4]", "[0,0]"), "", "shape multiplies to more than 2^64 bits");
  ExpectHeaderRefused(Header("[4611686018427387904,4,0]", "[0,0]"), "", "shape multiplies to more than 2^64 bits");
  ExpectHeaderRefused(Header("[18446744073709551615]", "[0,0]"), "", "shape multiplies to more than 2^64 bits");
  ExpectHeaderRefused(Header("[3]", "[0,1]", "F6_E2M3"), "x", "shape does not fill whole bytes");
}

TEST(Safetensors, OffsetsMustFollowEachOtherAndCoverTheData) {
  ExpectHeaderRefused(Header("[2]", "[8,0]"), std::string(8, 'x'), "data_offsets [8, 0] do not follow");
  ExpectHeaderRefused(Header("[2]", "[-8,0]"), std::string(8, 'x'),
                      "data_offsets is not a pair of non-negative integers");
  ExpectHeaderRefused(Header("[2]", "[0,8]"), "xxxx", "is truncated: it ends at byte 8 of the data, which has 4");
  ExpectHeaderRefused(Header("[1]", "[4,8]"), std::string(8, 'x'), "data_offsets [4, 8] do not follow");
  ExpectHeaderRefused(Header("[1]", "[0,4]"), std::string(8, 'x'), "4 bytes of data that no tensor covers");
  ExpectHeaderRefused("{}", "x", "1 bytes of data that no tensor covers");
  ExpectHeaderRefused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                      kFour, "tensor 'b': data_offsets [0, 4] do not follow the tensor before, which ends at 4");
  ExpectHeaderRefused(Header("[1]", "[0]"), kFour, "data_offsets is not a pair");
  ExpectHeaderRefused(Header("[1]", "[0,4,4]"), kFour, "data_offsets is not a pair");
}

TEST(Safetensors, HeaderLengthsThatDisagreeWithTheFileAreRefused) {
  std::string bytes;
  testing::Put(bytes, UINT64_MAX);
  ExpectRefused(bytes + "{}", "header length 18446744073709551615 is above the limit");
  bytes.clear();
  testing::Put(bytes, uint64_t{100'000'001});
  ExpectRefused(bytes + "{}", "header length 100000001 is above the limit of 100000000");
  bytes.clear();
  testing::Put(bytes, uint64_t{100'000'000});
  ExpectRefused(bytes + "{}", "the header takes 100000000 bytes, the file has 10");
  ExpectRefused("1234567", "is truncated: 7 bytes");
  ExpectRefused("", "is truncated: 0 bytes");
}

TEST(Safetensors, HeadersThatAreNoObjectAreRefused) {
  ExpectHeaderRefused("[]", "", "is not a JSON object");
  ExpectHeaderRefused("", "", "is empty, not a JSON object");
  ExpectHeaderRefused(std::string(20'000, '['), "", "header: ");
  std::string deep = R"({"t":{"x":)" + std::string(20'000, '[') + std::string(20'000, ']') + "}}";
  ExpectHeaderRefused(deep, "", "nested deeper than 64 levels");
  ExpectHeaderRefused("{\"\xff\":{}}", "", "header: invalid JSON");
  ExpectHeaderRefused(Header("[1]", "[0,4]") + "x", kFour, "header: ");
  ExpectHeaderRefused(Header("[1]", "[0,4]") + std::string(2, '\0'), kFour, "header: ");
  ExpectHeaderRefused(R"({"\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", kFour, "header: ");
}

TEST(Safetensors, EntriesWithMissingRepeatedOrWrongFieldsAreRefused) {
  ExpectHeaderRefused(R"({"t":3})", "", "tensor 't': its entry is not an object");
  ExpectHeaderRefused(R"({"t":{"dtype":"F32","shape":[1]}})", kFour, "tensor 't': field data_offsets is missing");
  ExpectHeaderRefused(R"({"t":{"dtype":"F32","data_offsets":[0,4]}})", kFour, "tensor 't': field shape is missing");
  ExpectHeaderRefused(R"({"t":{"shape":[1],"data_offsets":[0,4]}})", kFour, "tensor 't': field dtype is missing");
  ExpectHeaderRefused(R"({"t":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", kFour,
                      "tensor 't': field dtype is given twice");
  ExpectHeaderRefused(Header("[1]", "[0,4]", "F31"), kFour, "tensor 't': dtype 'F31' is unknown");
  ExpectHeaderRefused(Header("[1.5]", "[0,4]"), kFour, "shape is not a list of non-negative integers");
  ExpectHeaderRefused(Header("[-1]", "[0,4]"), kFour, "shape is not a list of non-negative integers");
  ExpectHeaderRefused(Header("3", "[0,4]"), kFour, "shape is not a list of non-negative integers");
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  ExpectHeaderRefused(Header(ones + "]", "[0,4]"), kFour, "shape has more than 64 dimensions");
}

TEST(Safetensors, ANameGivenTwiceIsRefused) {
  ExpectHeaderRefused(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                      R"("t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                      std::string(8, 'x'), "tensor 't': is given twice");
}

TEST(Safetensors, DtypesWithoutAFormatKeepTheirName) {
  const std::string bytes = SafetensorsBytes(Header("[4]", "[0,4]", "F8_E4M3"), "wxyz");
  EXPECT_EQ(Read(bytes)[0].format, vt::FormatId::kNone);
  EXPECT_EQ(Read(bytes)[0].dtype, "F8_E4M3");
}

// ---- folders

std::string OneTensor(std::string name, float value) {
  const std::vector<SafetensorsTensor> tensors = {{std::move(name), "F32", {1}, testing::Floats(std::span(&value, 1))}};
  return SafetensorsBytes(tensors);
}

float Value(const TensorInfo& tensor) {
  float value = 0;
  std::memcpy(&value, tensor.data.data(), sizeof value);
  return value;
}

std::string Message(const std::string& folder) {
  const std::string message = ErrorOf([&] { OpenSafetensorsFolder(folder); }).message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

void ExpectContains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

constexpr char kIndex[] = "model.safetensors.index.json";

TEST(SafetensorsFolder, OneFileLoadsUnderEitherName) {
  const TempFolder folder;
  folder.Write("other.safetensors", OneTensor("a", 1));
  EXPECT_EQ(Value(OpenSafetensorsFolder(folder.path()).tensors.at(0)), 1);
  folder.Write("model.safetensors", OneTensor("a", 2));
  EXPECT_EQ(Value(OpenSafetensorsFolder(folder.path()).tensors.at(0)), 2);
}

TEST(SafetensorsFolder, ShardsLoadThroughTheIndex) {
  const TempFolder folder;
  folder.Write("x-1.safetensors", OneTensor("a", 1));
  folder.Write("sub/x-2.safetensors", OneTensor("b", 2));
  folder.Write("unused.safetensors", OneTensor("a", 3));
  folder.Write(kIndex,
               R"({"metadata":{"total_size":8},"weight_map":{"b":"sub/x-2.safetensors","a":"x-1.safetensors"}})");
  const auto read = OpenSafetensorsFolder(folder.path());
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.files.size(), 2u);
  EXPECT_EQ(read.tensors[0].name, "b");
  EXPECT_EQ(read.tensors[1].file_index, 1);
  EXPECT_EQ(Value(read.tensors[0]) + Value(read.tensors[1]), 3);
}

TEST(SafetensorsFolder, TheIndexMustAgreeWithItsShards) {
  const TempFolder folder;
  folder.Write("x-1.safetensors", OneTensor("a", 1));
  folder.Write(kIndex, R"({"weight_map":{"a":"x-1.safetensors","b":"x-1.safetensors"}})");
  ExpectContains(Message(folder.path()), "weight_map says tensor 'b' is in 'x-1.safetensors', which does not hold it");
  folder.Write(kIndex, R"({"weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors"}})");
  ExpectContains(Message(folder.path()), "x-2.safetensors: does not exist");
  folder.Write("x-2.safetensors", OneTensor("a", 1));
  ExpectContains(Message(folder.path()), "tensor 'a' is in x-1.safetensors too");
}

TEST(SafetensorsFolder, BadIndexesAreNamed) {
  const TempFolder folder;
  const auto message = [&](std::string_view index) {
    folder.Write(kIndex, index);
    return Message(folder.path());
  };
  ExpectContains(message("{}"), "weight_map is missing");
  ExpectContains(message(R"({"weight_map":{}})"), "weight_map is empty");
  ExpectContains(message(R"({"weight_map":[]})"), "weight_map is not an object");
  ExpectContains(message(R"({"weight_map":{"a":3}})"), "weight_map is not an object of tensor names and file names");
  ExpectContains(message(R"({"weight_map":{"a":"x.safetensors"},"weight_map":{}})"), "weight_map is given twice");
  ExpectContains(message(R"({"weight_map":{"a":"x.safetensors","a":"x.safetensors"}})"), "entry 'a' is given twice");
  ExpectContains(message("nonsense"), "is not a JSON object");
}

// Tells whether anybody opens a file.
class OpenWatch {
 public:
  explicit OpenWatch(const std::string& path) : queue_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(queue_, path.c_str(), IN_OPEN), 0);
  }
  ~OpenWatch() { ::close(queue_); }
  bool Opened() const {
    char event[4096];
    return ::read(queue_, event, sizeof event) > 0;
  }

 private:
  const int queue_;
};

TEST(SafetensorsFolder, AnIndexThatLeavesTheFolderIsRefusedAndNamed) {
  const TempFolder outside;
  const TempFolder folder;
  outside.Write("x.safetensors", OneTensor("a", 1));
  folder.Write("model/here.safetensors", OneTensor("b", 1));
  folder.Write("x.safetensors", OneTensor("a", 1));
  folder.Write("model/a/y.safetensors", OneTensor("z", 1));
  const std::string absolute = outside.path() + "/x.safetensors";
  const OpenWatch far(absolute), near(folder.path() + "/x.safetensors");
  for (const std::string& shard :
       {std::string("../x.safetensors"), absolute, std::string("a/../../x.safetensors"), std::string(),
        std::string("."), std::string("here.safetensors\\u0000"), std::string("a//y.safetensors"),
        std::string("./here.safetensors"), std::string("config.json")}) {
    SCOPED_TRACE(shard);
    folder.Write(std::string("model/") + kIndex,
                 base::StrCat(R"({"weight_map":{"b":"here.safetensors","a":")", shard, "\"}}"));
    ExpectContains(Message(folder.path() + "/model"), "weight_map entry 'a' names '");
  }
  EXPECT_FALSE(far.Opened());
  EXPECT_FALSE(near.Opened());
  std::ifstream(absolute).get();
  EXPECT_TRUE(far.Opened()) << "the watch works";
}

TEST(SafetensorsFolder, ALinkOutOfTheFolderIsRefusedAndOneInsideIsFollowed) {
  const TempFolder outside;
  const TempFolder folder;
  outside.Write("x.safetensors", OneTensor("a", 1));
  folder.Write("real/data.safetensors", OneTensor("a", 2));
  folder.Write(kIndex, R"({"weight_map":{"a":"link.safetensors"}})");
  fs::create_symlink(outside.path() + "/x.safetensors", folder.path() + "/link.safetensors");
  const OpenWatch watch(outside.path() + "/x.safetensors");
  ExpectContains(Message(folder.path()), "link.safetensors: is a link to ");
  ExpectContains(Message(folder.path()), ", outside the model folder");
  fs::remove(folder.path() + "/link.safetensors");
  fs::create_symlink("real/data.safetensors", folder.path() + "/link.safetensors");
  EXPECT_EQ(Value(OpenSafetensorsFolder(folder.path()).tensors.at(0)), 2);
  fs::remove(folder.path() + "/" + kIndex);
  fs::remove_all(folder.path() + "/real");
  fs::remove(folder.path() + "/link.safetensors");
  fs::create_symlink(outside.path() + "/x.safetensors", folder.path() + "/model.safetensors");
  ExpectContains(Message(folder.path()), "model.safetensors: is a link to ");
  EXPECT_FALSE(watch.Opened());
}

TEST(SafetensorsFolder, SnapshotsOfAHubCacheLinkToTheirBlobsOnly) {
  const TempFolder cache;
  cache.Write("models--org--name/blobs/abc", OneTensor("a", 3));
  cache.Write("models--evil--name/blobs/abc", OneTensor("a", 4));
  const std::string snapshot = cache.path() + "/models--org--name/snapshots/123";
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/abc", snapshot + "/model.safetensors");
  EXPECT_EQ(Value(OpenSafetensorsFolder(snapshot).tensors.at(0)), 3);
  fs::remove(snapshot + "/model.safetensors");
  fs::create_symlink("../../../models--evil--name/blobs/abc", snapshot + "/model.safetensors");
  ExpectContains(Message(snapshot), "outside the model folder");
}

TEST(SafetensorsFolder, PicklesAndEmptyFoldersAreRefusedByName) {
  for (const char* name : {"pytorch_model.bin", "model.pt", "x.pth", "y.ckpt"}) {
    const TempFolder folder;
    folder.Write(name, "x");
    ExpectContains(Message(folder.path()), base::StrCat("/", name, ": is a pickle"));
  }
  const TempFolder empty;
  ExpectContains(Message(empty.path()), "holds no weights (looked for model.safetensors");
}

TEST(SafetensorsFolder, SeveralFilesWithoutAnIndexAreRefused) {
  const TempFolder folder;
  folder.Write("a.safetensors", OneTensor("a", 1));
  folder.Write("b.safetensors", OneTensor("b", 1));
  ExpectContains(Message(folder.path()), "holds 2 safetensors files but no model.safetensors.index.json");
}

TEST(SafetensorsFolder, AFolderOrPipeInPlaceOfAFileIsRefused) {
  const TempFolder folder;
  fs::create_directory(folder.path() + "/model.safetensors");
  ExpectContains(Message(folder.path()), "model.safetensors: is not a regular file");
  ASSERT_EQ(::mkfifo((folder.path() + "/" + kIndex).c_str(), 0600), 0);
  ExpectContains(Message(folder.path()), "index.json: is not a regular file");
}

TEST(SafetensorsFolder, TensorsAtOddAddressesAreCopiedIntoAlignedMemory) {
  const TempFolder folder;
  std::string header = Header("[1]", "[0,4]");
  while (header.size() % 4 != 1) header += ' ';
  folder.Write("model.safetensors", SafetensorsBytes(header, kFour));
  const auto read = OpenSafetensorsFolder(folder.path());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(read.tensors.at(0).data.data()) % 4, 0u);
  EXPECT_EQ(read.tensors[0].file_index, -1);
  EXPECT_EQ(read.copies.size(), 1u);
  EXPECT_EQ(Value(read.tensors[0]), 1);
}

}  // namespace
}  // namespace vllm

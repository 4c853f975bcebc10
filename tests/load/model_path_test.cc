// Names as people type them: paths, names in a hub cache, and the command that fetches what is not there.
#include "load/model_path.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "tests/load/model_files_util.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;
using testing::ErrorOf;
using testing::TempFolder;

constexpr char kCommit[] = "0123456789abcdef0123456789abcdef01234567";

// A hub cache with one repository.
class HubCache {
 public:
  explicit HubCache(std::string hub_folder = "hub") : hub_(folder_.path() + "/" + hub_folder) { Ref("org--name"); }
  void Ref(const std::string& repository) {
    Write("models--" + repository + "/refs/main", kCommit);
    fs::create_directories(Snapshot(repository));
  }
  void AddFile(const std::string& name) {
    Write("models--org--name/blobs/" + std::to_string(++blobs_), "x");
    const std::string link = Snapshot("org--name") + "/" + name;
    fs::create_directories(fs::path(link).parent_path());
    fs::create_symlink(hub_ + "/models--org--name/blobs/" + std::to_string(blobs_), link);
  }
  std::string Snapshot(const std::string& repository) const {
    return hub_ + "/models--" + repository + "/snapshots/" + kCommit;
  }
  std::string Resolve(std::string_view typed) const { return ResolveModelPath(typed, {.hf_hub_cache = hub_}).path; }
  std::string Message(std::string_view typed) const {
    const std::string message = ErrorOf([&] { Resolve(typed); }).message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  }
  void Write(const std::string& name, std::string_view bytes) const {
    folder_.Write(hub_.substr(folder_.path().size() + 1) + "/" + name, bytes);
  }
  const std::string& hub() const { return hub_; }

 private:
  TempFolder folder_;
  std::string hub_;
  int blobs_ = 0;
};

void ExpectContains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(ModelPath, AnExistingPathIsTakenAsItIs) {
  const TempFolder folder;
  const std::string path = folder.Write("org/name", "x");
  const ModelPath resolved = ResolveModelPath(path, {});
  EXPECT_EQ(resolved.path, path);
  EXPECT_EQ(resolved.name, path);
}

TEST(ModelPath, TheCacheFolderFollowsTheVariablesInTheirOrder) {
  HubLocations all = {.hf_hub_cache = "/a", .hf_home = "/b", .xdg_cache_home = "/c", .home = "/d"};
  EXPECT_EQ(HubCacheFolder(all), "/a");
  all.hf_hub_cache.clear();
  EXPECT_EQ(HubCacheFolder(all), "/b/hub");
  all.hf_home.clear();
  EXPECT_EQ(HubCacheFolder(all), "/c/huggingface/hub");
  all.xdg_cache_home.clear();
  EXPECT_EQ(HubCacheFolder(all), "/d/.cache/huggingface/hub");
  EXPECT_EQ(HubCacheFolder({}), "");
}

TEST(ModelPath, ANameResolvesToItsSnapshot) {
  HubCache cache;
  cache.AddFile("config.json");
  cache.AddFile("model.safetensors");
  EXPECT_EQ(cache.Resolve("org/name"), cache.Snapshot("org--name"));
  EXPECT_EQ(ResolveModelPath("org/name", {.hf_hub_cache = cache.hub()}).name, "org/name");
}

TEST(ModelPath, TheOnlyGgufFileNeedsNoChoice) {
  HubCache cache;
  cache.AddFile("name-Q4_K_M.gguf");
  EXPECT_EQ(cache.Resolve("org/name"), cache.Snapshot("org--name") + "/name-Q4_K_M.gguf");
  cache.AddFile("name-Q8_0.gguf");
  ExpectContains(cache.Message("org/name"),
                 "has 2 GGUF files in the hub cache; add one as org/name:FILE (name-Q4_K_M.gguf, ");
}

TEST(ModelPath, AQuantizationOrAFilePicksTheGguf) {
  HubCache cache;
  cache.AddFile("name-Q4_K_M.gguf");
  cache.AddFile("name.Q4_K.gguf");
  cache.AddFile("big/name-Q8_0-00001-of-00002.gguf");
  cache.AddFile("big/name-Q8_0-00002-of-00002.gguf");
  const std::string snapshot = cache.Snapshot("org--name");
  EXPECT_EQ(cache.Resolve("org/name:Q4_K_M"), snapshot + "/name-Q4_K_M.gguf");
  EXPECT_EQ(cache.Resolve("org/name:q4_k_m"), snapshot + "/name-Q4_K_M.gguf");
  EXPECT_EQ(cache.Resolve("org/name:Q4_K"), snapshot + "/name.Q4_K.gguf");
  EXPECT_EQ(cache.Resolve("org/name:Q8_0"), snapshot + "/big/name-Q8_0-00001-of-00002.gguf");
  EXPECT_EQ(cache.Resolve("org/name:name.Q4_K.gguf"), snapshot + "/name.Q4_K.gguf");
  cache.AddFile("other-Q8_0.gguf");
  ExpectContains(cache.Message("org/name:Q8_0"), "fits 2 files in the hub cache");
}

TEST(ModelPath, WhatIsNotThereIsRefusedWithTheCommandToType) {
  HubCache cache;
  cache.AddFile("name-Q8_0.gguf");
  EXPECT_TRUE(cache.Message("org/absent").ends_with("to download it, type: hf download org/absent"));
  ExpectContains(cache.Message("org/absent"),
                 "model 'org/absent' is neither a path nor in the hub cache " + cache.hub());
  EXPECT_TRUE(cache.Message("org/absent:Q4_K_M").ends_with("hf download org/absent --include '*Q4_K_M*.gguf'"));
  EXPECT_TRUE(cache.Message("org/name:Q4_K_M").ends_with("hf download org/name --include '*Q4_K_M*.gguf'"));
  ExpectContains(cache.Message("org/name:Q4_K_M"), "which has name-Q8_0.gguf");
  EXPECT_TRUE(cache.Message("org/name:x.gguf").ends_with("hf download org/name 'x.gguf'"));
  EXPECT_EQ(ErrorOf([&] { cache.Resolve("org/absent"); }).code, base::ErrorCode::kNotFound);
  ExpectContains(ErrorOf([] { ResolveModelPath("org/absent", {}); }).message, "(HF_HOME and HOME are not set)");
}

TEST(ModelPath, ASnapshotThatIsNotThereCountsAsAbsent) {
  HubCache cache;
  fs::remove_all(cache.Snapshot("org--name"));
  ExpectContains(cache.Message("org/name"), "hf download org/name");
  cache.Write("models--org--name/refs/main", "../../../etc");
  ExpectContains(cache.Message("org/name"), "hf download org/name");
}

TEST(ModelPath, TextsThatAreNoNameAreRefusedAsPaths) {
  HubCache cache;
  for (const std::string typed :
       {"", "name", "a/b/c", "../x", "/no/such", "org/..", "org/na me", "org/name:", "org/name:../x.gguf",
        "org/name:/etc/x.gguf", "-org/name", "org/na--me", "org/name\nx", "org/漢"}) {
    SCOPED_TRACE(typed);
    ExpectContains(cache.Message(typed), "does not exist, and is no hub name either");
  }
  ExpectContains(cache.Message(std::string_view("a\0b", 3)), "does not exist");
}

TEST(ModelPath, ACacheFolderOfAnySpellingWorks) {
  HubCache cache("кэш 漢 %#é");
  cache.AddFile("config.json");
  EXPECT_EQ(cache.Resolve("org/name"), cache.Snapshot("org--name"));
}

}  // namespace
}  // namespace vllm

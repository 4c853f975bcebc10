// The C ABI: loading, requests, cancellation, text, errors, and good manners towards the host process.
#include "vllm.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <span>
#include <stdexcept>
#include <thread>

#include "tests/capi/capi_util.h"

namespace vllm {
namespace {

using namespace testing;

constexpr int kLongContext = 1 << 17;  // an answer that fills it takes minutes: a cancel always finds it running
constexpr const char* kLong = R"({"temperature":0,"max_tokens":100000,"ignore_eos":true})";
constexpr const char* kShort = R"({"temperature":0,"max_tokens":8,"ignore_eos":true,"logit_bias":{"95":-100}})";
constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}{% if add_generation_prompt %}> {% endif %}";

std::string LastError() {
  const std::string text = vllm_last_error();
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  return text;
}

// ---------------------------------------------------------------------------------------------------------- loading

TEST(CapiLoad, ProgressGrowsToOne) {
  std::vector<double> seen;
  const auto note = [](double fraction, void* user) {
    static_cast<std::vector<double>*>(user)->push_back(fraction);
    return 0;
  };
  vllm_engine* engine = nullptr;
  ASSERT_EQ(Load(WriteAsciiModel("llama"), {}, &engine, note, &seen), VLLM_OK) << LastError();
  vllm_engine_free(engine);
  ASSERT_GT(seen.size(), 2u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 1);
}

TEST(CapiLoad, ProgressCanStopIt) {
  int calls = 0;
  const auto stop = [](double, void* user) { return ++*static_cast<int*>(user) == 3 ? 1 : 0; };
  vllm_engine* engine = nullptr;
  EXPECT_EQ(Load(WriteAsciiModel("llama"), {}, &engine, stop, &calls), VLLM_CANCELLED);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(engine, nullptr);
  EXPECT_EQ(LastError(), "the load was cancelled");
}

TEST(CapiLoad, StoppingAtTheVeryEndCancelsToo) {
  const auto stop = [](double fraction, void*) { return fraction == 1 ? 1 : 0; };
  vllm_engine* engine = nullptr;
  EXPECT_EQ(Load(WriteAsciiModel("llama"), {}, &engine, stop), VLLM_CANCELLED);
  EXPECT_EQ(engine, nullptr);
}

TEST(CapiLoad, AProgressFunctionThatThrowsIsAnError) {
  const auto fail = [](double, void*) -> int { throw std::runtime_error("no window"); };
  vllm_engine* engine = nullptr;
  EXPECT_EQ(Load(WriteAsciiModel("llama"), {}, &engine, fail), VLLM_INTERNAL);
  EXPECT_EQ(LastError(), "no window");
}

TEST(CapiLoad, AMissingModelIsNotFound) {
  vllm_engine* engine = nullptr;
  EXPECT_EQ(Load("/nowhere/model.gguf", {}, &engine), VLLM_NOT_FOUND);
  EXPECT_NE(LastError().find("/nowhere/model.gguf"), std::string::npos) << LastError();
}

TEST(CapiLoad, AnUnknownOptionNamesTheNearest) {
  vllm_engine* engine = nullptr;
  EXPECT_EQ(Load("model.gguf", {{"max-modle-len", "64"}}, &engine), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(LastError(), "option 'max-modle-len' is not known; nearest is max-model-len");
}

TEST(CapiLoad, ABadOptionValueIsTold) {
  vllm_engine* engine = nullptr;
  EXPECT_EQ(Load("model.gguf", {{"max-num-seqs", "0"}}, &engine), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(LastError(), "max-num-seqs: '0' must be at least 1");
}

TEST(CapiLoad, ABlockSizeOfTwentyFourIsRefused) {
  vllm_engine* engine = nullptr;
  EXPECT_EQ(Load(WriteAsciiModel("llama"), {{"block-size", "24"}}, &engine), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(LastError(), "Block size must be a multiple of 16");
}

TEST(CapiLoad, TwoEnginesLiveInOneProcess) {
  const std::string llama = WriteAsciiModel("llama"), qwen = WriteAsciiModel("qwen3");
  const std::string alone = Answer(Engine(llama).get(), "abc");
  Engine first(llama), second(qwen);
  const std::string other = Answer(second.get(), "abc");
  EXPECT_NE(other, alone);
  EXPECT_EQ(Answer(first.get(), "abc"), alone);
  first.Free();
  EXPECT_EQ(Answer(second.get(), "abc"), other);
}

// --------------------------------------------------------------------------------------------------------- arguments

TEST(CapiArguments, NullIsRefusedEverywhere) {
  const Engine engine(WriteAsciiModel("llama"));
  vllm_engine* loaded = nullptr;
  vllm_request* request = nullptr;
  size_t count = 0;
  int32_t id = 0;
  vllm_engine_params load = {};
  load.size = sizeof load;
  vllm_generate_params generate = {};
  generate.size = sizeof generate;
  vllm_chat_params chat = {};
  chat.size = sizeof chat;
  EXPECT_EQ(vllm_engine_load(nullptr, &loaded), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_engine_load(&load, nullptr), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_engine_load(&load, &loaded), VLLM_INVALID_ARGUMENT);  // no model
  EXPECT_EQ(vllm_generate(nullptr, &generate, &request), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_generate(engine.get(), nullptr, &request), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_generate(engine.get(), &generate, &request), VLLM_INVALID_ARGUMENT);  // no callback
  EXPECT_EQ(vllm_chat(engine.get(), nullptr, &request), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_chat(engine.get(), &chat, &request), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_request_wait(nullptr), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_tokenize(nullptr, Text("a"), 0, &id, 1, &count), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_tokenize(engine.get(), Text("a"), 0, nullptr, 1, &count), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_tokenize(engine.get(), {nullptr, 3}, 0, &id, 1, &count), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_detokenize(engine.get(), nullptr, 1, nullptr, 0, &count), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(vllm_detokenize(engine.get(), &id, 1, nullptr, 0, nullptr), VLLM_INVALID_ARGUMENT);
  vllm_request_cancel(nullptr);
  vllm_request_free(nullptr);
  vllm_engine_free(nullptr);
}

TEST(CapiArguments, AStructOfAnotherSizeIsRefused) {
  vllm_engine* engine = nullptr;
  const std::string model = WriteAsciiModel("llama");
  vllm_engine_params params = {};
  params.model = Text(model);
  for (const size_t size : {size_t{0}, sizeof params - 1, size_t{1} << 40}) {
    params.size = size;
    EXPECT_EQ(vllm_engine_load(&params, &engine), VLLM_INVALID_ARGUMENT) << size;
    EXPECT_NE(LastError().find("params->size"), std::string::npos) << LastError();
  }
}

TEST(CapiArguments, ALargerStructIsServedWhenItsNewFieldsAreZero) {
  struct Newer {
    vllm_engine_params known = {};
    size_t unknown = 0;
  } params;
  const std::string model = WriteAsciiModel("llama");
  params.known.size = sizeof params;
  params.known.model = Text(model);
  vllm_engine* engine = nullptr;
  EXPECT_EQ(vllm_engine_load(&params.known, &engine), VLLM_OK) << LastError();
  vllm_engine_free(engine);
  params.unknown = 1;
  EXPECT_EQ(vllm_engine_load(&params.known, &engine), VLLM_INVALID_ARGUMENT);
}

TEST(CapiArguments, TheVersionIsThatOfTheHeader) {
  EXPECT_EQ(vllm_abi_version(), VLLM_ABI_VERSION);
  EXPECT_STREQ(vllm_version(), "0.1.0");
}

TEST(CapiArguments, ErrorsBelongToTheirThread) {
  vllm_engine* engine = nullptr;
  ASSERT_EQ(Load("/nowhere", {}, &engine), VLLM_NOT_FOUND);
  const std::string here = LastError();
  std::thread([] {
    EXPECT_STREQ(vllm_last_error(), "");
    EXPECT_EQ(vllm_engine_load(nullptr, nullptr), VLLM_INVALID_ARGUMENT);
  }).join();
  EXPECT_EQ(LastError(), here);
}

// ---------------------------------------------------------------------------------------------------------- requests

TEST(CapiGenerate, PiecesAddUpToTheAnswer) {
  const Engine engine(WriteAsciiModel("llama"));
  Recorder recorder;
  vllm_request* request = nullptr;
  ASSERT_EQ(Generate(engine.get(), "hello", kShort, &recorder, &request), VLLM_OK) << LastError();
  EXPECT_EQ(vllm_request_wait(request), VLLM_OK);
  vllm_request_free(request);
  EXPECT_EQ(recorder.finish(), VLLM_FINISH_LENGTH);
  EXPECT_EQ(recorder.ids().size(), 8u);
  std::array<char, 64> text;
  size_t length = 0;
  ASSERT_EQ(vllm_detokenize(engine.get(), recorder.ids().data(), 8, text.data(), text.size(), &length), VLLM_OK);
  EXPECT_EQ(recorder.text(), std::string(text.data(), length));
}

TEST(CapiGenerate, IdsAreAPromptToo) {
  const Engine engine(WriteAsciiModel("llama"));
  const std::vector<int32_t> ids = Tokenize(engine.get(), "hello");
  Recorder recorder;
  vllm_generate_params params = {};
  params.size = sizeof params;
  params.token_ids = ids.data();
  params.num_token_ids = ids.size();
  params.sampling_json = Text(kShort);
  params.on_output = Recorder::Take;
  params.user = &recorder;
  vllm_request* request = nullptr;
  ASSERT_EQ(vllm_generate(engine.get(), &params, &request), VLLM_OK) << LastError();
  EXPECT_EQ(vllm_request_wait(request), VLLM_OK);
  vllm_request_free(request);
  EXPECT_EQ(recorder.text(), Answer(engine.get(), "hello"));
}

TEST(CapiGenerate, EveryChoiceHasItsOwnEnd) {
  const Engine engine(WriteAsciiModel("llama"));
  Recorder recorder;
  vllm_request* request = nullptr;
  ASSERT_EQ(Generate(engine.get(), "hello", R"({"n":3,"max_tokens":4,"ignore_eos":true})", &recorder, &request),
            VLLM_OK);
  EXPECT_EQ(vllm_request_wait(request), VLLM_OK);
  vllm_request_free(request);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(recorder.finish(i), VLLM_FINISH_LENGTH);
    EXPECT_EQ(recorder.ids(i).size(), 4u);
  }
}

TEST(CapiGenerate, SamplingFieldsAreCheckedByName) {
  const Engine engine(WriteAsciiModel("llama"));
  vllm_request* request = nullptr;
  Recorder recorder;
  const auto error = [&](const char* sampling) {
    EXPECT_EQ(Generate(engine.get(), "a", sampling, &recorder, &request), VLLM_INVALID_ARGUMENT) << sampling;
    EXPECT_EQ(request, nullptr);
    return LastError();
  };
  EXPECT_EQ(error(R"({"temprature":0})"), "sampling_json: 'temprature' is not known; nearest is temperature");
  EXPECT_EQ(error("[1]"), "sampling_json: must be an object");
  EXPECT_NE(error("{").find("sampling_json: "), std::string::npos);
  EXPECT_NE(error(R"({"temperature":-1})").find("temperature"), std::string::npos);
  for (const char* field : {"n", "temperature", "top_k", "seed", "stop", "max_tokens", "min_tokens", "logit_bias",
                            "bad_words", "ignore_eos", "allowed_token_ids"}) {
    const std::string wrong = "{\"" + std::string(field) + "\":[{}]}";
    EXPECT_NE(error(wrong.c_str()).find(field), std::string::npos) << LastError();
  }
  EXPECT_EQ(recorder.calls(), 0);
}

TEST(CapiGenerate, AnEmptyPromptIsRefused) {
  const Engine engine(WriteAsciiModel("llama"));
  vllm_request* request = nullptr;
  Recorder recorder;
  EXPECT_EQ(Generate(engine.get(), "", kShort, &recorder, &request), VLLM_INVALID_ARGUMENT);
  EXPECT_EQ(LastError(), "The decoder prompt cannot be empty");
}

vllm_status Chat(vllm_engine* engine, std::span<const vllm_message> messages, Recorder* recorder,
                 vllm_request** request) {
  vllm_chat_params params = {};
  params.size = sizeof params;
  params.messages = messages.data();
  params.num_messages = messages.size();
  params.sampling_json = Text(kShort);
  params.on_output = Recorder::Take;
  params.user = recorder;
  return vllm_chat(engine, &params, request);
}

TEST(CapiChat, RendersTheTemplate) {
  const Engine engine(WriteAsciiModel("llama"), {{"chat-template", kTemplate}});
  const std::vector<vllm_message> messages = {{Text("system"), Text("Be brief.")}, {Text("user"), Text("Hi!")}};
  Recorder recorder;
  vllm_request* request = nullptr;
  ASSERT_EQ(Chat(engine.get(), messages, &recorder, &request), VLLM_OK) << LastError();
  EXPECT_EQ(vllm_request_wait(request), VLLM_OK);
  vllm_request_free(request);
  EXPECT_EQ(recorder.text(), Answer(engine.get(), "system: Be brief. user: Hi! > "));
}

TEST(CapiChat, WithoutATemplateTheRemedyIsNamed) {
  const Engine engine(WriteAsciiModel("llama"));
  const std::vector<vllm_message> messages = {{Text("user"), Text("Hi!")}};
  Recorder recorder;
  vllm_request* request = nullptr;
  EXPECT_EQ(Chat(engine.get(), messages, &recorder, &request), VLLM_UNSUPPORTED);
  EXPECT_NE(LastError().find("chat-template"), std::string::npos) << LastError();
}

TEST(CapiChat, NoMessagesAreRefused) {
  const Engine engine(WriteAsciiModel("llama"), {{"chat-template", kTemplate}});
  Recorder recorder;
  vllm_request* request = nullptr;
  EXPECT_EQ(Chat(engine.get(), {}, &recorder, &request), VLLM_INVALID_ARGUMENT);
}

// --------------------------------------------------------------------------------------------------------- cancelling

TEST(CapiCancel, NoCallbackComesAfterACancelOfAnotherThread) {
  const Engine engine(WriteAsciiModel("llama", kLongContext));
  for (int round = 0; round < 8; ++round) {
    Recorder recorder;
    vllm_request* request = nullptr;
    ASSERT_EQ(Generate(engine.get(), "hello", kLong, &recorder, &request), VLLM_OK) << LastError();
    recorder.WaitForCalls(1 + round % 3);
    std::thread([&] { vllm_request_cancel(request); }).join();
    const int calls = recorder.calls();
    EXPECT_EQ(vllm_request_wait(request), VLLM_CANCELLED);
    EXPECT_EQ(Answer(engine.get(), "abc").size(), 8u);  // many steps later
    EXPECT_EQ(recorder.calls(), calls);
    EXPECT_EQ(recorder.finish(), VLLM_FINISH_NONE);
    vllm_request_free(request);
  }
}

TEST(CapiCancel, ACancelWithinTheCallbackMakesItTheLast) {
  const Engine engine(WriteAsciiModel("llama", kLongContext));
  Recorder recorder;
  vllm_request* request = nullptr;
  recorder.on_piece = [&](int) { vllm_request_cancel(request); };
  ASSERT_EQ(Generate(engine.get(), "hello", R"({"n":4,"max_tokens":100000,"ignore_eos":true})", &recorder, &request),
            VLLM_OK);
  EXPECT_EQ(vllm_request_wait(request), VLLM_CANCELLED);
  EXPECT_EQ(Answer(engine.get(), "abc").size(), 8u);
  EXPECT_EQ(recorder.calls(), 1);
  vllm_request_free(request);
}

TEST(CapiCancel, WaitReturnsOnlyWhenTheCallbackHas) {
  const Engine engine(WriteAsciiModel("llama", kLongContext));
  Recorder recorder;
  vllm_request* request = nullptr;
  std::atomic<bool> left = false;
  recorder.on_piece = [&](int) {
    vllm_request_cancel(request);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // room for a wait that returns too early
    left = true;
  };
  ASSERT_EQ(Generate(engine.get(), "hello", kLong, &recorder, &request), VLLM_OK);
  EXPECT_EQ(vllm_request_wait(request), VLLM_CANCELLED);
  EXPECT_TRUE(left);
  vllm_request_free(request);
}

TEST(CapiCancel, ARequestCanBeFreedWithinItsCallback) {
  const Engine engine(WriteAsciiModel("llama", kLongContext));
  Recorder recorder;
  vllm_request* request = nullptr;
  recorder.on_piece = [&](int) { vllm_request_free(request); };
  ASSERT_EQ(Generate(engine.get(), "hello", kLong, &recorder, &request), VLLM_OK);
  recorder.WaitForCalls(1);
  EXPECT_EQ(Answer(engine.get(), "abc").size(), 8u);
  EXPECT_EQ(recorder.calls(), 1);
}

TEST(CapiCancel, AfterTheEndItIsHarmless) {
  const Engine engine(WriteAsciiModel("llama"));
  Recorder recorder;
  vllm_request* request = nullptr;
  ASSERT_EQ(Generate(engine.get(), "hello", kShort, &recorder, &request), VLLM_OK);
  EXPECT_EQ(vllm_request_wait(request), VLLM_OK);
  vllm_request_cancel(request);
  EXPECT_EQ(vllm_request_wait(request), VLLM_OK);
  vllm_request_free(request);
}

TEST(CapiCancel, ACallbackCannotWaitOrFreeTheEngine) {
  const Engine engine(WriteAsciiModel("llama"));
  Recorder recorder;
  vllm_request* request = nullptr;
  std::atomic<int> status = -1;
  recorder.on_piece = [&](int) {
    vllm_engine_free(engine.get());  // does nothing
    status = vllm_request_wait(request);
  };
  ASSERT_EQ(Generate(engine.get(), "hello", kShort, &recorder, &request), VLLM_OK);
  EXPECT_EQ(vllm_request_wait(request), VLLM_OK);
  EXPECT_EQ(status, VLLM_INVALID_ARGUMENT);
  vllm_request_free(request);
}

TEST(CapiCancel, FreeingTheEngineEndsItsRequests) {
  Engine engine(WriteAsciiModel("llama", kLongContext));
  Recorder recorder;
  vllm_request* request = nullptr;
  ASSERT_EQ(Generate(engine.get(), "hello", kLong, &recorder, &request), VLLM_OK);
  recorder.WaitForCalls(2);
  engine.Free();
  const int calls = recorder.calls();
  EXPECT_EQ(vllm_request_wait(request), VLLM_CANCELLED);
  vllm_request_cancel(request);
  vllm_request_free(request);
  EXPECT_EQ(recorder.calls(), calls);
}

// --------------------------------------------------------------------------------------------------------------- text

TEST(CapiText, ComesBackFromItsIds) {
  const Engine engine(WriteAsciiModel("llama"));
  const std::string text = "Hello, world! {42}";
  const std::vector<int32_t> ids = Tokenize(engine.get(), text);
  EXPECT_EQ(ids.size(), text.size());
  std::string back(text.size(), '?');
  size_t length = 0;
  ASSERT_EQ(vllm_detokenize(engine.get(), ids.data(), ids.size(), back.data(), back.size(), &length), VLLM_OK);
  EXPECT_EQ(length, text.size());
  EXPECT_EQ(back, text);
}

TEST(CapiText, NoMoreThanTheCapacityIsWritten) {
  const Engine engine(WriteAsciiModel("llama"));
  std::array<int32_t, 4> ids = {-7, -7, -7, -7};
  size_t count = 0;
  ASSERT_EQ(vllm_tokenize(engine.get(), Text("abcdef"), 0, ids.data(), 2, &count), VLLM_OK);
  EXPECT_EQ(count, 6u);
  EXPECT_EQ(ids, (std::array<int32_t, 4>{'a' - '!', 'b' - '!', -7, -7}));
  std::array<char, 4> text = {'?', '?', '?', '?'};
  size_t length = 0;
  ASSERT_EQ(
      vllm_detokenize(engine.get(), std::array{'a' - '!', 'b' - '!', 'c' - '!'}.data(), 3, text.data(), 2, &length),
      VLLM_OK);
  EXPECT_EQ(length, 3u);
  EXPECT_EQ(text, (std::array<char, 4>{'a', 'b', '?', '?'}));
}

TEST(CapiText, SpecialTokensAreFoundAndLeftOut) {
  const Engine engine(WriteAsciiModel("llama"));
  const std::vector<int32_t> ids = Tokenize(engine.get(), "a<|end|>b");
  EXPECT_EQ(ids, (std::vector<int32_t>{'a' - '!', 95, 'b' - '!'}));
  std::array<char, 8> text;
  size_t length = 0;
  ASSERT_EQ(vllm_detokenize(engine.get(), ids.data(), ids.size(), text.data(), text.size(), &length), VLLM_OK);
  EXPECT_EQ(std::string(text.data(), length), "ab");
}

TEST(CapiText, IdsThatDoNotExistAreLeftOut) {
  const Engine engine(WriteAsciiModel("llama"));
  size_t length = 1;
  EXPECT_EQ(vllm_detokenize(engine.get(), std::array{-1, 1 << 30}.data(), 2, nullptr, 0, &length), VLLM_OK);
  EXPECT_EQ(length, 0u);
}

// -------------------------------------------------------------------------------------------------- the host's process

TEST(CapiHost, LogitsThatAreNoNumbersEndTheRequestAlone) {
  const Engine engine(WriteBrokenModel());
  for (int round = 0; round < 2; ++round) {
    Recorder recorder;
    vllm_request* request = nullptr;
    ASSERT_EQ(Generate(engine.get(), "hello", kShort, &recorder, &request), VLLM_OK) << LastError();
    EXPECT_EQ(vllm_request_wait(request), VLLM_INTERNAL);
    EXPECT_EQ(LastError(), recorder.error());
    EXPECT_EQ(recorder.finish(), VLLM_FINISH_ERROR);
    EXPECT_NE(recorder.error(), "");
    vllm_request_free(request);
  }
}

TEST(CapiHost, ACallbackThatThrowsEndsItsRequestAlone) {
  const Engine engine(WriteAsciiModel("llama", kLongContext));
  Recorder recorder;
  vllm_request* request = nullptr;
  recorder.on_piece = [](int) { throw std::runtime_error("not for C"); };
  ASSERT_EQ(Generate(engine.get(), "hello", kLong, &recorder, &request), VLLM_OK);
  EXPECT_EQ(vllm_request_wait(request), VLLM_CANCELLED);
  EXPECT_EQ(recorder.calls(), 1);
  vllm_request_free(request);
  EXPECT_EQ(Answer(engine.get(), "abc").size(), 8u);
}

// Everything that stdout and stderr get while it lives.
class CaptureOutput {
 public:
  CaptureOutput() : file_(std::tmpfile()) {
    for (const int fd : {1, 2}) {
      saved_[fd] = dup(fd);
      dup2(fileno(file_), fd);
    }
  }
  ~CaptureOutput() {
    Restore();
    std::fclose(file_);
  }
  std::string Text() {
    Restore();
    std::string text(static_cast<size_t>(lseek(fileno(file_), 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(fileno(file_), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  void Restore() {
    std::fflush(nullptr);
    for (const int fd : {1, 2}) {
      if (saved_[fd] < 0) continue;
      dup2(saved_[fd], fd);
      close(saved_[fd]);
      saved_[fd] = -1;
    }
  }
  std::FILE* file_;
  std::array<int, 3> saved_ = {-1, -1, -1};
};

TEST(CapiHost, NothingIsPrinted) {
  const std::string model = WriteAsciiModel("llama"), broken = WriteBrokenModel();
  CaptureOutput capture;
  {
    const Engine engine(model), wrong(broken);
    Answer(engine.get(), "hello");
    vllm_engine* other = nullptr;
    EXPECT_EQ(Load("/nowhere", {}, &other), VLLM_NOT_FOUND);
    Recorder failing, throwing;
    throwing.on_piece = [](int) { throw std::runtime_error("not for C"); };
    vllm_request *first = nullptr, *second = nullptr;
    EXPECT_EQ(Generate(wrong.get(), "hello", kShort, &failing, &first), VLLM_OK);
    EXPECT_EQ(Generate(engine.get(), "hello", kShort, &throwing, &second), VLLM_OK);
    vllm_request_wait(first);
    vllm_request_wait(second);
    vllm_request_free(first);
    vllm_request_free(second);
  }
  EXPECT_EQ(capture.Text(), "");
}

TEST(CapiHost, SignalHandlersAndMaskStay) {
  const auto handlers = [] {
    std::vector<void (*)(int)> all;
    for (int signal = 1; signal < SIGRTMAX; ++signal) {
      struct sigaction action = {};
      if (sigaction(signal, nullptr, &action) == 0) all.push_back(action.sa_handler);
    }
    return all;
  };
  const auto mask = [] {
    std::vector<int> blocked;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    for (int signal = 1; signal < SIGRTMAX; ++signal) blocked.push_back(sigismember(&set, signal));
    return blocked;
  };
  const auto handlers_before = handlers();
  const auto mask_before = mask();
  const Engine engine(WriteAsciiModel("llama"));
  EXPECT_EQ(Answer(engine.get(), "hello").size(), 8u);
  EXPECT_EQ(handlers(), handlers_before);
  EXPECT_EQ(mask(), mask_before);
}

}  // namespace
}  // namespace vllm

// The command line: vLLM's and llama.cpp's spellings, the YAML file, the environment, and one-line errors.
#include "app/command_line.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

namespace vllm {
namespace {

CommandLine Parse(std::vector<std::string> words, const Environment& environment = {}) {
  return ParseCommandLine(words, environment);
}

std::string ErrorOf(std::vector<std::string> words) {
  try {
    Parse(std::move(words));
  } catch (const base::Exception& exception) {
    return exception.what();
  }
  return "no error";
}

std::string WriteConfig(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(CommandLine, TheWordAfterTheCommandIsTheModel) {
  const CommandLine line = Parse({"serve", "model.gguf"});
  EXPECT_EQ(line.command, kServe);
  EXPECT_EQ(line.options.String("model", ""), "model.gguf");
}

TEST(CommandLine, ShortFormsOfLlamaCppFillVllmsOptions) {
  const CommandLine line = Parse({"serve", "-m", "x.gguf", "-c", "4096", "-t", "2", "-np", "4", "-b", "512"});
  EXPECT_EQ(line.options.String("model", ""), "x.gguf");
  EXPECT_EQ(line.options.Size("max_model_len", 0), 4096);
  EXPECT_EQ(line.options.Int("threads", 0), 2);
  EXPECT_EQ(line.options.Int("max_num_seqs", 0), 4);
  EXPECT_EQ(line.options.Size("max_num_batched_tokens", 0), 512);
}

TEST(CommandLine, DashNIsTokensForCompleteAndNodesForServe) {
  EXPECT_EQ(Parse({"complete", "m", "-n", "7", "hello"}).options.Int("max_tokens", 0), 7);
  EXPECT_EQ(ErrorOf({"serve", "m", "-n", "2"}),
            "-n: '2' is not supported: one engine in one process; run several servers and balance between them "
            "(accepted: 1)");
}

TEST(CommandLine, UnderscoresInNamesAreDashes) {
  EXPECT_EQ(Parse({"serve", "m", "--max_model_len=1k"}).options.Size("max_model_len", 0), 1000);
}

TEST(CommandLine, SwitchesHaveANegativeForm) {
  EXPECT_FALSE(Parse({"serve", "m", "--no-enable-prefix-caching"}).options.Bool("enable_prefix_caching", true));
  EXPECT_FALSE(Parse({"serve", "m", "--no_enable_prefix_caching"}).options.Bool("enable_prefix_caching", true));
  EXPECT_TRUE(Parse({"serve", "m", "--enable-prefix-caching"}).options.Bool("enable_prefix_caching", false));
  EXPECT_FALSE(Parse({"serve", "m", "--enable-prefix-caching=false"}).options.Bool("enable_prefix_caching", true));
}

TEST(CommandLine, ASwitchDoesNotTakeTheNextWord) {
  EXPECT_EQ(Parse({"serve", "--enable-prefix-caching", "m.gguf"}).options.String("model", ""), "m.gguf");
}

TEST(CommandLine, NegativeNumbersAreValues) {
  EXPECT_EQ(Parse({"serve", "m", "--max-logprobs", "-1"}).options.Int("max_logprobs", 0), -1);
  EXPECT_EQ(Parse({"complete", "m", "--presence-penalty", "-0.5"}).options.Double("presence_penalty", 0), -0.5);
}

TEST(CommandLine, ListsTakeSeveralWordsAndRepeat) {
  const CommandLine line = Parse({"serve", "m", "--served-model-name", "a", "b", "--served-model-name=c"});
  EXPECT_EQ(line.options.List("served_model_name"), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(CommandLine, JsonFlagsTakeDottedKeys) {
  const CommandLine line = Parse({"serve", "m", "--default-chat-template-kwargs.a.b=3",
                                  "--default-chat-template-kwargs.c", "x", "--default-chat-template-kwargs.l+=1,2"});
  EXPECT_EQ(base::DumpJson(*line.options.FindJson("default_chat_template_kwargs")),
            R"({"a":{"b":3},"c":"x","l":["1","2"]})");
}

TEST(CommandLine, ADottedKeyOfAPlainFlagIsRefused) {
  EXPECT_EQ(ErrorOf({"serve", "m", "--port.x=1"}), "--port.x=1: only JSON flags have keys; use --port");
}

TEST(CommandLine, AnUnknownFlagNamesTheNearest) {
  EXPECT_EQ(ErrorOf({"serve", "m", "--max-modle-len", "5"}),
            "vllm serve: unknown flag '--max-modle-len'; did you mean --max-model-len?");
  EXPECT_EQ(ErrorOf({"serve", "m", "--max-num-b", "5"}),
            "vllm serve: unknown flag '--max-num-b'; did you mean --max-num-batched-tokens?");
}

TEST(CommandLine, AnUnknownFlagLikeNoneNamesTheHelp) {
  EXPECT_EQ(ErrorOf({"serve", "m", "--xyzzy"}), "vllm serve: unknown flag '--xyzzy'; see vllm serve --help=all");
}

TEST(CommandLine, AFlagOfAnotherCommandNamesIts) {
  EXPECT_EQ(ErrorOf({"chat", "m", "--port", "1"}), "vllm chat: --port is a flag of: serve, bench serve");
}

TEST(CommandLine, AFlagOfTheGpuIsNotedAndHasNoEffect) {
  const CommandLine line = Parse({"serve", "m", "--enforce-eager", "-O3", "-ngl", "99"});
  ASSERT_EQ(line.notes.size(), 3u);
  EXPECT_EQ(
      line.notes[0],
      "--enforce-eager has no effect: there are no CUDA graphs and no compiler; every step runs a plan made at start");
  EXPECT_EQ(line.notes[2], "-ngl has no effect: there is no GPU");
  EXPECT_FALSE(line.options.Has("enforce_eager"));
}

TEST(CommandLine, ARefusedFlagPassesWhileItHoldsItsDefault) {
  EXPECT_EQ(Parse({"serve", "m", "--tensor-parallel-size", "1", "--dtype", "auto", "--no-enable-lora"}).notes.size(),
            0u);
  EXPECT_EQ(ErrorOf({"serve", "m", "-tp", "2"}),
            "-tp: '2' is not supported: one engine in one process; run several servers and balance between them "
            "(accepted: 1)");
  EXPECT_EQ(ErrorOf({"serve", "m", "--enable-lora"}),
            "--enable-lora: 'true' is not supported: adapters are not served");
}

TEST(CommandLine, AWrongValueNamesTheFlag) {
  EXPECT_EQ(ErrorOf({"serve", "m", "--max-num-seqs", "x"}), "--max-num-seqs: 'x' is not a whole number");
  EXPECT_EQ(ErrorOf({"serve", "m", "--numerics", "bf16"}),
            "--numerics: 'bf16' is not one of exact, default, invariant, fast");
  EXPECT_EQ(ErrorOf({"serve", "m", "--device", "cuda"}), "--device: 'cuda' is not one of cpu, ref, opaque");
}

TEST(CommandLine, AMissingValueIsToldAtOnce) {
  EXPECT_EQ(ErrorOf({"serve", "m", "--port"}), "--port: a value is missing");
  EXPECT_EQ(ErrorOf({"serve", "m", "--port", "--host", "h"}), "--port: a value is missing");
}

TEST(CommandLine, WordsTooManyAreRefused) {
  EXPECT_EQ(ErrorOf({"serve", "m", "n"}), "vllm serve: 'n' is one word too many (quote texts with blanks)");
}

TEST(CommandLine, AfterTwoDashesAllWordsAreOperands) {
  const CommandLine line = Parse({"complete", "m", "--", "--not-a-flag"});
  EXPECT_EQ(line.operands, (std::vector<std::string>{"--not-a-flag"}));
}

TEST(CommandLine, AnUnknownCommandNamesTheNearest) {
  EXPECT_EQ(ErrorOf({"server"}),
            "vllm: 'server' is not a command (serve, chat, complete, bench, perplexity, inspect); did you mean serve");
}

TEST(CommandLine, BenchHasThreeKinds) {
  EXPECT_EQ(Parse({"bench", "latency", "m"}).command, kLatency);
  EXPECT_EQ(Parse({"bench", "throughput", "m"}).command, kThroughput);
  EXPECT_EQ(ErrorOf({"bench"}), "vllm bench: '' is not one of latency, throughput, serve");
}

TEST(CommandLine, HelpAndVersionNeedNoModel) {
  EXPECT_EQ(Parse({}).action, Action::kHelp);
  EXPECT_EQ(Parse({"--version"}).action, Action::kVersion);
  const CommandLine help = Parse({"serve", "--help=cache"});
  EXPECT_EQ(help.action, Action::kHelp);
  EXPECT_EQ(help.help_topic, "cache");
}

TEST(CommandLine, TheConfigFileFillsWhatTheCommandLineLeaves) {
  const std::string path = WriteConfig("command_line.yaml",
                                       "model: from-file\nport: 9001\nmax-num-seqs: 3\nserved_model_name: [a, b]\n"
                                       "enforce-eager: true\ndefault-chat-template-kwargs:\n  x: 1\nuds: null\n");
  const CommandLine line = Parse({"serve", "--config", path, "--port", "9002"});
  EXPECT_EQ(line.options.String("model", ""), "from-file");
  EXPECT_EQ(line.options.Int("port", 0), 9002);
  EXPECT_EQ(line.options.Int("max_num_seqs", 0), 3);
  EXPECT_EQ(line.options.List("served_model_name"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(base::DumpJson(*line.options.FindJson("default_chat_template_kwargs")), R"({"x":1})");
  EXPECT_FALSE(line.options.Has("uds"));
  EXPECT_EQ(line.notes.size(), 1u);
}

TEST(CommandLine, AWrongKeyOfTheConfigFileNamesLineAndNearest) {
  const std::string path = WriteConfig("command_line_bad.yaml", "port: 1\nmax-num-seq: 3\n");
  EXPECT_EQ(ErrorOf({"serve", "m", "--config", path}),
            path + ":2: max-num-seq: is no flag; did you mean max-num-seqs?");
}

TEST(CommandLine, AWrongValueOfTheConfigFileNamesItsLine) {
  const std::string path = WriteConfig("command_line_value.yaml", "\nport: many\n");
  EXPECT_EQ(ErrorOf({"serve", "m", "--config", path}), path + ":2: port: 'many' is not a whole number");
}

TEST(CommandLine, TheEnvironmentComesLast) {
  const CommandLine line =
      Parse({"serve", "m", "--log-level", "DEBUG"}, {{"VLLM_LOGGING_LEVEL", "ERROR"}, {"VT_CPU_ISA", "avx2"}});
  EXPECT_EQ(line.options.String("log_level", ""), "DEBUG");
  EXPECT_EQ(line.options.String("isa", ""), "avx2");
  EXPECT_EQ(line.options.Origin("isa"), "VT_CPU_ISA");
}

TEST(CommandLine, AnUnknownVariableIsNotedWithTheNearest) {
  const CommandLine line = Parse({"serve", "m"}, {{"VLLM_API_KEX", "1"}});
  EXPECT_EQ(line.notes,
            (std::vector<std::string>{"VLLM_API_KEX is no variable of this program; did you mean VLLM_API_KEY"}));
}

}  // namespace
}  // namespace vllm

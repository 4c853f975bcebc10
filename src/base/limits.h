// Every bound on outside input and on queues, each with its reason. Exceeding one is an error that names it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace base {

// JSON of clients: deep enough for any tool schema seen, far below where copying or dumping would exhaust a stack.
inline constexpr int kMaxJsonDepth = 128;
// Values of a client's JSON, which take 16 bytes each, however short their text, and as much again while a list grows:
// a prompt of a million token ids twice over. Texts, lists, objects and names take about four times as much, and count
// so. Together it keeps the memory of a hostile body below four times its size and 100 MiB.
inline constexpr size_t kMaxJsonValues = size_t{5} << 19;
inline constexpr size_t kJsonValuesOfAText = 4;
// Names of one object, which are searched in order: schemas and logit biases have some hundreds.
inline constexpr size_t kMaxJsonObjectKeys = size_t{1} << 16;

// Chat templates. Real ones are under 100 KB and nest under 20 deep; CPython itself refuses about 200 nested
// parentheses.
inline constexpr size_t kMaxTemplateBytes = 1 << 20;
inline constexpr int kMaxTemplateNesting = 200;
// Evaluations inside evaluations, macro calls included: about as deep as CPython's recursion limit, well under a
// thread's stack.
inline constexpr int kMaxTemplateRecursion = 1500;
// Lists in lists. Above kMaxJsonDepth, so that every request can be passed on.
inline constexpr int kMaxTemplateValueDepth = 256;
// One rendering: a conversation of a million tokens takes a few percent of these. A step is about 100 ns.
inline constexpr int64_t kMaxTemplateSteps = 10'000'000;
inline constexpr int64_t kMaxTemplateAllocatedBytes = int64_t{512} << 20;
inline constexpr int64_t kMaxTemplateStringBytes = int64_t{64} << 20;
// The length of a range(): jinja2's sandbox has the same.
inline constexpr int64_t kMaxTemplateRange = 100'000;

// Tokenizer files: the largest in use is about 40 MB, and parsing takes several times the bytes.
inline constexpr size_t kMaxTokenizerFileBytes = size_t{256} << 20;
// Token ids: vocabularies in use end near 300,000; an id is an index, so a wild one would be an allocation.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 22) - 1;
// One token: longer ones (runs of spaces) are below 1 KiB in every vocabulary seen.
inline constexpr size_t kMaxTokenBytes = size_t{16} << 10;
// A regular expression of a tokenizer file: the longest in use is 1.5 KiB, compiled code grows with it.
inline constexpr size_t kMaxRegexBytes = size_t{16} << 10;
// Components nested in a tokenizer file ("Sequence" in "Sequence"): two in practice; parsing recurses.
inline constexpr int kMaxTokenizerNesting = 8;
// Text that one call tokenizes: positions are 32-bit, a context of a million tokens is a few MB, and the worst text
// needs 30 times its bytes.
inline constexpr size_t kMaxTokenizeBytes = size_t{64} << 20;
// Tokens whose text an incremental detokenizer holds back while they end inside a character: a character is at most
// four bytes, so more are bytes that will never form one, and decoding them again for every token would be quadratic.
inline constexpr size_t kMaxHeldTokens = 32;

// Sampling fields. The first six are vLLM's own bounds.
inline constexpr int kMaxSequencesPerRequest = 16384;  // n
inline constexpr size_t kMaxAllowedTokenIds = 1024;
inline constexpr size_t kMaxLogitBiasTokens = 1024;
inline constexpr size_t kMaxStopTokenIds = 128;
inline constexpr size_t kMaxBadWords = 128;
inline constexpr int kMaxLogprobTokenIds = 128;
// Every stop string is searched for after every token.
inline constexpr size_t kMaxStopStrings = 256;
// Tokens of all bad words together: each is compared after every token. vLLM's bound.
inline constexpr size_t kMaxBadWordTokens = 1024;
// Sequences waiting besides those that may run when the operator sets no --max-num-queued-reqs: each holds its prompt
// and its output state, so an unbounded queue is unbounded memory; beyond this many nobody's turn comes within a
// client's patience.
inline constexpr int64_t kMaxQueuedRequests = 4096;
// The longest time limit of a request, a week: longer ones are no limit, and sums with the clock stay far from
// overflow.
inline constexpr int64_t kMaxRequestTimeoutSeconds = 7 * 24 * 3600;
// Prompt tokens times n of one request: every choice queues with its own copy of the prompt, 4 bytes a token.
inline constexpr int64_t kMaxRequestTokens = int64_t{1} << 26;

// Configuration files (config.json, generation_config.json): real ones are under 1 MB, nest under 10 deep and hold some
// ten thousand values (per-layer quantization lists); a value takes about 140 bytes of memory.
inline constexpr size_t kMaxConfigBytes = 16u << 20;
inline constexpr int kMaxConfigDepth = 64;
inline constexpr int64_t kMaxConfigValues = 1 << 18;

// Safetensors: the library's own limit on headers, here for the index as well; numpy's and torch's limit on dimensions.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr size_t kMaxSafetensorsDims = 64;
// Values of unknown fields in a tensor's entry are skipped to this depth.
inline constexpr int kMaxSafetensorsDepth = 64;

// GGUF. Real files have under 100 keys, 100 k tensors and 50 parts; ggml's tensor names end at 64 bytes.
inline constexpr uint64_t kMaxGgufKeys = 1 << 16;
inline constexpr uint64_t kMaxGgufTensors = 1 << 20;
inline constexpr uint64_t kMaxGgufNameBytes = 1024;
inline constexpr uint64_t kMaxGgufParts = 4096;
inline constexpr uint64_t kMaxGgufAlignment = 1 << 20;
// Tensors of one model over all its files: a mixture of experts with separate experts has about 100 k.
inline constexpr size_t kMaxModelTensors = 1 << 20;

// The YAML file of --config: a page of flags. The depth bounds what the parser recurses over.
inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr int kMaxYamlDepth = 32;
// A text file given on the command line (--file, perplexity): read whole.
inline constexpr size_t kMaxTextFileBytes = 1u << 30;

// A trace of every step: about 1 KB a step, so hours of serving; beyond it no viewer opens the file.
inline constexpr uint64_t kMaxTraceBytes = uint64_t{1} << 30;
// Controls (prefix cache reset) that wait for the engine thread: each is a caller that waits for it.
inline constexpr size_t kMaxQueuedControls = 256;

// HTTP. Bodies: a prompt of a million tokens is about 5 MB of text; several of them fit.
inline constexpr size_t kMaxRequestBodyBytes = size_t{32} << 20;
inline constexpr uint32_t kMaxRequestHeaderBytes = 16384;
// Bytes of a next request that are read while the present one is answered.
inline constexpr size_t kMaxPipelinedBytes = 65536;
// Unsent bytes of one stream: some ten thousand tokens, far more than a client that reads at all lets pile up.
inline constexpr size_t kMaxStreamBacklogBytes = size_t{4} << 20;
// A client that takes nothing for so long has gone without saying so.
inline constexpr int kWriteTimeoutSeconds = 30;
// From a request's head to its last byte; and between requests.
inline constexpr int kRequestTimeoutSeconds = 60;
inline constexpr int kIdleConnectionSeconds = 75;
// After a refusal the rest of the request is read and dropped, so that the client sees the answer: as much as one that
// sends twice what it may, and no longer than a slow network takes to tell it.
inline constexpr int kLingerSeconds = 5;
inline constexpr size_t kMaxLingerBytes = 2 * kMaxRequestBodyBytes;
// An event, or an answer that is no stream, of the server that vllm bench serve measures: a token takes some hundred
// bytes, all log-probabilities of a large vocabulary some MB.
inline constexpr size_t kMaxSseEventBytes = size_t{16} << 20;
// Descriptors are few (1,024 is a common limit of a process), and each connection holds one.
inline constexpr int64_t kMaxConnections = 4096;

// Prompts of one completions request: vLLM's bound. Each is an engine request.
inline constexpr size_t kMaxPromptsPerRequest = 1024;
// Stop strings, bad words and id lists of a completions request times its prompts, each of which gets its own copy.
inline constexpr size_t kMaxRepeatedParamsBytes = size_t{64} << 20;
// A client's own request id; it is repeated in every event.
inline constexpr size_t kMaxRequestIdBytes = 256;
// Messages of one chat request: far more than any conversation, and each is copied into the template's values.
inline constexpr size_t kMaxChatMessages = 16384;

}  // namespace base

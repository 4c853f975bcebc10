/* vllm.h: the C ABI of vllm.cpp. C11-clean.
 *
 * Load a model, generate or chat with a callback per piece of text, cancel from any thread.
 *
 * Rules
 * - Handles are opaque. Every struct begins with `size`, set by the caller to sizeof of the struct, so that fields can
 * be added; what lies beyond the fields that the library knows must be zero.
 * - Text is UTF-8 as pointer and length; it need not end in NUL, and text given to callbacks lives for the call only.
 * - Every function may be called from any thread unless it says otherwise. Nothing is printed, no signal handler is
 * set, and no failure ends the process: functions return a status, and vllm_last_error() tells more.
 * - No callback of a request begins after vllm_request_cancel() or vllm_request_free() has returned, and none is
 * running then (but the one that made the call).
 */
#ifndef VLLM_H_
#define VLLM_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define VLLM_API __attribute__((visibility("default")))
#else
#define VLLM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a function is removed or changes meaning; also the number in the shared library's name. */
#define VLLM_ABI_VERSION 1

typedef enum vllm_status {
  VLLM_OK = 0,
  VLLM_INVALID_ARGUMENT = 1,
  VLLM_NOT_FOUND = 2,
  VLLM_BAD_FILE = 3,
  VLLM_UNSUPPORTED = 4,
  VLLM_OUT_OF_MEMORY = 5,
  VLLM_OVERLOADED = 6,
  VLLM_CANCELLED = 7,
  VLLM_INTERNAL = 8,
  VLLM_DEADLINE_EXCEEDED = 9 /* the option request-timeout: its time was over before the first token */
} vllm_status;

typedef enum vllm_finish_reason {
  VLLM_FINISH_NONE = 0,
  VLLM_FINISH_STOP = 1,
  VLLM_FINISH_LENGTH = 2,
  VLLM_FINISH_ABORT = 3,
  VLLM_FINISH_ERROR = 4
} vllm_finish_reason;

typedef struct vllm_engine vllm_engine;
typedef struct vllm_request vllm_request;

typedef struct vllm_text {
  const char* data;
  size_t length; /* bytes */
} vllm_text;

/* A setting by its long flag name without dashes ("max-model-len"), its value as one would type it ("4096"); an unknown
 * name is refused. */
typedef struct vllm_option {
  vllm_text name, value;
} vllm_option;

/* Called on the loading thread, with the fraction done; a result other than 0 stops the load (VLLM_CANCELLED). */
typedef int (*vllm_progress_fn)(double fraction, void* user);

typedef struct vllm_engine_params {
  size_t size;
  vllm_text model; /* a GGUF file, a folder, or a hub name in the local cache */
  const vllm_option* options;
  size_t num_options;
  vllm_progress_fn progress; /* may be NULL */
  void* progress_user;
} vllm_engine_params;

/* On success *engine is to be freed with vllm_engine_free. Several engines may live in one process. */
VLLM_API vllm_status vllm_engine_load(const vllm_engine_params* params, vllm_engine** engine);
/* Ends its requests, and waits for the callback that runs; then frees it. Its requests may be freed before or after.
 * Not from a callback of a request, where it does nothing. */
VLLM_API void vllm_engine_free(vllm_engine* engine);

typedef struct vllm_output {
  size_t size;
  int32_t index;            /* of the choice */
  vllm_text text;           /* what is new */
  const int32_t* token_ids; /* what is new */
  size_t num_token_ids;
  vllm_finish_reason finish_reason; /* VLLM_FINISH_NONE until the choice's last piece */
  vllm_text error;                  /* with VLLM_FINISH_ERROR, which ends the other choices too */
} vllm_output;

/* Called for every piece of an answer, in order, on a thread of the engine; must not block long, must not throw. */
typedef void (*vllm_output_fn)(const vllm_output* output, void* user);

typedef struct vllm_message {
  vllm_text role, content;
} vllm_message;

/* Sampling settings are given by name, as in the OpenAI API and vLLM: a JSON object such as
 * {"temperature":0,"max_tokens":64,"stop":["\n"]}. */
typedef struct vllm_generate_params {
  size_t size;
  vllm_text prompt;         /* either text … */
  const int32_t* token_ids; /* … or ids */
  size_t num_token_ids;
  vllm_text sampling_json; /* may be empty */
  vllm_output_fn on_output;
  void* user;
} vllm_generate_params;

typedef struct vllm_chat_params {
  size_t size;
  const vllm_message* messages;
  size_t num_messages;
  vllm_text sampling_json; /* may be empty */
  vllm_output_fn on_output;
  void* user;
} vllm_chat_params;

/* Starts a request; on success *request, which is set before the first callback, is to be freed with vllm_request_free.
 * An unknown sampling field is refused. Without max_tokens a completion ends after 16 tokens, a chat where the context
 * ends. */
VLLM_API vllm_status vllm_generate(vllm_engine* engine, const vllm_generate_params* params, vllm_request** request);
VLLM_API vllm_status vllm_chat(vllm_engine* engine, const vllm_chat_params* params, vllm_request** request);
/* Waits until the last callback has returned. VLLM_CANCELLED after a cancel or the end of its engine; the error's
 * status when it ended with VLLM_FINISH_ERROR. Not from a callback (VLLM_INVALID_ARGUMENT). */
VLLM_API vllm_status vllm_request_wait(vllm_request* request);
/* From any thread, also from a callback. Harmless for a request that has ended. */
VLLM_API void vllm_request_cancel(vllm_request* request);
/* Cancels a request that has not ended, then frees it; also from its callback. NULL is harmless. */
VLLM_API void vllm_request_free(vllm_request* request);

/* Ids of a text. Writes at most `capacity` of them; *count is how many there are (VLLM_OK even if more than capacity),
 * so that ids NULL and capacity 0 only count. */
VLLM_API vllm_status vllm_tokenize(vllm_engine* engine, vllm_text text, int add_special_tokens, int32_t* ids,
                                   size_t capacity, size_t* count);
/* Text of ids, with special tokens left out. Writes at most `capacity` bytes, no NUL; *length is how many there are. */
VLLM_API vllm_status vllm_detokenize(vllm_engine* engine, const int32_t* ids, size_t num_ids, char* text,
                                     size_t capacity, size_t* length);

/* What the last failing call on this thread complained of: one line, ends in NUL, valid until the next call on this
 * thread. */
VLLM_API const char* vllm_last_error(void);
/* "0.1.0" */
VLLM_API const char* vllm_version(void);
VLLM_API int vllm_abi_version(void);

#ifdef __cplusplus
}
#endif

#endif /* VLLM_H_ */

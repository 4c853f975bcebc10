/* chat.c: a conversation on the terminal; an empty line or the end of the input ends it.
 *
 *   cc -std=c11 chat.c -o chat $(pkg-config --cflags --libs vllm)
 *   ./chat model.gguf
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vllm.h>

enum { MAX_MESSAGES = 64, MAX_LINE = 4096 };

/* The answer so far; grows in the callback. */
typedef struct answer {
  char* data;
  size_t length;
} answer;

static int show_progress(double fraction, void* user) {
  (void)user;
  fprintf(stderr, "\rloading %3.0f %%", fraction * 100);
  return 0;
}

static void take_piece(const vllm_output* output, void* user) {
  answer* so_far = user;
  char* grown = realloc(so_far->data, so_far->length + output->text.length + 1);
  if (grown == NULL) return;
  memcpy(grown + so_far->length, output->text.data, output->text.length);
  so_far->data = grown;
  so_far->length += output->text.length;
  fwrite(output->text.data, 1, output->text.length, stdout);
  fflush(stdout);
}

static vllm_text text_of(const char* string) {
  vllm_text text = {string, strlen(string)};
  return text;
}

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, vllm_last_error());
  return 1;
}

/* Asks with the whole history and appends the answer to it. Owned by the caller: messages[i].content.data. */
static int ask(vllm_engine* engine, vllm_message* messages, size_t* count) {
  answer so_far = {NULL, 0};
  vllm_chat_params params = {.size = sizeof params,
                             .messages = messages,
                             .num_messages = *count,
                             .sampling_json = text_of("{\"max_tokens\": 512}"),
                             .on_output = take_piece,
                             .user = &so_far};
  vllm_request* request = NULL;
  int result = 0;
  if (vllm_chat(engine, &params, &request) != VLLM_OK || vllm_request_wait(request) != VLLM_OK) result = fail("chat");
  vllm_request_free(request); /* before so_far goes: no callback runs afterwards */
  printf("\n");
  messages[*count].role = text_of("assistant");
  messages[*count].content.data = so_far.data;
  messages[*count].content.length = so_far.length;
  ++*count;
  return result;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL [CHAT_TEMPLATE]\n", argv[0]);
    return 1;
  }
  vllm_option option = {text_of("chat-template"), text_of(argc > 2 ? argv[2] : "")};
  vllm_engine_params load = {.size = sizeof load,
                             .model = text_of(argv[1]),
                             .options = &option,
                             .num_options = argc > 2 ? 1 : 0,
                             .progress = show_progress};
  vllm_engine* engine = NULL;
  if (vllm_engine_load(&load, &engine) != VLLM_OK) return fail("load");
  fprintf(stderr, "\n");

  vllm_message messages[MAX_MESSAGES];
  size_t count = 0;
  char line[MAX_LINE];
  int result = 0;
  while (result == 0 && count + 2 <= MAX_MESSAGES) {
    printf("> ");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL || line[0] == '\n') break;
    const size_t length = strcspn(line, "\n");
    char* content = malloc(length + 1);
    if (content == NULL) break;
    memcpy(content, line, length);
    messages[count].role = text_of("user");
    messages[count].content.data = content;
    messages[count].content.length = length;
    ++count;
    result = ask(engine, messages, &count);
  }
  for (size_t i = 0; i < count; ++i) free((void*)messages[i].content.data);
  vllm_engine_free(engine);
  return result;
}

/* simple_generate.c: continues a prompt and prints the text as it comes.
 *
 *   cc -std=c11 simple_generate.c -o simple_generate $(pkg-config --cflags --libs vllm)
 *   ./simple_generate model.gguf "The capital of France is" [max_tokens]
 */
#include <stdio.h>
#include <string.h>
#include <vllm.h>

static vllm_text text_of(const char* string) {
  vllm_text text = {string, strlen(string)};
  return text;
}

static void print_piece(const vllm_output* output, void* user) {
  (void)user;
  fwrite(output->text.data, 1, output->text.length, stdout);
  fflush(stdout);
}

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, vllm_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s MODEL PROMPT [MAX_TOKENS]\n", argv[0]);
    return 1;
  }
  vllm_engine_params load = {.size = sizeof load, .model = text_of(argv[1])};
  vllm_engine* engine = NULL;
  if (vllm_engine_load(&load, &engine) != VLLM_OK) return fail("load");

  char sampling[64];
  snprintf(sampling, sizeof sampling, "{\"temperature\": 0, \"max_tokens\": %.20s}", argc > 3 ? argv[3] : "32");
  vllm_generate_params params = {.size = sizeof params,
                                 .prompt = text_of(argv[2]),
                                 .sampling_json = text_of(sampling),
                                 .on_output = print_piece};
  vllm_request* request = NULL;
  int result = 0;
  if (vllm_generate(engine, &params, &request) != VLLM_OK || vllm_request_wait(request) != VLLM_OK) {
    result = fail("generate");
  }
  printf("\n");
  vllm_request_free(request);
  vllm_engine_free(engine);
  return result;
}

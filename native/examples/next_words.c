/* Prints the likeliest next words after a text: next_words MODEL WORD...
 *
 *     cc next_words.c -I../include -lmicronet -lstdc++ -lpthread -lm -o next_words
 *     ./next_words model.safetensors the cat sat on the
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "micronet.h"

enum { K = 5 };

static int complain(const mn_error* error) {
  fprintf(stderr, "next_words: %s\n", error->message);
  return 1;
}

static int print_next_words(const mn_model* model, mn_session* session, int count, char** words) {
  mn_error error;
  for (int i = 0; i < count; ++i) {
    int32_t id = mn_model_find(model, words[i], strlen(words[i]));
    if (id < 0) id = mn_model_find(model, "<unk>", 5);
    if (id < 0) {
      fprintf(stderr, "next_words: the model does not know the word %s\n", words[i]);
      return 1;
    }
    if (mn_session_feed(session, id, &error) != MN_OK) return complain(&error);
  }
  int32_t ids[K];
  float log_probabilities[K];
  const int32_t k = mn_model_vocabulary_size(model) < K ? mn_model_vocabulary_size(model) : K;
  if (mn_session_top_k(session, k, ids, log_probabilities, &error) != MN_OK) return complain(&error);
  for (int i = 0; i < k; ++i) {
    size_t size;
    const char* word = mn_model_word(model, ids[i], &size);
    printf("%.6f %.*s\n", exp(log_probabilities[i]), (int)size, word);
  }
  return 0;
}

int main(int count, char** arguments) {
  if (count < 3) {
    fprintf(stderr, "usage: next_words MODEL WORD...\n");
    return 2;
  }
  mn_error error;
  mn_model* model = NULL;
  mn_session* session = NULL;
  if (mn_model_open(arguments[1], "auto", &model, &error) != MN_OK) return complain(&error);
  int result = 1;
  if (mn_session_start(model, &session, &error) == MN_OK)
    result = print_next_words(model, session, count - 2, arguments + 2);
  else
    complain(&error);
  mn_session_free(session);
  mn_model_close(model);
  return result;
}

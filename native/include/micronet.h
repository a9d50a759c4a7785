/* micronet: runs packed language models (docs/format.md) without any other library.
 *
 *     mn_error error;
 *     mn_model* model = NULL;
 *     mn_session* session = NULL;
 *     if (mn_model_open("model.safetensors", "auto", &model, &error) != MN_OK) { puts(error.message); return 1; }
 *     mn_session_start(model, &session, &error);
 *     mn_session_feed(session, mn_model_find(model, "the", 3), &error);
 *     int32_t ids[5]; float log_probabilities[5];
 *     mn_session_top_k(session, 5, ids, log_probabilities, &error);
 *     mn_session_free(session);
 *     mn_model_close(model);
 *
 * Words are numbers (ids) from 0 to vocabulary - 1, the likeliest first. All logarithms are natural.
 *
 * Errors: every function that can fail returns a status and, where `error` is not NULL, fills in a
 * sentence. Nothing is thrown, nothing exits, nothing is kept in global variables. After an error the
 * model and the session are as they were before the call; only a mn_session_feed_many that runs out of
 * memory may have read a part of its words, which mn_session_tokens tells.
 *
 * Threads: a model may be used by several threads at once, a session by one at a time. A model must
 * outlive its sessions. A mapped file must not be cut short while it is open: no program can read it then.
 */
#ifndef MICRONET_H
#define MICRONET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mn_status {
  MN_OK = 0,
  MN_ERROR_FILE = 1,     /* the file cannot be opened or read */
  MN_ERROR_FORMAT = 2,   /* the file, or a saved session, is not what it should be */
  MN_ERROR_ARGUMENT = 3, /* an argument is out of its range */
  MN_ERROR_STATE = 4,    /* the session was asked before it was fed */
  MN_ERROR_MEMORY = 5,   /* there is not enough memory */
  MN_ERROR_NUMBER = 6,   /* the weights give numbers that are not finite */
  MN_ERROR_KERNELS = 7   /* this processor, or this build, has no such kernels */
} mn_status;

typedef struct mn_error {
  mn_status status;
  char message[512]; /* one sentence, ends with 0 */
} mn_error;

typedef struct mn_model mn_model;
typedef struct mn_session mn_session;

/* ---- kernels: the inner loops, once for each set of instructions ---- */

/* Models are opened with the name of a set: "scalar", "avx2" and "avx512" ask for one, "auto" takes the
 * fastest that this processor has. The environment variable MICRONET_KERNELS changes what "auto" takes to
 * the set that it names ("auto" and an empty text change nothing); a name in a call goes before it. A set
 * that this processor or this build lacks is an error, MN_ERROR_KERNELS, whoever asks for it. */
typedef struct mn_kernel_set {
  const char* name; /* stays valid */
  int built;        /* 1 where this build has the set */
  int runs;         /* 1 where it is built, and this processor and its system can run it */
  int chosen;       /* 1 for the set that "auto" takes; none where MICRONET_KERNELS names none that runs */
} mn_kernel_set;

/* Fills in up to `room` sets, the slowest first, and returns how many there are. sets may be NULL. */
size_t mn_kernel_sets(mn_kernel_set* sets, size_t room);

/* ---- models ---- */

/* Opens a packed file. kernels: "auto", or the name of a set. */
mn_status mn_model_open(const char* path, const char* kernels, mn_model** model, mn_error* error);

/* The same for a file in memory, which must stay there, unchanged, until the model is closed. */
mn_status mn_model_open_bytes(const void* bytes, size_t size, const char* kernels, mn_model** model,
                              mn_error* error);

/* NULL is fine here and in the other functions that free. */
void mn_model_close(mn_model* model);

int32_t mn_model_vocabulary_size(const mn_model* model);

/* The metadata's JSON text, UTF-8, ends with 0. */
const char* mn_model_metadata(const mn_model* model, size_t* size);

/* Which kernels are in use. */
const char* mn_model_kernels(const mn_model* model);

/* A word as UTF-8, not followed by 0; NULL where there is no such id. */
const char* mn_model_word(const mn_model* model, int32_t id, size_t* size);

/* The id of a word, -1 where the vocabulary does not have it. */
int32_t mn_model_find(const mn_model* model, const char* word, size_t size);

/* Log-probability of each word after the first, given those before it: count - 1 numbers (none for
 * fewer than two words). They do not depend on the number of threads. */
mn_status mn_model_score(const mn_model* model, const int32_t* ids, size_t count, int threads,
                         float* log_probabilities, mn_error* error);

/* The same for several texts, each from its own beginning: text i has counts[i] words at ids[i] and
 * its numbers go to log_probabilities[i]. */
mn_status mn_model_score_batch(const mn_model* model, const int32_t* const* ids, const size_t* counts,
                               size_t texts, int threads, float* const* log_probabilities,
                               mn_error* error);

/* ---- sessions: a text that is read word by word ---- */

mn_status mn_session_start(const mn_model* model, mn_session** session, mn_error* error);
mn_status mn_session_fork(const mn_session* session, mn_session** copy, mn_error* error);
void mn_session_free(mn_session* session);

mn_status mn_session_feed(mn_session* session, int32_t id, mn_error* error);
mn_status mn_session_feed_many(mn_session* session, const int32_t* ids, size_t count, mn_error* error);

/* How many words were fed. */
uint64_t mn_session_tokens(const mn_session* session);

/* What may come next. Each of these needs a session that was fed. */
mn_status mn_session_log_probability(mn_session* session, int32_t id, float* log_probability,
                                     mn_error* error);

/* Of all words: log_probabilities has room for the vocabulary. */
mn_status mn_session_log_distribution(mn_session* session, float* log_probabilities, mn_error* error);

/* The k likeliest words, the best first, of two equal ones that with the smaller id. Exact. */
mn_status mn_session_top_k(mn_session* session, int32_t k, int32_t* ids, float* log_probabilities,
                           mn_error* error);

/* The k likeliest words that begin with the prefix; *found may be less than k. */
mn_status mn_session_complete(mn_session* session, const char* prefix, size_t size, int32_t k,
                              int32_t* ids, float* log_probabilities, int32_t* found, mn_error* error);

/* One word, chosen by u in [0, 1): probabilities are raised to 1 / temperature; with top_k > 0 only
 * the k likeliest words remain; with top_p < 1 only the likeliest of those that together reach top_p
 * of their sum; u then goes along the sum of what remains in the order of ids. */
mn_status mn_session_sample(mn_session* session, double u, double temperature, int32_t top_k,
                            double top_p, int32_t* id, mn_error* error);

/* Everything a session knows, as bytes. With bytes == NULL only *size is set; otherwise *size says
 * how much room there is, and is set to what was written. */
mn_status mn_session_save(const mn_session* session, void* bytes, size_t* size, mn_error* error);

/* Only bytes that were saved from the same model. */
mn_status mn_session_restore(const mn_model* model, const void* bytes, size_t size,
                             mn_session** session, mn_error* error);

#ifdef __cplusplus
}
#endif

#endif /* MICRONET_H */

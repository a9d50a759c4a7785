/* micronet: run packed language models (docs/format.md) without any other library.
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
 * Words are numbers (ids) from 0 to vocabulary - 1, the most frequent first. All logarithms are natural.
 *
 * Errors: every function that can fail returns a status and, if `error` is not NULL, fills in a one-sentence
 * message. Nothing is thrown, nothing exits, and there are no global variables. After an error the model and
 * the session are unchanged; only a mn_session_feed_many that runs out of memory may have read a part of its
 * words, whose number mn_session_tokens returns.
 *
 * Threads: a model may be used by several threads at once, a session by one at a time. A model must
 * outlive its sessions. A mapped file must not be truncated while it is open: reading it would crash.
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
  MN_ERROR_FORMAT = 2,   /* the file, or a saved session, is damaged or of another format */
  MN_ERROR_ARGUMENT = 3, /* an argument is out of range */
  MN_ERROR_STATE = 4,    /* a question before the session's first word */
  MN_ERROR_MEMORY = 5,   /* there is not enough memory */
  MN_ERROR_NUMBER = 6,   /* the weights give non-finite numbers */
  MN_ERROR_KERNELS = 7   /* this processor, or this build, has no such kernels */
} mn_status;

typedef struct mn_error {
  mn_status status;
  char message[512]; /* one sentence, ends with 0 */
} mn_error;

typedef struct mn_model mn_model;
typedef struct mn_session mn_session;

/* ---- kernel sets: the inner loops for one instruction set ---- */

/* Models are opened with the name of a set: "scalar", "avx2" or "avx512", or "auto" for the fastest that this
 * processor runs. With "auto", the environment variable MICRONET_KERNELS may name another set ("auto" and an
 * empty text change nothing). A set that this processor or this build lacks is an error, MN_ERROR_KERNELS. */
typedef struct mn_kernel_set {
  const char* name; /* stays valid */
  int built;        /* 1 if this build has the set */
  int runs;         /* 1 if it is built, and this processor and operating system can run it */
  int chosen;       /* 1 for the set that "auto" takes; none where MICRONET_KERNELS names none that runs */
} mn_kernel_set;

/* Fill in up to `room` sets, the slowest first, and return their total number. sets may be NULL. */
size_t mn_kernel_sets(mn_kernel_set* sets, size_t room);

/* ---- models ---- */

/* Open a packed file. kernels: "auto", or the name of a set. */
mn_status mn_model_open(const char* path, const char* kernels, mn_model** model, mn_error* error);

/* Open a packed file in memory, which must stay unchanged until the model is closed. */
mn_status mn_model_open_bytes(const void* bytes, size_t size, const char* kernels, mn_model** model,
                              mn_error* error);

/* NULL is allowed here and in the other functions that free. */
void mn_model_close(mn_model* model);

int32_t mn_model_vocabulary_size(const mn_model* model);

/* The metadata's JSON text, UTF-8, ends with 0. */
const char* mn_model_metadata(const mn_model* model, size_t* size);

/* The name of the kernel set in use. */
const char* mn_model_kernels(const mn_model* model);

/* A word as UTF-8, not followed by 0; NULL for an unknown id. */
const char* mn_model_word(const mn_model* model, int32_t id, size_t* size);

/* The id of a word, -1 if it is not in the vocabulary. */
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

/* The number of words fed. */
uint64_t mn_session_tokens(const mn_session* session);

/* Questions about the next word. Each needs a session that has been fed. */
mn_status mn_session_log_probability(mn_session* session, int32_t id, float* log_probability,
                                     mn_error* error);

/* Of all words: log_probabilities has room for the vocabulary. */
mn_status mn_session_log_distribution(mn_session* session, float* log_probabilities, mn_error* error);

/* The k likeliest words, the likeliest first, ties by the smaller id. Exact. */
mn_status mn_session_top_k(mn_session* session, int32_t k, int32_t* ids, float* log_probabilities,
                           mn_error* error);

/* The k likeliest words that begin with the prefix; *found may be less than k. */
mn_status mn_session_complete(mn_session* session, const char* prefix, size_t size, int32_t k,
                              int32_t* ids, float* log_probabilities, int32_t* found, mn_error* error);

/* One word, chosen by u in [0, 1): probabilities are raised to 1 / temperature; with top_k > 0 only
 * the k likeliest words remain; with top_p < 1 only the likeliest of those that together reach top_p
 * of their sum. The word is the first, in the order of ids, at which the running sum of the remaining
 * weights exceeds u times their total. */
mn_status mn_session_sample(mn_session* session, double u, double temperature, int32_t top_k,
                            double top_p, int32_t* id, mn_error* error);

/* The whole session as bytes. With bytes == NULL only *size is set; otherwise *size is the room
 * available, and is set to the number of bytes written. */
mn_status mn_session_save(const mn_session* session, void* bytes, size_t* size, mn_error* error);

/* Restore a session from bytes that were saved with the same model. */
mn_status mn_session_restore(const mn_model* model, const void* bytes, size_t size,
                             mn_session** session, mn_error* error);

#ifdef __cplusplus
}
#endif

#endif /* MICRONET_H */

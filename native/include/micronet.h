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
 * Words are given as ids from 0 to vocabulary - 1, the most frequent first. All logarithms are natural.
 *
 * Errors: every function that can fail returns a status and, if `error` is not NULL, fills in a one-sentence
 * message. The library throws no exceptions, never exits the process and has no global variables. After an error
 * the model and the session are unchanged, with one exception: if mn_session_feed_many runs out of memory, it may
 * have read some of its words; mn_session_tokens returns how many words the session has read.
 *
 * Threads: a model may be used by several threads at once, a session by one at a time. A model must
 * outlive its sessions. A file is read when it is opened, and may be changed or removed afterwards.
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
  MN_ERROR_STATE = 4,    /* the session has read no word yet */
  MN_ERROR_MEMORY = 5,   /* there is not enough memory */
  MN_ERROR_NUMBER = 6,   /* the weights give non-finite numbers */
  MN_ERROR_KERNELS = 7   /* this processor or this build lacks the kernel set */
} mn_status;

typedef struct mn_error {
  mn_status status;
  char message[512]; /* one sentence, terminated by 0 */
} mn_error;

typedef struct mn_model mn_model;
typedef struct mn_session mn_session;

/* ---- kernel sets: the inner loops for one instruction set ---- */

/* Models are opened with the name of a set, or with "auto", which means the fastest set that this processor runs.
 * The sets are "scalar", "avx2" and "avx512" on 64-bit x86, "scalar" and "neon" on 64-bit ARM, "simd128" in
 * WebAssembly, and "scalar" elsewhere. With "auto", the environment variable MICRONET_KERNELS may name another set
 * ("auto" or an empty value changes nothing). If this processor or this build lacks the set, opening fails with
 * MN_ERROR_KERNELS. */
typedef struct mn_kernel_set {
  const char* name; /* valid as long as the library is loaded */
  int built;        /* 1 if this build has the set */
  int runs;         /* 1 if it is built and this processor and operating system can run it */
  int chosen;       /* 1 for the set that "auto" takes; 0 for all if MICRONET_KERNELS names a set that cannot run */
} mn_kernel_set;

/* Fill in up to `room` sets, the slowest first, and return how many sets there are. sets may be NULL. */
size_t mn_kernel_sets(mn_kernel_set* sets, size_t room);

/* ---- checksums ---- */

/* Return the checksum of some bytes, as packed files contain it (docs/format.md). */
uint64_t mn_checksum(const void* bytes, size_t size);

/* ---- models ---- */

/* Open a packed file. kernels: "auto" or the name of a set. */
mn_status mn_model_open(const char* path, const char* kernels, mn_model** model, mn_error* error);

/* Open a packed file in memory, which must stay unchanged until the model is closed. */
mn_status mn_model_open_bytes(const void* bytes, size_t size, const char* kernels, mn_model** model,
                              mn_error* error);

/* Close a model. NULL is allowed here and in mn_session_free. */
void mn_model_close(mn_model* model);

int32_t mn_model_vocabulary_size(const mn_model* model);

/* Return the metadata: JSON in UTF-8, terminated by 0. */
const char* mn_model_metadata(const mn_model* model, size_t* size);

/* Return the checksum of the packed file (docs/format.md). It distinguishes models. */
uint64_t mn_model_checksum(const mn_model* model);

/* Return the name of the kernel set in use. */
const char* mn_model_kernels(const mn_model* model);

/* Return a word in UTF-8, not terminated by 0; NULL for an id outside the vocabulary. */
const char* mn_model_word(const mn_model* model, int32_t id, size_t* size);

/* Return the id of a word; -1 if the vocabulary lacks it. */
int32_t mn_model_find(const mn_model* model, const char* word, size_t size);

/* Return 1 if the file has a spelling model, with which every word outside the vocabulary has a probability. */
int mn_model_has_spelling(const mn_model* model);

/* Compute the natural logarithm of P_spelling of a word outside the vocabulary (UTF-8, no line feed). The word's
 * probability is that of <unk> times P_spelling. Fails if the vocabulary has the word, or if the file has no spelling
 * model. */
mn_status mn_model_spelling(const mn_model* model, const char* word, size_t size, double* log_probability,
                            mn_error* error);

/* Compute the log-probability of each word after the first, given those before it: count - 1 numbers (none for
 * fewer than two words). The result does not depend on the number of threads. */
mn_status mn_model_score(const mn_model* model, const int32_t* ids, size_t count, int threads,
                         float* log_probabilities, mn_error* error);

/* The same for a text with words outside the vocabulary. Ids from the vocabulary's size on are added words. There are
 * `added` of them; log_spelled[i] is log P_spelling of the i-th (minus infinity without a spelling model). An added
 * word is read as <unk>. Its probability is that of <unk> times P_spelling, plus the cache's votes for it. */
mn_status mn_model_score_open(const mn_model* model, const int32_t* ids, size_t count, const double* log_spelled,
                              size_t added, int threads, float* log_probabilities, mn_error* error);

/* The same for several independent texts: text i has counts[i] words at ids[i], and its numbers are written to
 * log_probabilities[i]. */
mn_status mn_model_score_batch(const mn_model* model, const int32_t* const* ids, const size_t* counts,
                               size_t texts, int threads, float* const* log_probabilities,
                               mn_error* error);

/* ---- sessions: a text that is read word by word ---- */

mn_status mn_session_start(const mn_model* model, mn_session** session, mn_error* error);
mn_status mn_session_fork(const mn_session* session, mn_session** copy, mn_error* error);
void mn_session_free(mn_session* session);

mn_status mn_session_feed(mn_session* session, int32_t id, mn_error* error);
mn_status mn_session_feed_many(mn_session* session, const int32_t* ids, size_t count, mn_error* error);

/* Add a word to the session and return its id. A word of the vocabulary or of an earlier call keeps its id; other
 * words get new ids, from the vocabulary's size on. Added words can be fed: they are read as <unk>, and after that the
 * cache predicts them. Forks and saved sessions also have them. */
mn_status mn_session_add_word(mn_session* session, const char* word, size_t size, int32_t* id, mn_error* error);

/* Return the number of words that were added to the session. */
int32_t mn_session_added(const mn_session* session);

/* Return a word of the vocabulary or of the session in UTF-8, not terminated by 0; NULL for another id. */
const char* mn_session_word(const mn_session* session, int32_t id, size_t* size);

/* Return the id of a word of the vocabulary or of the session; -1 if neither has it. */
int32_t mn_session_find(const mn_session* session, const char* word, size_t size);

/* Remove a word from the session's cache. If it is an added word, remove its name from the session too: it is neither
 * found nor predicted until it is added and fed again. It is not an error if the session does not have the word. */
mn_status mn_session_forget_word(mn_session* session, const char* word, size_t size, mn_error* error);

/* Return the number of words fed. */
uint64_t mn_session_tokens(const mn_session* session);

/* The following functions are about the next word. They need a session that has read at least one word. */
mn_status mn_session_log_probability(mn_session* session, int32_t id, float* log_probability,
                                     mn_error* error);

/* Compute the log-probabilities of all words; log_probabilities has room for the vocabulary. */
mn_status mn_session_log_distribution(mn_session* session, float* log_probabilities, mn_error* error);

/* Find the k likeliest words, the likeliest first, ties by the smaller id. The result is exact. */
mn_status mn_session_top_k(mn_session* session, int32_t k, int32_t* ids, float* log_probabilities,
                           mn_error* error);

/* Find the k likeliest words that begin with the prefix; *found may be less than k. */
mn_status mn_session_complete(mn_session* session, const char* prefix, size_t size, int32_t k,
                              int32_t* ids, float* log_probabilities, int32_t* found, mn_error* error);

/* How the cache changes a word's probability: P = (1 - share) exp(without_cache) + share * cache. */
typedef struct mn_influence {
  double without_cache; /* log-probability without the cache; minus infinity for an added word */
  double share;         /* the cache's share; 0 without a cache and before it holds anything */
  double cache;         /* the cache's own probability of the word: the votes of its earlier occurrences */
} mn_influence;

/* Explain the probability of a possible next word. Also write the k largest votes of the cache, for any word, the
 * largest first: to `places` the numbers of words in the text, counted from 0, and to `parts` their parts of all
 * votes. *found may be less than k. */
mn_status mn_session_influence(mn_session* session, int32_t id, int32_t k, mn_influence* influence, int64_t* places,
                               double* parts, int32_t* found, mn_error* error);

/* Choose a word by u in [0, 1). Probabilities are raised to the power 1 / temperature. With top_k > 0, only the k
 * likeliest words remain. With top_p < 1, only the fewest likeliest of these remain that together reach top_p of
 * their sum. The result is the first word, in the order of ids, at which the running sum of the remaining
 * weights exceeds u times their total. */
mn_status mn_session_sample(mn_session* session, double u, double temperature, int32_t top_k,
                            double top_p, int32_t* id, mn_error* error);

/* Save the whole session as bytes. With bytes == NULL only *size is set; otherwise *size must be the room
 * available, and is set to the number of bytes written. */
mn_status mn_session_save(const mn_session* session, void* bytes, size_t* size, mn_error* error);

/* Restore a session from bytes that were saved with the same model. */
mn_status mn_session_restore(const mn_model* model, const void* bytes, size_t size,
                             mn_session** session, mn_error* error);

/* ---- recollections: what sessions recall of earlier texts (docs/personal.md) ---- */

/* Hidden states of earlier texts with the words that followed them, and words outside the vocabulary with their
 * counts. They never change, so several sessions may share them. They must not outlive their model. */
typedef struct mn_recollections mn_recollections;

/* Make recollections. states: (count, width of the model) numbers in half precision; following[i]: the word that
 * followed state i, an id of the vocabulary or, from the vocabulary's size on, a word of `words`; words: in UTF-8, with
 * their sizes in bytes and their counts. The prediction becomes (1 - a - b) P + a P_states + b P_words, with a =
 * state_share * min(1, count / 200) and b = word_share * min(1, sum of counts / 200). P_states is what a cache of these
 * states predicts, P_words is in proportion to the counts. count is at most the size of the model's cache. */
mn_status mn_recollections_new(const mn_model* model, const uint16_t* states, const int32_t* following, size_t count,
                               const char* const* words, const size_t* sizes, const uint32_t* counts, size_t word_count,
                               double state_share, double word_share, mn_recollections** recollections,
                               mn_error* error);
void mn_recollections_free(mn_recollections* recollections);

/* Let a session use recollections; their words are added to the session's. NULL ends this. Forks use the same
 * recollections. Saved sessions do not, and they contain only those added words that the session's own cache refers
 * to. */
mn_status mn_session_recall(mn_session* session, const mn_recollections* recollections, mn_error* error);

/* Copy the last states of a session's cache, at most `room`, and the words that followed them, oldest first. */
mn_status mn_session_remembered(const mn_session* session, size_t room, float* states, int32_t* words, size_t* count,
                                mn_error* error);

/* ---- text: the functions above for UTF-8 text instead of ids ----
 *
 * A text is split into tokens as the model's corpus was; words outside the vocabulary become <unk>. Returned words can
 * be shown on a screen: no <unk>, no spacing marks, and each can be written after the text.
 *
 *     mn_words* words = NULL;
 *     mn_text* text = NULL;
 *     mn_text_start(model, &text, &error);
 *     mn_text_feed(text, "Return a ne", 11, &error);
 *     mn_text_suggest(text, 3, &words, &error);
 *     for (size_t i = 0; i < mn_words_count(words); ++i) puts(mn_words_text(words, i, NULL));
 *     mn_words_free(words);
 *     mn_text_free(text);
 */

/* A text that is read in pieces, which may end anywhere. Like a session, one thread may use it at a time. */
typedef struct mn_text mn_text;
/* A list of words, each with a number. */
typedef struct mn_words mn_words;

mn_status mn_text_start(const mn_model* model, mn_text** text, mn_error* error);
/* Start, feed and settle in one call. If the text is empty, predictions are for the beginning of a line. */
mn_status mn_text_read(const mn_model* model, const char* utf8, size_t size, mn_text** text, mn_error* error);
mn_status mn_text_fork(const mn_text* text, mn_text** copy, mn_error* error);
void mn_text_free(mn_text* text);

mn_status mn_text_feed(mn_text* text, const char* utf8, size_t size, mn_error* error);
/* Treat the last word as complete, as if white space followed it. */
mn_status mn_text_settle(mn_text* text, mn_error* error);
/* Return the number of tokens read in *tokens. */
mn_status mn_text_tokens(const mn_text* text, uint64_t* tokens, mn_error* error);

/* Find the k likeliest next words, with their probabilities. */
mn_status mn_text_next(mn_text* text, int32_t k, mn_words** words, mn_error* error);
/* Find the k likeliest next words that begin with a prefix, whether in lower or upper case. */
mn_status mn_text_complete(mn_text* text, const char* prefix, size_t size, int32_t k, mn_words** words, mn_error* error);
/* Find suggestions for someone who types. After an incomplete word they are completions; if few words begin like it,
 * typing errors are tolerated. Otherwise they are next words, capitalized at the beginning of a sentence.
 * mn_words_replaces returns the part of the text that a suggestion replaces. */
mn_status mn_text_suggest(mn_text* text, int32_t k, mn_words** words, mn_error* error);

/* The same three for a session, which reads ids and must have read at least one. before: the last token of its text,
 * or empty if what it read is not shown. typed: the beginning of an incomplete word, which was not read; empty between
 * words. spaced: 1 if the text ends in white space. */
mn_status mn_session_next_words(mn_session* session, const char* before, size_t before_size, int32_t k, mn_words** words,
                                mn_error* error);
mn_status mn_session_completions(mn_session* session, const char* before, size_t before_size, const char* prefix,
                                 size_t prefix_size, int32_t k, mn_words** words, mn_error* error);
mn_status mn_session_suggest(mn_session* session, const char* before, size_t before_size, const char* typed,
                             size_t typed_size, int spaced, int32_t k, mn_words** words, mn_error* error);

/* Choose the next word and read it. The result has one entry, whose piece is what the word adds to the text. With a
 * temperature of 0 it is the likeliest word; see mn_session_sample. Random numbers are those of NumPy's
 * default_rng(seed). */
mn_status mn_text_seed(mn_text* text, uint64_t seed, mn_error* error);
mn_status mn_text_write(mn_text* text, double temperature, int32_t top_k, double top_p, mn_words** words, mn_error* error);

/* Save the whole text as bytes, which Python's State.restore can also read; see mn_session_save. */
mn_status mn_text_save(const mn_text* text, void* bytes, size_t* size, mn_error* error);
mn_status mn_text_restore(const mn_model* model, const void* bytes, size_t size, mn_text** text, mn_error* error);

/* ---- personal memory: words and hidden states of one person's texts in a private file (docs/personal.md) ----
 *
 *     mn_personal* me = NULL;
 *     mn_personal_open(model, "me.personal", &me, &error);
 *     mn_personal_learn(me, "Ask Zorblax.\n", 13, NULL, &error);
 *     mn_text_recall(text, me, &error);        // and again whenever the memory may have changed
 *     mn_personal_forget(me, "Zorblax", 7, NULL, &error);
 *     mn_personal_close(me);
 *
 * The file is the one that Python's lm.personal(path) and `micronet personal` use. Its folder must exist; the file need
 * not exist yet. Each call reads the current file. Changes lock its folder and replace the file by rename, with mode
 * 600. WebAssembly has no files, so it has none of these functions. */
typedef struct mn_personal mn_personal;

/* Open a memory; the model must outlive it. Fails if the file belongs to another model, or if other users can read
 * it. */
mn_status mn_personal_open(const mn_model* model, const char* path, mn_personal** personal, mn_error* error);
void mn_personal_close(mn_personal* personal);
/* Learn a text, which is read from the beginning of a line. *tokens, if not NULL, is set to the number of its
 * tokens. */
mn_status mn_personal_learn(mn_personal* personal, const char* utf8, size_t size, uint64_t* tokens, mn_error* error);
/* List the words outside the vocabulary, the most frequent first; their numbers are their counts. */
mn_status mn_personal_words(const mn_personal* personal, mn_words** words, mn_error* error);
/* Add words that mn_personal_words returned for a memory of any model. Words that are not a single token outside this
 * model's vocabulary are left out. sizes may be NULL if all words end with 0. */
mn_status mn_personal_merge(mn_personal* personal, const char* const* words, const size_t* sizes, const uint32_t* counts,
                            size_t count, mn_error* error);
/* Remove everything that is remembered of a word, in lower and upper case. *found, if not NULL, is set to 1 if there
 * was anything. For texts that are open, call mn_text_forget and then mn_text_recall again. */
mn_status mn_personal_forget(mn_personal* personal, const char* word, size_t size, int* found, mn_error* error);
mn_status mn_personal_clear(mn_personal* personal, mn_error* error);
/* Let a text recall what the memory contains now; NULL ends this. The text keeps no reference to the memory. */
mn_status mn_text_recall(mn_text* text, const mn_personal* personal, mn_error* error);
mn_status mn_text_forget(mn_text* text, const char* word, size_t size, mn_error* error);

/* Score a text: list its tokens, each with its log-probability given those before it; NaN for the first. */
mn_status mn_model_score_text(const mn_model* model, const char* utf8, size_t size, int threads, mn_words** words,
                              mn_error* error);

/* The tokenizers alone, by their names in packed files: "wikitext", "word" and "word-2". */

/* Split a text that follows the character `after` (a newline at the beginning of a text) into tokens. */
mn_status mn_tokens(const char* tokenizer, const char* utf8, size_t size, uint32_t after, mn_words** tokens,
                    mn_error* error);
/* Join tokens to text; the result has one entry. sizes may be NULL if all tokens end with 0. */
mn_status mn_join(const char* tokenizer, const char* const* tokens, const size_t* sizes, size_t count, mn_words** text,
                  mn_error* error);
/* Return in *settled how many bytes of a text have the same tokens whatever is written after it. */
mn_status mn_settled(const char* tokenizer, const char* utf8, size_t size, size_t* settled, mn_error* error);

size_t mn_words_count(const mn_words* words);
/* Return a word as UTF-8 (text), and what it adds to the text before it, including its space (piece). Both end with 0;
 * NULL after the last word. size may be NULL. */
const char* mn_words_text(const mn_words* words, size_t place, size_t* size);
const char* mn_words_piece(const mn_words* words, size_t place, size_t* size);
double mn_words_number(const mn_words* words, size_t place);
/* Return the end of the text that a suggestion replaces: the incomplete word, or an empty string. It ends with 0. */
const char* mn_words_replaces(const mn_words* words, size_t* size);
void mn_words_free(mn_words* words);

#ifdef __cplusplus
}
#endif

#endif /* MICRONET_H */

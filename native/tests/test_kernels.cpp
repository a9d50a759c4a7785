// Every kernel against the plain formula, for all kernel sets that run on this processor.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <vector>

#include "check.hpp"
#include "dispatch.hpp"
#include "linear.hpp"
#include "matrix.hpp"
#include "softmax.hpp"
#include "word_index.hpp"

using namespace micronet;

namespace {

std::vector<const Kernels*> available() {
  std::vector<const Kernels*> found;
  for (const char* name : check::kernels()) found.push_back(&choose_kernels(name));
  return found;
}

Matrix random_matrix(std::mt19937& random, int64_t rows, int64_t columns, int bits, bool row_scales) {
  Matrix m;
  m.rows = rows;
  m.columns = columns;
  m.bits = bits;
  if (bits == 32) {
    m.floats = Buffer<float>(padded(rows) * columns);
  } else {
    m.scale_stride = row_scales;
    m.scales = Buffer<float>(padded(row_scales ? rows : 1));
    for (int64_t r = 0; r < (row_scales ? rows : 1); ++r) m.scales[r] = 0.25f / float(1 << r % 5);
    if (bits <= 8) m.bytes = Buffer<int8_t>(matrix_bytes(rows, columns, bits));
    else if (bits == 9) m.nines = Buffer<uint8_t>(matrix_bytes(rows, columns, bits));
    else m.shorts = Buffer<int16_t>(matrix_bytes(rows, columns, bits) / 2);
  }
  std::uniform_int_distribution<int> integer(-int(bits == 32 ? 1000 : m.largest()), int(bits == 32 ? 1000 : m.largest()));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const int value = integer(random);
      if (bits == 32) m.floats[m.float_place(r, c)] = float(value) / 997.0f;
      else m.set_integer(r, c, int16_t(value));
    }
  return m;
}

}  // namespace

// Also for sets that this processor cannot run. The table consists of pointers only, so it can be read as an array.
TEST(no_entry_of_a_kernel_table_is_missing_or_there_twice) {
  static_assert(sizeof(Kernels) % sizeof(void*) == 0);
  for (const KernelSet& set : kernel_sets()) {
    if (!set.kernels) continue;
    void* entries[sizeof(Kernels) / sizeof(void*)];
    std::memcpy(entries, set.kernels, sizeof entries);
    CHECK(std::strcmp(set.kernels->name, set.name) == 0);
    CHECK(std::find(std::begin(entries), std::end(entries), nullptr) == std::end(entries));
    std::sort(std::begin(entries), std::end(entries), std::less<void*>());
    CHECK(std::adjacent_find(std::begin(entries), std::end(entries)) == std::end(entries));
  }
}

TEST(products_are_those_of_the_formula_on_every_way) {
  std::mt19937 random(1);
  for (const Kernels* kernels : available())
    for (int bits : {3, 8, 9, 16, 32})
      for (int64_t columns : {1, 2, 4, 5, 33, 64, 70})
        for (int64_t tokens : {1, 2, 3, 9, 13})
          for (int activation_bits : {0, 9, 16})
            for (bool exact : {false, true}) {
              const int64_t rows = 165;  // 11 panels: some are read at once, some remain
              const Matrix m = random_matrix(random, rows, columns, bits, tokens % 2 == 0);
              States x;
              x.resize(tokens, columns);
              std::normal_distribution<float> normal;
              for (int64_t t = 0; t < tokens; ++t)
                for (int64_t c = 0; c < columns; ++c) x.row(t)[c] = normal(random);
              if (activation_bits) {
                Quantizer q{true, activation_bits, 0, 0, 0};
                q.limit = float((1 << (activation_bits - 1)) - 1);
                q.scale = 0.0078125f;
                q.inverse = 1 / q.scale;
                x.quantize(*kernels, q, tokens);
              }
              Buffer<float> bias(padded(rows)), out(tokens * rows);
              for (int64_t r = 0; r < rows; ++r) bias[r] = normal(random);
              Scratch scratch;
              Product(*kernels, m, x.batch(tokens), exact, scratch).all(bias.data(), out.data(), rows);
              double worst = 0, size = 1e-9;
              std::vector<float> row(size_t(padded(columns)));
              std::vector<int16_t> integers(row.size());
              for (int64_t r = 0; r < rows; ++r) {
                read_row(m, r, integers.data(), row.data());
                for (int64_t t = 0; t < tokens; ++t) {
                  double sum = bias[r], terms = std::fabs(bias[r]);
                  for (int64_t c = 0; c < columns; ++c) {
                    sum += double(row[size_t(c)]) * double(x.row(t)[c]);
                    terms += std::fabs(double(row[size_t(c)]) * double(x.row(t)[c]));
                  }
                  size = std::max(size, terms);
                  if (exact) CHECK(out[t * rows + r] == float(sum) || std::fabs(out[t * rows + r] - sum) < 1e-7 * std::fabs(sum));
                  worst = std::max(worst, std::fabs(double(out[t * rows + r]) - sum) / terms);
                }
              }
              CHECK(worst < 1e-6);
            }
}

TEST(integers_of_9_bits_have_their_places) {
  for (int64_t columns : {1, 3, 4, 16, 50}) {
    std::mt19937 random(5);
    Matrix nines = random_matrix(random, 37, columns, 9, false), shorts;
    random.seed(5);
    shorts = random_matrix(random, 37, columns, 10, false);
    for (int64_t r = 0; r < 37; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        shorts.set_integer(r, c, int16_t((r * 31 + c * 17) % 511 - 255));
        nines.set_integer(r, c, shorts.integer(r, c));  // overwrites the old value
      }
    for (int64_t r = 0; r < 37; ++r)
      for (int64_t c = 0; c < columns; ++c) CHECK(nines.integer(r, c) == shorts.integer(r, c));
  }
}

// Sums of the largest 9-bit weights, which are added up in pieces. For several tokens, panels are unpacked first,
// unless they are very wide.
TEST(sums_of_9_bits_do_not_overflow) {
  for (const Kernels* kernels : available())
    for (int64_t tokens : {1, 3, 7})
      for (int64_t columns : {256, 768, 8192})
        for (int16_t sign : {1, -1}) {
          Matrix m;
          m.rows = 80;
          m.columns = columns;
          m.bits = 9;
          m.scales = Buffer<float>(16);
          m.scales[0] = 1;
          m.nines = Buffer<uint8_t>(matrix_bytes(m.rows, columns, 9));
          States x;
          x.resize(tokens, columns);
          x.quantized = true;
          x.bits = 9;
          x.scale = 1;
          for (int64_t c = 0; c < columns; ++c) {
            for (int64_t r = 0; r < m.rows; ++r) m.set_integer(r, c, int16_t(255 * sign));
            for (int64_t t = 0; t < tokens; ++t) x.integer_row(t)[c] = int16_t(255 - t);
          }
          std::vector<float> out(size_t(m.rows * tokens));
          Scratch scratch;
          Product(*kernels, m, x.batch(tokens), true, scratch).all(nullptr, out.data(), m.rows);
          for (size_t i = 0; i < out.size(); ++i)
            CHECK(out[i] == float(int64_t(columns) * 255 * (255 - int64_t(i) / m.rows) * sign));
        }
}

// Values, the largest value and Σ exp in one pass equal those of three passes, also with one scale per row.
TEST(rows_and_their_sum_are_those_of_three_passes) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  for (const Kernels* kernels : available())
    for (int bits : {8, 9, 16, 32})
      for (int64_t rows : {1, 16, 83, 1024})
        for (bool quantized : {false, true}) {
          const int64_t columns = rows == 1024 ? 4 : 20;
          const Matrix m = random_matrix(random, rows, columns, bits, rows == 83);
          States x;
          x.resize(1, columns);
          for (int64_t c = 0; c < columns; ++c) x.row(0)[c] = 0.05f * normal(random);
          if (quantized) x.quantize(*kernels, Quantizer{true, 8, 0.0078125f, 128.0f, 127.0f}, 1);
          Buffer<float> bias(padded(rows)), wanted(rows), out(rows);
          for (int64_t r = 0; r < rows; ++r) bias[r] = normal(random);
          Scratch scratch;
          const Product product(*kernels, m, x.batch(1), false, scratch);
          product.all(bias.data(), wanted.data(), rows);
          for (float above : {0.0f, 40.0f, -20.0f}) {
            const float most = kernels->largest(wanted.data(), rows), shift = most + above;
            float largest = 0;
            const float got = product.rows_and_sum(0, rows, bias.data(), out.data(), shift, &largest);
            double sum = 0;
            for (int64_t r = 0; r < rows; ++r) sum += std::exp(double(out[r]) - double(shift));
            CHECK(largest == kernels->largest(out.data(), rows));
            CHECK(std::fabs(double(got) - sum) < 5e-6 * sum);
            for (int64_t r = 0; r < rows; ++r) CHECK(std::fabs(out[r] - wanted[r]) < 1e-5f * (1 + std::fabs(wanted[r])));
          }
        }
}

// Pieces whose numbers rise and fall by hundreds: the shift must follow.
TEST(sums_over_pieces_follow_large_jumps) {
  Matrix m;
  m.rows = 64;
  m.columns = 2;
  m.bits = 8;
  m.scales = Buffer<float>(16);
  m.scales[0] = 1;
  m.bytes = Buffer<int8_t>(matrix_bytes(m.rows, m.columns, m.bits));
  States x;
  x.resize(1, 2);
  Buffer<float> bias(64), out(64);
  const float levels[] = {-300, 10, 45, -500};
  double sum = 0;
  for (int64_t r = 0; r < 64; ++r) {
    bias[r] = levels[r / 16] + float(r % 16);
    sum += std::exp(double(bias[r]) - 60);
  }
  for (const Kernels* kernels : available()) {
    Scratch scratch;
    const Product product(*kernels, m, x.batch(1), false, scratch);
    LogSum total;
    for (int64_t panel = 0; panel < 4; ++panel)
      CHECK(total.add(*kernels, product, panel, 16, bias.data() + 16 * panel, out.data()) == bias[16 * panel + 15]);
    CHECK(std::fabs(double(total.value()) - (60 + std::log(sum))) < 1e-4);
  }
}


TEST(words_are_found_by_slot_as_they_come_and_go) {
  WordIndex index;
  std::mt19937 random(3);
  std::vector<int32_t> words;
  for (int64_t rows : {1, 16, 40}) {
    index.reserve(rows);
    words.resize(size_t(rows), -1);
    for (int turn = 0; turn < 3000; ++turn) {  // far more words than there is room for
      const auto row = size_t(random() % uint32_t(rows));
      words[row] = int32_t(random() % 100000);
      index.set(int64_t(row), words[row]);
      CHECK(index.slots() <= 2 * rows);
      for (size_t r = 0; r < words.size(); ++r) {
        if (words[r] < 0) continue;
        const int32_t slot = index.slot_of_row(int64_t(r));
        CHECK(index.word(slot) == words[r] && index.slot_of_word(words[r]) == slot);
      }
      CHECK(index.slot_of_word(100001) == -1);
    }
    const WordIndex copy = index;
    CHECK(copy.slot_of_word(words[0]) == index.slot_of_word(words[0]));
  }
}

TEST(values_go_where_their_mask_has_bits) {
  std::mt19937_64 random(8);
  for (const Kernels* kernels : available())
    for (int i = 0; i < 100; ++i) {
      const uint64_t mask = i == 0 ? 0 : i == 1 ? ~uint64_t{0} : random() & (i % 2 ? ~uint64_t{0} : random());
      int16_t values[72], out[65];
      for (int16_t& value : values) value = int16_t(random());
      out[64] = 7;  // past the end
      kernels->spread_i16(mask, values, out);
      const int16_t* next = values;
      for (int j = 0; j < 64; ++j) CHECK(out[j] == (mask >> j & 1 ? *next++ : 0));
      CHECK(out[64] == 7);
    }
}

TEST(quantizers_round_half_to_even_and_clamp) {
  for (const Kernels* kernels : available()) {
    Buffer<float> x(32), values(32);
    Buffer<int16_t> integers(32);
    const float given[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 300.f, -300.f, NAN, INFINITY, 0.49999997f, 254.5f};
    const int wanted[] = {0, 2, 2, 0, -2, 255, -255, -255, 255, 0, 254};
    for (int i = 0; i < 11; ++i) x[i] = given[i];
    x[11] = 7;  // past the end
    kernels->quantize(x.data(), 11, 1.0f, 255.0f, 2.0f, integers.data(), values.data());
    for (int i = 0; i < 11; ++i) CHECK(integers[i] == wanted[i] && values[i] == 2.0f * float(wanted[i]));
    for (int i = 11; i < 16; ++i) CHECK(integers[i] == 0 && values[i] == 0);
  }
}

TEST(exponentials_and_logarithms_are_close) {
  for (const Kernels* kernels : available()) {
    for (int n : {1, 7, 16, 33, 200}) {
      std::vector<float> x(size_t(n) + 16), stored;
      double sum = 0;
      for (int i = 0; i < n; ++i) {
        x[size_t(i)] = 3.0f - 0.4f * float(i);
        sum += std::exp(double(x[size_t(i)]) - 3.0);
      }
      CHECK(kernels->largest(x.data(), n) == 3.0f);
      CHECK(std::fabs(kernels->exp_sum(x.data(), n, 3.0f) / sum - 1) < 1e-5);
      stored = x;
      CHECK(std::fabs(kernels->exp_store(stored.data(), n, 3.0f) / sum - 1) < 1e-6);
      for (int i = 0; i < n; ++i) CHECK(std::fabs(stored[size_t(i)] - std::exp(double(x[size_t(i)]) - 3.0)) < 2e-7);
      std::vector<float> own(x.begin(), x.begin() + n), votes(own.size());
      for (int i = 0; i < n; ++i) votes[size_t(i)] = i % 3 ? 0.25f / float(i) : 0.0f;
      std::vector<float> mixed = own;
      kernels->add_votes(mixed.data(), votes.data(), n);
      for (size_t i = 0; i < own.size(); ++i)
        CHECK(std::fabs(mixed[i] - std::log(std::exp(double(own[i])) + double(votes[i]))) < 1e-5);
    }
    const float nan[] = {0.0f, NAN};
    CHECK(std::isnan(kernels->exp_sum(nan, 2, 0.0f)));
  }
}

TEST(double_softmax_is_good_to_the_last_float_bit) {
  for (const Kernels* kernels : available())
    for (int n : {1, 2, 15, 97}) {
      Buffer<double> scores(128);
      std::vector<double> wanted;
      Buffer<float> out(128);
      double sum = 0;
      for (int i = 0; i < n; ++i) {
        scores[i] = 20 * std::sin(double(i * i));
        wanted.push_back(std::exp(scores[i] - 20));
        sum += wanted.back();
      }
      kernels->softmax_f64(scores.data(), n, out.data());
      for (int i = 0; i < n; ++i) {
        const double p = wanted[size_t(i)] / sum;
        CHECK(std::fabs(double(out[i]) - p) <= 0.5000001 * (std::nextafter(float(p), 2.0f) - float(p)) + 1e-45);
      }
    }
}

// Windows of every number of groups that are summed at once, and values of one, two and three panels.
TEST(attention_of_integers_is_that_of_the_formula) {
  std::mt19937 random(7);
  auto integer = [&] { return int16_t(int(random() % 511) - 255); };
  for (const Kernels* kernels : available()) {
    for (int64_t n : {1, 16, 17, 33, 48, 63, 97, 112, 128}) {
      const int64_t pairs = 5, stride = padded(n) + 16;
      Buffer<int16_t> keys(pairs * stride * 2), query(2 * pairs);
      Buffer<double> out(padded(n));
      for (int64_t i = 0; i < keys.size(); ++i) keys[i] = integer();
      for (int64_t i = 0; i < query.size(); ++i) query[i] = integer();
      for (int times : {1, 2}) {  // the second time added to the first
        kernels->scores_i16(keys.data(), stride, pairs, query.data(), n, 0.5, times == 2, out.data());
        for (int64_t j = 0; j < n; ++j) {
          int sum = 0;
          for (int64_t d = 0; d < 2 * pairs; ++d) sum += keys[(d / 2 * stride + j) * 2 + d % 2] * query[d];
          CHECK(out[j] == times * 0.5 * sum);
        }
      }
    }
    for (int64_t width : {8, 16, 24, 32, 40})
      for (int64_t pairs : {1, 2, 5, 49}) {
        Buffer<int16_t> values(pairs * width * 2 + 2 * kLanes), weights(2 * pairs);
        Buffer<float> out(padded(width));
        for (int64_t i = 0; i < values.size(); ++i) values[i] = integer();
        for (int64_t i = 0; i < weights.size(); ++i) weights[i] = integer();
        kernels->mix_i16(values.data(), pairs, width, weights.data(), 0.5, out.data());
        for (int64_t c = 0; c < width; ++c) {
          int sum = 0;
          for (int64_t j = 0; j < 2 * pairs; ++j) sum += values[(j / 2 * width + c) * 2 + j % 2] * weights[j];
          CHECK(out[c] == float(0.5 * sum));
        }
      }
  }
}

TEST(layer_norm_is_rounded_once) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const Kernels* kernels : available())
    for (int n : {1, 6, 16, 50, 256}) {
      std::vector<float> x, gain, bias, out(size_t(n) + 16);
      for (int i = 0; i < n; ++i) {
        x.push_back(normal(random));
        gain.push_back(normal(random));
        bias.push_back(normal(random));
      }
      kernels->layer_norm(x.data(), n, gain.data(), bias.data(), out.data());
      long double mean = 0, variance = 0;
      for (float v : x) mean += v;
      mean /= n;
      for (float v : x) variance += (v - mean) * (v - mean);
      const long double inverse = 1 / std::sqrt(variance / n + 1e-5L);
      for (size_t i = 0; i < x.size(); ++i) {
        const long double wanted = (x[i] - mean) * inverse * gain[i] + bias[i];
        CHECK(std::fabs((long double)out[i] - wanted) <= 0.500001L * (std::nextafter(std::fabs(float(wanted)), 1e9f) - std::fabs(float(wanted))));
      }
    }
}

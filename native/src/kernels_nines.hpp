// Products with weights in 9 bits of memory (nines.hpp); see kernels.hpp.
#pragma once

#include "kernels_common.hpp"
#include "kernels_products.hpp"
#include "nines.hpp"

namespace {

// Access to any pair by its number, for the tiles of kernels_products.hpp.
template <class S>
struct Nines {
  using Weight = uint8_t;
  static constexpr bool kStreamed = false;
  static constexpr int kSliceWeights = 0;  // unused: a pair's bits lie in two places
  static typename S::P load(const uint8_t* w, int64_t pair) {
    const auto bits = S::bits_of_pair(S::load_bits(w + micronet::group_of(pair)), int(pair % micronet::kGroupPairs));
    return S::divided_by_128(S::nines_times_128(bits, w + micronet::upper_of(pair)));
  }
};

// Add one group's pairs to the sums of PANELS panels whose groups are `apart` bytes apart. x points to the group's
// first pair of each token. TIMES_128 leaves the weights 128 times too large; the sums must have room for that.
template <class S, int TOKENS, int PAIRS, bool TIMES_128, int PANELS = 1>
inline void add_pairs(typename S::Bits (&bits)[PANELS], const uint8_t* upper, int64_t apart, const int16_t* x,
                      int64_t x_stride, typename S::I (&sums)[PANELS][TOKENS]) {
  MICRONET_UNROLL
  for (int c = 0; c < PAIRS; ++c) {
    typename S::B values[TOKENS];
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) values[t] = S::pair(x + t * x_stride + 2 * c);
    MICRONET_UNROLL
    for (int p = 0; p < PANELS; ++p) {
      auto column = S::nines_times_128(bits[p], upper + p * apart + c * micronet::kPairBytes);
      if constexpr (!TIMES_128) column = S::divided_by_128(column);
      bits[p] = S::next_bits(bits[p]);
      MICRONET_UNROLL
      for (int t = 0; t < TOKENS; ++t) sums[p][t] = S::madd(sums[p][t], column, values[t]);
    }
  }
}

constexpr int64_t kAhead = 2048;  // how far ahead a single panel prefetches, in bytes

// Multiply PANELS panels of whole groups; see `stream` in kernels_products.hpp.
template <class S, int TOKENS, bool TIMES_128, int PANELS>
inline void stream_groups(const uint8_t* group, int64_t apart, int64_t groups, const int16_t* x, int64_t x_stride,
                          int32_t* out, int64_t out_apart, int64_t out_stride) {
  constexpr int64_t kBear = 16;  // groups (256 columns) whose sums of 128 times the weights fit in 32 bits
  typename S::I totals[PANELS][TOKENS];
  for (auto& panel : totals)
    for (auto& total : panel) total = S::zero_i();
  for (int64_t begin = 0; begin < groups; begin += kBear) {
    const int64_t end = groups < begin + kBear ? groups : begin + kBear;
    typename S::I sums[PANELS][TOKENS];
    for (auto& panel : sums)
      for (auto& sum : panel) sum = S::zero_i();
    for (int64_t g = begin; g < end; ++g, group += micronet::kGroupBytes) {
      if constexpr (PANELS == 1)
        for (int64_t line = 0; line < micronet::kGroupBytes; line += 64) __builtin_prefetch(group + kAhead + line);
      typename S::Bits bits[PANELS];
      MICRONET_UNROLL
      for (int p = 0; p < PANELS; ++p) bits[p] = S::load_bits(group + p * apart);
      add_pairs<S, TOKENS, int(micronet::kGroupPairs), TIMES_128>(bits, group + micronet::kPairBytes, apart,
                                                               x + 2 * micronet::kGroupPairs * g, x_stride, sums);
    }
    for (int p = 0; p < PANELS; ++p)
      for (int t = 0; t < TOKENS; ++t)
        totals[p][t] = S::add(totals[p][t], TIMES_128 ? S::template shift_right_signed<7>(sums[p][t]) : sums[p][t]);
  }
  for (int p = 0; p < PANELS; ++p)
    for (int t = 0; t < TOKENS; ++t) S::store(out + p * out_apart + t * out_stride, totals[p][t]);
}

// One token, or one as two halves, and matrices whose panels are whole groups.
template <class S, int TOKENS, bool TIMES_128>
void stream_whole(const uint8_t* w, int64_t panel, int64_t panels, int64_t pairs, const int16_t* x, int64_t x_stride,
                  int32_t* out, int64_t out_stride) {
  constexpr int kPlaces = TOKENS == 1 ? 4 : 1;  // with two tokens there are no registers left for more
  const int64_t groups = pairs / micronet::kGroupPairs, size = groups * micronet::kGroupBytes, part = panels / kPlaces;
  w += panel * size;
  for (int64_t p = 0; p < part; ++p)
    stream_groups<S, TOKENS, TIMES_128, kPlaces>(w + p * size, part * size, groups, x, x_stride, out + p * kLanes,
                                              part * kLanes, out_stride);
  for (int64_t p = part * kPlaces; p < panels; ++p)
    stream_groups<S, TOKENS, TIMES_128, 1>(w + p * size, 0, groups, x, x_stride, out + p * kLanes, 0, out_stride);
}

// The same for groups that hold several panels of PAIRS pairs each; the first panel begins a group.
template <class S, int TOKENS, int PAIRS>
void stream_panels(const uint8_t* w, int64_t panel, int64_t panels, const int16_t* x, int64_t x_stride, int32_t* out,
                   int64_t out_stride) {
  constexpr int64_t kPanels = micronet::kGroupPairs / PAIRS;
  for (int64_t p = 0; p < panels; p += kPanels) {
    const uint8_t* group = w + micronet::group_of((panel + p) * PAIRS);
    typename S::Bits bits[1] = {S::load_bits(group)};
    for (int64_t i = 0; i < kPanels && p + i < panels; ++i) {
      typename S::I sums[1][TOKENS];
      for (auto& sum : sums[0]) sum = S::zero_i();
      add_pairs<S, TOKENS, PAIRS, false>(bits, group + (1 + i * PAIRS) * micronet::kPairBytes, 0, x, x_stride, sums);
      for (int t = 0; t < TOKENS; ++t) S::store(out + t * out_stride + (p + i) * kLanes, sums[0][t]);
    }
  }
}

template <class S, int TOKENS, bool TIMES_128>
bool stream_nines(const uint8_t* w, int64_t panel, int64_t panels, int64_t pairs, const int16_t* x, int64_t x_stride,
                  int32_t* out, int64_t out_stride) {
  if (pairs % micronet::kGroupPairs == 0)
    stream_whole<S, TOKENS, TIMES_128>(w, panel, panels, pairs, x, x_stride, out, out_stride);
  else if (pairs == 2 && panel % 4 == 0)
    stream_panels<S, TOKENS, 2>(w, panel, panels, x, x_stride, out, out_stride);
  else
    return false;
  return true;
}

// Many tokens: unpack each panel to 16 bits once, then multiply it with all tokens, with the vectors W.
constexpr int64_t kUnpackedPairs = 512, kFewTokens = 4;

template <class S, class W>
void products_unpacked(const uint8_t* w, int64_t panel, int64_t panels, int64_t pairs, const int16_t* x,
                       int64_t x_stride, int64_t tokens, int32_t* out, int64_t out_stride) {
  using Unpacked = Plain<W, int16_t>;
  alignas(64) int16_t weights[kUnpackedPairs * Unpacked::kSliceWeights];
  for (int64_t p = 0; p < panels; ++p) {
    for (int64_t c = 0; c < pairs; ++c)
      S::store_pairs(weights + c * Unpacked::kSliceWeights, Nines<S>::load(w, (panel + p) * pairs + c));
    products<Integers<W, Unpacked>>(weights, 0, 1, pairs, x, x_stride, tokens, out + p * kLanes, out_stride);
  }
}

template <class S, class W>
void products_i9(const uint8_t* w, int64_t panel, int64_t panels, int64_t pairs, const int16_t* x, int64_t x_stride,
                 int64_t tokens, int x_bits, int32_t* out, int64_t out_stride) {
  bool done = false;
  if (tokens == 1)
    done = x_bits <= 9 ? stream_nines<S, 1, true>(w, panel, panels, pairs, x, x_stride, out, out_stride)
                       : stream_nines<S, 1, false>(w, panel, panels, pairs, x, x_stride, out, out_stride);
  else if (tokens == 2)
    done = stream_nines<S, 2, false>(w, panel, panels, pairs, x, x_stride, out, out_stride);
  if (done) return;
  if (tokens > kFewTokens && pairs <= kUnpackedPairs)
    products_unpacked<S, W>(w, panel, panels, pairs, x, x_stride, tokens, out, out_stride);
  else
    products<Integers<S, Nines<S>>>(w, panel, panels, pairs, x, x_stride, tokens, out, out_stride);
}

}  // namespace

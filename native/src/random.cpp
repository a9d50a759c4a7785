#include "random.hpp"

namespace micronet {

namespace {

// NumPy's SeedSequence: a pool of four words, mixed so that similar seeds have very different states.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t seed) {
    const uint32_t entropy[4] = {uint32_t(seed), uint32_t(seed >> 32), 0, 0};
    for (int i = 0; i < 4; ++i) pool_[i] = hashed(entropy[i]);
    for (int from = 0; from < 4; ++from)
      for (int to = 0; to < 4; ++to)
        if (from != to) pool_[to] = mixed(pool_[to], hashed(pool_[from]));
  }
  void generate(uint32_t (&out)[8]) const {
    uint32_t constant = 0x8B51F9DD;
    for (int i = 0; i < 8; ++i) {
      uint32_t value = pool_[i % 4] ^ constant;
      constant *= 0x58F38DED;
      value *= constant;
      out[i] = value ^ value >> 16;
    }
  }

 private:
  uint32_t hashed(uint32_t value) {
    value ^= constant_;
    constant_ *= 0x931E8875;
    value *= constant_;
    return value ^ value >> 16;
  }
  static uint32_t mixed(uint32_t x, uint32_t y) {
    const uint32_t result = 0xCA01F9DD * x - 0x4973F715 * y;
    return result ^ result >> 16;
  }

  uint32_t pool_[4], constant_ = 0x43B0D7E5;
};

}  // namespace

Random::Random(uint64_t seed) {
  uint32_t words[8];
  SeedSequence(seed).generate(words);
  auto wide = [&](int i) { return uint64_t(words[2 * i + 1]) << 32 | words[2 * i]; };
  const Wide initial{wide(0), wide(1)}, sequence{wide(2), wide(3)};
  increment_ = {sequence.high << 1 | sequence.low >> 63, sequence.low << 1 | 1};
  step();
  state_ = add(state_, initial);
  step();
}

double Random::next() {
  step();
  const uint64_t mixed = state_.high ^ state_.low;
  const int turn = int(state_.high >> 58);
  const uint64_t bits = mixed >> turn | mixed << (-turn & 63);
  return double(bits >> 11) * 0x1p-53;
}

Random::Wide Random::add(Wide a, Wide b) {
  const uint64_t low = a.low + b.low;
  return {a.high + b.high + (low < a.low), low};
}

Random::Wide Random::multiply(Wide a, Wide b) {
  const uint64_t a0 = uint32_t(a.low), a1 = a.low >> 32, b0 = uint32_t(b.low), b1 = b.low >> 32;
  const uint64_t middle = (a0 * b0 >> 32) + uint32_t(a0 * b1) + uint32_t(a1 * b0);
  const uint64_t carry = a1 * b1 + (a0 * b1 >> 32) + (a1 * b0 >> 32) + (middle >> 32);
  return {a.high * b.low + a.low * b.high + carry, a.low * b.low};
}

void Random::step() { state_ = add(multiply(state_, {2549297995355413924u, 4865540595714422341u}), increment_); }

}  // namespace micronet

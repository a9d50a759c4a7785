// exp and log without the tables of the C library, whose 7 kB of random-looking bytes do not compress.
// Both are within about one unit in the last place; the engine rounds what comes of them to float.
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr double kInverse = 1.4426950408889634;                                  // 1 / ln 2
constexpr double kHigh = 0.693147180369123816490, kLow = 1.90821492927058770002e-10;  // ln 2; the high part has few bits

double from_bits(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, 8);
  return value;
}

uint64_t to_bits(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return bits;
}

double power_of_two(int exponent) { return from_bits(uint64_t(exponent + 1023) << 52); }

}  // namespace

extern "C" {

// 2^n · e^r with |r| ≤ ln 2 / 2; e^r by its series.
double exp(double x) {
  if (!(x < 709.79)) return x > 0 ? x * HUGE_VAL : x;  // NaN stays NaN
  if (x < -745.2) return 0;
  const double n = std::nearbyint(x * kInverse), low = n * kLow;
  const double high = x - n * kHigh, r = high - low;
  double p = 1;
  for (int i = 13; i > 1; --i) p = 1 + p * r / i;
  p = 1 + (high - (low - r * (p - 1)));
  const int half = int(n) / 2;  // in two steps, because the result may be subnormal
  return p * power_of_two(half) * power_of_two(int(n) - half);
}

// n · ln 2 + log m with m from √½ to √2; log m = 2 artanh s by its series, s = (m - 1) / (m + 1).
double log(double x) {
  if (!(x > 0)) return x == 0 ? -HUGE_VAL : std::nan("");
  if (x == HUGE_VAL) return x;
  int n = 0;
  if (x < 0x1p-1022) x *= 0x1p54, n = -54;
  uint64_t bits = to_bits(x);
  constexpr uint64_t kRootHalf = 0x3FE6A09E667F3BCC;
  const auto steps = int64_t(bits - kRootHalf) >> 52;
  n += int(steps);
  bits -= uint64_t(steps) << 52;
  const double f = from_bits(bits) - 1, s = f / (2 + f), square = s * s;
  double sum = 0;
  for (int i = 23; i > 1; i -= 2) sum = (sum + 2.0 / i) * square;
  // log m = f - f²/2 + s (f²/2 + sum): the first terms are nearly exact.
  const double half = 0.5 * f * f;
  return n * kHigh - ((half - (s * (half + sum) + n * kLow)) - f);
}

float expf(float x) { return float(exp(double(x))); }
float logf(float x) { return float(log(double(x))); }

}  // extern "C"

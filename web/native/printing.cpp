// The formats of the engine's sentences, in a tenth of the C library's size: %s, %.Ns, %.*s, %d, %u, %zu, %lld, %llu, %g.
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

// Writes as much as there is room for, and counts the rest.
struct Out {
  char* to;
  std::size_t room, length = 0;
  void put(char c) {
    if (length + 1 < room) to[length] = c;
    ++length;
  }
  void put(const char* text, std::size_t most) {
    for (; *text && most; ++text, --most) put(*text);
  }
  void number(uint64_t value) {
    char digits[20];
    int count = 0;
    do digits[count++] = char('0' + value % 10);
    while (value /= 10);
    while (count) put(digits[--count]);
  }
  void signed_number(int64_t value) {
    if (value < 0) put('-');
    number(value < 0 ? 0 - uint64_t(value) : uint64_t(value));
  }
  // Six digits, without zeros at the end, as %g gives them.
  void real(double value) {
    if (std::signbit(value)) put('-');
    if (std::isnan(value)) return put("nan", 3);
    value = std::fabs(value);
    if (std::isinf(value)) return put("inf", 3);
    int exponent = 0;
    for (; value >= 10; value /= 10) ++exponent;
    for (; value && value < 1; value *= 10) --exponent;
    auto digits = uint64_t(value * 1e5 + 0.5);
    if (digits >= 1000000) digits /= 10, ++exponent;
    int count = 6;
    for (; count > 1 && digits % 10 == 0; digits /= 10) --count;
    char shown[6];
    for (int i = count; i--; digits /= 10) shown[i] = char('0' + digits % 10);
    const bool scientific = exponent < -4 || exponent >= 6;
    int point = scientific ? 1 : exponent + 1;
    if (point <= 0) put("0.00000", std::size_t(2 - point));
    for (int i = 0; i < count || i < point; ++i) {
      if (i && i == point) put('.');
      put(i < count ? shown[i] : '0');
    }
    if (!scientific) return;
    put('e');
    put(exponent < 0 ? '-' : '+');
    if (std::abs(exponent) < 10) put('0');
    number(uint64_t(std::abs(exponent)));
  }
};

}  // namespace

extern "C" {

int vsnprintf(char* to, std::size_t room, const char* format, std::va_list values) {
  Out out{to, room};
  for (const char* at = format; *at; ++at) {
    if (*at != '%') {
      out.put(*at);
      continue;
    }
    std::size_t most = SIZE_MAX;
    if (*++at == '.') {
      for (most = 0, ++at; *at >= '0' && *at <= '9'; ++at) most = 10 * most + std::size_t(*at - '0');
      if (*at == '*') most = std::size_t(va_arg(values, int)), ++at;
    }
    int longs = 0;
    for (; *at == 'l' || *at == 'z'; ++at) longs += *at == 'l';
    switch (*at) {
      case 's': out.put(va_arg(values, const char*), most); break;
      case 'd': out.signed_number(longs == 2 ? va_arg(values, long long) : va_arg(values, int)); break;
      case 'u': out.number(longs == 2 ? va_arg(values, unsigned long long) : va_arg(values, unsigned)); break;
      case 'g': out.real(va_arg(values, double)); break;
      default: out.put(*at);
    }
  }
  if (room) to[out.length < room ? out.length : room - 1] = 0;
  return int(out.length);
}

int snprintf(char* to, std::size_t room, const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int length = vsnprintf(to, room, format, values);
  va_end(values);
  return length;
}

}  // extern "C"

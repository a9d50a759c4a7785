#include "utf8.hpp"

namespace micronet {

bool is_utf8(Bytes text) {
  const uint8_t* p = text.data;
  const uint8_t* end = p + text.size;
  while (p < end) {
    if (end - p >= 8 && !(read_at<uint64_t>(p) & 0x8080808080808080u)) {  // most text is ASCII
      p += 8;
      continue;
    }
    if (*p < 0x80) {
      ++p;
      continue;
    }
    int more;            // bytes that follow
    uint8_t least = 0x80, most = 0xBF;  // of the second byte
    if (*p >= 0xC2 && *p <= 0xDF) {
      more = 1;
    } else if (*p >= 0xE0 && *p <= 0xEF) {
      more = 2;
      if (*p == 0xE0) least = 0xA0;
      if (*p == 0xED) most = 0x9F;
    } else if (*p >= 0xF0 && *p <= 0xF4) {
      more = 3;
      if (*p == 0xF0) least = 0x90;
      if (*p == 0xF4) most = 0x8F;
    } else {
      return false;
    }
    if (end - p <= more || p[1] < least || p[1] > most) return false;
    for (int i = 2; i <= more; ++i)
      if ((p[i] & 0xC0) != 0x80) return false;
    p += more + 1;
  }
  return true;
}

}  // namespace micronet

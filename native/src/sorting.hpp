// Sorting where the order is total, so that every algorithm gives the same.
#pragma once

#include <algorithm>

namespace micronet {

template <class Place, class Less>
void sort_all(Place begin, Place end, Less less) {
#if defined(__wasm__)  // a third of the code of std::sort
  std::make_heap(begin, end, less);
  std::sort_heap(begin, end, less);
#else
  std::sort(begin, end, less);
#endif
}

}  // namespace micronet

// Several threads that do the same work on different tokens or texts.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace micronet {

// A barrier: all threads wait until all have arrived, or until one fails.
class Barrier {
 public:
  struct Broken {};  // what `wait` throws in the others then

  explicit Barrier(int threads) : threads_(threads) {}
  void set_threads(int threads) { threads_ = threads; }  // before anyone waits
  void wait() {
    if (threads_ == 1) return;
    std::unique_lock<std::mutex> lock(mutex_);
    const unsigned long round = round_;
    if (broken_) throw Broken();
    if (++arrived_ == threads_) {
      arrived_ = 0;
      ++round_;
      all_.notify_all();
    } else {
      all_.wait(lock, [&] { return round_ != round || broken_; });
      if (round_ == round) throw Broken();
    }
  }
  void give_up() {
    std::lock_guard<std::mutex> lock(mutex_);
    broken_ = true;
    all_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  int threads_, arrived_ = 0;
  unsigned long round_ = 0;
  bool broken_ = false;
};

// Runs work(0) … work(threads - 1), which must not throw; work(0) in this thread. Where the system
// gives fewer threads, begin(number of threads), which must not throw either, is told before any of it runs.
template <class Begin, class Work>
void run_on_threads(int wanted, Begin begin, Work work) {
  std::mutex mutex;
  std::condition_variable started;
  bool go = false;
  std::vector<std::thread> others;
  others.reserve(size_t(wanted - 1));
  for (int i = 1; i < wanted; ++i) {
    try {
      others.emplace_back([&, i] {
        {
          std::unique_lock<std::mutex> lock(mutex);
          started.wait(lock, [&] { return go; });
        }
        work(i);
      });
    } catch (...) {
      break;
    }
  }
  begin(int(others.size()) + 1);
  {
    std::lock_guard<std::mutex> lock(mutex);
    go = true;
  }
  started.notify_all();
  work(0);
  for (std::thread& other : others) other.join();
}

}  // namespace micronet

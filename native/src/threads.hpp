// Threads that do the same work on different tokens or texts.
#pragma once

#if !defined(__wasm__)
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>
#endif

namespace micronet {

#if defined(__wasm__)

// WebAssembly has one thread: nothing waits, and exceptions reach the caller directly.
class Barrier {
 public:
  explicit Barrier(int) {}
  void set_threads(int) {}
  void wait() {}
  void give_up() {}
};

class Once {
 public:
  template <class Make>
  void operator()(Make make) {
    if (!made_) make();
    made_ = true;
  }

 private:
  bool made_ = false;
};

template <class Begin, class Work, class Broken>
void run_on_threads(int, Begin begin, Work work, Broken) {
  begin(1);
  work(0);
}

#else

// A barrier: all threads wait until all have arrived, or until one fails.
class Barrier {
 public:
  struct Broken {};  // thrown by `wait` in the other threads if one fails

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

// A computation that runs once, in the thread that asks first. After an error, the next thread tries again.
class Once {
 public:
  template <class Make>
  void operator()(Make make) { std::call_once(flag_, make); }

 private:
  std::once_flag flag_;
};

// Run work(0) … work(threads - 1), with work(0) in this thread. Call begin(number of threads), which must not throw,
// before any of them runs: the system may provide fewer threads. If one throws, call broken(), wait until all have
// ended, and throw the exception again.
template <class Begin, class Work, class Broken>
void run_on_threads(int wanted, Begin begin, Work work, Broken broken) {
  std::vector<std::exception_ptr> errors(size_t(wanted), nullptr);
  auto guarded = [&](int thread) noexcept {
    try {
      work(thread);
    } catch (const Barrier::Broken&) {
    } catch (...) {
      errors[size_t(thread)] = std::current_exception();
      broken();
    }
  };
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
        guarded(i);
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
  guarded(0);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

#endif

}  // namespace micronet

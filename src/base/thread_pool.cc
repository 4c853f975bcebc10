// ThreadPool: an open/closed loop word that workers join, a shared cursor that hands out ranges, and a futex for
// sleepers.
#include "base/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/check.h"
#include "base/result.h"

namespace base {
namespace {

constexpr uint64_t kInsideMask = 0xffff;
constexpr uint64_t kOpen = 1 << 16;
constexpr uint64_t kLoopStep = 1 << 17;
constexpr int kMaxWorkers = 4096;

// Loops of one step follow each other within microseconds, steps within a millisecond (sampling, detokenizing):
// spinning that long keeps decode from paying a wake-up, and is nothing against an idle minute.
constexpr auto kSpin = std::chrono::microseconds(1000);
// After this long without work a spinning worker offers its processor to other threads between looks.
constexpr int kPausesBeforeYield = 2000;

// While it lives, threads that this thread starts inherit a mask with every signal blocked: handlers of the program, or
// of a host that embeds us, run on its own threads.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }

 private:
  sigset_t old_;
};

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void FutexWakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}

}  // namespace

ThreadPool::ThreadPool(int workers) : workers_(std::clamp(workers, 1, kMaxWorkers)) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  const BlockSignals block;
  try {
    for (int worker = 1; worker < workers_; ++worker) {
      threads_.emplace_back([this, worker] {
        pthread_setname_np(pthread_self(), "vt-worker");
        WorkerLoop(worker);
      });
    }
  } catch (const std::system_error& error) {
    StopThreads();
    Throw(ErrorCode::kOutOfMemory, "threads: cannot start ", workers_ - 1, " worker threads (", error.what(),
          "); ask for fewer with --threads");
  }
}

ThreadPool::~ThreadPool() { StopThreads(); }

void ThreadPool::StopThreads() noexcept {
  stop_.store(true, std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(wake_);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ThreadPool::Take(int worker) noexcept {
  const Loop loop = loop_;
  for (;;) {
    const int64_t begin = cursor_.fetch_add(loop.grain, std::memory_order_relaxed);
    if (begin >= loop.count) return;
    loop.run(loop.state, begin, std::min(begin + loop.grain, loop.count), worker);
  }
}

void ThreadPool::Run(int64_t count, int64_t grain, RangeFn run, void* state) noexcept {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (workers_ == 1 || count <= grain) {
    // Ranges keep their promised size, because a kernel may size its scratch by the grain.
    for (int64_t begin = 0; begin < count; begin += grain) run(state, begin, std::min(begin + grain, count), 0);
    return;
  }
  const std::lock_guard<std::mutex> turn(turn_);
  loop_ = {run, state, count, grain};
  cursor_.store(0, std::memory_order_relaxed);
  const uint64_t number = (job_.load(std::memory_order_relaxed) & ~(kOpen | kInsideMask)) + kLoopStep;
  job_.store(number | kOpen, std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) FutexWakeAll(wake_);
  Take(0);
  // Close: from here nobody enters; wait for those inside.
  uint64_t job = job_.fetch_and(~kOpen, std::memory_order_acq_rel);
  for (int spins = 0; (job & kInsideMask) != 0; job = job_.load(std::memory_order_acquire)) {
    // A worker that the system has taken off its processor can only finish if it gets one back.
    if (++spins > kPausesBeforeYield) {
      sched_yield();
    } else {
      Pause();
    }
  }
}

// Returns the job word of an open loop other than `seen`, spinning first and sleeping then; 0 at the end.
uint64_t ThreadPool::AwaitJob(uint64_t seen) noexcept {
  const auto is_new = [&](uint64_t job) { return (job & kOpen) != 0 && (job & ~(kOpen | kInsideMask)) != seen; };
  using Clock = std::chrono::steady_clock;
  for (;;) {
    const Clock::time_point end = Clock::now() + kSpin;
    for (int spins = 0;; ++spins) {
      const uint64_t job = job_.load(std::memory_order_acquire);
      if (is_new(job)) return job;
      if (stop_.load(std::memory_order_acquire)) return 0;
      if (spins < kPausesBeforeYield) {
        Pause();
      } else {
        sched_yield();
        if (Clock::now() >= end) break;
      }
    }
    const uint32_t expected = wake_.load(std::memory_order_seq_cst);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    // The caller writes job_, then wake_, then reads sleepers_: either this look sees the job or the caller sees a
    // sleeper.
    if (!is_new(job_.load(std::memory_order_seq_cst)) && !stop_.load(std::memory_order_seq_cst)) {
      FutexWait(wake_, expected);
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void ThreadPool::WorkerLoop(int worker) noexcept {
  uint64_t seen = 0;
  for (;;) {
    uint64_t job = AwaitJob(seen);
    if (job == 0) return;
    // Enter while it is open.
    bool inside = false;
    while ((job & kOpen) != 0) {
      if (job_.compare_exchange_weak(job, job + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
        inside = true;
        break;
      }
    }
    if (!inside) continue;
    seen = job & ~(kOpen | kInsideMask);
    Take(worker);
    job_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

}  // namespace base

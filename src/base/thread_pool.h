// A fixed set of workers for short parallel loops: they spin for a while after work, then sleep, so that an idle pool
// costs no CPU time.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace base {

class ThreadPool {
 public:
  // f(state, begin, end, worker): items [begin, end) on worker `worker` (0 .. workers - 1).
  using RangeFn = void (*)(void* state, int64_t begin, int64_t end, int worker);

  // `workers` counts the caller, who is worker 0: workers - 1 threads are started. At least 1. Throws base::Exception
  // when the system refuses a thread.
  explicit ThreadPool(int workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const { return workers_; }

  // Calls run over disjoint ranges that cover [0, count), each at most `grain` (>= 1) items, handed out in order to
  // whoever is free; returns when all are done. `run` must not throw and must not call back into the pool. Callers from
  // several threads take turns.
  void Run(int64_t count, int64_t grain, RangeFn run, void* state) noexcept;

  template <class F>
  void ParallelFor(int64_t count, int64_t grain, F&& f) noexcept {
    using Fn = std::remove_reference_t<F>;
    Run(
        count, grain,
        [](void* state, int64_t begin, int64_t end, int worker) { (*static_cast<Fn*>(state))(begin, end, worker); },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  void WorkerLoop(int worker) noexcept;
  uint64_t AwaitJob(uint64_t seen) noexcept;
  void Take(int worker) noexcept;
  void StopThreads() noexcept;

  // One loop at a time. The fields are written only while no worker is inside (see job_).
  struct Loop {
    RangeFn run = nullptr;
    void* state = nullptr;
    int64_t count = 0, grain = 1;
  };

  const int workers_;
  std::vector<std::thread> threads_;
  std::mutex turn_;  // uncontended but for two queues on one device
  Loop loop_;
  // Number of the loop in the upper bits, kOpen, and how many workers are inside in the lower bits. A worker enters
  // only an open loop, so one that wakes late finds it closed and nobody waits for it.
  alignas(64) std::atomic<uint64_t> job_{0};
  alignas(64) std::atomic<int64_t> cursor_{0};
  alignas(64) std::atomic<uint32_t> wake_{0};  // futex word: number of the loop, cut to 32 bits
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace base

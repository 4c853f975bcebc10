// Tests of ThreadPool: coverage of ranges, workers, sleeping, several callers.
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace base {
namespace {

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(ThreadPool, CoversEveryItemOnceWithRangesOfAtMostTheGrain) {
  for (const int workers : {1, 2, 3, 5}) {
    ThreadPool pool(workers);
    for (const int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
        std::atomic<int> wrong{0};
        pool.ParallelFor(count, grain, [&](int64_t begin, int64_t end, int worker) {
          if (worker < 0 || worker >= workers || end - begin > grain || begin >= end) ++wrong;
          for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
        });
        EXPECT_EQ(wrong.load(), 0);
        for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, WritesOfWorkersAreVisibleAfterTheLoop) {
  ThreadPool pool(4);
  std::vector<int64_t> values(257);
  for (int64_t round = 1; round <= 3000; ++round) {
    pool.ParallelFor(257, 8, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += i * round;
    });
  }
  const int64_t rounds = 3000LL * 3001 / 2;
  for (int64_t i = 0; i < 257; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], i * rounds);
}

TEST(ThreadPool, TwoItemsCanRunOnTwoWorkersAtOnce) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  // Each item waits for the other: only two workers at once can finish this.
  pool.ParallelFor(2, 1, [&](int64_t, int64_t, int) {
    ++arrived;
    while (arrived.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 2);
}

TEST(ThreadPool, SleepsWhenIdleAndWakesForNewWork) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum{0};
  const auto add = [&](int64_t begin, int64_t end, int) { sum += end - begin; };
  pool.ParallelFor(100, 1, add);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = CpuSeconds();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  // 2 ms in a second is the same rate as 20 ms in ten; a spinning thread would use a thousand.
  EXPECT_LT(CpuSeconds() - before, 0.002 * 10);
  pool.ParallelFor(100, 1, add);
  EXPECT_EQ(sum.load(), 200);
}

TEST(ThreadPool, CallersFromSeveralThreadsTakeTurns) {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        int64_t own[3] = {};
        pool.ParallelFor(30, 2, [&](int64_t begin, int64_t end, int worker) { own[worker] += end - begin; });
        total += own[0] + own[1] + own[2];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 4 * 500 * 30);
}

TEST(ThreadPool, MakesAndEndsManyPools) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(1 + i % 5);
    std::atomic<int> count{0};
    if (i % 2 == 0) pool.ParallelFor(10, 1, [&](int64_t, int64_t, int) { ++count; });
    EXPECT_EQ(count.load(), i % 2 == 0 ? 10 : 0);
  }
}

TEST(ThreadPool, WorkersTakeNoSignals) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0}, open{0};
  pool.ParallelFor(2, 1, [&](int64_t, int64_t, int worker) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (worker != 0 && sigismember(&mask, SIGTERM) != 1) ++open;
    ++arrived;
    while (arrived.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(open.load(), 0);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);
}

TEST(ThreadPool, OneWorkerIsTheFloor) { EXPECT_EQ(ThreadPool(-3).workers(), 1); }

}  // namespace
}  // namespace base

// Bytes a second of a loop that only reads: read_loop BYTES THREADS prints the median pass and the best one, in GB/s.
#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

// 32 bytes at a time; without AVX2 the compiler splits them.
typedef int64_t Vector __attribute__((vector_size(32), aligned(32)));

constexpr int kStreams = 4;      // independent sums, so that no addition waits for another
constexpr double kSeconds = 1;   // long enough for the clock and the huge pages to settle
constexpr int kLeastPasses = 5;  // of which the median is taken

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

__attribute__((target_clones("avx2", "default"))) int64_t Sum(const Vector* data, int64_t count) {
  Vector sums[kStreams] = {};
  for (int64_t i = 0; i + kStreams <= count; i += kStreams) {
    for (int j = 0; j < kStreams; ++j) sums[j] += data[i + j];
  }
  const Vector sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0] + sum[1] + sum[2] + sum[3];
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t bytes = argc == 3 ? std::atoll(argv[1]) : 0;
  const int threads = argc == 3 ? std::atoi(argv[2]) : 0;
  if (bytes < (1 << 20) || threads < 1 || threads > 1024) {
    std::fputs("usage: read_loop BYTES THREADS (at least 1048576 bytes, 1 to 1024 threads)\n", stderr);
    return 2;
  }
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "read_loop: %lld bytes cannot be had; free memory or give fewer\n",
                 static_cast<long long>(bytes));
    return 1;
  }
  madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // as weights are kept; only a hint
  Vector* const data = static_cast<Vector*>(memory);
  const int64_t count = bytes / static_cast<int64_t>(sizeof(Vector)) / threads;

  std::vector<double> passes;
  bool more = true;
  const double begin = Seconds();
  double start = begin;
  // Runs when all threads have come through a pass; the first pass only touches the memory.
  const auto next = [&]() noexcept {
    const double now = Seconds();
    passes.push_back(now - start);
    more = now - begin < kSeconds || passes.size() <= kLeastPasses;
    start = Seconds();
  };
  std::barrier gate(threads, next);
  std::vector<int64_t> results(static_cast<size_t>(threads));
  const auto work = [&](int thread) {
    Vector* const mine = data + thread * count;
    std::memset(mine, 1, static_cast<size_t>(count) * sizeof(Vector));
    gate.arrive_and_wait();
    while (more) {
      results[static_cast<size_t>(thread)] ^= Sum(mine, count);
      gate.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  volatile int64_t kept = 0;
  for (const int64_t result : results) kept = kept + result;

  passes.erase(passes.begin());
  std::sort(passes.begin(), passes.end());
  const double read = static_cast<double>(count * threads) * sizeof(Vector) / 1e9;
  std::printf("%.3f %.3f\n", read / passes[passes.size() / 2], read / passes[0]);
  return 0;
}

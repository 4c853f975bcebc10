// Random numbers of the simulations.
#pragma once
#include <cstdint>
#include <initializer_list>

namespace vllm {

// SplitMix64: the same numbers with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  int64_t Below(int64_t bound) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(bound)); }
  int64_t Between(int64_t least, int64_t most) { return least + Below(most - least + 1); }
  bool Chance(int of_1000) { return Below(1000) < of_1000; }
  template <class T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Below(static_cast<int64_t>(values.size())));
  }

 private:
  uint64_t state_;
};

}  // namespace vllm

// The tile unit of AMX in plain C++, after Intel's manual: what a machine without one needs to run the code that is
// compiled for it, and a check of every limit that the manual sets.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vt::testing {

// The state of one thread. Operations return null, or why the processor would refuse them.
class TileUnit {
 public:
  const char* Configure(const void* config);  // 64 bytes
  void Release() { *this = {}; }
  const char* Zero(int tile);
  // Rows of a tile are `stride` bytes apart in memory.
  const char* Load(int tile, const std::byte* from, int64_t stride);
  const char* Store(int tile, std::byte* to, int64_t stride) const;
  // sum += a * b: products of pairs of BF16, even and odd ones summed for themselves, denormals flushed to zero.
  const char* DotBf16(int sum, int a, int b);
  bool configured() const { return palette_ != 0; }

 private:
  static constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;
  const char* Check(int tile) const;
  int palette_ = 0;
  int rows_[kTiles] = {}, row_bytes_[kTiles] = {};
  alignas(64) std::byte data_[kTiles][kRows][kRowBytes] = {};
};

// While one exists, tile instructions that this machine refuses are carried out by a TileUnit of their thread: the
// signal of an illegal instruction decodes them. Where the machine has tiles nothing is emulated. A limit that is
// broken ends the process with one line.
class EmulatedTiles {
 public:
  EmulatedTiles();
  ~EmulatedTiles();
  EmulatedTiles(const EmulatedTiles&) = delete;
  EmulatedTiles& operator=(const EmulatedTiles&) = delete;

  // Since the start of the process, of all threads.
  struct Counts {
    int64_t configured = 0, released = 0, products = 0;
  };
  static Counts counts();
};

}  // namespace vt::testing

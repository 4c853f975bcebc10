// The tile instructions of AMX as functions, with what they read and write known to the compiler: the intrinsics of
// g++ 12 name 8 bytes of a configuration and none of a tile, so that stores before them may be moved behind them.
// Everything is internal to the unit that includes this; only code that runs on Isa::kAmx calls it.
#pragma once
#include <cstdint>

namespace {

// What `ldtilecfg` reads: for each of eight tiles its rows and the bytes of a row.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Tiles of a thread are usable, and zero, from here to TileRelease.
inline void TileConfigure(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
// Live tiles make context switches dearer and keep a core out of deep sleep.
inline void TileRelease() { asm volatile("tilerelease"); }

template <int kTile>
inline __attribute__((always_inline)) void TileZero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
// Rows of a tile lie `stride` bytes apart.
template <int kTile>
inline __attribute__((always_inline)) void TileLoad(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline __attribute__((always_inline)) void TileStore(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}
// kSum += kA * kB in f32: kA holds rows of BF16, kB rows of pairs of BF16, a pair for each column.
template <int kSum, int kA, int kB>
inline __attribute__((always_inline)) void TileDotBf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

}  // namespace

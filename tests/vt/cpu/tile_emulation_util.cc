// Emulates the tile unit, and decodes tile instructions in the handler of SIGILL.
#include "tests/vt/cpu/tile_emulation_util.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace vt::testing {
namespace {

// Zero for what has no normal representation, as the unit has it whatever MXCSR says.
inline float Flush(float v) { return std::fabs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; }
inline float FromBf16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return Flush(value);
}

}  // namespace

const char* TileUnit::Configure(const void* config) {
  uint8_t bytes[64];
  std::memcpy(bytes, config, sizeof(bytes));
  TileUnit fresh;
  fresh.palette_ = bytes[0];
  if (fresh.palette_ > 1) return "unknown palette";
  if (bytes[1] != 0) return "a start row, which only an interrupted load has";
  for (int i = 2; i < 16; ++i) {
    if (bytes[i] != 0) return "reserved bytes that are not zero";
  }
  for (int t = 0; t < 16; ++t) {
    const int row_bytes = bytes[16 + 2 * t] | bytes[17 + 2 * t] << 8, rows = bytes[48 + t];
    if (t >= kTiles || fresh.palette_ == 0) {
      if (row_bytes != 0 || rows != 0) return "a tile that there is not";
      continue;
    }
    if (row_bytes > kRowBytes || rows > kRows) return "a tile larger than 16 rows of 64 bytes";
    if ((row_bytes == 0) != (rows == 0)) return "a tile of rows or columns only";
    fresh.rows_[t] = rows, fresh.row_bytes_[t] = row_bytes;
  }
  *this = fresh;
  return nullptr;
}

const char* TileUnit::Check(int tile) const {
  if (palette_ == 0) return "tiles are used that are not configured";
  if (tile < 0 || tile >= kTiles || rows_[tile] == 0) return "a tile is used that the configuration lacks";
  return nullptr;
}

const char* TileUnit::Zero(int tile) {
  if (const char* error = Check(tile)) return error;
  std::memset(data_[tile], 0, sizeof(data_[tile]));
  return nullptr;
}

const char* TileUnit::Load(int tile, const std::byte* from, int64_t stride) {
  if (const char* error = Zero(tile)) return error;
  for (int r = 0; r < rows_[tile]; ++r) {
    std::memcpy(data_[tile][r], from + r * stride, static_cast<size_t>(row_bytes_[tile]));
  }
  return nullptr;
}

const char* TileUnit::Store(int tile, std::byte* to, int64_t stride) const {
  if (const char* error = Check(tile)) return error;
  for (int r = 0; r < rows_[tile]; ++r) {
    std::memcpy(to + r * stride, data_[tile][r], static_cast<size_t>(row_bytes_[tile]));
  }
  return nullptr;
}

[[gnu::target("avx2,fma")]] const char* TileUnit::DotBf16(int sum, int a, int b) {
  for (const int tile : {sum, a, b}) {
    if (const char* error = Check(tile)) return error;
  }
  if (sum == a || sum == b || a == b) return "a product of tiles that are not three";
  const int rows = rows_[sum], columns = row_bytes_[sum] / 4, pairs = row_bytes_[a] / 4;
  if (row_bytes_[sum] % 4 != 0 || row_bytes_[a] % 4 != 0 || row_bytes_[b] % 4 != 0) return "columns that are not whole";
  if (rows_[a] != rows || row_bytes_[b] != row_bytes_[sum] || rows_[b] != pairs) return "sizes that do not fit";
  for (int r = 0; r < rows; ++r) {
    float even[kRowBytes / 4] = {}, odd[kRowBytes / 4] = {};
    for (int k = 0; k < pairs; ++k) {
      uint16_t x[2], w[kRowBytes / 2];
      std::memcpy(x, data_[a][r] + k * 4, sizeof(x));
      std::memcpy(w, data_[b][k], sizeof(w));
      const float x0 = FromBf16(x[0]), x1 = FromBf16(x[1]);
      for (int n = 0; n < columns; ++n) {
        even[n] = Flush(__builtin_fmaf(x0, FromBf16(w[2 * n]), even[n]));
        odd[n] = Flush(__builtin_fmaf(x1, FromBf16(w[2 * n + 1]), odd[n]));
      }
    }
    float total[kRowBytes / 4];
    std::memcpy(total, data_[sum][r], sizeof(total));
    for (int n = 0; n < columns; ++n) total[n] = Flush(Flush(total[n]) + Flush(even[n] + odd[n]));
    std::memcpy(data_[sum][r], total, sizeof(total));
  }
  return nullptr;
}

namespace {

constinit thread_local TileUnit unit;
std::atomic<int64_t> configured = 0, released = 0, products = 0;
struct sigaction previous;

struct Instruction {
  int prefix = 0, opcode = 0;      // prefix: 0 none, 1 66, 2 F3, 3 F2
  int reg = 0, rm = 0, third = 0;  // registers of tiles
  bool memory = false;             // rm is no register, but:
  int64_t address = 0, stride = 0, size = 0;
};

int64_t General(const ucontext_t& context, int number) {
  static constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return context.uc_mcontext.gregs[kOrder[number]];
}

// Reads an operand in memory behind the byte `modrm`; returns where the instruction ends.
const uint8_t* DecodeMemory(const uint8_t* at, uint8_t modrm, int x_bit, int b_bit, const ucontext_t& context,
                            Instruction& out) {
  const int mod = modrm >> 6, rm = modrm & 7;
  bool base = true;
  if (rm == 4) {
    const uint8_t sib = *at++;
    const int index = (sib >> 3 & 7) | x_bit << 3;
    if (index != 4) out.stride = General(context, index) << (sib >> 6);
    base = (sib & 7) != 5 || mod != 0;
    if (base) out.address = General(context, (sib & 7) | b_bit << 3);
  } else {
    base = rm != 5 || mod != 0;
    if (base) out.address = General(context, rm | b_bit << 3);
  }
  const bool relative = rm == 5 && mod == 0;
  if (mod == 1) {
    out.address += static_cast<int8_t>(*at++);
  } else if (mod == 2 || !base) {
    int32_t displacement;
    std::memcpy(&displacement, at, sizeof(displacement));
    at += sizeof(displacement);
    out.address += displacement + (relative ? reinterpret_cast<int64_t>(at) : 0);
  }
  return at;
}

// True for an instruction of the map that tile instructions are in.
bool Decode(const uint8_t* at, const ucontext_t& context, Instruction& out) {
  const uint8_t* const begin = at;
  if (at[0] != 0xc4 || (at[1] & 0x1f) != 2 || (at[2] & 0x84) != 0) return false;  // 3 bytes of VEX, 0F38, W0, 128 bits
  const int r_bit = ~at[1] >> 7 & 1, x_bit = ~at[1] >> 6 & 1, b_bit = ~at[1] >> 5 & 1;
  out.prefix = at[2] & 3;
  out.third = ~at[2] >> 3 & 15;
  out.opcode = at[3];
  const uint8_t modrm = at[4];
  at += 5;
  out.reg = (modrm >> 3 & 7) | r_bit << 3;
  out.memory = modrm >> 6 != 3;
  if (out.memory) {
    at = DecodeMemory(at, modrm, x_bit, b_bit, context, out);
  } else {
    out.rm = (modrm & 7) | b_bit << 3;
  }
  out.size = at - begin;
  return true;
}

// False when it is no tile instruction.
bool Execute(const Instruction& i, const char*& error) {
  constexpr int kNone = 0, kF3 = 2, kF2 = 3;
  const std::pair<int, int> key = {i.opcode, i.prefix};
  auto* const memory = reinterpret_cast<std::byte*>(i.address);
  if (key == std::pair{0x49, kNone} && i.memory) {
    ++configured;
    error = unit.Configure(memory);
  } else if (key == std::pair{0x49, kNone}) {
    ++released;
    if (!unit.configured()) error = "a release of tiles that are not configured";
    unit.Release();
  } else if (key == std::pair{0x49, kF2} && !i.memory) {
    error = unit.Zero(i.reg);
  } else if (key == std::pair{0x4b, kF2} && i.memory) {
    error = unit.Load(i.reg, memory, i.stride);
  } else if (key == std::pair{0x4b, kF3} && i.memory) {
    error = unit.Store(i.reg, memory, i.stride);
  } else if (key == std::pair{0x5c, kF3} && !i.memory) {
    ++products;
    error = unit.DotBf16(i.reg, i.rm, i.third);
  } else {
    return false;
  }
  return true;
}

void OnIllegalInstruction(int, siginfo_t*, void* opaque) {
  auto& context = *static_cast<ucontext_t*>(opaque);
  auto& rip = context.uc_mcontext.gregs[REG_RIP];
  Instruction instruction;
  const char* error = nullptr;
  if (!Decode(reinterpret_cast<const uint8_t*>(rip), context, instruction) || !Execute(instruction, error)) {
    sigaction(SIGILL, &previous, nullptr);  // not ours: it happens again
    return;
  }
  if (error != nullptr) {
    constexpr char kPrefix[] = "tile emulation: ";
    static_cast<void>(!write(2, kPrefix, sizeof(kPrefix) - 1));
    static_cast<void>(!write(2, error, std::strlen(error)));
    static_cast<void>(!write(2, "\n", 1));
    std::abort();
  }
  rip += instruction.size;
}

}  // namespace

EmulatedTiles::EmulatedTiles() {
  struct sigaction action = {};
  action.sa_sigaction = OnIllegalInstruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &previous);
}

EmulatedTiles::~EmulatedTiles() { sigaction(SIGILL, &previous, nullptr); }

EmulatedTiles::Counts EmulatedTiles::counts() { return {configured.load(), released.load(), products.load()}; }

}  // namespace vt::testing

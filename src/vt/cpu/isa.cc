// CPUID, XCR0 and arch_prctl: the instruction sets that may be used here.
#include "vt/cpu/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "base/result.h"

namespace vt {
namespace {

constexpr int kArchReqXcompPerm = 0x1023;
constexpr int kXfeatureTileData = 18;

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers Cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

bool Bit(uint32_t word, int bit) { return (word >> bit & 1) != 0; }

// Register state that the system saves on a context switch: a set the CPU has is unusable without it.
uint64_t Xcr0() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Adds the AMX tile state to what this process may use; false on old kernels and in some sandboxes.
bool AskForTiles() { return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0; }

// False when even the lowest set is missing.
bool Detect(Isa* isa) {
  const Registers one = Cpuid(1);
  if (!Bit(one.c, 27)) return false;  // OSXSAVE
  const uint64_t xcr0 = Xcr0();
  const Registers seven = Cpuid(7);
  const bool avx2 = (xcr0 & 0x6) == 0x6 && Bit(one.c, 28) && Bit(one.c, 12) && Bit(one.c, 29) && Bit(seven.b, 5);
  if (!avx2) return false;
  *isa = HasAvxVnni() ? Isa::kAvxVnni : Isa::kAvx2;
  // F, DQ, BW, VL and the opmask and upper register state.
  const bool avx512 =
      (xcr0 & 0xe6) == 0xe6 && Bit(seven.b, 16) && Bit(seven.b, 17) && Bit(seven.b, 30) && Bit(seven.b, 31);
  if (!avx512) return true;
  *isa = Isa::kAvx512;
  if (!Bit(seven.c, 11)) return true;
  *isa = Isa::kAvx512Vnni;
  if (!Bit(Cpuid(7, 1).a, 5)) return true;
  *isa = Isa::kAvx512Bf16;
  const bool amx = Bit(seven.d, 22) && Bit(seven.d, 24) && Bit(seven.d, 25) && (xcr0 >> 17 & 3) == 3;
  if (amx && AskForTiles()) *isa = Isa::kAmx;
  return true;
}

}  // namespace

bool HasAvxVnni() { return Bit(Cpuid(7, 1).a, 4); }

Isa DetectIsa() {
  Isa isa = Isa::kAvx2;
  if (!Detect(&isa)) {
    base::Throw(base::ErrorCode::kUnsupported, "cpu: ", CpuBrand(),
                " lacks AVX2, FMA or F16C (or the system does not enable them); this build needs them");
  }
  return isa;
}

Isa ResolveIsa(std::string_view forced) {
  const Isa best = DetectIsa();
  if (forced.empty()) return best;
  Isa wanted = Isa::kAvx2;
  if (forced == "avx512") {
    wanted = best == Isa::kAmx ? Isa::kAvx512Bf16 : best;
    if (best < Isa::kAvx512) wanted = Isa::kAvx512;
  } else if (forced == "amx") {
    wanted = Isa::kAmx;
  } else if (forced == "avxvnni") {
    wanted = Isa::kAvxVnni;
  } else if (forced != "avx2") {
    base::Throw(base::ErrorCode::kInvalidArgument, "VT_CPU_ISA: '", forced, "' is none of avx2, avxvnni, avx512, amx");
  }
  if (wanted > best || (wanted == Isa::kAvxVnni && !HasAvxVnni())) {
    base::Throw(base::ErrorCode::kUnsupported, "VT_CPU_ISA: ", forced, " is not available on ", CpuBrand(),
                ", whose best is ", IsaName(best), "; unset it or use VT_CPU_ISA=", IsaName(best));
  }
  return wanted;
}

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avxvnni";
    case Isa::kAvx512:
    case Isa::kAvx512Vnni:
    case Isa::kAvx512Bf16:
      return "avx512";
    case Isa::kAmx:
      return "amx";
  }
  return "";
}

std::string_view IsaLongName(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "AVX2";
    case Isa::kAvxVnni:
      return "AVX2 VNNI";
    case Isa::kAvx512:
      return "AVX-512";
    case Isa::kAvx512Vnni:
      return "AVX-512 VNNI";
    case Isa::kAvx512Bf16:
      return "AVX-512 VNNI BF16";
    case Isa::kAmx:
      return "AVX-512 VNNI BF16 AMX";
  }
  return "";
}

std::string CpuBrand() {
  char text[49] = {};
  if (Cpuid(0x80000000u).a >= 0x80000004u) {
    for (uint32_t i = 0; i < 3; ++i) {
      const Registers r = Cpuid(0x80000002u + i);
      std::memcpy(text + 16 * i, &r, 16);
    }
  }
  std::string brand = text;
  const size_t first = brand.find_first_not_of(' ');
  if (first == std::string::npos) return "CPU";
  return brand.substr(first, brand.find_last_not_of(' ') - first + 1);
}

}  // namespace vt

// Which instruction sets this machine and this system let us use.
#pragma once
#include <string>
#include <string_view>

#include "vt/kernel_context.h"

namespace vt {

// Best instruction set with kernels of its own that CPUID, XCR0 and (for AMX) the kernel's permission allow. Asks for
// the AMX permission of the process. Throws base::Exception kUnsupported on a machine without AVX2, FMA and F16C.
Isa DetectIsa();

// True on machines that have the VNNI instructions for registers of 256 bits without AVX-512; kAvxVnni is usable then.
bool HasAvxVnni();

// `forced`: "" for the best, or "avx2", "avxvnni", "avx512", "amx"; "avx512" takes the best AVX-512 level that is no
// AMX. Throws base::Exception when the machine lacks it (kUnsupported) or the name is none of these (kInvalidArgument).
Isa ResolveIsa(std::string_view forced);

// "avx2", "avxvnni", "avx512" or "amx".
std::string_view IsaName(Isa isa);
// "AVX2", "AVX2 VNNI", "AVX-512", "AVX-512 VNNI", "AVX-512 VNNI BF16", "AMX": for people.
std::string_view IsaLongName(Isa isa);

// Brand string of the processor, trimmed; "CPU" when it has none.
std::string CpuBrand();

}  // namespace vt

// VT_UNROLL before a loop of constant length: unrolls it fully, so that arrays of vectors stay in registers.
#pragma once

#if defined(__clang__)
#define VT_UNROLL _Pragma("unroll")
#else
#define VT_UNROLL _Pragma("GCC unroll 16")
#endif

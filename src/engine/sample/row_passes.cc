// Which compilation of the passes this machine runs.
#include "engine/sample/row_passes.h"

namespace vllm {

const RowPasses& BestRowPasses() {
#ifdef __x86_64__
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return kRowPassesAvx2;
#endif
  return kRowPassesBase;
}

}  // namespace vllm

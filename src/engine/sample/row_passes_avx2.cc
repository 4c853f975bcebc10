// The passes over rows compiled for AVX2.
#include "engine/sample/row_passes_body.h"

namespace vllm {

const RowPasses kRowPassesAvx2 = kTable;

}  // namespace vllm

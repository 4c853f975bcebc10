// The passes over rows compiled for every machine.
#include "engine/sample/row_passes_body.h"

namespace vllm {

const RowPasses kRowPassesBase = kTable;

}  // namespace vllm

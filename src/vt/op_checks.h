// Preconditions of the ops that every provider shares: shapes, dtypes and the values of metadata.
#pragma once
#include "vt/ops.h"

namespace vt {

// Each CHECKs one op's operands before a kernel touches them. Operands must be readable by the caller (host memory, or
// already translated). Metadata values are checked as well (ids, slots, block numbers, cu_q), so that no kernel can be
// led out of its buffers. Thread-safe.
void CheckArgs(const EmbedOp<Tensor>& op);
void CheckArgs(const AddNormOp<Tensor>& op);
void CheckArgs(const LinearOp<Tensor>& op);
void CheckArgs(const QkNormRopeCacheWriteOp<Tensor>& op);
void CheckArgs(const PagedAttentionOp<Tensor>& op);
void CheckArgs(const GatedActOp<Tensor>& op);
void CheckArgs(const GatherRowsOp<Tensor>& op);
void CheckArgs(const SoftcapOp<Tensor>& op);
void CheckArgs(const RowMaxOp<Tensor>& op);
void CheckArgs(const LinearRowMaxOp<Tensor>& op);
void CheckArgs(const AttentionOp<Tensor>& op);

}  // namespace vt

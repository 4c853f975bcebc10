// The dense attention rungs: their bounds, and launches by name. A caller picks its rung; nothing routes between them.
#include <algorithm>

#include "base/result.h"
#include "vt/buffer.h"
#include "vt/ops.h"

namespace vt {
namespace {

void Launch(Queue& queue, DeviceType device, OpId op, const AttentionOp<Tensor>& args) {
  const OpKernel* kernel = FindOp(op, device);
  if (kernel == nullptr)
    base::Throw(base::ErrorCode::kUnsupported, "vt::", OpName(op), ": no kernel of it is registered for device '",
                DeviceName(device), "'; ask vt::OpRegistered first, or call vt::Attention");
  queue.Launch(*kernel, args, {});
}

}  // namespace

int64_t AttentionDenseFlashSmemBytes(int64_t head_dim, int64_t elem) {
  return 2 * kAttentionDenseFlashTileCols * head_dim * elem;
}

// Divides where the function above multiplies: tests hold the two against each other.
int64_t AttentionDenseFlashMaxHeadDim(int64_t elem) {
  const int64_t elements_per_row = kAttentionSmemBytes / elem / kAttentionDenseFlashTileCols;
  return std::min(kAttentionDenseMaxHeadDim, elements_per_row / 2);
}

void Attention(Queue& queue, DeviceType device, const AttentionOp<Tensor>& args) {
  Launch(queue, device, OpId::kAttention, args);
}

void AttentionDenseFlash(Queue& queue, DeviceType device, const AttentionOp<Tensor>& args) {
  const int64_t head_dim = args.q.shape[2], elem = DTypeBytes(args.q.dtype);
  const int64_t largest = AttentionDenseFlashMaxHeadDim(elem);
  if (head_dim > largest)
    base::Throw(base::ErrorCode::kInvalidArgument, "vt::AttentionDenseFlash: head_dim ", head_dim, " of ",
                DTypeName(args.q.dtype), " is above ", largest, " (its tile would take ",
                AttentionDenseFlashSmemBytes(head_dim, elem), " of ", kAttentionSmemBytes,
                " bytes); call vt::AttentionDenseFast");
  Launch(queue, device, OpId::kAttentionDenseFlash, args);
}

void AttentionDenseFast(Queue& queue, DeviceType device, const AttentionOp<Tensor>& args) {
  const int64_t head_dim = args.q.shape[2];
  if (head_dim > kAttentionDenseMaxHeadDim)
    base::Throw(base::ErrorCode::kInvalidArgument, "vt::AttentionDenseFast: head_dim ", head_dim, " is above ",
                kAttentionDenseMaxHeadDim, "; call vt::Attention");
  Launch(queue, device, OpId::kAttentionDenseFast, args);
}

}  // namespace vt

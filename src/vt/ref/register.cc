// The ref provider's list of kernels, for the ref and the opaque device.
#include "vt/ref/register.h"

#include "vt/ops.h"
#include "vt/ref/kernels.h"

namespace vt {

void RegisterRefOps() {
  for (DeviceType device : {DeviceType::kRef, DeviceType::kOpaque}) {
    RegisterOp({OpId::kEmbed, device, "ref", RefEmbed});
    RegisterOp({OpId::kAddNorm, device, "ref", RefAddNorm});
    RegisterOp({OpId::kLinear, device, "ref", RefLinear});
    RegisterOp({OpId::kQkNormRopeCacheWrite, device, "ref", RefQkNormRopeCacheWrite});
    RegisterOp({OpId::kPagedAttention, device, "ref", RefPagedAttention});
    RegisterOp({OpId::kGatedAct, device, "ref", RefGatedAct});
    RegisterOp({OpId::kGatherRows, device, "ref", RefGatherRows});
    RegisterOp({OpId::kSoftcap, device, "ref", RefSoftcap});
    RegisterOp({OpId::kRowMax, device, "ref", RefRowMax});
    RegisterOp({OpId::kAttention, device, "ref", RefAttention});
  }
}

}  // namespace vt

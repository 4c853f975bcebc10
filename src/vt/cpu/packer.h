// The cpu provider's packer: every weight that is multiplied with goes into R16.
#pragma once
#include <memory>
#include <span>

#include "base/thread_pool.h"
#include "vt/cpu/r16.h"
#include "vt/weight.h"

namespace vt {

struct CpuFormatRow {
  FormatId id;
  CpuFormat index;
};
// The formats with fast kernels.
std::span<const CpuFormatRow> CpuFormats();
// Null for a format without kernels.
const CpuFormatRow* FindCpuFormat(FormatId id);

class R16Packer final : public Packer {
 public:
  // Packs on the pool's workers; null: on the calling thread.
  explicit R16Packer(std::shared_ptr<base::ThreadPool> pool) : pool_(std::move(pool)) {}
  // 0 for formats without kernels, which plans refuse by name.
  int64_t PackedBytes(const WeightSource& source, WeightUse use) const override;
  Segment Pack(const WeightSource& source, std::byte* out) override;

 private:
  std::shared_ptr<base::ThreadPool> pool_;
};

}  // namespace vt

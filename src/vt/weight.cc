// ResidentSlot: puts the weight of one linear where its device can read it.
#include "vt/weight.h"

#include "base/check.h"

namespace vt {

void ResidentSlot::Load(std::span<const WeightSource> sources, Platform& platform) {
  CHECK(!sources.empty(), "a weight without a source");
  auto weight = std::make_shared<PackedWeight>();
  weight->device = platform.device();
  weight->k = sources[0].k;
  for (const WeightSource& source : sources) {
    CHECK(source.k == weight->k, source.name, " has ", source.k, " columns, its neighbours ", weight->k);
    const auto row_bytes = RowBytes(GetFormat(source.format), source.k);
    CHECK(row_bytes && static_cast<size_t>(*row_bytes * source.n) == source.bytes.size(), source.name, ": ",
          source.bytes.size(), " bytes for ", source.n, " rows of ", source.k);
    weight->n += source.n;
    weight->source_bytes += source.bytes.size();
    weight->segments.push_back({.format = source.format,
                                .n = source.n,
                                .row_bytes = *row_bytes,
                                .data = const_cast<std::byte*>(source.bytes.data())});
    if (source.owner) weight->owners.push_back(source.owner);
  }
  if (!platform.info().host_memory) {
    auto buffer = std::make_shared<Buffer>(platform.Allocate(weight->source_bytes));
    const auto queue = platform.MakeQueue();
    int64_t offset = 0;
    for (Segment& segment : weight->segments) {
      const int64_t bytes = segment.n * segment.row_bytes;
      queue->CopyAsync(buffer->View(DType::kU8, {bytes}, offset), MakeTensor(segment.data, DType::kU8, {bytes}, {}));
      segment.data = buffer->data() + offset;
      offset += bytes;
    }
    queue->Synchronize();
    weight->resident_bytes = weight->source_bytes;
    weight->owners = {buffer};
  }
  weight_ = std::move(weight);
}

}  // namespace vt

// ResidentSlot: puts the weight of one linear where its device can read it.
#include "vt/weight.h"

#include "base/check.h"

namespace vt {

namespace {

Segment FileSegment(const WeightSource& source) {
  const auto row_bytes = RowBytes(GetFormat(source.format), source.k);
  CHECK(row_bytes && static_cast<size_t>(*row_bytes * source.n) == source.bytes.size(), source.name, ": ",
        source.bytes.size(), " bytes for ", source.n, " rows of ", source.k);
  return {.format = source.format,
          .n = source.n,
          .row_bytes = *row_bytes,
          .data = const_cast<std::byte*>(source.bytes.data())};
}

// Copies the segments into memory of a device that cannot read the host's.
void CopyToDevice(PackedWeight& weight, Platform& platform) {
  auto buffer = std::make_shared<Buffer>(platform.Allocate(weight.source_bytes));
  const auto queue = platform.MakeQueue();
  int64_t offset = 0;
  for (Segment& segment : weight.segments) {
    const int64_t bytes = segment.n * segment.row_bytes;
    queue->CopyAsync(buffer->View(DType::kU8, {bytes}, offset), MakeTensor(segment.data, DType::kU8, {bytes}, {}));
    segment.data = buffer->data() + offset;
    offset += bytes;
  }
  queue->Synchronize();
  weight.resident_bytes = weight.source_bytes;
  weight.owners = {buffer};
}

}  // namespace

void ResidentSlot::Load(std::span<const WeightSource> sources, WeightUse use, Platform& platform) {
  CHECK(!sources.empty(), "a weight without a source");
  auto weight = std::make_shared<PackedWeight>();
  weight->device = platform.device();
  weight->k = sources[0].k;
  Packer* const packer = platform.packer();
  std::vector<int64_t> packed;
  for (const WeightSource& source : sources) {
    CHECK(source.k == weight->k, source.name, " has ", source.k, " columns, its neighbours ", weight->k);
    packed.push_back(packer != nullptr ? packer->PackedBytes(source, use) : 0);
    weight->n += source.n;
    weight->source_bytes += source.bytes.size();
    weight->resident_bytes += static_cast<uint64_t>(packed.back());
  }
  std::shared_ptr<Buffer> buffer;
  if (weight->resident_bytes > 0) {
    buffer = std::make_shared<Buffer>(platform.Allocate(weight->resident_bytes));
    weight->owners.push_back(buffer);
  }
  int64_t offset = 0;
  for (size_t i = 0; i < sources.size(); offset += packed[i++]) {
    weight->segments.push_back(FileSegment(sources[i]));
    if (packed[i] > 0) {
      weight->segments.back() = packer->Pack(sources[i], buffer->data() + offset);
    } else if (sources[i].owner) {
      weight->owners.push_back(sources[i].owner);
    }
  }
  if (!platform.info().host_memory) CopyToDevice(*weight, platform);
  weight_ = std::move(weight);
}

}  // namespace vt

// PagedAttention on the CPU: splits the step into tiles of query rows, and long tiles into ranges of keys.
//
// A tile is up to kAttentionRows rows of one sequence and one kv head, so that K and V are read and dequantized once
// for the whole group of heads. When there are too few tiles for the workers (decoding a few sequences), a tile's key
// ranges are shared out and their partial results merged in order afterwards; the merge is the same either way, and so
// are the bits. Chosen for every call; small calls stay on one worker.
#include <algorithm>

#include "base/check.h"
#include "vt/cpu/isa_table.h"
#include "vt/cpu/kernels.h"
#include "vt/cpu/paged_attention_tile.h"
#include "vt/op_checks.h"

namespace vt {
namespace {

// Items per worker that even out tiles of unequal length.
constexpr int64_t kItemsPerWorker = 4;
// Partial results of split tiles at most; beyond it tiles are not split.
constexpr int64_t kPartialFloatsMax = int64_t{8} << 20;
// Multiply-adds that one worker does in a few barriers' time.
constexpr int64_t kSerialWork = 200000;

struct TileSpan {
  int32_t sequence = 0, kv_head = 0, token = 0, tokens = 0, head = 0, heads = 0;  // head counts within the group
  int64_t first_range = 0, ranges = 0;
  int64_t partial = -1;  // offset of its partial results; -1: not split
};

struct Item {
  int64_t tile = 0, begin = 0, end = 0;  // ranges
};

const AttentionKernels& KernelsOf(Isa isa) {
  if (isa >= Isa::kAvx512Vnni) return kAttentionKernelsAvx512Vnni;
  return isa >= Isa::kAvx512 ? kAttentionKernelsAvx512 : kAttentionKernelsAvx2;
}

class Split {
 public:
  Split(const PagedAttentionOp<Tensor>& op, KernelContext& context)
      : op_(op),
        context_(context),
        kernels_(KernelsOf(context.isa)),
        kv_(KvPlacesOf(op.cache, op.page())),
        group_(op.heads / op.kv_heads),
        heads_per_tile_(std::min<int64_t>(group_, kAttentionRows)),
        tokens_per_tile_(kAttentionRows / heads_per_tile_) {}

  void Run() {
    Count();
    if (tiles_ == 0) return;
    Allocate();
    FillItems();
    const bool serial = context_.workers == 1 || work_ <= kSerialWork;
    auto run = [this](int64_t begin, int64_t end, int worker) {
      for (int64_t i = begin; i < end; ++i) RunItem(items_[i], worker);
    };
    auto finish = [this](int64_t begin, int64_t end, int worker) {
      for (int64_t i = begin; i < end; ++i) FinishTile(tile_[i], worker);
    };
    if (serial) return run(0, item_count_, 0);
    context_.ParallelFor(item_count_, 1, run);
    if (partial_floats_ == 0) return;
    if (partial_floats_ <= kSerialElements) return finish(0, tiles_, 0);
    context_.ParallelFor(tiles_, 1, finish);
  }

 private:
  // Calls f(span) for every tile; later, longer tiles of a sequence come first.
  template <class F>
  void ForEachTile(F&& f) const {
    const int32_t* cu_q = op_.cu_q.as<int32_t>();
    for (int64_t s = 0; s < op_.block_table.shape[0]; ++s) {
      const int64_t queries = cu_q[s + 1] - cu_q[s], pieces = (queries + tokens_per_tile_ - 1) / tokens_per_tile_;
      for (int64_t piece = pieces - 1; piece >= 0; --piece) {
        const int64_t token = piece * tokens_per_tile_, tokens = std::min(tokens_per_tile_, queries - token);
        const int64_t position = op_.seq_len.as<int32_t>()[s] - queries + token;
        const int64_t oldest = op_.window > 0 ? std::max<int64_t>(0, position - op_.window + 1) : 0;
        TileSpan span{.sequence = static_cast<int32_t>(s),
                      .token = static_cast<int32_t>(cu_q[s] + token),
                      .tokens = static_cast<int32_t>(tokens),
                      .first_range = oldest / kAttentionRange};
        span.ranges = (position + tokens - 1) / kAttentionRange + 1 - span.first_range;
        for (int32_t kv_head = 0; kv_head < op_.kv_heads; ++kv_head)
          for (int64_t head = 0; head < group_; head += heads_per_tile_) {
            span.kv_head = kv_head;
            span.head = static_cast<int32_t>(head);
            span.heads = static_cast<int32_t>(std::min(heads_per_tile_, group_ - head));
            f(span);
          }
      }
    }
  }

  void Count() {
    int64_t ranges = 0, partial_floats = 0;
    ForEachTile([&](const TileSpan& span) {
      ++tiles_;
      ranges += span.ranges;
      partial_floats += span.ranges * AttentionPartialFloats(span.tokens * span.heads, op_.head_dim);
      const int64_t keys = std::min<int64_t>(span.ranges * kAttentionRange, LastPosition(span) + 1);
      work_ += 2 * keys * span.tokens * span.heads * op_.head_dim;
      rows_max_ = std::max<int64_t>(rows_max_, span.tokens * span.heads);
    });
    const int64_t wanted = kItemsPerWorker * context_.workers;
    split_ = context_.workers > 1 && work_ > kSerialWork && tiles_ < wanted && partial_floats <= kPartialFloatsMax;
    ranges_per_item_ = split_ ? (ranges + wanted - 1) / wanted : ranges;
    item_capacity_ = tiles_ + wanted;
    partial_capacity_ = split_ ? partial_floats : 0;
  }

  int64_t LastPosition(const TileSpan& span) const {
    const int32_t* cu_q = op_.cu_q.as<int32_t>();
    return op_.seq_len.as<int32_t>()[span.sequence] - cu_q[span.sequence + 1] + span.token + span.tokens - 1;
  }

  size_t TileBytes() const {
    return static_cast<size_t>(AttentionScratchFloats(rows_max_, op_.head_dim)) * sizeof(float);
  }

  // Worker 0's scratch holds the lists and the partial results too: it is the calling worker.
  void Allocate() {
    auto round = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
    const size_t tiles = round(static_cast<size_t>(tiles_) * sizeof(TileSpan));
    const size_t items = round(static_cast<size_t>(item_capacity_) * sizeof(Item));
    const size_t partials = round(static_cast<size_t>(partial_capacity_) * sizeof(float));
    std::byte* memory = context_.Scratch(0, tiles + items + partials + TileBytes()).data();
    tile_ = reinterpret_cast<TileSpan*>(memory);
    items_ = reinterpret_cast<Item*>(memory + tiles);
    partials_ = reinterpret_cast<float*>(memory + tiles + items);
    scratch_ = reinterpret_cast<float*>(memory + tiles + items + partials);
  }

  void FillItems() {
    int64_t tile = 0;
    ForEachTile([&](TileSpan span) {
      const int64_t unit = split_ ? ranges_per_item_ : span.ranges;
      if (span.ranges > unit) {
        span.partial = partial_floats_;
        partial_floats_ += span.ranges * AttentionPartialFloats(span.tokens * span.heads, op_.head_dim);
      }
      for (int64_t begin = 0; begin < span.ranges; begin += unit)
        items_[item_count_++] = {tile, span.first_range + begin,
                                 span.first_range + std::min(span.ranges, begin + unit)};
      tile_[tile++] = span;
    });
  }

  AttentionTile TileOf(const TileSpan& span, int worker) {
    const int64_t head = span.kv_head * group_ + span.head;
    AttentionTile tile{.q = op_.qkv.as<float>() + span.token * op_.qkv.shape[1] + head * op_.head_dim,
                       .q_stride = op_.qkv.shape[1],
                       .out = op_.out.as<float>() + span.token * op_.out.shape[1] + head * op_.head_dim,
                       .out_stride = op_.out.shape[1],
                       .tokens = span.tokens,
                       .heads = span.heads,
                       .head_dim = op_.head_dim,
                       .window = op_.window,
                       .scale = op_.scale,
                       .softcap = op_.softcap,
                       .kv = kv_,
                       .kv_head = span.kv_head,
                       .blocks = op_.block_table.as<int32_t>() + span.sequence * op_.block_table.shape[1]};
    tile.first_position = LastPosition(span) - span.tokens + 1;
    tile.scratch = worker == 0 ? scratch_ : reinterpret_cast<float*>(context_.Scratch(worker, TileBytes()).data());
    return tile;
  }

  void RunItem(const Item& item, int worker) {
    const TileSpan& span = tile_[item.tile];
    float* partials = nullptr;
    if (span.partial >= 0)
      partials = partials_ + span.partial +
                 (item.begin - span.first_range) * AttentionPartialFloats(span.tokens * span.heads, op_.head_dim);
    kernels_.run(TileOf(span, worker), item.begin, item.end, partials);
  }

  void FinishTile(const TileSpan& span, int worker) {
    if (span.partial >= 0) kernels_.finish(TileOf(span, worker), partials_ + span.partial, span.ranges);
  }

  const PagedAttentionOp<Tensor>& op_;
  KernelContext& context_;
  const AttentionKernels& kernels_;
  const KvPlaces kv_;
  const int64_t group_, heads_per_tile_, tokens_per_tile_;
  int64_t tiles_ = 0, rows_max_ = 0, work_ = 0, ranges_per_item_ = 0;
  int64_t item_capacity_ = 0, item_count_ = 0, partial_capacity_ = 0, partial_floats_ = 0;
  bool split_ = false;
  TileSpan* tile_ = nullptr;
  Item* items_ = nullptr;
  float* partials_ = nullptr;
  float* scratch_ = nullptr;
};

}  // namespace

void CpuPagedAttention(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<PagedAttentionOp<Tensor>>(args);
  CheckArgs(op);
  CHECK(op.head_dim % 8 == 0 && op.head_dim <= kAttentionMaxHeadDim, "head_dim ", op.head_dim,
        "; a multiple of 8 up to ", kAttentionMaxHeadDim);
  Split(op, context).Run();
}

}  // namespace vt

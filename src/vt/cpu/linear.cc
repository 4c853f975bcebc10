// Chooses and runs the linear kernels: formats by table, few or many rows, columns split over the workers.
#include "vt/cpu/linear.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "vt/cpu/linear_kernels.h"
#include "vt/op_checks.h"
#include "vt/weight.h"

namespace vt {
namespace {

struct FormatRow {
  FormatId id;
  CpuFormat index;
};
constexpr FormatRow kFormatRows[] = {
    {FormatId::kF32, kCpuF32},   {FormatId::kF16, kCpuF16},   {FormatId::kBF16, kCpuBF16},
    {FormatId::kQ8_0, kCpuQ8_0}, {FormatId::kQ4_0, kCpuQ4_0}, {FormatId::kQ4_1, kCpuQ4_1},
    {FormatId::kQ5_0, kCpuQ5_0}, {FormatId::kQ4_K, kCpuQ4_K}, {FormatId::kQ6_K, kCpuQ6_K},
};

const FormatRow* FindRow(FormatId id) {
  for (const FormatRow& row : kFormatRows) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

CpuFormat IndexOf(FormatId id) {
  const FormatRow* row = FindRow(id);
  CHECK(row != nullptr, "no cpu kernel for format ", static_cast<int>(id), "; the plan should have refused it");
  return row->index;
}

const LinearKernels& KernelsOf(Isa isa) { return isa >= Isa::kAvx512 ? kLinearAvx512 : kLinearAvx2; }

bool UsesBf16(int64_t rows, Numerics numerics, Isa isa) {
  return rows > kFewRows && numerics == Numerics::kDefault && isa >= Isa::kAvx512Bf16;
}

// Work of one op: pieces of `grain` columns that do not cross segments, times parts of `part_rows` rows.
struct Pieces {
  std::span<const Segment> segments;
  int64_t grain = 0, part_rows = 0, row_parts = 1;
  int64_t count = 0;

  struct Piece {
    const Segment* segment;
    int64_t begin, end;  // columns within the segment
    int64_t column;      // of `begin` in the output
    int64_t row_begin, row_end;
  };
  Piece At(int64_t index, int64_t rows) const {
    const int64_t part = index % row_parts;
    index /= row_parts;
    int64_t column = 0;
    for (const Segment& segment : segments) {
      const int64_t pieces = (segment.n + grain - 1) / grain;
      if (index < pieces) {
        const int64_t begin = index * grain;
        return {&segment,
                begin,
                std::min(begin + grain, segment.n),
                column + begin,
                part * part_rows,
                std::min((part + 1) * part_rows, rows)};
      }
      index -= pieces;
      column += segment.n;
    }
    return {};  // not reached: index < count
  }
};

Pieces Split(const PackedWeight& weight, int64_t rows, int workers) {
  Pieces pieces = {.segments = weight.segments, .part_rows = rows};
  // About eight pieces a worker: late or interrupted workers lose little, and a piece outweighs taking it.
  constexpr int64_t kPiecesPerWorker = 8;
  if (rows <= kFewRows) {
    const int64_t even = weight.n / (workers * kPiecesPerWorker);
    // Up to the size of an L2 cache, so that the order of memory stays nearly that of the file.
    pieces.grain = std::clamp<int64_t>(even / 16 * 16, 16, 1024);
  } else {
    pieces.grain = kPanelColumns;
  }
  int64_t columns = 0;
  for (const Segment& segment : weight.segments) columns += (segment.n + pieces.grain - 1) / pieces.grain;
  if (rows > kFewRows && columns < 4 * workers) {
    // Too few panels for the workers: split rows too, at the price of unpacking a panel once per part.
    constexpr int64_t kLeastRows = 96;  // a multiple of every tile
    const int64_t wanted = (4 * workers + columns - 1) / columns;
    const int64_t per_part = std::max((rows / wanted + kLeastRows - 1) / kLeastRows * kLeastRows, kLeastRows);
    pieces.part_rows = per_part;
    pieces.row_parts = (rows + per_part - 1) / per_part;
  }
  pieces.count = columns * pieces.row_parts;
  return pieces;
}

int64_t Align64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// x with rows of PaddedK(k) values: as it is when they are whole, otherwise a zero-padded copy.
const float* PadRows(const float* x, int64_t rows, int64_t k, std::byte* scratch) {
  const int64_t padded = PaddedK(k);
  if (padded == k) return x;
  float* out = reinterpret_cast<float*>(scratch);
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(out + r * padded, x + r * k, static_cast<size_t>(k) * sizeof(float));
    std::memset(out + r * padded + k, 0, static_cast<size_t>(padded - k) * sizeof(float));
  }
  return out;
}

// Largest number of floats that a thread rounds to BF16 faster than it wakes another.
constexpr int64_t kRoundGrain = 1 << 14;

}  // namespace

bool CpuLinearSupports(FormatId format, const PlatformInfo&, std::string* reason) {
  if (FindRow(format) != nullptr) return true;
  if (reason != nullptr) {
    *reason = base::StrCat("weight format ", GetFormat(format).name, " has no cpu kernel (there are:");
    for (const FormatRow& row : kFormatRows) *reason += base::StrCat(" ", GetFormat(row.id).name);
    *reason += ")";
  }
  return false;
}

std::string_view CpuLinearKernelName(int64_t rows, Numerics numerics, Isa isa) {
  if (rows <= kFewRows) return "f32 few rows";
  return UsesBf16(rows, numerics, isa) ? "bf16 blocked" : "f32 blocked";
}

void CpuLinear(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<LinearOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t rows = op.x.shape[0], k = op.x.shape[1], n = op.out.shape[1], padded = PaddedK(k);
  if (rows == 0) return;
  for (const Segment& segment : op.weight->segments) IndexOf(segment.format);
  const LinearKernels& kernels = KernelsOf(context.isa);
  const bool bf16 = !op.full_precision && UsesBf16(rows, context.numerics, context.isa), few = rows <= kFewRows;

  // Worker 0's scratch also holds what all share: the padded or rounded x. All scratch is taken here, where running out
  // of memory can still be reported.
  const int64_t panel_bytes = few ? 0 : Align64(PanelBytes(k));
  const int64_t shared_bytes = bf16 ? rows * padded * 2 : padded != k ? rows * padded * 4 : 0;
  std::byte* const panel0 = context.Scratch(0, static_cast<size_t>(panel_bytes + shared_bytes)).data();
  std::byte* const shared = panel0 + panel_bytes;
  for (int w = 1; w < context.workers && !few; ++w) context.Scratch(w, static_cast<size_t>(panel_bytes));

  LinearPart whole = {.x_stride = padded, .k = k, .y_stride = n};
  if (bf16) {
    uint16_t* rounded = reinterpret_cast<uint16_t*>(shared);
    const float* x = op.x.as<float>();
    context.ParallelFor(rows, std::max<int64_t>(kRoundGrain / k, 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) kLinearBf16.round(x + r * k, k, rounded + r * padded);
    });
    whole.x_bf16 = rounded;
  } else {
    whole.x = PadRows(op.x.as<float>(), rows, k, shared);
  }

  const Pieces pieces = Split(*op.weight, rows, context.workers);
  context.ParallelFor(pieces.count, 1, [&](int64_t begin, int64_t end, int worker) {
    std::byte* panel = few || worker == 0 ? panel0 : context.Scratch(worker, static_cast<size_t>(panel_bytes)).data();
    for (int64_t i = begin; i < end; ++i) {
      const Pieces::Piece piece = pieces.At(i, rows);
      const CpuFormat format = IndexOf(piece.segment->format);
      LinearPart part = whole;
      if (bf16) {
        part.x_bf16 += piece.row_begin * padded;
      } else {
        part.x += piece.row_begin * padded;
      }
      part.rows = piece.row_end - piece.row_begin;
      part.weight =
          reinterpret_cast<const unsigned char*>(piece.segment->data) + piece.begin * piece.segment->row_bytes;
      part.row_bytes = piece.segment->row_bytes;
      part.columns = piece.end - piece.begin;
      part.y = op.out.as<float>() + piece.row_begin * n + piece.column;
      part.bias = op.bias ? op.bias.as<float>() + piece.column : nullptr;
      part.panel = reinterpret_cast<float*>(panel);
      (few ? kernels.few_rows[format] : bf16 ? kLinearBf16.gemm[format] : kernels.gemm_f32[format])(part);
    }
  });
}

void CpuEmbed(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<EmbedOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t tokens = op.out.shape[0], columns = op.out.shape[1];
  for (const Segment& segment : op.weight->segments) IndexOf(segment.format);
  const LinearKernels& kernels = KernelsOf(context.isa);
  context.ParallelFor(
      tokens, std::max<int64_t>(kRoundGrain / std::max<int64_t>(columns, 1), 1), [&](int64_t begin, int64_t end, int) {
        for (int64_t t = begin; t < end; ++t) {
          int64_t row = op.ids.as<int32_t>()[t];
          float* out = op.out.as<float>() + t * columns;
          for (const Segment& segment : op.weight->segments) {
            if (row < segment.n) {
              kernels.unpack_row[IndexOf(segment.format)](
                  reinterpret_cast<const unsigned char*>(segment.data) + row * segment.row_bytes, columns, out);
              break;
            }
            row -= segment.n;
          }
          for (int64_t c = 0; c < columns; ++c) out[c] *= op.scale;
        }
      });
}

}  // namespace vt

// Chooses and runs the linear kernels: formats by table, few or many rows, columns split over the workers.
#include "vt/cpu/linear.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "vt/cpu/isa_table.h"
#include "vt/cpu/linear_kernels.h"
#include "vt/cpu/packer.h"
#include "vt/op_checks.h"
#include "vt/weight.h"

namespace vt {
namespace {

CpuFormat IndexOf(const Segment& segment) {
  const CpuFormatRow* row = FindCpuFormat(segment.format);
  CHECK(row != nullptr, "no cpu kernel for format ", static_cast<int>(segment.format),
        "; the plan should have refused it");
  return row->index;
}

const LinearKernels& KernelsOf(Isa isa) {
  if (isa >= Isa::kAvx512Vnni) return kLinearAvx512Vnni;
  if (isa >= Isa::kAvx512) return kLinearAvx512;
  return isa == Isa::kAvxVnni ? kLinearAvxVnni : kLinearAvx2;
}

bool IsFloat(CpuFormat format) { return format <= kCpuBF16; }

enum class Recipe { kFew, kGemm, kBf16, kExact };

Recipe RecipeOf(CpuFormat format, int64_t rows, Numerics numerics, Isa isa) {
  if (numerics == Numerics::kExact) return Recipe::kExact;
  const int few = KernelsOf(isa).few_rows;
  if (!IsFloat(format)) return rows <= few ? Recipe::kFew : Recipe::kGemm;
  const bool bf16 = format == kCpuBF16 && rows > few && numerics == Numerics::kDefault && isa >= Isa::kAvx512Bf16;
  return bf16 ? Recipe::kBf16 : Recipe::kExact;
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

Pieces Split(const PackedWeight& weight, int64_t rows, bool few, int workers) {
  Pieces pieces = {.segments = weight.segments, .part_rows = rows};
  // About eight pieces a worker: late or interrupted workers lose little, and a piece outweighs taking it.
  constexpr int64_t kPiecesPerWorker = 8;
  if (few) {
    const int64_t even = weight.n / (workers * kPiecesPerWorker);
    // Whole steps of the kernels, and at most what keeps the order of memory nearly that of the weight.
    pieces.grain = std::clamp<int64_t>(even / 64 * 64, 64, 1024);
  } else {
    pieces.grain = kPanelColumns;
  }
  int64_t columns = 0;
  for (const Segment& segment : weight.segments) columns += (segment.n + pieces.grain - 1) / pieces.grain;
  if (!few && columns < 4 * workers) {
    // Too few panels for the workers: split rows too, at the price of unpacking a panel once per part.
    constexpr int64_t kLeastRows = 120;  // a multiple of every tile
    const int64_t wanted = (4 * workers + columns - 1) / columns;
    const int64_t per_part = std::max((rows / wanted + kLeastRows - 1) / kLeastRows * kLeastRows, kLeastRows);
    pieces.part_rows = per_part;
    pieces.row_parts = (rows + per_part - 1) / per_part;
  }
  pieces.count = columns * pieces.row_parts;
  return pieces;
}

int64_t Align64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// x as the recipes of an op read it, in memory that all workers share. Laid out first, then filled.
struct PreparedX {
  bool quantize = false, bf16 = false, pad = false;
  int64_t rows = 0, k = 0;

  int64_t bytes() const {
    const int64_t padded = PaddedK(k);
    return (quantize ? Align64(QuantizedBytes(rows, k)) : 0) + (bf16 ? Align64(rows * padded * 2) : 0) +
           (pad ? Align64(rows * padded * 4) : 0);
  }

  // Fills `memory` from x [rows, k] and points `part` at it.
  void Fill(const float* x, std::byte* memory, const LinearKernels& kernels, KernelContext& context,
            LinearPart& part) const {
    const int64_t padded = PaddedK(k);
    part.x = x;
    uint16_t* rounded = nullptr;
    float* copy = nullptr;
    if (quantize) {
      part.quantized = QuantizedAt(memory);
      memory += Align64(QuantizedBytes(rows, k));
    }
    if (bf16) {
      part.x_bf16 = rounded = reinterpret_cast<uint16_t*>(memory);
      memory += Align64(rows * padded * 2);
    }
    if (pad) part.x = copy = reinterpret_cast<float*>(memory);
    const auto fill = [&](int64_t begin, int64_t end) {
      if (quantize)
        (rows <= kernels.few_rows ? kernels.quantize_few : kernels.quantize_gemm)(x, k, begin, end, part.quantized);
      for (int64_t r = begin; r < end; ++r) {
        if (bf16) kLinearBf16.round(x + r * k, k, rounded + r * padded);
        if (!pad) continue;
        std::memcpy(copy + r * padded, x + r * k, static_cast<size_t>(k) * sizeof(float));
        std::memset(copy + r * padded + k, 0, static_cast<size_t>(padded - k) * sizeof(float));
      }
    };
    if (!quantize && !bf16 && !pad) return;
    if (quantize && rows < kQuantizedRows) {
      // A kernel for one row more may read it: zeros cost nothing, what lies there might be denormal.
      const QuantizedRows& q = part.quantized;
      std::fill_n(q.scale + rows * padded / 32, padded / 32, 0.0f);
      std::fill_n(q.min32 + rows * padded / 32, padded / 32, 0.0f);
      std::fill_n(q.min16 + rows * padded / 16, padded / 16, 0.0f);
    }
    ForRows(context, rows, k, fill);
  }

  QuantizedRows QuantizedAt(std::byte* memory) const {
    const int64_t stride = PaddedK(k), count = std::max(rows, kQuantizedRows) * stride;
    QuantizedRows out = {.stride = stride};
    out.q = reinterpret_cast<int16_t*>(memory);
    out.scale = reinterpret_cast<float*>(memory + count * 2);
    out.min32 = out.scale + count / 32;
    out.min16 = out.min32 + count / 32;
    out.sum32 = reinterpret_cast<int32_t*>(out.min16 + count / 16);
    out.sum16 = out.sum32 + count / 32;
    return out;
  }
};

}  // namespace

bool CpuLinearSupports(FormatId format, const PlatformInfo&, std::string* reason) {
  if (FindCpuFormat(format) != nullptr) return true;
  if (reason != nullptr) {
    *reason = base::StrCat("weight format ", GetFormat(format).name, " has no cpu kernel (there are:");
    for (const CpuFormatRow& row : CpuFormats()) *reason += base::StrCat(" ", GetFormat(row.id).name);
    *reason += ")";
  }
  return false;
}

std::string_view CpuLinearKernelName(FormatId format, int64_t rows, Numerics numerics, Isa isa) {
  switch (RecipeOf(FindCpuFormat(format)->index, rows, numerics, isa)) {
    case Recipe::kFew:
      return "int16 few rows";
    case Recipe::kGemm:
      return "int16 panels";
    case Recipe::kBf16:
      return "bf16";
    case Recipe::kExact:
      return "f32";
  }
  return "";
}

void CpuLinear(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<LinearOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t rows = op.x.shape[0], k = op.x.shape[1], n = op.out.shape[1];
  if (rows == 0) return;
  const LinearKernels& kernels = KernelsOf(context.isa);
  const auto recipe_of = [&](CpuFormat format) { return RecipeOf(format, rows, context.numerics, context.isa); };
  PreparedX prepared = {.rows = rows, .k = k};
  bool panels = false;
  for (const Segment& segment : op.weight->segments) {
    CHECK(segment.layout == LayoutId::kR16, "a weight of format ", static_cast<int>(segment.format),
          " that was not packed");
    const Recipe recipe = recipe_of(IndexOf(segment));
    prepared.quantize |= recipe == Recipe::kFew || recipe == Recipe::kGemm;
    prepared.bf16 |= recipe == Recipe::kBf16;
    prepared.pad |= recipe == Recipe::kExact && PaddedK(k) != k;
    panels |= recipe == Recipe::kGemm;
  }

  // Worker 0's scratch also holds what all share. All scratch is taken here, where running out of memory can still be
  // reported.
  const int64_t panel_bytes = panels ? Align64(PanelBytes(k)) : 0;
  std::byte* const panel0 = context.Scratch(0, static_cast<size_t>(panel_bytes + prepared.bytes())).data();
  for (int w = 1; w < context.workers && panels; ++w) context.Scratch(w, static_cast<size_t>(panel_bytes));
  LinearPart whole;
  whole.k = k, whole.y_stride = n;
  prepared.Fill(op.x.as<float>(), panel0 + panel_bytes, kernels, context, whole);

  const Pieces pieces = Split(*op.weight, rows, rows <= kernels.few_rows, context.workers);
  context.ParallelFor(pieces.count, 1, [&](int64_t begin, int64_t end, int worker) {
    std::byte* panel =
        !panels || worker == 0 ? panel0 : context.Scratch(worker, static_cast<size_t>(panel_bytes)).data();
    for (int64_t i = begin; i < end; ++i) {
      const Pieces::Piece piece = pieces.At(i, rows);
      const CpuFormat format = IndexOf(*piece.segment);
      const R16Shape shape = R16ShapeOf(format, k);
      LinearPart part = whole;
      part.SkipRows(piece.row_begin);
      part.rows = piece.row_end - piece.row_begin;
      part.groups =
          reinterpret_cast<const unsigned char*>(piece.segment->data) + piece.begin / kR16Rows * shape.group_bytes;
      part.group_bytes = shape.group_bytes;
      part.head_bytes = shape.head_bytes;
      part.columns = piece.end - piece.begin;
      part.y = op.out.as<float>() + piece.row_begin * n + piece.column;
      part.bias = op.bias ? op.bias.as<float>() + piece.column : nullptr;
      part.panel = reinterpret_cast<unsigned char*>(panel);
      switch (recipe_of(format)) {
        case Recipe::kFew:
          kernels.few[format](part);
          break;
        case Recipe::kGemm:
          kernels.gemm[format](part);
          break;
        case Recipe::kBf16:
          kLinearBf16.gemm(part);
          break;
        case Recipe::kExact:
          kernels.exact[format](part);
          break;
      }
    }
  });
}

namespace {

// Row `row` of a segment as k floats.
void LookUp(const Segment& segment, int64_t row, int64_t k, const LinearKernels& kernels, float* out) {
  if (segment.layout == LayoutId::kFile) {
    GetFormat(segment.format).dequantize(segment.data + row * segment.row_bytes, k, out);
    return;
  }
  const CpuFormat format = IndexOf(segment);
  const R16Shape shape = R16ShapeOf(format, k);
  kernels.unpack_row[format](reinterpret_cast<const unsigned char*>(segment.data) + row / kR16Rows * shape.group_bytes,
                             shape.head_bytes, static_cast<int>(row % kR16Rows), k, out);
}

}  // namespace

void CpuEmbed(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<EmbedOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t tokens = op.out.shape[0], columns = op.out.shape[1];
  const LinearKernels& kernels = KernelsOf(context.isa);
  ForRows(context, tokens, columns, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t row = op.ids.as<int32_t>()[t];
      float* out = op.out.as<float>() + t * columns;
      for (const Segment& segment : op.weight->segments) {
        if (row < segment.n) {
          LookUp(segment, row, columns, kernels, out);
          break;
        }
        row -= segment.n;
      }
      for (int64_t c = 0; c < columns; ++c) out[c] *= op.scale;
    }
  });
}

}  // namespace vt

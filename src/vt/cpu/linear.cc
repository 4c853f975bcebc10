// Chooses and runs the linear kernels: formats by table, few or many rows, columns split over the workers.
#include "vt/cpu/linear.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
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

// Columns of a part of a few-row kernel: whole steps of it.
constexpr int64_t kFewGrain = 64;

// Columns of an AMX part, where that leaves enough of them: every part reads all of x.
constexpr int64_t kAmxGrain = 64;

enum class Recipe { kFew, kGemm, kBf16, kAmx, kExact };

Recipe RecipeOf(CpuFormat format, int64_t rows, Numerics numerics, Isa isa) {
  if (numerics == Numerics::kExact) return Recipe::kExact;
  const int few = IsFloat(format) ? kFewFloatRows : KernelsOf(isa).few_rows;
  const bool to_bf16 = numerics != Numerics::kInvariant && rows > few;
  if (to_bf16 && isa >= Isa::kAmx && kLinearAmx.gemm[format] != nullptr) return Recipe::kAmx;
  if (!IsFloat(format)) return rows <= few ? Recipe::kFew : Recipe::kGemm;
  return to_bf16 && format == kCpuBF16 && isa >= Isa::kAvx512Bf16 ? Recipe::kBf16 : Recipe::kExact;
}

bool IsInteger(Recipe recipe) { return recipe == Recipe::kFew || recipe == Recipe::kGemm; }

// What multiplies a segment.
struct Choice {
  Recipe recipe;
  LinearKernels::Kernel kernel;  // its form of x: of integer recipes
};

Choice Choose(CpuFormat format, int64_t rows, Numerics numerics, Isa isa) {
  const Recipe recipe = RecipeOf(format, rows, numerics, isa);
  const LinearKernels& kernels = KernelsOf(isa);
  const LinearKernels::Integer& integer = numerics == Numerics::kFast ? kernels.int8 : kernels.int16;
  switch (recipe) {
    case Recipe::kFew:
      return {recipe, integer.few[format]};
    case Recipe::kGemm:
      return {recipe, integer.gemm[format]};
    case Recipe::kBf16:
      return {recipe, {kLinearBf16.gemm}};
    case Recipe::kAmx:
      return {recipe, {kLinearAmx.gemm[format]}};
    case Recipe::kExact:
      return {recipe, {kernels.exact[format]}};
  }
  return {};
}

// Columns [begin, end) of a segment; in the output they begin at `column`.
struct Piece {
  const Segment* segment;
  int64_t begin, end, column;
};

// Calls f with the pieces of a weight, in order: wide ones first, so that a worker reads on where it stopped, narrow
// ones last, so that all finish together. Each ends at a multiple of `grain` or with its segment.
template <class F>
void ForPieces(const PackedWeight& weight, int64_t grain, int workers, F&& f) {
  constexpr int64_t kShares = 4;  // a worker takes this part of its part of what is left
  int64_t column = 0;
  for (const Segment& segment : weight.segments) {
    for (int64_t begin = 0; begin < segment.n;) {
      const int64_t share = (weight.n - column) / (kShares * workers) / grain * grain;
      const int64_t end = std::min(begin + std::max(share, grain), segment.n);
      f(Piece{&segment, begin, end, column});
      column += end - begin;
      begin = end;
    }
  }
}

// How the rows of a GEMM are split: with too few panels for the workers, at the price of unpacking a panel once a part.
struct RowParts {
  int64_t rows = 0, count = 1;
};
RowParts SplitRows(const PackedWeight& weight, int64_t rows, int workers, bool amx) {
  const int64_t least = amx ? 128 : 120;  // a multiple of every tile
  const int64_t panels = weight.n / kPanelColumns + 1;
  if (panels >= 4 * workers) return {rows, 1};
  const int64_t wanted = (4 * workers + panels - 1) / panels;
  const int64_t part = std::max((rows / wanted + least - 1) / least * least, least);
  return {part, (rows + part - 1) / part};
}

int64_t Align64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// x as the kernels of an op read it, in memory that all workers share. Laid out first, then filled.
struct PreparedX {
  bool quantize[kXForms] = {}, bf16 = false, tiles = false, pad = false;
  int64_t rows = 0, k = 0;
  QuantizedRows quantized[kXForms] = {};  // once filled, of the forms in use

  void Need(const Choice& choice) {
    if (IsInteger(choice.recipe)) quantize[choice.kernel.x] = true;
    bf16 |= choice.recipe == Recipe::kBf16;
    tiles |= choice.recipe == Recipe::kAmx;
    pad |= choice.recipe == Recipe::kExact && PaddedK(k) != k;
  }

  // A multiple of 64.
  int64_t bytes() const {
    const int64_t padded = PaddedK(k), forms = std::count(quantize, quantize + kXForms, true);
    return forms * Align64(QuantizedBytes(rows, k)) + (bf16 ? Align64(rows * padded * 2) : 0) +
           (tiles ? TilesBytes(rows, k) : 0) + (pad ? Align64(rows * padded * 4) : 0);
  }

  // Fills `memory` from x [rows, k] and points `part` at all but the quantized rows.
  void Fill(const float* x, std::byte* memory, const LinearKernels& kernels, KernelContext& context, LinearPart& part) {
    const int64_t padded = PaddedK(k);
    part.x = x;
    uint16_t *rounded = nullptr, *packed = nullptr;
    float* copy = nullptr;
    for (int form = 0; form < kXForms; ++form) {
      if (!quantize[form]) continue;
      quantized[form] = QuantizedAt(memory);
      memory += Align64(QuantizedBytes(rows, k));
    }
    if (bf16) {
      part.x_bf16 = rounded = reinterpret_cast<uint16_t*>(memory);
      memory += Align64(rows * padded * 2);
    }
    if (tiles) {
      part.x_tiles = packed = reinterpret_cast<uint16_t*>(memory);
      memory += TilesBytes(rows, k);
    }
    if (pad) part.x = copy = reinterpret_cast<float*>(memory);
    if (bytes() == 0) return;
    ForRows(context, rows, k, [&](int64_t begin, int64_t end) {
      for (int form = 0; form < kXForms; ++form) {
        if (quantize[form]) kernels.quantize[form](x, k, begin, end, quantized[form]);
      }
      for (int64_t r = begin; r < end; ++r) {
        if (bf16) kLinearBf16.round(x + r * k, k, rounded + r * padded);
        if (tiles) kLinearAmx.pack_row(x + r * k, k, r, packed);
        if (!pad) continue;
        std::memcpy(copy + r * padded, x + r * k, static_cast<size_t>(k) * sizeof(float));
        std::memset(copy + r * padded + k, 0, static_cast<size_t>(padded - k) * sizeof(float));
      }
    });
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
    // Kernels for up to the next power of two rows may read those beyond: zeros cost nothing, what lies there might be
    // denormal.
    if (rows < kQuantizedRows) {
      const int64_t more = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows))) - rows;
      std::fill_n(out.scale + rows * stride / 32, more * stride / 32, 0.0f);
      std::fill_n(out.min32 + rows * stride / 32, more * stride / 32, 0.0f);
      std::fill_n(out.min16 + rows * stride / 16, more * stride / 16, 0.0f);
    }
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
  const Choice choice = Choose(FindCpuFormat(format)->index, rows, numerics, isa);
  const bool bytes = choice.kernel.x == kXBytes;
  switch (choice.recipe) {
    case Recipe::kFew:
      return bytes ? "int8 few rows" : "int16 few rows";
    case Recipe::kGemm:
      return bytes ? "int8 panels" : "int16 panels";
    case Recipe::kBf16:
      return "bf16";
    case Recipe::kAmx:
      return "amx bf16";
    case Recipe::kExact:
      return "f32";
  }
  return "";
}

namespace {

// Running maxima of the output's rows, one for each worker and row.
struct OutputMaxima {
  MaxAt* best;  // [workers, rows]
  int64_t rows;
  const RowKernels& kernels;

  // Looks through what a worker has just computed: rows from `row`, columns from `column`.
  void Take(const LinearPart& part, int64_t row, int64_t column, int worker) const {
    for (int64_t r = 0; r < part.rows; ++r) {
      MaxAt max = kernels.row_max(part.y + r * part.y_stride, part.columns);
      if (max.index >= 0) max.index += static_cast<int32_t>(column);
      JoinMax(best[worker * rows + row + r], max);
    }
  }
  void Store(int workers, float* max, int32_t* index) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int w = 1; w < workers; ++w) JoinMax(best[r], best[w * rows + r]);
      max[r] = best[r].value;
      index[r] = best[r].index;
    }
  }
};

// Without op.max a plain linear.
void RunLinear(const LinearRowMaxOp<Tensor>& op, KernelContext& context) {
  const int64_t rows = op.x.shape[0], k = op.x.shape[1], n = op.out.shape[1];
  if (rows == 0) return;
  const LinearKernels& kernels = KernelsOf(context.isa);
  const auto choose = [&](CpuFormat format) { return Choose(format, rows, context.numerics, context.isa); };
  PreparedX prepared = {.rows = rows, .k = k};
  int64_t panel_bytes = 0;
  for (const Segment& segment : op.weight->segments) {
    CHECK(segment.layout == LayoutId::kR16, "a weight of format ", static_cast<int>(segment.format),
          " that was not packed");
    const Choice choice = choose(IndexOf(segment));
    prepared.Need(choice);
    if (choice.recipe == Recipe::kGemm) panel_bytes = std::max(panel_bytes, Align64(PanelBytes(k)));
    if (choice.recipe == Recipe::kAmx) panel_bytes = std::max(panel_bytes, kAmxPanelBytes);
  }

  const bool few = rows <= kernels.few_rows, wide = prepared.tiles && n >= 4 * context.workers * kAmxGrain;
  const int64_t grain = few ? kFewGrain : wide ? kAmxGrain : kPanelColumns;
  int64_t count = 0;
  ForPieces(*op.weight, grain, context.workers, [&](const Piece&) { ++count; });

  // Worker 0's scratch also holds what all share. All scratch is taken here, where running out of memory can still be
  // reported.
  const int64_t x_bytes = prepared.bytes();
  const int64_t maxima = op.max ? context.workers * rows : 0;
  const size_t shared_bytes = static_cast<size_t>(x_bytes) + static_cast<size_t>(count) * sizeof(Piece) +
                              static_cast<size_t>(maxima) * sizeof(MaxAt);
  std::byte* const panel0 = context.Scratch(0, static_cast<size_t>(panel_bytes) + shared_bytes).data();
  for (int w = 1; w < context.workers && panel_bytes > 0; ++w) context.Scratch(w, static_cast<size_t>(panel_bytes));
  LinearPart whole;
  whole.k = k, whole.y_stride = n;
  prepared.Fill(op.x.as<float>(), panel0 + panel_bytes, kernels, context, whole);
  Piece* const pieces = reinterpret_cast<Piece*>(panel0 + panel_bytes + x_bytes);
  count = 0;
  ForPieces(*op.weight, grain, context.workers, [&](const Piece& piece) { new (pieces + count++) Piece(piece); });

  // Outputs are looked through while they are in the second cache.
  const OutputMaxima found = {reinterpret_cast<MaxAt*>(pieces + count), rows, RowKernelsOf(context)};
  std::fill_n(found.best, maxima, kNoMax);
  constexpr int64_t kWarmOutputs = 65536;
  const int64_t step = op.max ? std::max(kWarmOutputs / rows / 64 * 64, int64_t{64}) : n;
  const RowParts row_parts = few ? RowParts{rows, 1} : SplitRows(*op.weight, rows, context.workers, prepared.tiles);
  context.ParallelFor(count * row_parts.count, 1, [&](int64_t begin, int64_t end, int worker) {
    std::byte* panel =
        panel_bytes == 0 || worker == 0 ? panel0 : context.Scratch(worker, static_cast<size_t>(panel_bytes)).data();
    for (int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces[i / row_parts.count];
      const int64_t row_begin = i % row_parts.count * row_parts.rows;
      const CpuFormat format = IndexOf(*piece.segment);
      const R16Shape shape = R16ShapeOf(format, k);
      const LinearKernels::Kernel kernel = choose(format).kernel;
      LinearPart part = whole;
      part.quantized = prepared.quantized[kernel.x];
      part.SkipRows(row_begin);
      part.rows = std::min(row_parts.rows, rows - row_begin);
      part.group_bytes = shape.group_bytes;
      part.head_bytes = shape.head_bytes;
      part.panel = reinterpret_cast<unsigned char*>(panel);
      for (int64_t c = piece.begin; c < piece.end; c += step) {
        const int64_t column = piece.column + c - piece.begin;
        part.groups = reinterpret_cast<const unsigned char*>(piece.segment->data) + c / kR16Rows * shape.group_bytes;
        part.columns = std::min(step, piece.end - c);
        part.y = op.out.as<float>() + row_begin * n + column;
        part.bias = op.bias ? op.bias.as<float>() + column : nullptr;
        kernel.run(part);
        if (op.max) found.Take(part, row_begin, column, worker);
      }
    }
  });
  if (op.max) found.Store(context.workers, op.max.as<float>(), op.index.as<int32_t>());
}

}  // namespace

void CpuLinear(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<LinearOp<Tensor>>(args);
  CheckArgs(op);
  RunLinear({.x = op.x, .out = op.out, .bias = op.bias, .weight = op.weight}, context);
}

void CpuLinearRowMax(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<LinearRowMaxOp<Tensor>>(args);
  CheckArgs(op);
  RunLinear(op, context);
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

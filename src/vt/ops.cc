// The op table: which provider serves an op on a device, and how often it was chosen and run.
#include "vt/ops.h"

#include <atomic>
#include <cstdio>
#include <deque>
#include <mutex>

#include "base/check.h"
#include "vt/cpu/register.h"
#include "vt/ref/register.h"

namespace vt {
namespace {

struct Row {
  OpKernel kernel;
  std::atomic<uint64_t> chosen{0}, executed{0};
};

struct Table {
  std::mutex mutex;  // guards growth of rows; rows never move or go away
  std::deque<Row> rows;
  std::atomic<bool> announce{false};
};

Table& TheTable() {
  static Table table;
  return table;
}

void RegisterAllOps() {
  static std::once_flag once;
  std::call_once(once, [] {
    RegisterRefOps();
    RegisterCpuOps();
  });
}

Row* FindRow(OpId op, DeviceType device) {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  for (Row& row : table.rows)
    if (row.kernel.op == op && row.kernel.device == device) return &row;
  return nullptr;
}

}  // namespace

std::string_view OpName(OpId op) {
  switch (op) {
    case OpId::kEmbed:
      return "Embed";
    case OpId::kAddNorm:
      return "AddNorm";
    case OpId::kLinear:
      return "Linear";
    case OpId::kQkNormRopeCacheWrite:
      return "QkNormRopeCacheWrite";
    case OpId::kPagedAttention:
      return "PagedAttention";
    case OpId::kGatedAct:
      return "GatedAct";
    case OpId::kGatherRows:
      return "GatherRows";
    case OpId::kSoftcap:
      return "Softcap";
    case OpId::kRowMax:
      return "RowMax";
    case OpId::kLinearRowMax:
      return "LinearRowMax";
    case OpId::kAttention:
      return "Attention";
    case OpId::kAttentionCross:
      return "AttentionCross";
    case OpId::kAttentionDenseFast:
      return "AttentionDenseFast";
    case OpId::kAttentionDenseFlash:
      return "AttentionDenseFlash";
    case OpId::kAttentionDenseFa2:
      return "AttentionDenseFa2";
  }
  return "?";
}

void RegisterOp(const OpKernel& kernel) {
  CHECK(kernel.run != nullptr, "op ", OpName(kernel.op), " of provider ", kernel.provider, " has no kernel");
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  Row& row = table.rows.emplace_back();
  row.kernel = kernel;
  row.kernel.executed = &row.executed;
}

bool OpRegistered(OpId op, DeviceType device) {
  RegisterAllOps();
  return FindRow(op, device) != nullptr;
}

const OpKernel* FindOp(OpId op, DeviceType device) {
  RegisterAllOps();
  Row* row = FindRow(op, device);
  if (!row) return nullptr;
  if (row->chosen.fetch_add(1, std::memory_order_relaxed) == 0 && TheTable().announce)
    std::fprintf(stderr, "op=%d device=%d provider=%s\n", static_cast<int>(op), static_cast<int>(device),
                 std::string(row->kernel.provider).c_str());
  return &row->kernel;
}

std::vector<OpProviderStats> GetOpProviderStats() {
  RegisterAllOps();
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  std::vector<OpProviderStats> stats;
  for (const Row& row : table.rows)
    stats.push_back({.op = row.kernel.op,
                     .device = row.kernel.device,
                     .provider = std::string(row.kernel.provider),
                     .chosen = row.chosen,
                     .executed = row.executed});
  return stats;
}

void ResetOpProviderStats() {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  for (Row& row : table.rows) row.chosen = 0, row.executed = 0;
}

void SetOpProviderAnnouncements(bool on) { TheTable().announce = on; }

}  // namespace vt

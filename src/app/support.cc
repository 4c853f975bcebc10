// The support table: model types, weight formats and attention backends, read from the registries that decide.
#include "app/support.h"

#include "base/strings.h"
#include "model/families.h"
#include "quant/format.h"
#include "vt/attention_backends.h"
#include "vt/buffer.h"
#include "vt/cpu/linear.h"

namespace vllm {
namespace {

using base::StrCat;

void Add(std::string* list, std::string_view item) { *list += StrCat(list->empty() ? "" : ", ", item); }

}  // namespace

std::string SupportTable() {
  std::string types, architectures, fast, readable, backends;
  for (const Family& family : Families()) {
    Add(&types, family.model_type);
    if (!family.gguf_architecture.empty()) Add(&architectures, family.gguf_architecture);
  }
  const auto platform = vt::MakePlatform(vt::DeviceType::kCpu, {.threads = 1});
  for (const vt::Format& format : vt::AllFormats()) {
    Add(vt::CpuLinearSupports(format.id, platform->info(), nullptr) ? &fast : &readable, format.name);
  }
  for (const vt::AttentionBackend& backend : vt::AttentionBackends(vt::DeviceType::kCpu)) Add(&backends, backend.name);
  return StrCat("| | |\n|---|---|\n", "| model types (config.json, safetensors) | ", types, " |\n",
                "| architectures (GGUF v2, v3, split) | ", architectures, " |\n", "| weights with fast kernels | ",
                fast, " |\n", "| weights that are refused by name | ", readable, " |\n", "| attention backends | ",
                backends, " |\n");
}

}  // namespace vllm

// From what a user types as the model to a file or folder: a path, or a name in the Hugging Face hub cache.
#pragma once
#include <string>
#include <string_view>

namespace vllm {

// Values of the environment, read by the app; empty when unset.
struct HubLocations {
  std::string hf_hub_cache = {};    // HF_HUB_CACHE: the folder of models--org--name folders
  std::string hf_home = {};         // HF_HOME: its "hub" subfolder is used
  std::string xdg_cache_home = {};  // XDG_CACHE_HOME: huggingface/hub below it
  std::string home = {};            // HOME: .cache/huggingface/hub below it
};

// The hub cache folder these values mean; "" when none is set.
std::string HubCacheFolder(const HubLocations& locations);

struct ModelPath {
  std::string path = {};  // give it to LoadCheckpoint
  std::string name = {};  // what to serve it as: the text that was typed
};

// Resolves, in this order: an existing file or folder; "org/name", "org/name:QUANT" or "org/name:file.gguf" in the hub
// cache (refs/main → snapshots/<commit>). Throws base::Exception: kNotFound with the download command to type when the
// name is not in the cache, kInvalidArgument for a text that is neither a path nor a name, or a choice that is not
// unique (the candidates are listed).
ModelPath ResolveModelPath(std::string_view typed, const HubLocations& locations);

}  // namespace vllm

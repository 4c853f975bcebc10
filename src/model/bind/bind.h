// Binding: the stored tensors of a checkpoint become the parts that a spec needs, each checked, none left over.
#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "load/checkpoint.h"
#include "model/families.h"
#include "vt/weight.h"

namespace vllm {

// The checkpoint must outlive its bindings. Immutable; thread-safe.
class Bindings {
 public:
  // Throws base::Exception kBadFile naming the tensor: a missing one with the nearest that is there, a wrong shape, one
  // that no part uses. No weight is read.
  Bindings(const Checkpoint& checkpoint, const Family& family, const spec::Model& model);

  // [n, k] in the file's format, rows in the part's order. Bytes are the file's unless rows had to move.
  vt::WeightSource Matrix(Part part, int layer = -1) const;
  // The values of a vector, as float32.
  std::vector<float> Vector(Part part, int layer = -1) const;
  // A matrix as float32 [n * k]: for references.
  std::vector<float> MatrixAsFloat(Part part, int layer = -1) const;
  // Frequency divisors of all ropes; empty when the checkpoint has none.
  std::vector<float> RopeFactors() const;

  const std::vector<Role>& roles() const { return roles_; }

 private:
  struct Bound {
    Role role;
    Transform transform = Transform::kNone;
    const TensorInfo* tensor = nullptr;
  };
  const Bound& Get(Part part, int layer) const;
  void Add(const Checkpoint& checkpoint, const Role& role, const PartName& name);

  std::vector<Role> roles_;
  std::map<std::pair<Part, int>, Bound> bound_;
  const TensorInfo* rope_factors_ = nullptr;
  std::vector<std::shared_ptr<const base::MappedFile>> files_;
};

// The configuration of a GGUF file in config.json's words. Throws base::Exception naming the key.
Config ConfigOfGguf(const Checkpoint& checkpoint, const Family& family);

}  // namespace vllm

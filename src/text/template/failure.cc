// The messages of an exhausted Budget.
#include "text/template/failure.h"

namespace vllm::jinja {

void Budget::FailSteps() const { Fail("the template takes too many steps"); }
void Budget::FailBytes() const { Fail("the template makes too much data"); }
void Budget::FailString(int64_t count) const {
  Fail("the template makes a string of ", count, " bytes; the limit is ", string_bytes_);
}

}  // namespace vllm::jinja

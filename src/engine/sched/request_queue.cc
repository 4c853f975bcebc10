// Requests that wait for admission, in the order of the policy.
#include "engine/sched/request_queue.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace vllm {

bool RequestQueue::Earlier::operator()(const Request* a, const Request* b) const {
  return std::tie(a->priority, a->arrival_us, a->id) < std::tie(b->priority, b->arrival_us, b->id);
}

void RequestQueue::Add(Request* request) {
  if (policy_ == SchedulingPolicy::kPriority) {
    by_priority_.insert(request);
  } else {
    fcfs_.push_back(request);
  }
}

void RequestQueue::Prepend(Request* request) {
  if (policy_ == SchedulingPolicy::kPriority) {
    by_priority_.insert(request);
  } else {
    fcfs_.push_front(request);
  }
}

Request* RequestQueue::Front() const {
  CHECK(!empty(), "the queue is empty");
  return policy_ == SchedulingPolicy::kPriority ? *by_priority_.begin() : fcfs_.front();
}

void RequestQueue::PopFront() {
  CHECK(!empty(), "the queue is empty");
  if (policy_ == SchedulingPolicy::kPriority) {
    by_priority_.erase(by_priority_.begin());
  } else {
    fcfs_.pop_front();
  }
}

bool RequestQueue::Remove(const Request* request) {
  if (policy_ == SchedulingPolicy::kPriority) return by_priority_.erase(const_cast<Request*>(request)) > 0;
  const auto found = std::find(fcfs_.begin(), fcfs_.end(), request);
  if (found == fcfs_.end()) return false;
  fcfs_.erase(found);
  return true;
}

int64_t RequestQueue::size() const {
  return static_cast<int64_t>(policy_ == SchedulingPolicy::kPriority ? by_priority_.size() : fcfs_.size());
}

}  // namespace vllm

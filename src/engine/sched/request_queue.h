// Requests that wait for admission, in the order of the policy.
#pragma once
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "engine/sched/request.h"

namespace vllm {

enum class SchedulingPolicy : int8_t {
  kFcfs,      // first come, first served; a preempted request goes to the front
  kPriority,  // by (priority, arrival, id); lower is earlier
};

// Holds pointers that the scheduler owns. Engine thread only.
class RequestQueue {
 public:
  explicit RequestQueue(SchedulingPolicy policy) : policy_(policy) {}

  void Add(Request* request);
  void Prepend(Request* request);  // kPriority: as Add
  Request* Front() const;          // CHECKs that there is one
  void PopFront();
  bool Remove(const Request* request);  // false if it is not here
  bool empty() const { return size() == 0; }
  int64_t size() const;

 private:
  struct Earlier {
    bool operator()(const Request* a, const Request* b) const;
  };

  SchedulingPolicy policy_;
  std::deque<Request*> fcfs_;
  std::set<Request*, Earlier> by_priority_;
};

}  // namespace vllm

// SIGINT and SIGTERM as a count that loops can look at and wait for.
#pragma once

namespace vllm {

// Installs the handlers, once; from then on the two signals are only counted. SIGPIPE is ignored.
void CatchInterrupts();
// Signals so far. Thread-safe.
int InterruptCount();
// Waits until the count differs from `seen` or the time is over (negative: no limit); returns the count.
int WaitForInterrupt(int seen, int timeout_ms);

}  // namespace vllm

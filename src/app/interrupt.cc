// SIGINT and SIGTERM as a count that loops can look at and wait for.
#include "app/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/check.h"

namespace vllm {
namespace {

// A signal handler has no other way to its program than global state.
std::atomic<int> count = 0;
int wake_pipe[2] = {-1, -1};

void Handle(int) {
  const int saved = errno;
  count.fetch_add(1);
  const char byte = 0;
  // A full pipe wakes its reader just as well.
  [[maybe_unused]] const ssize_t written = ::write(wake_pipe[1], &byte, 1);
  errno = saved;
}

}  // namespace

void CatchInterrupts() {
  if (wake_pipe[0] >= 0) return;
  CHECK(::pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2: errno ", errno);
  struct sigaction action = {};
  action.sa_handler = &Handle;
  ::sigemptyset(&action.sa_mask);
  // No SA_RESTART: a read of the terminal ends, so that the dialogue sees Ctrl-C.
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int InterruptCount() { return count.load(); }

int WaitForInterrupt(int seen, int timeout_ms) {
  if (count.load() != seen) return count.load();
  pollfd wake = {.fd = wake_pipe[0], .events = POLLIN, .revents = 0};
  ::poll(&wake, 1, timeout_ms);
  char bytes[64];
  while (::read(wake_pipe[0], bytes, sizeof bytes) > 0) {
  }
  return count.load();
}

}  // namespace vllm

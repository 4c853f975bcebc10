// Signals are counted, and waiting for them ends.
#include "app/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

namespace vllm {
namespace {

TEST(Interrupt, SignalsAreCountedInsteadOfEndingTheProcess) {
  CatchInterrupts();
  const int before = InterruptCount();
  ::raise(SIGINT);
  ::raise(SIGTERM);
  EXPECT_EQ(InterruptCount(), before + 2);
}

TEST(Interrupt, WaitingEndsWithASignal) {
  CatchInterrupts();
  const int before = InterruptCount();
  std::thread sender([] { ::kill(::getpid(), SIGTERM); });
  int count = before;
  while (count == before) count = WaitForInterrupt(before, 10000);
  sender.join();
  EXPECT_EQ(count, before + 1);
}

TEST(Interrupt, WaitingEndsWithTheTime) {
  CatchInterrupts();
  const int before = InterruptCount();
  EXPECT_EQ(WaitForInterrupt(before, 1), before);
}

}  // namespace
}  // namespace vllm

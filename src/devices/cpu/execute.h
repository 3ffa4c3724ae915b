// Running the commands of one list, in order, on the calling thread and whoever helps.
#pragma once

#include <cstdint>

#include "devices/command_list.h"

namespace holdfast::exec {

// Runs `run(parameters, begin, end)` over ranges that make up [0, tasks), on several threads where
// `work` makes that worth while. Throws what a task threw.
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  virtual void run_tasks(void (*run)(void*, int64_t, int64_t), void* parameters, int64_t tasks,
                         int64_t work) = 0;
  // Around a command that may wait: the calling thread is not counted as one that runs commands.
  virtual void begin_waiting() noexcept = 0;
  virtual void end_waiting() noexcept = 0;
};

// Runs every command. A command whose input failed is skipped and hands the failure on; one that
// throws fails what it writes. Never throws.
void execute(CommandList& list, TaskRunner& runner) noexcept;

}  // namespace holdfast::exec

// SPDX-License-Identifier: Apache-2.0
// Tools that are not ours, as child processes: finding them, running them. For the targets
// that Vela or Arm's model converter can compile for.
#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/system/temporaries.h"

namespace tosaic {

bool is_executable(const std::filesystem::path& file);
// On PATH, then in $VIRTUAL_ENV; empty: nowhere.
std::string find_program(const std::string& name);

struct Ended {
  int exit_code = 0;        // 0, too, where a signal ended it
  int signal = 0;           // that ended it; 0: none
  std::string signal_name;  // "Segmentation fault"
  bool crashed = false;     // the signal says that the program did something wrong
  std::string said;         // on stdout and stderr
  bool succeeded() const { return exit_code == 0 && signal == 0; }
};
// What a tool may take. One that hangs uses no processor any more: Python's under tight memory, say.
struct Patience {
  std::chrono::seconds longest{0};  // 0: as long as it likes
  std::chrono::seconds idle{60};    // without using the processor
};
// Waits for the end; the tool ends with this process, however that ends. `log` is where its words go on the way.
// Errors: peer.start, peer.deadline, peer.hangs: it was killed then.
Result<Ended> run_process(const std::vector<std::string>& command, const std::filesystem::path& log,
                          const Patience& patience = {});
std::vector<std::string> lines_of(std::string_view text);  // without the empty ones

}  // namespace tosaic

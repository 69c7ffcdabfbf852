// SPDX-License-Identifier: Apache-2.0
// Tools that are not ours, as child processes: finding them, running them. For the targets
// that Vela or Arm's model converter can compile for.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/temporaries.h"

namespace tosaic {

bool is_executable(const std::filesystem::path& file);
// On PATH, then in $VIRTUAL_ENV; empty: nowhere.
std::string find_program(const std::string& name);

struct Ended {
  int status = 0;    // of waitpid
  std::string said;  // on stdout and stderr
};
// Waits for the end. `log` is where its words go on the way. Error: peer.start.
Result<Ended> run_process(const std::vector<std::string>& command, const std::filesystem::path& log);
std::vector<std::string> lines_of(std::string_view text);  // without the empty ones

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
// A tool that is written in Python, kept ready: a process that has imported what the tool needs, and runs each call in
// a fork of itself. A call is a process of its own, as one of run_process is; what it saves is Python's start.
#pragma once
#include <string>
#include <vector>

#include "base/system/external_process.h"

namespace tosaic {

// A tool that gets ready while its caller does something else. Nothing, where it is no script that pip wrote.
void make_ready(const std::string& program);

struct ReadyEnded {
  Ended ended;
  std::string version;  // that the tool's module states; empty: unknown
};
// As run_process, with its errors. What cannot be kept ready is run by it. As many are ready as ever ran at once (at
// most 4); one without calls ends after five minutes, and all end with this process, however that ends. From a process
// that was forked none is asked that belongs to its parent.
Result<ReadyEnded> run_ready(const std::vector<std::string>& command, const std::filesystem::path& log,
                             const Patience& patience = {});

}  // namespace tosaic

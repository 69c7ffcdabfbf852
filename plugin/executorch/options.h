// SPDX-License-Identifier: Apache-2.0
// What a user may decide about a backend, by ExecuTorch's own options: for the process (set_option) or for one load
// (runtime specs). tosaic/executorch.h describes them.
#pragma once
#include <executorch/runtime/backend/options.h>

#include <mutex>
#include <string>

namespace tosaic::plugin {

struct Options {
  int threads = 0;
  bool reference = false;
  bool heap = false;
  int log = 0;
  std::string device;

  // False: no such key, or a value of another kind; said in the log.
  bool set(const char* backend, const executorch::runtime::BackendOption& option);
  bool get(executorch::runtime::BackendOption& option) const;
};

// From text, as a C caller gives it: a number, or else a string.
executorch::runtime::BackendOption option_of(const char* key, const char* value);

}  // namespace tosaic::plugin

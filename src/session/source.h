// SPDX-License-Identifier: Apache-2.0
// What to load: a file by any of its forms, or a program that was read already.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "read/pt2.h"
#include "runtime/shared_memory.h"
#include "session/named_data.h"
#include "session/runnable.h"

namespace tosaic {

// What sessions of the methods of one program have in common.
struct SharedByMethods {
  std::atomic<bool> busy{false};  // one of them runs
  std::vector<std::string> methods;
  std::shared_ptr<runtime::SharedMemory> memory;  // null: they keep nothing together
};

struct Source {
  std::string name;                                // of the file in messages
  Bytes file;                                      // .pte, .tosa, .vgf, .pt2 or graph text; or
  std::shared_ptr<const ExportedProgram> program;  // one that was read already
  std::vector<NamedFile> data;
  std::shared_ptr<SharedByMethods> by_methods =
      std::make_shared<SharedByMethods>();  // filled by the first of them that is loaded
};

// Errors: run.unknown-format, run.device, those of the formats, delegates and kernels.
Result<RunnablePtr> load_runnable(const Source& source, const SessionOptions& options, const Sink& sink);

// One function for each form. Where there are no methods, `options` may ask for none.
Result<RunnablePtr> load_pte(const Source& source, const SessionOptions& options, const Sink& sink);
Result<RunnablePtr> load_tosa(const Source& source, const SessionOptions& options, const Sink& sink);
Result<RunnablePtr> load_vgf(const Source& source, const SessionOptions& options);
Result<RunnablePtr> load_exported(const ExportedProgram& program, const Source& source, const SessionOptions& options,
                                  const Sink& sink);

// Does somebody who names this method mean the only one, whatever its name is?
inline bool asks_for_the_only_one(const std::string& method) {
  return method.empty() || method == SessionOptions().method;
}

}  // namespace tosaic

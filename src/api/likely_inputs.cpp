// SPDX-License-Identifier: Apache-2.0
#include "api/likely_inputs.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/memory.h"

namespace tosaic {

Result<std::vector<OwnedTensor>> likely_inputs(const Session& session) {
  if (!session.examples().empty()) return session.examples();
  std::vector<OwnedTensor> inputs;
  for (std::size_t i = 0; i < session.inputs().size(); ++i) {
    const TensorInfo& wanted = session.inputs()[i];
    if (std::ranges::any_of(wanted.dims, [](const Dimension& d) { return d.size < 0; }))
      return error("run.input-count", fmt::format("input {} is {}, of no certain size", i, to_string(wanted)))
          .hint("give inputs, all of them, in order");
    TOSAIC_TRY(Bytes zeros, zeroed_bytes(wanted.bytes(), fmt::format("input {}", i)));
    inputs.push_back({wanted.dtype, wanted.sizes(), std::move(zeros)});
  }
  return inputs;
}

}  // namespace tosaic

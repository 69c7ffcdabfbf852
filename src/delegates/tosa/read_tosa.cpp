// SPDX-License-Identifier: Apache-2.0
#include "delegates/tosa/read_tosa.h"

#include "formats/tosa/tosa_file.h"

namespace tosaic::delegates {

Result<Graph> read_tosa(const contract::Opening& opening) {
  std::string prefix;
  for (const contract::Spec& spec : opening.specs)
    if (spec.key == tosa_file::outside_spec) prefix = spec.value;
  return tosa_file::read(opening.payload, opening.name,
                         [&](const std::string& name) { return opening.data(prefix + name); });
}

}  // namespace tosaic::delegates

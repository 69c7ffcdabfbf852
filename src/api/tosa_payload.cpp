// SPDX-License-Identifier: Apache-2.0
#include "api/tosa_payload.h"

#include <algorithm>

#include "formats/tosa/tosa_file.h"

namespace tosaic {
namespace {

const pte::CompileSpec* prefix_of(const pte::Delegate& delegate) {
  const auto found =
      std::ranges::find_if(delegate.specs, [](const auto& spec) { return spec.key == tosa_file::outside_spec; });
  return found == delegate.specs.end() ? nullptr : &*found;
}

}  // namespace

bool has_constants_outside(const pte::Delegate& delegate) { return prefix_of(delegate) != nullptr; }

Result<Graph> tosa_graph(const pte::Delegate& delegate, const std::map<std::string, Bytes>& data,
                         const std::string& name) {
  const pte::CompileSpec* spec = prefix_of(delegate);
  const std::string prefix(spec ? spec->value.text() : std::string_view());
  return tosa_file::read(delegate.payload.joined(), name, [&](const std::string& constant) {
    const auto found = data.find(prefix + constant);
    return found == data.end() ? Bytes() : found->second;
  });
}

}  // namespace tosaic

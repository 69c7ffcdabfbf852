// SPDX-License-Identifier: Apache-2.0
// The guards of an exported program: what torch.export saw its inputs' sizes hold where it took one side of a branch,
// as Python text: "(L['x'].size()[0] % 2) == 0". Private to read/.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace tosaic {

// `name`: of the input as the exported graph has it: "a_0" for L['a'][0]. Nothing: it is no input, or has no such dim.
using SizeOf = std::function<std::optional<Dim>(std::string_view name, std::int64_t dim)>;

// Nothing: it says something else than how sizes compare.
std::optional<Guard> read_guard(std::string_view code, const SizeOf& size_of);
// As a person wrote it: x.size()[0] for L['x'].size()[0].
std::string guard_text(std::string_view code);

}  // namespace tosaic

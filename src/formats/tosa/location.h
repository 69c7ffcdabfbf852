// SPDX-License-Identifier: Apache-2.0
// A node's location as the text of the flatbuffer's OpLocation, readable and read back:
//   model.py:6 | module act (torch.nn.modules.activation.GELU) | function gelu_1 | op aten.gelu.default | name gelu |
//   source y = self.act(x)
#pragma once
#include <string>
#include <string_view>

#include "ir/loc.h"

namespace tosaic::tosa_file {

std::string location_text(const Loc& loc);
// Text of other tools becomes the loc's name.
LocRef parse_location(std::string_view text);

}  // namespace tosaic::tosa_file

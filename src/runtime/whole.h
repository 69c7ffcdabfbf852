// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "base/result.h"
#include "formats/pte/pte_file.h"

namespace tosaic::runtime {

// A flatbuffer's table whose fields have gone looks like one that has none: a method without outputs, or one without
// inputs whose delegate reads what nobody writes. `inputs_of`: how many a delegate takes. Error: method.not-whole.
Status check_whole(const pte::Plan& plan, const std::function<std::size_t(std::size_t delegate)>& inputs_of);

}  // namespace tosaic::runtime

// SPDX-License-Identifier: Apache-2.0
// The methods of a .pte that are one program at several sizes (pipeline/methods.h), as one: the inputs choose.
#pragma once
#include <string>
#include <vector>

#include "formats/pte/pte_file.h"
#include "session/runnable.h"

namespace tosaic {

// Those of the method of that name, which is the first of them; empty: it has one size. With states they are of this
// kind only where these are kept together.
std::vector<std::string> sizes_of_one_method(const pte::Program& program, const std::string& method, bool share_states);

// `methods` agree in all but their tensors' sizes, and have their states in common. A run's error: run.sizes.
RunnablePtr by_method(std::vector<std::string> names, std::vector<RunnablePtr> methods);

}  // namespace tosaic

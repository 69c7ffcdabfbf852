// SPDX-License-Identifier: Apache-2.0
// A program with states on something that knows only inputs and outputs: what one run gives, the next one is given.
#pragma once
#include "ir/states.h"
#include "session/runnable.h"

namespace tosaic {

// `inner` runs a graph whose states are the last of its inputs and outputs.
RunnablePtr stateful(RunnablePtr inner, const StatesAsTensors& states);

}  // namespace tosaic

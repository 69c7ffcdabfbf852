// SPDX-License-Identifier: Apache-2.0
// Samples of a program that keeps states: a sequence of runs, each of which finds the states as the one before left
// them.
#pragma once
#include <vector>

#include "execute/executable.h"
#include "ir/states.h"
#include "ir/tensor.h"
#include "quantise/quantise.h"

namespace tosaic {

// The samples of `graph`, whose states are tensors, with what each of its states held before that run. Warns of states
// that the samples say too little of: calibrate.state-range. They begin with `contents` and leave theirs there.
Result<std::vector<std::vector<Tensor>>> with_states(const Graph& graph, std::vector<std::vector<Tensor>> samples,
                                                     const StatesAsTensors& states, StateContents& contents,
                                                     int threads, const Sink& sink);
// What the states of `graph` hold before the first run: what `contents` has of their name and type, else their own.
std::vector<Tensor> first_contents(const Graph& graph, const StatesAsTensors& states, const StateContents& contents);
// The graph, whose states are tensors, on the CPU.
Result<execute::Executable> runnable(const Graph& graph, int threads);

}  // namespace tosaic

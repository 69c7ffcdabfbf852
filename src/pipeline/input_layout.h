// SPDX-License-Identifier: Apache-2.0
// The order in which a program takes its images. PyTorch's operators take batch, channels, height, width (NCHW);
// cameras, and programs made with TensorFlow Lite, have batch, height, width, channels (NHWC).
#pragma once
#include <string>
#include <vector>

#include "read/pt2.h"

namespace tosaic {

// The program with inputs in that order, each followed by a permutation to the one that its operators take; the sample
// inputs that it holds are in that order as well. A choice is LAYOUT, of all inputs of four dimensions, or NAME=LAYOUT,
// of one input; LAYOUT is nhwc or nchw, and later choices win. Error option.layout: there is no such layout, no such
// input, or it has other dimensions or is written by the program.
Result<ExportedProgram> with_input_layout(ExportedProgram program, const std::vector<std::string>& choices);

}  // namespace tosaic

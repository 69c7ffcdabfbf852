// SPDX-License-Identifier: Apache-2.0
// Does a program fit the memories of the board that it is for, as the user says them (--sram, --flash, --scratch)?
#pragma once
#include "pipeline/stages.h"

namespace tosaic {

// Of a program with one method, and of each of several. Errors: board.sram and board.scratch, with the tensors that are
// live where the most is.
Status fits_board(const Compiled& compiled, const Options& options);
// Of the whole file, and what lies next to it. Error: board.flash.
Status fits_flash(const Compiled& compiled, const Options& options);

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
// One heap for all.
#include "base/system/stand_in.h"

namespace tosaic {

StandInMemory::StandInMemory() : before_(nullptr) {}
StandInMemory::~StandInMemory() = default;

}  // namespace tosaic

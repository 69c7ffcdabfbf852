// SPDX-License-Identifier: Apache-2.0
#include "base/system/stand_in.h"

#include "base/system/bare/arena.h"

namespace tosaic {

StandInMemory::StandInMemory() : before_(Arena::use(&Arena::of_stand_in())) {}
StandInMemory::~StandInMemory() { Arena::use(static_cast<Arena*>(before_)); }

}  // namespace tosaic

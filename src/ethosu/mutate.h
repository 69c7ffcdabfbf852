// SPDX-License-Identifier: Apache-2.0
// The mutation gate: in a build with TOSAIC_ETHOSU_MUTATE the environment variable of that name holds the name of
// one semantic that is then computed wrongly; the tests must notice. Ordinary builds compile the wrong halves away.
#pragma once
#ifdef TOSAIC_ETHOSU_MUTATE
#include <string>
#include <string_view>

#include "base/system/environment.h"
#endif

namespace tosaic::ethosu {

#ifdef TOSAIC_ETHOSU_MUTATE
inline std::string_view chosen_mutation() {
  static const std::string chosen = environment_variable("TOSAIC_ETHOSU_MUTATE");
  return chosen;
}
inline bool mutated(std::string_view name) { return name == chosen_mutation(); }
#else
constexpr bool mutated(const char*) { return false; }
#endif

}  // namespace tosaic::ethosu

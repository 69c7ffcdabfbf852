// SPDX-License-Identifier: Apache-2.0
// The sections of Vela's configuration, checked before Vela runs: it takes another product's without a word, and stops
// at a missing one with a traceback.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "targets/ethos_u/vela.h"

namespace tosaic {

// "System_Config.X" and "Memory_Mode.Y", of an .ini or of what `vela --list-configs` prints.
std::vector<std::string> vela_sections(std::string_view text);

// False where the name speaks of another family of Ethos-U ("Ethos_U85_SYS_DRAM_Mid" for ethos-u55-128). A name that
// speaks of none is the user's own, and fits.
bool fits_family(const std::string& system_config, const std::string& accelerator);
Diagnostic wrong_family(const std::string& system_config, const std::string& accelerator,
                        const std::vector<std::string>& sections);

// Of an .ini of the user's. Error: vela.config.
Status check_vela_config(const std::string& ini, const std::vector<std::string>& sections,
                         const std::string& accelerator, const VelaOptions& options);

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
// Flags made of the library's descriptions of its options.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <vector>

#include "tosaic/compile.hpp"

namespace tosaic::tools {

// A flag per option, those of `options` itself first, then those of the targets in a group per family. After parsing,
// what was given stands in the result.
std::shared_ptr<Options> add_described(CLI::App& command, std::span<const OptionInfo> options);
// Those of every compilation that decide which integers a program becomes.
std::vector<OptionInfo> options_of_integers();
void add_described_targets(CLI::App& command, const std::shared_ptr<Options>& to);
// One family's alone, without a group.
void add_described_family(CLI::App& command, const std::shared_ptr<Options>& to, const std::string& family);

}  // namespace tosaic::tools

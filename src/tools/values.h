// SPDX-License-Identifier: Apache-2.0
// What options take: each check also says in words what would have been right ("takes int8 or auto, not 'int9'").
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tosaic::tools {

CLI::Validator one_of(std::vector<std::string> words);
CLI::Validator whole_number(std::int64_t least, std::int64_t most);
CLI::Validator known_target();
// KIND=PATH, of these kinds.
CLI::Validator pair_of(std::vector<std::string> kinds);
std::map<std::string, std::string> pairs(const std::vector<std::string>& given);
// "500M", "16G": powers of 1000, with i (16Gi) of 1024.
CLI::Validator memory_size();
CLI::Validator board_size();  // OptionInfo::Kind::size
std::uint64_t bytes_of(const std::string& size);

constexpr std::int64_t most_runs = 1'000'000;  // that are timed

}  // namespace tosaic::tools

// SPDX-License-Identifier: Apache-2.0
// What a command line lacks, in our own words.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace tosaic::tools {

// The words of a command line for CLI11, which wants them last to first. An option that may be given several times
// takes every following word that is a value of it too: "--external weights=a.ptd commands=b.ptd".
std::vector<std::string> words_of(const CLI::App& app, int count, char** words);

// Codes: usage.no-command, usage.unknown-command, usage.unknown-option, usage.missing, usage.value, usage.extra.
Diagnostic usage_error(const CLI::App& app, const CLI::ParseError& problem);
Diagnostic unknown_command(const CLI::App& app, const std::string& word);
// An option's name where another option's value should be: CLI11 would take it for the value.
std::optional<Diagnostic> swallowed_option(const CLI::App& app);
std::vector<std::string> command_names(const CLI::App& app);
const CLI::App& chosen(const CLI::App& app);                          // the subcommand, or the app itself
std::vector<const CLI::Option*> options_of(const CLI::App& command);  // and of its groups

// How help shows what an option takes: releases of CLI11 differ in it.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace tosaic::tools

// SPDX-License-Identifier: Apache-2.0
// What the process was started with, and where it finds other programs.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace tosaic {

std::string environment_variable(const char* name);  // "" where it is not set
std::optional<std::string> find_environment_variable(const char* name);
void set_environment_variable(const char* name, const std::optional<std::string>& value);  // nothing: it is taken out
int process_number();
std::string program_file();                                       // that this process runs; "": nobody can say
std::vector<std::string> parts_of_path(const std::string& path);  // "a:b" -> {"a", "b"}, without empty ones
// Folders of programs, first to last: those of PATH, then the active Python environment's, which PATH may lack.
std::vector<std::string> program_folders();

}  // namespace tosaic

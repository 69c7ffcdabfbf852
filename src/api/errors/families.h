// SPDX-License-Identifier: Apache-2.0
// What every error code means: the one table behind the hints of messages, `tosaic explain-error` and docs/errors.md.
#pragma once
#include <string_view>
#include <vector>

namespace tosaic {

struct ErrorCode {
  std::string_view name;       // what follows the family's dot; '*' stands for one word of it
  std::string_view meaning;    // what happened, in the user's terms
  std::string_view hint = "";  // what to do, where that is not the family's hint
  // The meaning is the message that is printed, and what the program found becomes a note.
  bool is_message = false;
};

struct ErrorFamily {
  std::string_view name;  // "pt2", of the codes that begin with "pt2."
  std::string_view meaning, hint;
  std::string_view example;  // a command or a line of Python, and what it prints
  std::vector<ErrorCode> codes;
};

// By name.
const std::vector<ErrorFamily>& error_families();

// The rows of a code: those that fit it most closely.
struct ErrorMeaning {
  const ErrorFamily* family = nullptr;
  const ErrorCode* code = nullptr;  // null: the family itself, or a code without a row
  std::string_view hint() const { return code && !code->hint.empty() ? code->hint : family->hint; }
};
ErrorMeaning meaning_of(std::string_view code);

// The rows, by what they are about: one file each.
std::vector<ErrorFamily> errors_of_models();
std::vector<ErrorFamily> errors_of_operators();
std::vector<ErrorFamily> errors_of_precision();
std::vector<ErrorFamily> errors_of_outputs();
std::vector<ErrorFamily> errors_of_programs();
std::vector<ErrorFamily> errors_of_boards();
std::vector<ErrorFamily> errors_of_graphs();
std::vector<ErrorFamily> errors_of_runs();
std::vector<ErrorFamily> errors_of_targets();
std::vector<ErrorFamily> errors_of_vulkan();

}  // namespace tosaic

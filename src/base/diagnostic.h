// SPDX-License-Identifier: Apache-2.0
// How diagnostics are made. Libraries return or report them; only the tools print them.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "tosaic/diagnostic.hpp"

namespace tosaic {

// error("pt2.missing-weight", "weight 'conv.bias' is not in the archive")
#ifndef TOSAIC_NO_ERROR_TEXTS
Diagnostic error(std::string code, std::string message);
Diagnostic warning(std::string code, std::string message);
// A broken invariant of tosaic: printed with a request to report it.
Diagnostic internal_error(std::string message);
#else
Diagnostic error_of(const char* code);
inline Diagnostic error(const char* code, MessageText) { return error_of(code); }
inline Diagnostic internal_error(MessageText) { return error_of("internal"); }
#endif

// Who hears of what is no error: warnings and notes. It may be empty.
using Sink = std::function<void(Diagnostic)>;

// Text as a JSON string literal, quotes included.
std::string json_quote(std::string_view text);

}  // namespace tosaic

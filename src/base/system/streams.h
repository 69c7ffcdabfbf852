// SPDX-License-Identifier: Apache-2.0
// Standard output and error as a careful program uses them: closed, full or broken, they are no reason to crash.
#pragma once
#include <string_view>

namespace tosaic {

// Before any file is opened: a file must never get the number of a closed standard stream, or what is printed would
// go into it. Writing into a pipe that nobody reads, or beyond a limit, becomes an error instead of a signal.
void guard_streams();
// A person reads it.
bool stderr_is_terminal();
// On stderr. What cannot be said there is lost.
void say(std::string_view text);
// On stdout, all of it; 0, or errno's number, ENOSPC wherever there is no room for it. A pipe that nobody reads any
// more ends the process as it should.
int print_all(std::string_view text);

// SIGINT, SIGTERM and SIGHUP: ends the children, removes what is temporary, then ends by that signal. To be called
// before any other thread starts.
void tidy_up_when_told_to_end();

}  // namespace tosaic

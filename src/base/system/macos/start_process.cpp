// SPDX-License-Identifier: Apache-2.0
// macOS ends no child with its parent: a tool that runs when this process is killed goes on until it is done.
#include <crt_externs.h>  // a library may not name `environ` here
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>
#include <csignal>

#include "base/system/hosted/child_process.h"

namespace tosaic {

int start_process(const std::vector<std::string>& command, const std::string& log, int input, int& problem) {
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (input >= 0)
    ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  else
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);

  // Signals as a program expects to find them, whatever this one blocks; what it ignores itself (streams.h) is its own.
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (int number : {SIGPIPE, SIGXFSZ}) sigaddset(&usual, number);
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setsigdefault(&how, &usual);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_CLOEXEC_DEFAULT);

  pid_t id = 0;
  problem = ::posix_spawn(&id, command[0].c_str(), &files, &how, arguments.data(), *_NSGetEnviron());
  ::posix_spawnattr_destroy(&how);
  ::posix_spawn_file_actions_destroy(&files);
  return problem == 0 ? id : 0;
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
#include "targets/peer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/environment.h"

extern char** environ;

namespace tosaic {

namespace fs = std::filesystem;

bool is_executable(const fs::path& file) {
  std::error_code failure;
  return fs::is_regular_file(file, failure) && ::access(file.c_str(), X_OK) == 0;
}

std::string find_program(const std::string& name) {
  for (const std::string& folder : program_folders())
    if (const fs::path candidate = fs::path(folder) / name; is_executable(candidate)) return candidate.string();
  return "";
}

Result<Ended> run_process(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  // Signals as a program expects to find them, whatever this one blocks or ignores.
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (int number : {SIGPIPE, SIGXFSZ}) sigaddset(&usual, number);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &usual);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int problem = 0;
  Child child([&] {
    pid_t id = 0;
    problem = ::posix_spawn(&id, command[0].c_str(), &files, &how, arguments.data(), environ);
    return problem == 0 ? id : 0;
  });
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  if (problem != 0)
    return error("peer.start", fmt::format("{} cannot be started: {}", command[0], std::strerror(problem)));
  Ended ended;
  ended.status = child.wait();
  if (auto said = map_file(log.string()); said.ok()) ended.said = said->text();
  return ended;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.emplace_back(line);
    at = end + 1;
  }
  return lines;
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
#include "base/system/ready_tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "base/system/environment.h"
#include "base/system/hosted/child_process.h"
#include "base/system/mapped_files.h"
#include "base/system/posix/beyond_posix.h"

namespace tosaic {

std::string_view ready_tool_source();  // ready_tool.py; its head says what goes over the socket

namespace {

namespace fs = std::filesystem;

// A script of pip's: `from MODULE import FUNCTION` in it, and the Python that it is for in its first lines.
struct Script {
  std::string python, module;
};

std::optional<Script> script_of(const std::string& program) {
  constexpr std::size_t longest = 4096;
  std::ifstream file(program, std::ios::binary);
  std::string text(longest, '\0');
  file.read(text.data(), longest);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (!text.starts_with("#!") || text.size() == longest || text.find('\0') != std::string::npos) return std::nullopt;
  Script script;
  const auto lines = lines_of(text);
  script.python = lines[0].substr(2);
  // Where the path is too long for a first line: '''exec' "/the/python" "$0" "$@"
  if (script.python == "/bin/sh" && lines.size() > 1 && lines[1].starts_with("'''exec' ")) {
    script.python = lines[1].substr(9, lines[1].find(" \"$0\"") - 9);
    std::erase(script.python, '"');
  }
  for (const std::string& line : lines)
    if (line.starts_with("from ") && line.find(" import ") != std::string::npos)
      script.module = line.substr(5, line.find(" import ") - 5);
  if (script.module.empty() || fs::path(script.python).filename().string().find("python") == std::string::npos ||
      !is_executable(script.python))
    return std::nullopt;
  return script;
}

class Ready {
 public:
  static std::unique_ptr<Ready> start(const Script& script, const std::string& program) {
    int ends[2];
    if (!make_channel(ends)) return nullptr;
    std::unique_ptr<Ready> made(new Ready(ends[0], program));
    int problem = 0;
    made->child_.emplace([&] {
      return made->id_ = start_process({script.python, "-c", std::string(ready_tool_source()), program, script.module},
                                       "/dev/null", ends[1], problem);
    });
    ::close(ends[1]);
    return made->child_->started() ? std::move(made) : nullptr;
  }
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;
  ~Ready() {
    ::close(channel_);
    if (mine() && child_->started()) child_->wait_while([] { return false; });
  }
  bool mine() const { return owner_ == process_number(); }
  // Is it the tool that lies there now, and has it not ended?
  bool current(const std::string& program) const {
    pollfd look{channel_, POLLIN, 0};
    const bool ended = greeted_ && ::poll(&look, 1, 0) != 0;  // it says nothing unless it is asked
    return !ended && changed_ == changed(program);
  }
  const std::string& version() const { return version_; }

  // Waits until it is ready; no: it never will be.
  bool greet(Watch& watch) {
    while (!greeted_) {
      const auto line = next_line(watch, id_);
      if (!line || !line->starts_with("ready ")) return false;
      version_ = line->substr(6);
      greeted_ = true;
    }
    return true;
  }
  bool ask(const std::vector<std::string>& command, const fs::path& log) {
    std::error_code failure;
    std::string words;
    for (const std::string& word : {fs::absolute(log).string(), fs::current_path(failure).string()})
      words.append(word).push_back('\0');
    for (std::size_t i = 1; i < command.size(); ++i) words.append(command[i]).push_back('\0');
    words = fmt::format("{}\n{}", words.size(), words);
    for (std::size_t sent = 0; sent < words.size();) {
      const ssize_t now = send_quietly(channel_, words.data() + sent, words.size() - sent);
      if (now < 0 && errno != EINTR) return false;
      sent += static_cast<std::size_t>(std::max<ssize_t>(now, 0));
    }
    return true;
  }
  enum class Answer { ended, gave_up, broken };
  Answer wait(Watch& watch, int& status) {
    pid_t tool = id_;
    for (;;) {
      const auto line = next_line(watch, tool);
      if (!line) {
        if (!given_up_) return Answer::broken;
        if (tool != id_) ::kill(tool, SIGKILL);  // not reaped: its end was not told yet
        return Answer::gave_up;
      }
      const auto space = line->find(' ');
      int number = 0;
      if (space != std::string::npos) std::from_chars(line->data() + space + 1, line->data() + line->size(), number);
      if (line->starts_with("ended ")) return status = number, Answer::ended;
      if (line->starts_with("started ")) tool = number;
    }
  }

 private:
  Ready(int channel, const std::string& program)
      : channel_(channel), owner_(process_number()), changed_(changed(program)) {}

  static fs::file_time_type changed(const std::string& program) {
    std::error_code failure;
    return fs::last_write_time(program, failure);
  }
  // Nothing: it has ended, or the patience of `watch` over `id` has (given_up_).
  std::optional<std::string> next_line(Watch& watch, pid_t id) {
    constexpr int pause = 20;  // milliseconds
    for (;;) {
      if (const auto end = heard_.find('\n'); end != std::string::npos) {
        std::string line = heard_.substr(0, end);
        heard_.erase(0, end + 1);
        return line;
      }
      pollfd look{channel_, POLLIN, 0};
      if (::poll(&look, 1, pause) > 0) {
        char part[256];
        const ssize_t size = ::recv(channel_, part, sizeof(part), 0);
        if (size == 0 || (size < 0 && errno != EINTR)) return std::nullopt;
        if (size > 0) heard_.append(part, static_cast<std::size_t>(size));
      } else if (!watch.going_on(id)) {
        given_up_ = true;
        return std::nullopt;
      }
    }
  }

  const int channel_;
  const int owner_;
  const fs::file_time_type changed_;
  std::optional<Child> child_;
  pid_t id_ = 0;
  bool greeted_ = false, given_up_ = false;
  std::string heard_, version_;
};

// Those that wait for calls, by their program.
class Waiting {
 public:
  std::unique_ptr<Ready> take(const std::string& program) {
    const std::lock_guard lock(mutex_);
    auto& those = by_program_[program];
    std::erase_if(those, [&](const auto& one) { return !one->mine() || !one->current(program); });
    if (those.empty()) return nullptr;
    auto one = std::move(those.back());
    those.pop_back();
    return one;
  }
  void give(const std::string& program, std::unique_ptr<Ready> one) {
    constexpr std::size_t most = 4;
    const std::lock_guard lock(mutex_);
    if (auto& those = by_program_[program]; those.size() < most) those.push_back(std::move(one));
  }
  static Waiting& of_this_process() {
    static auto* waiting = new Waiting;  // outlives every static object that may still call a tool
    return *waiting;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<Ready>>> by_program_;
};

}  // namespace

void make_ready(const std::string& program) {
  Waiting& waiting = Waiting::of_this_process();
  auto one = waiting.take(program);
  if (!one)
    if (const auto script = script_of(program)) one = Ready::start(*script, program);
  if (one) waiting.give(program, std::move(one));
}

Result<ReadyEnded> run_ready(const std::vector<std::string>& command, const fs::path& log, const Patience& patience) {
  Waiting& waiting = Waiting::of_this_process();
  const std::string& program = command[0];
  const std::optional<Script> script = script_of(program);
  for (int attempt = 0; script && attempt < 2; ++attempt) {  // one that waited may end when it is asked
    auto one = waiting.take(program);
    if (!one) one = Ready::start(*script, program);
    Watch watch(patience);
    if (!one || !one->greet(watch)) break;  // what stops it run_process shows
    int status = 0;
    if (!one->ask(command, log)) continue;
    const Ready::Answer answer = one->wait(watch, status);
    if (answer == Ready::Answer::gave_up) return watch.why_not(program, ended_with(0, log).said);
    if (answer == Ready::Answer::broken) continue;
    ReadyEnded done{ended_with(status, log), one->version()};
    waiting.give(program, std::move(one));
    return done;
  }
  TOSAIC_TRY(Ended ended, run_process(command, log, patience));
  return ReadyEnded{std::move(ended), ""};
}

}  // namespace tosaic

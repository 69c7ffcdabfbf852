// SPDX-License-Identifier: Apache-2.0
#include "base/system/hosted/child_process.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <cwctype>
#include <map>
#include <mutex>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/system/windows/win32.h"

namespace tosaic {

namespace fs = std::filesystem;

namespace {

// A number names its process for as long as a handle of it is open: from start_process to reap.
struct Children {
  std::mutex mutex;
  std::map<int, HANDLE> handles;
};

Children& children() {
  static auto* all = new Children;  // outlives every static object that may still wait for one
  return *all;
}

HANDLE handle_of(int id) {
  const std::lock_guard lock(children().mutex);
  const auto found = children().handles.find(id);
  return found == children().handles.end() ? nullptr : found->second;
}

// Children that are in it end when the last handle of it is closed: with this process, however that ends.
HANDLE job_of_children() {
  static const HANDLE job = [] {
    HANDLE made = ::CreateJobObjectW(nullptr, nullptr);
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION how{};
    how.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    if (made) ::SetInformationJobObject(made, JobObjectExtendedLimitInformation, &how, sizeof(how));
    return made;
  }();
  return job;
}

// As the C library of the program takes it apart again: backslashes count before a quotation mark only.
std::wstring quoted(const std::wstring& word) {
  if (!word.empty() && word.find_first_of(L" \t\n\v\"") == word.npos) return word;
  std::wstring text = L"\"";
  std::size_t slashes = 0;
  for (const wchar_t c : word) {
    if (c == L'"') text.append(slashes + 1, L'\\');
    slashes = c == L'\\' ? slashes + 1 : 0;
    text.push_back(c);
  }
  text.append(slashes, L'\\');
  return text + L"\"";
}

// The list of what a child inherits: without one it is every handle that anybody made for another child meanwhile.
class Inherited {
 public:
  explicit Inherited(std::vector<HANDLE> handles) : handles_(std::move(handles)) {
    SIZE_T size = 0;
    ::InitializeProcThreadAttributeList(nullptr, 1, 0, &size);
    room_.resize(size);
    ready_ = ::InitializeProcThreadAttributeList(list(), 1, 0, &size) &&
             ::UpdateProcThreadAttribute(list(), 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles_.data(),
                                         handles_.size() * sizeof(HANDLE), nullptr, nullptr);
  }
  Inherited(const Inherited&) = delete;
  Inherited& operator=(const Inherited&) = delete;
  ~Inherited() {
    if (ready_) ::DeleteProcThreadAttributeList(list());
  }
  bool ready() const { return ready_; }
  LPPROC_THREAD_ATTRIBUTE_LIST list() { return reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(room_.data()); }

 private:
  std::vector<HANDLE> handles_;
  std::vector<std::byte> room_;
  bool ready_ = false;
};

Handle open_inheritable(const fs::path& path, DWORD access, DWORD how) {
  SECURITY_ATTRIBUTES inherit{sizeof(SECURITY_ATTRIBUTES), nullptr, TRUE};
  return owned(::CreateFileW(path.c_str(), access, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherit, how,
                             FILE_ATTRIBUTE_NORMAL, nullptr));
}

}  // namespace

bool is_executable(const fs::path& file) {
  std::wstring ending = file.extension().wstring();
  std::ranges::transform(ending, ending.begin(), [](wchar_t c) { return static_cast<wchar_t>(std::towlower(c)); });
  std::error_code failure;
  return (ending == L".exe" || ending == L".com") && fs::is_regular_file(file, failure);
}

std::string program_ending() { return ".exe"; }

std::string error_text(int number) {
  std::string text = std::system_category().message(number);
  while (text.ends_with('\n') || text.ends_with('\r') || text.ends_with('.')) text.pop_back();
  return text;
}

// Nobody asks for an `input` here: there are no tools that are kept ready.
int start_process(const std::vector<std::string>& command, const std::string& log, int, int& problem) {
  const Handle nothing = open_inheritable("NUL", GENERIC_READ, OPEN_EXISTING);
  const Handle words = open_inheritable(log, GENERIC_WRITE, CREATE_ALWAYS);
  problem = last_error();
  if (!nothing || !words) return 0;
  std::wstring line;
  for (const std::string& word : command) line += (line.empty() ? L"" : L" ") + quoted(fs::path(word).wstring());
  Inherited inherited({nothing.get(), words.get()});
  STARTUPINFOEXW how{};
  how.StartupInfo.cb = sizeof(how);
  how.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  how.StartupInfo.hStdInput = nothing.get();
  how.StartupInfo.hStdOutput = words.get();
  how.StartupInfo.hStdError = words.get();
  how.lpAttributeList = inherited.list();
  PROCESS_INFORMATION made{};
  if (!inherited.ready() ||
      !::CreateProcessW(fs::path(command[0]).c_str(), line.data(), nullptr, nullptr, TRUE,
                        CREATE_SUSPENDED | EXTENDED_STARTUPINFO_PRESENT, nullptr, nullptr, &how.StartupInfo, &made)) {
    problem = last_error();
    return 0;
  }
  const Handle thread(made.hThread);
  // Before it does anything: it could leave children of its own outside.
  if (!job_of_children() || !::AssignProcessToJobObject(job_of_children(), made.hProcess) ||
      ::ResumeThread(made.hThread) == static_cast<DWORD>(-1)) {
    problem = last_error();
    ::TerminateProcess(made.hProcess, 1);
    ::CloseHandle(made.hProcess);
    return 0;
  }
  problem = 0;
  const int id = static_cast<int>(made.dwProcessId);
  const std::lock_guard lock(children().mutex);
  children().handles[id] = made.hProcess;
  return id;
}

void end_process(int id) { ::TerminateProcess(handle_of(id), 1); }

bool has_ended(int id) { return ::WaitForSingleObject(handle_of(id), 0) == WAIT_OBJECT_0; }

void await_end(int id) { ::WaitForSingleObject(handle_of(id), INFINITE); }

int reap(int id) {
  await_end(id);
  const std::lock_guard lock(children().mutex);
  const auto found = children().handles.find(id);
  if (found == children().handles.end()) return 0;
  DWORD code = 0;
  ::GetExitCodeProcess(found->second, &code);
  ::CloseHandle(found->second);
  children().handles.erase(found);
  return static_cast<int>(code);
}

std::optional<std::uint64_t> processor_time(int id) {
  FILETIME made, ended, system, user;
  if (!::GetProcessTimes(handle_of(id), &made, &ended, &system, &user)) return std::nullopt;
  const auto ticks = [](const FILETIME& t) {
    return static_cast<std::uint64_t>(t.dwHighDateTime) << 32 | t.dwLowDateTime;
  };
  return ticks(system) + ticks(user);
}

Ended ended_with(int status, const fs::path& log) {
  Ended ended;
  if (auto said = map_file(log.string()); said.ok()) ended.said = said->text();
  const auto code = static_cast<DWORD>(status);
  if (code < 0xC0000000u) {  // where the errors begin that the system ends a process for
    ended.exit_code = status;
    return ended;
  }
  struct Known {
    DWORD code;
    int signal;
    const char* name;
  };
  static constexpr std::array known{Known{STATUS_ACCESS_VIOLATION, SIGSEGV, "Access violation"},
                                    Known{STATUS_STACK_OVERFLOW, SIGSEGV, "Stack overflow"},
                                    Known{STATUS_IN_PAGE_ERROR, SIGSEGV, "In-page error"},
                                    Known{STATUS_ILLEGAL_INSTRUCTION, SIGILL, "Illegal instruction"},
                                    Known{STATUS_PRIVILEGED_INSTRUCTION, SIGILL, "Privileged instruction"},
                                    Known{STATUS_INTEGER_DIVIDE_BY_ZERO, SIGFPE, "Integer division by zero"},
                                    Known{STATUS_CONTROL_C_EXIT, SIGINT, "Interrupt"}};
  const auto* const found = std::ranges::find(known, code, &Known::code);
  ended.signal = found == known.end() ? SIGABRT : found->signal;
  ended.signal_name = found == known.end() ? fmt::format("Error {:#010x}", code) : found->name;
  ended.crashed = ended.signal != SIGINT;
  return ended;
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
// Lines of C, indented by the blocks that they stand in. Private to src/c_source.
#pragma once
#include <fmt/format.h>
#include <string>
#include <utility>

namespace tosaic::c_source {

class Writer {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * depth_, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  // "for (...) {", and what closes it.
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line("{} {{", fmt::format(format, std::forward<Args>(args)...));
    ++depth_;
  }
  void close() {
    --depth_;
    line("}}");
  }
  // for (int32_t NAME = 0; NAME < SIZE; ++NAME) {, and nothing where it turns once.
  void loop(const std::string& name, std::int64_t size) {
    if (size == 1) {
      line("{{");
      ++depth_;
      line("const int32_t {} = 0;", name);
      line("(void){};", name);
    } else {
      open("for (int32_t {0} = 0; {0} < {1}; ++{0})", name, size);
    }
  }
  std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
  std::size_t depth_ = 1;
};

}  // namespace tosaic::c_source

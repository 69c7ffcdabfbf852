// SPDX-License-Identifier: Apache-2.0
// A text that is read from its beginning to its end: characters, words and numbers. Every error says where, and what
// was expected. Private to ir/.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tosaic::text {

// Thrown inside, and caught by parse(): a recursive descent reads better without a check at every step.
struct Wrong {
  Diagnostic why;
};

class TextReader {
 protected:
  TextReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[noreturn]] void wrong(const std::string& code, const std::string& message) const;
  [[noreturn]] void expected(const std::string& what) const;

  void skip();  // spaces and comments
  bool at_end();
  char peek();
  bool accept(std::string_view symbol);
  void expect(std::string_view symbol);
  std::string_view peek_word();
  bool accept_word(std::string_view word);

  std::string string(const char* what);
  std::string name(const char* what);
  std::int64_t integer(const char* what);
  double real(const char* what);

  std::string_view text_;
  const std::string& file_;
  std::size_t pos_ = 0;

 private:
  template <class T>
  T number_of(const char* what, const char* too_large);
};

}  // namespace tosaic::text

// SPDX-License-Identifier: Apache-2.0
#include "ir/text_reader.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>

#include "ir/text.h"

namespace tosaic::text {

void TextReader::wrong(const std::string& code, const std::string& message) const {
  std::size_t begin = text_.rfind('\n', pos_ == 0 ? 0 : pos_ - 1);
  begin = begin == std::string_view::npos || begin >= pos_ ? 0 : begin + 1;
  std::size_t end = std::min(text_.find('\n', pos_), text_.size());
  std::int64_t line = 1;
  for (char c : text_.substr(0, pos_)) line += c == '\n';
  std::string quoted(text_.substr(begin, std::min<std::size_t>(end - begin, 120)));
  throw Wrong{error(code, message).at({file_, line, std::move(quoted)})};
}

void TextReader::expected(const std::string& what) const {
  if (pos_ >= text_.size()) wrong("ir.text", "expected " + what + ", found the end of the text");
  std::size_t end = pos_ + 1;
  if (is_name_char(text_[pos_]))
    while (end < text_.size() && end < pos_ + 40 && is_name_char(text_[end])) ++end;
  wrong("ir.text", fmt::format("expected {}, found {}", what, quoted(text_.substr(pos_, end - pos_))));
}

void TextReader::skip() {
  for (; pos_ < text_.size(); ++pos_) {
    const char c = text_[pos_];
    if (c == '/' && pos_ + 1 < text_.size() && text_[pos_ + 1] == '/') {
      pos_ = std::min(text_.find('\n', pos_), text_.size());
      if (pos_ == text_.size()) return;
    } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
      return;
    }
  }
}

bool TextReader::at_end() {
  skip();
  return pos_ >= text_.size();
}

char TextReader::peek() {
  skip();
  return pos_ < text_.size() ? text_[pos_] : '\0';
}

bool TextReader::accept(std::string_view symbol) {
  skip();
  if (!text_.substr(pos_).starts_with(symbol)) return false;
  pos_ += symbol.size();
  return true;
}

void TextReader::expect(std::string_view symbol) {
  if (!accept(symbol)) expected("'" + std::string(symbol) + "'");
}

std::string_view TextReader::peek_word() {
  skip();
  std::size_t end = pos_;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  return text_.substr(pos_, end - pos_);
}

bool TextReader::accept_word(std::string_view word) {
  if (peek_word() != word) return false;
  pos_ += word.size();
  return true;
}

std::string TextReader::string(const char* what) {
  if (peek() != '"') expected(what);
  std::string out;
  for (++pos_; pos_ < text_.size() && text_[pos_] != '"'; ++pos_) {
    char c = text_[pos_];
    if (c == '\n') break;
    if (c == '\\') {
      if (++pos_ >= text_.size()) break;
      c = text_[pos_];
      if (c == 'n')
        c = '\n';
      else if (c == 'r')
        c = '\r';
      else if (c == 't')
        c = '\t';
      else if (c == 'x') {
        unsigned code = 0;
        const char* first = text_.data() + pos_ + 1;
        const char* last = std::min(first + 2, text_.data() + text_.size());
        if (auto [p, e] = std::from_chars(first, last, code, 16); e != std::errc{} || p != first + 2)
          expected("two hexadecimal digits after \\x");
        c = static_cast<char>(code);
        pos_ += 2;
      } else if (c != '"' && c != '\\') {
        expected("one of \" \\ n r t x after a backslash");
      }
    }
    out += c;
  }
  if (pos_ >= text_.size() || text_[pos_] != '"') expected("the closing '\"'");
  ++pos_;
  return out;
}

std::string TextReader::name(const char* what) {
  if (peek() == '"') return string(what);
  std::string_view word = peek_word();
  if (word.empty()) expected(what);
  pos_ += word.size();
  return std::string(word);
}
template <class T>
T TextReader::number_of(const char* what, const char* too_large) {
  skip();
  T value = 0;
  auto [end, bad] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), value);
  if (bad == std::errc::result_out_of_range) wrong("ir.text", too_large);
  if (bad != std::errc{}) expected(what);
  pos_ = static_cast<std::size_t>(end - text_.data());
  return value;
}
std::int64_t TextReader::integer(const char* what) {
  return number_of<std::int64_t>(what, "the integer does not fit 64 bits");
}
double TextReader::real(const char* what) { return number_of<double>(what, "the number does not fit a double"); }

}  // namespace tosaic::text

// SPDX-License-Identifier: Apache-2.0
// Options, by name. What there is, what it takes and what it means is described once, as data (OptionInfo): the command
// line's flags and help, these keys and the documentation are all made from that.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tosaic/export.hpp"

namespace tosaic {

struct OptionInfo {
  // flag: on or off. text, file and number: one value. list: any number of texts. pairs: a list of KIND=VALUE.
  // size: of a memory, "512K" (1024 bytes each), "2M".
  enum class Kind : std::uint8_t { flag, text, file, number, list, pairs, size };
  std::string name;  // "memory-mode"
  Kind kind = Kind::flag;
  std::string default_value;             // as text; flags: "true" or "" (off)
  std::string sentence;                  // what it does
  std::vector<std::string> allowed;      // the only values of a text or list, or the kinds of pairs; empty: any
  std::int64_t lowest = 0, highest = 0;  // of a number
  std::string placeholder;               // "NAME"; empty: by kind
  std::string alias;                     // another spelling; empty: none
  bool of_integers = false;              // it decides which integers a program of floats becomes
};

// options.set("quantize", "int16x8").set("threads", 2).set("vela-flags", {"--optimise=Size"})
// Names and values are checked by whoever takes the options: option.unknown, option.value.
class TOSAIC_API Options {
 public:
  Options& set(const std::string& name, std::string value);
  Options& set(const std::string& name, const char* value) { return set(name, std::string(value)); }
  Options& set(const std::string& name, bool on) { return set(name, on ? "true" : "false"); }
  // A number of any type; a fraction is refused by whoever takes the option.
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>) Options& set(const std::string& name,
                                                                                       Number number) {
    if constexpr (std::is_floating_point_v<Number>)
      return set_real(name, static_cast<double>(number));
    else
      return set(name, std::to_string(number));
  }
  Options& set(const std::string& name, std::vector<std::string> values);
  Options& set(const std::string& name, std::initializer_list<const char*> values) {
    return set(name, std::vector<std::string>(values.begin(), values.end()));
  }

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  bool flag(std::string_view name) const;            // absent: false
  std::string text(std::string_view name) const;     // absent: empty
  std::int64_t number(std::string_view name) const;  // absent: 0
  std::vector<std::string> list(std::string_view name) const;
  // The VALUE of KIND=VALUE; empty: that kind is not given.
  std::string of_kind(std::string_view name, std::string_view kind) const;
  const std::map<std::string, std::vector<std::string>, std::less<>>& all() const { return values_; }

 private:
  Options& set_real(const std::string& name, double number);  // whole numbers as such
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "log.h"

namespace tosaic::plugin {
namespace {

using executorch::runtime::BackendOption;
using executorch::runtime::LogLevel;
using Text = std::array<char, executorch::runtime::kMaxOptionValueLength>;

// One of the options: what it is called and how it is read and written. All kinds in one list, so that a message can
// name them.
struct Row {
  const char* key;
  bool (*set)(Options&, const BackendOption&);
  void (*get)(const Options&, BackendOption&);
};

// A flag may be given as a number, a number that is 0 or 1 as a flag.
bool number(const BackendOption& option, int least, int most, int& to) {
  const int* n = std::get_if<int>(&option.value);
  const bool* b = std::get_if<bool>(&option.value);
  if (!n && !b) return false;
  const int value = n ? *n : *b;
  if (value < least || value > most) return false;
  to = value;
  return true;
}

template <bool Options::*member>
bool set_flag(Options& options, const BackendOption& option) {
  int value = 0;
  if (!number(option, 0, 1, value)) return false;
  options.*member = value != 0;
  return true;
}

constexpr Row rows[] = {
    {"threads", [](Options& o, const BackendOption& from) { return number(from, 0, 1024, o.threads); },
     [](const Options& o, BackendOption& to) { to.value = o.threads; }},
    {"reference", set_flag<&Options::reference>, [](const Options& o, BackendOption& to) { to.value = o.reference; }},
    {"device",
     [](Options& o, const BackendOption& from) {
       const auto* text = std::get_if<Text>(&from.value);
       if (!text) return false;
       o.device.assign(text->data(), strnlen(text->data(), text->size()));
       return true;
     },
     [](const Options& o, BackendOption& to) {
       Text text{};
       std::strncpy(text.data(), o.device.c_str(), text.size() - 1);
       to.value = text;
     }},
    {"heap", set_flag<&Options::heap>, [](const Options& o, BackendOption& to) { to.value = o.heap; }},
    {"log", [](Options& o, const BackendOption& from) { return number(from, 0, 2, o.log); },
     [](const Options& o, BackendOption& to) { to.value = o.log; }},
};

const Row* row_of(const char* key) {
  const auto* found =
      std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return !std::strcmp(r.key, key); });
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace

bool Options::set(const char* backend, const BackendOption& option) {
  const Row* row = row_of(option.key);
  if (row && row->set(*this, option)) return true;
  std::string known;
  for (const Row& r : rows) known += std::string(known.empty() ? "" : ", ") + r.key;
  refuse(std::string(backend) + (row ? ": option '" : " has no option '") + option.key +
         (row ? "' takes no such value" : "'; it has " + known));
  return false;
}

bool Options::get(BackendOption& option) const {
  const Row* row = row_of(option.key);
  if (row) row->get(*this, option);
  return row != nullptr;
}

BackendOption option_of(const char* key, const char* value) {
  BackendOption option;
  std::strncpy(option.key, key, sizeof option.key - 1);
  int number = 0;
  const char* end = value + std::strlen(value);
  if (const auto [stop, wrong] = std::from_chars(value, end, number);
      wrong == std::errc() && stop == end && stop != value) {
    option.value = number;
  } else {
    Text text{};
    std::strncpy(text.data(), value, text.size() - 1);
    option.value = text;
  }
  return option;
}

}  // namespace tosaic::plugin

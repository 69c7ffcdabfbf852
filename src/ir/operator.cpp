// SPDX-License-Identifier: Apache-2.0
#include "ir/operator.h"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tosaic {
namespace {

struct OwnedName {
  std::string text;
  OperatorName name;
};

OperatorName cut(std::string_view text) {
  const std::size_t first = text.find('.'), last = text.rfind('.');
  if (first == text.npos) return {text, {}, text, {}};
  const std::string_view space = text.substr(0, first);
  if (first == last) return {text, space, text.substr(first + 1), {}};
  return {text, space, text.substr(first + 1, last - first - 1), text.substr(last + 1)};
}

// One entry for each name.
class Names {
 public:
  Names() {
    for (const OperatorName* name : known_operators()) by_text_.emplace(name->text, name);
  }
  const OperatorName* entry(std::string_view text) {
    {
      const std::shared_lock reading(mutex_);
      if (const auto found = by_text_.find(text); found != by_text_.end()) return found->second;
    }
    const std::unique_lock writing(mutex_);
    if (const auto found = by_text_.find(text); found != by_text_.end()) return found->second;
    OwnedName& owned = owned_.emplace_back(OwnedName{std::string(text), {}});
    owned.name = cut(owned.text);
    return by_text_.emplace(owned.name.text, &owned.name).first->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::string_view, const OperatorName*> by_text_;
  std::deque<OwnedName> owned_;  // a deque: entries stay where they are
};

}  // namespace

Operator::Operator(std::string_view name) {
  static Names names;
  if (!name.empty()) name_ = names.entry(name);
}

}  // namespace tosaic

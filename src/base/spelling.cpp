// SPDX-License-Identifier: Apache-2.0
#include "base/spelling.h"

#include <algorithm>
#include <numeric>

namespace tosaic {
namespace {

std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.empty()) return {};
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1);
  for (const std::string& k : known) least = std::min(least, edits(word, k));
  std::vector<std::string> near;
  for (const std::string& k : known)
    if (edits(word, k) <= least && edits(word, k) < std::max(word.size(), k.size())) near.push_back(k);
  if (near.empty() && word.size() > 1)
    std::copy_if(known.begin(), known.end(), std::back_inserter(near),
                 [&](const std::string& k) { return k.starts_with(word) && word != "--"; });
  return near;
}

std::string alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

}  // namespace tosaic

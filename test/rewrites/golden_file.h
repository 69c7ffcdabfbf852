// SPDX-License-Identifier: Apache-2.0
// A golden file of one rewrite, as README.md describes it.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace tosaic {

struct RewriteCase {
  std::string title;
  std::string in, out;  // graphs as text
};

struct GoldenFile {
  std::string about;  // for people
  std::string target = "tosa-fp";
  std::map<std::string, std::string> options;
  std::vector<std::string> behind;  // rewrites that come first, by their full names
  std::vector<RewriteCase> cases;
};

GoldenFile read_golden_file(const std::string& path);
void write_golden_file(const std::string& path, const GoldenFile& file);

}  // namespace tosaic

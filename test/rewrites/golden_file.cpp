// SPDX-License-Identifier: Apache-2.0
#include "rewrites/golden_file.h"

#include <fstream>

namespace tosaic {
namespace {

// What stands behind "--- " and the word, if the line is of that kind.
bool is_part(const std::string& line, const std::string& word, std::string& rest) {
  const std::string begin = "--- " + word;
  if (line != begin && !line.starts_with(begin + " ")) return false;
  rest = line.size() > begin.size() ? line.substr(begin.size() + 1) : "";
  return true;
}

}  // namespace

GoldenFile read_golden_file(const std::string& path) {
  GoldenFile file;
  std::ifstream from(path);
  std::string* to = &file.about;
  for (std::string line, rest; std::getline(from, line);) {
    if (is_part(line, "target", rest)) {
      file.target = rest;
    } else if (is_part(line, "option", rest)) {
      file.options[rest.substr(0, rest.find('='))] = rest.substr(rest.find('=') + 1);
    } else if (is_part(line, "behind", rest)) {
      file.behind.push_back(rest);
    } else if (is_part(line, "in", rest)) {
      to = &file.cases.emplace_back(RewriteCase{rest, "", ""}).in;
    } else if (is_part(line, "out", rest) && !file.cases.empty()) {
      to = &file.cases.back().out;
    } else {
      *to += line + "\n";
    }
  }
  return file;
}

void write_golden_file(const std::string& path, const GoldenFile& file) {
  std::ofstream to(path);
  to << file.about;
  if (file.target != GoldenFile().target) to << "--- target " << file.target << "\n";
  for (const auto& [name, value] : file.options) to << "--- option " << name << "=" << value << "\n";
  for (const std::string& name : file.behind) to << "--- behind " << name << "\n";
  for (const RewriteCase& c : file.cases) to << "--- in " << c.title << "\n" << c.in << "--- out\n" << c.out;
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
#include "tools/models.h"

#include <fmt/format.h>
#include <filesystem>

#include "base/diagnostic.h"

namespace tosaic::tools {

// One file alone may have any name.
Result<Models> name_models(const std::vector<std::string>& given, const std::string& command) {
  std::error_code none;
  if (given.size() == 1 && (given[0].find('=') == std::string::npos || std::filesystem::exists(given[0], none)))
    return Models{given[0], {}};
  Models models;
  for (const std::string& model : given) {
    const std::size_t equals = model.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == model.size())
      return error("usage.models", fmt::format("'{}' is one of several programs and names no method", model))
          .hint(fmt::format("tosaic {} prefill=prefill.pt2 decode=decode.pt2", command));
    models.methods.emplace_back(model.substr(0, equals), model.substr(equals + 1));
  }
  return models;
}

Result<std::vector<std::pair<std::string, Program>>> open_models(const Models& models, const Messages& messages) {
  auto files = models.methods;
  if (!models.only.empty()) files.emplace_back("", models.only);
  std::vector<std::pair<std::string, Program>> programs;
  for (const auto& [name, path] : files) {
    auto program = Program::open(path, messages);
    if (!program.ok()) return program.error();
    programs.emplace_back(name, *std::move(program));
  }
  return programs;
}

}  // namespace tosaic::tools

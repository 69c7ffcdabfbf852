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

Status name_samples(const std::vector<std::string>& samples, CompileRequest& request) {
  std::error_code none;
  for (const std::string& given : samples) {
    const std::size_t equals = given.find('=');
    if (equals != std::string::npos && equals > 0 && !std::filesystem::exists(given, none))
      request.calibrate_methods.emplace_back(given.substr(0, equals), given.substr(equals + 1));
    else if (samples.size() == 1)
      request.calibrate = given;
    else
      return error("usage.calibrate", fmt::format("'{}' is one of several samples and names no method", given))
          .hint(
              "--calibrate prefill=prefill.npz --calibrate decode=decode.npz; several files for one method: a folder");
  }
  return {};
}

}  // namespace tosaic::tools

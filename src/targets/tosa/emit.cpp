// SPDX-License-Identifier: Apache-2.0
#include "targets/tosa/emit.h"

#include <fmt/format.h>
#include <filesystem>

#include "formats/tosa/tosa_file.h"

namespace tosaic {
namespace {

// The smallest constants that are kept outside, in bytes: where the user wants them there, and where they have to be.
constexpr std::uint64_t least_asked = 1 << 10, least_needed = 1 << 16;

}  // namespace

Result<Emitted> emit_tosa(const Graph& graph, const Target&, const Options& options, const Destination& to) {
  const std::string file = options.of_kind("external", "weights");
  if (file.empty() && !to.several_methods && tosa_file::fits(graph)) {
    TOSAIC_TRY(Rope payload, tosa_file::write(graph));
    return Emitted{std::move(payload)};
  }
  const bool only_where_needed = file.empty() && !to.several_methods;
  TOSAIC_TRY(tosa_file::Parts parts, tosa_file::write_parts(graph, only_where_needed ? least_needed : least_asked));
  Emitted emitted{std::move(parts.file)};
  if (parts.outside.empty()) return emitted;
  const std::string stem = file.empty() ? "tosa" : std::filesystem::path(file).stem().string();
  // Distinguished by content, too: programs of several methods have one set of keys, and so have several data files.
  std::uint64_t content = 0;
  for (const auto& [name, data] : parts.outside)
    content = hash_of(data.data(), data.size(), hash_of(name.data(), name.size(), content));
  const std::string prefix = fmt::format("{}{}-{:016x}/", stem, to.number, content);
  for (auto& [name, data] : parts.outside) emitted.external.push_back({file, prefix + name, std::move(data)});
  emitted.specs = {{std::string(tosa_file::outside_spec), prefix}};
  return emitted;
}

OptionInfo external_weights() {
  return {.name = "external",
          .kind = OptionInfo::Kind::pairs,
          .sentence = "keep constants of 1 KB and more in a data file instead of the .pte: weights=FILE.ptd",
          .allowed = {"weights"}};
}

}  // namespace tosaic

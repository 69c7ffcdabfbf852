// SPDX-License-Identifier: Apache-2.0
// TOSA itself: the payload is the TOSA flatbuffer, which tosaic, tosa_reference_model and Arm's tools run. Where that
// would be too large, and where methods share them, its large constants are data of the program next to it, under the
// names of their values; equal data are stored once.
#include <fmt/format.h>
#include <filesystem>

#include "base/delegate_ids.h"
#include "formats/tosa/tosa_file.h"
#include "targets/target.h"

namespace tosaic {
namespace {

// The smallest constants that are kept outside, in bytes: where the user wants them there, and where they have to be.
constexpr std::uint64_t least_asked = 1 << 10, least_needed = 1 << 16;

Result<Emitted> emit(const Graph& graph, const Target&, const Options& options, const Destination& to) {
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

Target tosa_target(std::string name, std::string summary, const char* spec) {
  Target target{.name = std::move(name),
                .summary = std::move(summary),
                .family = "TOSA",
                .spec = *tosa::Spec::parse(spec),
                .delegate_id = delegate_ids::tosa,
                .emit = emit};
  target.in_place = target.keeps_variables = true;
  target.options = {{.name = "external",
                     .kind = OptionInfo::Kind::pairs,
                     .sentence = "keep constants of 1 KB and more in a data file instead of the .pte: weights=FILE.ptd",
                     .allowed = {"weights"}}};
  if (!target.integer()) target.quantised_weights = QuantisedWeights::packed;
  return target;
}

}  // namespace

std::vector<Target> target_tosa() {
  return {tosa_target("tosa-int", "TOSA 1.0, integer profile with int16 activations and int4 weights",
                      "TOSA-1.0+INT+int16+int4"),
          tosa_target("tosa-fp", "TOSA 1.0, floating-point profile", "TOSA-1.0+FP")};
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
// Profiles, extensions and levels: their names, and the text form of a Spec.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>

#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa {
namespace {

struct FeatureRow {
  Feature feature;
  std::string_view name;
  std::optional<Feature> profile;  // the profile, or the version, that an extension extends; none: any
};
// In the order of Feature, which is also the order in which Spec::text writes them.
constexpr std::array<FeatureRow, 17> features{{
    {Feature::pro_int, "PRO-INT", std::nullopt},
    {Feature::pro_fp, "PRO-FP", std::nullopt},
    {Feature::int4, "EXT-INT4", Feature::pro_int},
    {Feature::int16, "EXT-INT16", Feature::pro_int},
    {Feature::bf16, "EXT-BF16", Feature::pro_fp},
    {Feature::fp8e4m3, "EXT-FP8E4M3", Feature::pro_fp},
    {Feature::fp8e5m2, "EXT-FP8E5M2", Feature::pro_fp},
    {Feature::fft, "EXT-FFT", Feature::pro_fp},
    {Feature::variable, "EXT-VARIABLE", std::nullopt},
    {Feature::controlflow, "EXT-CONTROLFLOW", std::nullopt},
    {Feature::doubleround, "EXT-DOUBLEROUND", Feature::pro_int},
    {Feature::inexactround, "EXT-INEXACTROUND", Feature::pro_int},
    {Feature::dynamic, "EXT-DYNAMIC", std::nullopt},
    {Feature::v1_1, "TOSA-1.1", std::nullopt},
    {Feature::int64, "EXT-INT64", Feature::v1_1},
    {Feature::shape, "EXT-SHAPE", Feature::v1_1},
    {Feature::mxfp, "EXT-MXFP", Feature::v1_1},
}};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}
// "INT" of PRO-INT, "int16" of EXT-INT16; a version has none.
std::string word_of(const FeatureRow& row) {
  if (row.feature == Feature::v1_1) return "";
  return row.name.starts_with("PRO-") ? std::string(row.name.substr(4)) : lower(row.name.substr(4));
}

}  // namespace

std::string_view name_of(Feature feature) {
  for (const auto& row : features)
    if (row.feature == feature) return row.name;
  return "?";
}

Spec::Spec(std::initializer_list<Feature> list, Level limits) : level(limits) {
  for (Feature f : list) add(f);
}

Spec Spec::everything() {
  Spec spec;
  for (const auto& row : features) spec.add(row.feature);
  return spec;
}

Spec Spec::everything_in_1_0() {
  Spec spec;
  for (const auto& row : features)
    if (row.feature != Feature::v1_1 && row.profile != Feature::v1_1) spec.add(row.feature);
  return spec;
}

std::string Spec::text() const {
  std::string out = has(Feature::v1_1) ? "TOSA-1.1" : "TOSA-1.0";
  for (const auto& row : features)
    if (has(row.feature) && row.feature != Feature::v1_1) out += "+" + word_of(row);
  if (level.max_rank == level_8k.max_rank) out += "+8k";
  return out;
}

Result<Spec> Spec::parse(std::string_view text) {
  const std::string form = "write it like TOSA-1.0+INT+int16 or TOSA-1.0+FP+8k";
  auto plus = text.find('+');
  const std::string version = lower(text.substr(0, plus));
  if (version != "tosa-1.0" && version != "tosa-1.1")
    return error("tosa.spec", fmt::format("'{}' does not start with TOSA-1.0 or TOSA-1.1", text)).hint(form);
  Spec spec;
  if (version == "tosa-1.1") spec.add(Feature::v1_1);
  while (plus != std::string_view::npos) {
    text.remove_prefix(plus + 1);
    plus = text.find('+');
    const std::string word = lower(text.substr(0, plus));
    auto row = std::find_if(features.begin(), features.end(),
                            [&](const auto& r) { return !word.empty() && lower(word_of(r)) == word; });
    if (word == "8k") {
      spec.level = level_8k;
    } else if (word == "cf") {  // ExecuTorch's word
      spec.add(Feature::controlflow);
    } else if (row != features.end()) {
      spec.add(row->feature);
    } else {
      std::string known;
      for (const auto& r : features)
        if (r.feature != Feature::v1_1) known += word_of(r) + ", ";
      return error("tosa.spec", fmt::format("TOSA has no profile, extension or level '{}'", word))
          .note("the words are " + known + "8k")
          .hint(form);
    }
  }
  if (!spec.has(Feature::pro_int) && !spec.has(Feature::pro_fp))
    return error("tosa.spec", "no profile is named: INT, FP or both").hint(form);
  for (const auto& row : features)
    if (spec.has(row.feature) && row.profile && !spec.has(*row.profile))
      return error("tosa.spec", fmt::format("{} extends {}, which is not named", row.name, name_of(*row.profile)))
          .hint(form);
  return spec;
}

}  // namespace tosaic::tosa

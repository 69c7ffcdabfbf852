// SPDX-License-Identifier: Apache-2.0
// Vulkan's compute shaders: the payload holds them with the memory plan and the weights; any Vulkan device runs it.
#include <fmt/format.h>
#include <algorithm>

#include "base/delegate_ids.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "shaders/compile.h"
#include "shaders/half_precision.h"
#include "targets/target.h"

namespace tosaic {
namespace {

constexpr const char* tiers_option = "vulkan-tiers";
// A flatbuffer's offsets have 31 usable bits, and shaders and tables have to fit as well.
constexpr std::uint64_t largest_constants = 0x7c000000;
constexpr const char* precision_option = "vulkan-precision";
constexpr const char* sums_option = "vulkan-sums";
constexpr const char* keep_option = "vulkan-keep-f32";

// The smallest constants that methods share, in bytes.
constexpr std::uint64_t least_shared = 1 << 10;

std::vector<vulkan_program::TierId> tiers_of(const Options& options) {
  const std::vector<std::string> wanted = options.list(tiers_option);
  std::vector<vulkan_program::TierId> tiers;
  for (const vulkan_program::TierRow& row : vulkan_program::tier_rows())
    if (wanted.empty() || std::ranges::find(wanted, row.name) != wanted.end()) tiers.push_back(row.id);
  return tiers;
}

bool keeps_halves(const Options& options) { return options.text(precision_option) == "fp16"; }

shaders::KeptWide kept_wide(const Options& options) {
  return {.sums = options.text(sums_option) == "fp32", .names = options.list(keep_option)};
}

// As a GPU does where it may be one, in the best of its tiers.
Result<Graph> kept(const Graph& graph, const Options& options) {
  if (!keeps_halves(options)) return graph;
  const std::vector<vulkan_program::TierId> tiers = tiers_of(options);
  const auto of_gpus = std::ranges::find_if(tiers, [](auto tier) { return tier != vulkan_program::TierId::cpu; });
  return shaders::stored_in_half_precision(graph, kept_wide(options),
                                           of_gpus == tiers.end() ? tiers.front() : *of_gpus);
}

Result<Emitted> emit(const Graph& graph, const Target&, const Options& options, const Destination& to) {
  const std::vector<vulkan_program::TierId> tiers = tiers_of(options);
  const bool halves = keeps_halves(options);
  const std::vector<std::string> none;
  bool keeps_f16 = false;
  TOSAIC_TRY(vulkan_program::Program program,
             shaders::compile(graph, tiers, halves ? shaders::Precision::fp16 : shaders::Precision::fp32, &keeps_f16,
                              kept_wide(options)));
  if (halves && !keeps_f16) { TOSAIC_TRY(program, shaders::compile(graph, tiers)); }
  if (program.constants.size() > largest_constants)
    return error("vulkan-program.too-large",
                 fmt::format("the weights of a delegate take {} MB, but a program for Vulkan "
                             "holds 2 GB",
                             program.constants.size() >> 20))
        .hint("keep weights in 16 bits with --vulkan-precision fp16, or quantise them to 8 bits");
  if (Status right = vulkan_program::check(program); !right.ok()) {
    Diagnostic& why = right.error();
    why.message = "no device would run what this program became: " + why.message;
    why.help =
        "this is a fault of tosaic, which its other forms may not have: report it with the model, and try "
        "--vulkan-precision fp32, or --vulkan-tiers without the tier that the note names";
    return std::move(right).error();
  }
  Emitted made;
  if (to.several_methods) {
    vulkan_program::Parts parts = vulkan_program::write_parts(program, least_shared);
    made.payload = std::move(parts.file);
    for (auto& [key, data] : parts.outside) made.external.push_back({"", key, std::move(data)});
  } else {
    made.payload = vulkan_program::write(program);
  }
  if (halves) {
    Diagnostic note = warning("vulkan.precision",
                              keeps_f16 ? "weights and activations of f32 are stored in 16 bits (--vulkan-precision "
                                          "fp16); accumulators and what one kernel computes have 32"
                                        : "the delegate keeps no weights and activations in f32, so --vulkan-precision "
                                          "fp16 changes nothing");
    note.severity = Severity::note;
    made.notes.push_back(std::move(note));
    // Of several delegates, another one may have it.
    for (const std::string& name : to.number.empty() ? shaders::names_of_nothing(graph, kept_wide(options)) : none)
      made.notes.push_back(warning("vulkan.keep-f32", fmt::format("the delegate has nothing that is called '{}'", name))
                               .hint("name nodes or modules as `tosaic compare` shows them; of a program without "
                                     "source locations (--strip), nodes"));
  }
  return made;
}

}  // namespace

std::vector<Target> target_vulkan() {
  Target target{.name = "vulkan",
                .summary = "compute shaders for any Vulkan device, float and integer",
                .family = "Vulkan",
                .spec = shaders::spec(),
                .delegate_id = delegate_ids::vulkan,
                .emit = emit};
  target.kept = kept;
  target.keep_option = keep_option;
  target.narrowing = "--vulkan-precision fp16";
  target.device = "vulkan";
  target.varies = true;
  target.quantised_weights = QuantisedWeights::stay;
  target.in_place = true;  // inputs are brought to the device before outputs come back
  std::string sentence = "for which devices there are shaders, in a comma-separated list; default: all (";
  OptionInfo option{.name = tiers_option, .kind = OptionInfo::Kind::list, .placeholder = "TIERS"};
  for (const vulkan_program::TierRow& row : vulkan_program::tier_rows()) {
    sentence +=
        std::string(option.allowed.empty() ? "" : "; ") + std::string(row.name) + ": " + std::string(row.sentence);
    option.allowed.emplace_back(row.name);
  }
  option.sentence = sentence + ")";
  OptionInfo precision{.name = precision_option, .kind = OptionInfo::Kind::text, .default_value = "fp32"};
  precision.sentence =
      "fp16: weights and activations of f32 are stored in 16 bits, accumulators have 32; quantised tensors are "
      "unchanged";
  precision.allowed = {"fp32", "fp16"};
  OptionInfo sums{.name = sums_option, .kind = OptionInfo::Kind::text, .default_value = "fp32"};
  sums.sentence =
      "with --vulkan-precision fp16, how sums of two computed tensors that no product reads are kept: what residual "
      "layers add to; fp32: in 32 bits";
  sums.allowed = {"fp32", "fp16"};
  OptionInfo keep{.name = keep_option, .kind = OptionInfo::Kind::list, .placeholder = "NAME ..."};
  keep.sentence =
      "with --vulkan-precision fp16, nodes or modules of the model whose results stay in 32 bits; `tosaic compare` "
      "says "
      "which lose most";
  target.options = {std::move(option), std::move(precision), std::move(sums), std::move(keep)};
  return {target};
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
// Microcontrollers: all that runs there becomes C (c_source/print.h), so a node is taken where there is C for it. The
// .pte holds the same graph as TOSA, which runs on this computer.
#include <fmt/format.h>

#include "base/delegate_ids.h"
#include "c_source/print.h"
#include "targets/board_options.h"
#include "targets/tosa/emit.h"

namespace tosaic {
namespace {

tosa::Check check(const tosa::View& view) {
  if (c_source::has_c(view)) return std::nullopt;
  return tosa::Violation{fmt::format("{}.no-c", view.node().op.base()),
                         fmt::format("tosaic has no C for {} of these types", view.node().op)};
}

Target cortex_m(std::string name, std::string summary) {
  static const tosa::Product product{"Cortex-M", check};
  Target target{.name = std::move(name),
                .summary = std::move(summary),
                .family = "Cortex-M",
                .spec = *tosa::Spec::parse("TOSA-1.0+INT+int16+int4"),
                .delegate_id = delegate_ids::tosa,
                .emit = emit_tosa};
  target.spec.product = &product;
  target.in_place = true;
  target.becomes_c = true;
  target.options = {
      sram_of_board(),
      flash_of_board(),
      {.name = "kernels",
       .kind = OptionInfo::Kind::text,
       .default_value = "tosaic",
       .sentence = "what firmware calls for convolutions: tosaic's kernels, which are a part of it, or those "
                   "of Arm's CMSIS-NN, which you bring, where their results are the same",
       .allowed = {"tosaic", "cmsis-nn"}}};
  return target;
}

}  // namespace

std::vector<Target> target_cortex_m() {
  std::vector<Target> all{cortex_m("cortex-m55", "C for Cortex-M55 and -M85, with Helium"),
                          cortex_m("cortex-m85", "the same as cortex-m55"),
                          cortex_m("cortex-m33", "C for Cortex-M33, with its DSP instructions"),
                          cortex_m("cortex-m4", "C for Cortex-M4 and -M7, with their DSP instructions")};
  for (std::size_t i = 1; i < all.size(); ++i) all[i].tabled = false;
  return all;
}

}  // namespace tosaic

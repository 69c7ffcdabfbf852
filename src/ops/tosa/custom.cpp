// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/row.h"

namespace tosaic::tosa {
namespace {
// What a custom operator gives and does is between the graph's author and the target.
std::vector<TensorType> infer(const View&) { return {}; }

Status eval(const Run& run) {
  return error("run.custom-operator", fmt::format("custom operator '{}' of domain '{}' has no reference",
                                                  run.view.text("operator_name"), run.view.text("domain_name")))
      .hint("the CPU runs the standard's operators; shaders of a VGF file run on Vulkan");
}
}  // namespace

Op tosa_custom() {
  return {
      .name = "custom",
      .schema_number = 69,
      .spirv_number = 0xffff,
      .summary = "an operator that the standard does not define",
      .inputs = {{.name = "input_list", .type = "", .list = true}},
      .attrs = {{"operator_name", AttrKind::string},
                {"domain_name", AttrKind::string},
                {"implementation_attrs", AttrKind::string}},
      .outputs = {{.name = "output_list", .type = "", .list = true}},
      .types = {{{Feature::pro_int, Feature::pro_fp}, {}}},
      .infer = infer,
      .eval = eval,
  };
}
}  // namespace tosaic::tosa

// SPDX-License-Identifier: Apache-2.0
// What an Ethos-U payload holds, as `tosaic inspect` shows it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "formats/vela/vela.h"
#include "tosaic/files.hpp"

namespace tosaic {

// What the program around a payload says of one of its inputs or outputs.
struct ProgramTensor {
  std::string type;  // "1x3x8x8xi8"
  bool has_scale = false;
  double scale = 0;
  std::int64_t zero_point = 0;
};

// `tensors`: inputs, then outputs; fewer where there is no program. Every line of the text is indented by `indent`.
// Commands that cannot be read are an error only where they are to be listed; the rest is shown without them.
Result<Inspection> inspect_ethos_u(const vela::Payload& payload, const std::vector<ProgramTensor>& tensors,
                                   const std::map<std::string, Bytes>& data, const InspectOptions& options,
                                   const std::string& indent);

// One operation of a command stream, in its order.
struct NpuOperation {
  std::string address, name, text;  // "0x0001a4", "CONV", its tensors and formats
};
// Errors: those of reading the commands.
Result<std::vector<NpuOperation>> npu_operations(const vela::Payload& payload,
                                                 const std::map<std::string, Bytes>& data);

}  // namespace tosaic

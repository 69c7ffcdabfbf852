// SPDX-License-Identifier: Apache-2.0
// The data of a report as Arm's adviser MLIA writes its own: "MLIA Unified Output Schema", 1.2.0.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace tosaic::reporting {

// What names one writing of it.
struct MliaRun {
  std::string id;         // a UUID
  std::string timestamp;  // ISO 8601
};

// `report`: what contents_json gives. Error: report.no-manifest, when it does not say where nodes run.
Result<std::string> mlia_json(std::string_view report, const MliaRun& run);

}  // namespace tosaic::reporting

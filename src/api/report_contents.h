// SPDX-License-Identifier: Apache-2.0
// What there is to report of a compilation, and of a compiled file.
#pragma once
#include <map>
#include <string>

#include "api/artifact.h"
#include "report/contents.h"
#include "tosaic/files.hpp"

namespace tosaic {

reporting::Contents report_contents(const Artifact::Impl& artifact);
// `data`: what the program keeps outside itself. Errors: report.unknown-format, those of the formats.
Result<reporting::Contents> report_contents(const Bytes& file, const std::string& path,
                                            const std::map<std::string, Bytes>& data);

}  // namespace tosaic

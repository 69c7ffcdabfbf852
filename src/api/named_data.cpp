// SPDX-License-Identifier: Apache-2.0
#include "api/named_data.h"

#include <fmt/format.h>

#include "formats/ptd/ptd_file.h"

namespace tosaic {

Result<std::map<std::string, Bytes>> read_named_data(const std::vector<std::string>& files) {
  std::map<std::string, Bytes> data;
  for (const std::string& file : files) {
    TOSAIC_TRY(const Bytes bytes, map_file(file));
    TOSAIC_TRY(const auto entries, ptd::read(bytes, file));
    for (const ptd::Entry& entry : entries)
      if (const auto [known, fresh] = data.emplace(entry.key, entry.data); !fresh && !(known->second == entry.data))
        return error("data.twice", fmt::format("'{}' is in another data file as well, with other content", entry.key))
            .at({file, 0, ""});
  }
  return data;
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
#include "session/named_data.h"

#include <fmt/format.h>

#include "formats/ptd/ptd_file.h"

namespace tosaic {

Result<std::map<std::string, Bytes>> named_data(const std::vector<NamedFile>& files) {
  std::map<std::string, Bytes> data;
  for (const auto& [name, file] : files) {
    TOSAIC_TRY(const auto entries, ptd::read(file, name));
    for (const ptd::Entry& entry : entries)
      if (const auto [known, fresh] = data.emplace(entry.key, entry.data); !fresh && !(known->second == entry.data))
        return error("data.twice", fmt::format("'{}' is in another data file as well, with other content", entry.key))
            .at({name, 0, ""});
  }
  return data;
}

Result<std::map<std::string, Bytes>> read_named_data(const std::vector<std::string>& paths) {
  std::vector<NamedFile> files;
  for (const std::string& path : paths) {
    TOSAIC_TRY(Bytes file, map_file(path));
    files.emplace_back(path, std::move(file));
  }
  return named_data(files);
}

std::function<Bytes(const std::string& key)> found_in(const std::map<std::string, Bytes>& data) {
  return [&data](const std::string& key) {
    const auto found = data.find(key);
    return found == data.end() ? Bytes() : found->second;
  };
}

}  // namespace tosaic

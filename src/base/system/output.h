// SPDX-License-Identifier: Apache-2.0
// The files that a command writes: all of them or none, never one that it reads, never one twice, and only ordinary
// files. A symbolic link is followed; what a file's owner, mode and further names were, they stay.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rope.h"
#include "base/system/temporaries.h"

namespace tosaic {

class Outputs {
 public:
  // A file that the command reads, or a folder whose files it reads.
  void reads(const std::string& path);
  // Says before the work what would be wrong with writing there. Errors: output.is-input, output.twice,
  // output.not-a-file, file.unwritable.
  Status plan(const std::string& path);
  // A folder that another program fills with files of such names: none of them may be read or planned.
  Status plan_folder(const std::string& path, bool (*filled_with)(std::string_view name));
  // Plans it if need be, and puts the data next to its place. Errors: those, file.disk-full.
  Status write(const std::string& path, const Rope& data);
  // Everything takes its place. Errors: those of write, and file.changed when an input shrank meanwhile.
  Status commit();

 private:
  // A file by any of its names: its device and number, or those of its folder and the name when it does not exist yet.
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    std::string name;
    auto operator<=>(const Identity&) const = default;
  };
  struct PlannedFile {
    std::string asked;                  // as the user wrote it
    std::string path;                   // behind symbolic links
    std::optional<std::uint32_t> mode;  // of what stands there
    std::uint32_t owner = 0;
    std::uint32_t group = 0;
    bool in_place = false;  // its other names would be left behind, or its folder takes no new file
    std::optional<Temporary> waiting;
    Rope data;  // when in_place
    bool written = false;
    std::shared_ptr<const void> held;  // what stands there, open: its number is nobody else's meanwhile
  };
  static Identity identity(const std::string& path);
  Result<PlannedFile> look(const std::string& path) const;
  Result<PlannedFile*> planned(const std::string& path);
  Status stage(PlannedFile& planned_file, const Rope& data);

  std::map<Identity, std::string> inputs_;
  std::vector<std::shared_ptr<const void>> held_;  // of the inputs that are no folders
  std::map<Identity, PlannedFile> planned_files_;
};

// As the other of that name (bytes.h).
Status write_file(const std::string& path, const Rope& data);
// With the folders above it, unless it is there. Error: file.unwritable.
Status make_folder(const std::string& path);

}  // namespace tosaic

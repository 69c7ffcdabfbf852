// SPDX-License-Identifier: Apache-2.0
#include "base/system/output.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include "base/system/hosted/files.h"
#include "base/system/mapped_files.h"

namespace tosaic {

namespace fs = std::filesystem;

Diagnostic unwritable(const std::string& path, const std::string& why) {
  return error("file.unwritable", fmt::format("cannot write {}: {}", path, why)).at({path, 0, ""});
}

std::optional<std::string> behind_links(const std::string& path) {
  fs::path at(path);
  std::error_code failure;
  for (int i = 0; i < 40; ++i) {
    if (!fs::is_symlink(fs::symlink_status(at, failure))) return at.string();
    const fs::path target = fs::read_symlink(at, failure);
    if (failure) return std::nullopt;
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  return std::nullopt;
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void Outputs::reads(const std::string& path) {
  if (path.empty()) return;
  std::error_code failure;
  if (!fs::is_directory(path, failure)) {
    held_.push_back(held(path));
    inputs_.emplace(identity(path), path);
    return;
  }
  for (const auto& entry : fs::directory_iterator(path, failure))
    inputs_.emplace(identity(entry.path().string()), entry.path().string());
}

Status Outputs::plan(const std::string& path) {
  TOSAIC_CHECK(planned(path));
  return {};
}

Result<Outputs::PlannedFile*> Outputs::planned(const std::string& path) {
  TOSAIC_TRY(PlannedFile planned_file, look(path));
  const Identity id = identity(planned_file.path);
  if (const auto input = inputs_.find(id); input != inputs_.end())
    return error("output.is-input", input->second == path
                                        ? fmt::format("{} is read and would be overwritten", path)
                                        : fmt::format("{} is the same file as {}, which is read and would be "
                                                      "overwritten",
                                                      path, input->second))
        .at({path, 0, ""})
        .hint("give the output another name");
  const auto [other, fresh] = planned_files_.try_emplace(id, std::move(planned_file));
  if (fresh) return &other->second;
  return error("output.twice", other->second.asked == path
                                   ? fmt::format("{} would be written twice", path)
                                   : fmt::format("{} and {} are the same file, which would be written twice",
                                                 other->second.asked, path))
      .at({path, 0, ""})
      .hint("give every output a name of its own");
}

Status Outputs::plan_folder(const std::string& path, bool (*filled_with)(std::string_view name)) {
  std::error_code failure;
  if (fs::exists(path, failure) && !fs::is_directory(path, failure))
    return error("output.not-a-file", fmt::format("cannot write into {}: it is no folder", path))
        .at({path, 0, ""})
        .hint("name a folder; it is made if missing");
  const auto clashes = [&](const std::string& file) {
    return filled_with(fs::path(file).filename().string()) && fs::equivalent(folder_of(file), path, failure);
  };
  const auto refuse = [&](const std::string& file, std::string_view what) {
    return error(what == "read" ? "output.is-input" : "output.twice",
                 fmt::format("{} is {} and would be overwritten by what goes into {}", file, what, path))
        .at({path, 0, ""})
        .hint("name another folder");
  };
  for (const auto& [id, file] : inputs_)
    if (clashes(file)) return refuse(file, "read");
  for (const auto& [id, planned_file] : planned_files_)
    if (clashes(planned_file.path)) return refuse(planned_file.asked, "written");
  return {};
}

Status Outputs::write(const std::string& path, const Rope& data) {
  // By its name, not by what stands there: another process may have put its own file there meanwhile.
  const auto found = std::ranges::find_if(
      planned_files_, [&](const auto& known) { return known.second.asked == path && !known.second.written; });
  PlannedFile* planned_file = found == planned_files_.end() ? nullptr : &found->second;
  if (!planned_file) { TOSAIC_TRY(planned_file, planned(path)); }
  planned_file->written = true;
  return stage(*planned_file, data);
}

Status Outputs::commit() {
  if (const std::string file = changed_file(); !file.empty()) return file_changed(file);
  const auto over = [](const PlannedFile& planned_file) -> Status {
    if (const int why = overwrite(planned_file.path, planned_file.data); why != 0)
      return refused(planned_file.asked, planned_file.data.size(), why);
    return {};
  };
  for (const auto& [id, planned_file] : planned_files_)  // first what may still find no room
    if (planned_file.written && planned_file.in_place) TOSAIC_CHECK(over(planned_file));
  for (auto& [id, planned_file] : planned_files_) {
    if (!planned_file.waiting) continue;
    if (const int why = take_place(planned_file.waiting->path(), planned_file.path); why == 0) {
      planned_file.waiting->release();
    } else {
      if (!planned_file.mode) return refused(planned_file.asked, planned_file.data.size(), why);
      TOSAIC_CHECK(over(planned_file));  // one that cannot be replaced: it is mounted, say
    }
  }
  planned_files_.clear();
  return {};
}

Status make_folder(const std::string& path) {
  std::error_code failure;
  const bool whole = path.find('\0') == path.npos;
  if (whole) fs::create_directories(path, failure);
  std::error_code unknown;
  if (whole && fs::is_directory(path, unknown)) return {};
  return error("file.unwritable", fmt::format("cannot make the folder {}: {}", path,
                                              !whole    ? "there is a zero byte in its name"
                                              : failure ? failure.message()
                                                        : "a file has that name"))
      .at({path, 0, ""})
      .hint("name a folder that you may write to");
}

Status write_file(const std::string& path, const Rope& data) {
  Outputs outputs;
  TOSAIC_CHECK(outputs.write(path, data));
  return outputs.commit();
}

Status write_file(const std::string& path, const void* data, std::size_t size) {
  return write_file(path, Bytes(nullptr, data, size));
}

}  // namespace tosaic

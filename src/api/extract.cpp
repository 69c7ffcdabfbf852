// SPDX-License-Identifier: Apache-2.0
// What the delegates of a program run, as files of their own: VGF, TOSA, Ethos-U streams, PyTorch graphs of
// ExecuTorch's Vulkan flow, and what tosaic does not know.
#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <set>

#include "api/guard.h"
#include "api/payload_forms.h"
#include "base/system/output.h"
#include "formats/bpte/bpte_file.h"
#include "formats/pte/pte_file.h"
#include "session/named_data.h"
#include "tosaic/files.hpp"

namespace tosaic {
namespace {

namespace fs = std::filesystem;

// A method's name as part of a file's.
std::string as_file_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
  return text.empty() ? "method" : text;
}

// What stands there already stays, unless it is the same or `replace` says otherwise.
Status may_write(const std::string& path, const Rope& data, bool replace) {
  std::error_code failure;
  if (!fs::exists(path, failure)) return {};
  const auto old = map_file(path);
  if (replace || (old.ok() && Rope(*old) == data)) return {};
  return error("extract.exists", fmt::format("{} exists and holds something else", path))
      .at({path, 0, ""})
      .hint("name another folder, or replace the files with --force");
}

Result<std::vector<Extracted>> try_extract(const ExtractRequest& request) {
  TOSAIC_TRY(const Bytes file, map_file(request.program));
  TOSAIC_TRY(const Bytes pte, bpte::program_in(file, request.program));
  TOSAIC_TRY(const pte::Program program, pte::read(pte, request.program));
  TOSAIC_TRY(auto data, read_named_data(request.data));
  for (const pte::NamedData& named : program.named_data) data.insert_or_assign(named.key, named.data.joined());
  std::vector<Extracted> list;
  std::vector<Rope> contents;
  std::set<std::string> taken;
  for (const pte::Plan& plan : program.plans)
    for (std::size_t i = 0; i < plan.delegates.size(); ++i) {
      const pte::Delegate& delegate = plan.delegates[i];
      const std::string place = fmt::format("{} (delegate {})", request.program, i);
      const Bytes payload = delegate.payload.joined();
      const PayloadForm* form = form_of(payload);
      auto content = form && form->extract ? form->extract({plan, i, data, place}, payload) : Result<Rope>(payload);
      if (!content.ok()) return std::move(content.error()).at({place, 0, ""});
      const std::string format(form ? form->ending : "bin");
      const std::string stem = fmt::format("{}_delegate{}", as_file_name(plan.name), i);
      std::string name = fmt::format("{}.{}", stem, format);
      for (int k = 2; !taken.insert(name).second; ++k) name = fmt::format("{}_{}.{}", stem, k, format);
      list.push_back(
          {(fs::path(request.output_dir) / name).string(), plan.name, i, delegate.id, format, content->size()});
      contents.push_back(std::move(*content));
    }
  if (list.empty())
    return error("extract.no-delegate", "the program has no delegates, all of it runs as kernels")
        .at({request.program, 0, ""})
        .hint("`tosaic inspect` shows what it runs");
  TOSAIC_CHECK(make_folder(request.output_dir));
  Outputs outputs;
  outputs.reads(request.program);
  for (const std::string& path : request.data) outputs.reads(path);
  for (std::size_t i = 0; i < list.size(); ++i) {
    TOSAIC_CHECK(outputs.plan(list[i].file));
    TOSAIC_CHECK(may_write(list[i].file, contents[i], request.replace));
    TOSAIC_CHECK(outputs.write(list[i].file, contents[i]));
  }
  TOSAIC_CHECK(outputs.commit());
  return list;
}

}  // namespace

Result<std::vector<Extracted>> extract(const ExtractRequest& request) {
  return guarded(request.program, [&] { return try_extract(request); });
}

}  // namespace tosaic

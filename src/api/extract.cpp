// SPDX-License-Identifier: Apache-2.0
// What the delegates of a program run, as files of their own: VGF, TOSA, Ethos-U streams, PyTorch graphs of
// ExecuTorch's Vulkan flow, and what tosaic does not know.
#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <set>

#include "api/guard.h"
#include "api/named_data.h"
#include "api/tosa_payload.h"
#include "base/output.h"
#include "delegates/vulkan_backend/chain.h"
#include "formats/bpte/bpte_file.h"
#include "formats/pte/pte_file.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vela/vela.h"
#include "formats/vgf/vgf.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "tosaic/files.hpp"

namespace tosaic {
namespace {

namespace fs = std::filesystem;

struct Payload {
  Rope data;
  std::string format;  // also the file's ending
};

// PyTorch's operators as the text of a graph, which `compile` and `run` read.
Result<Payload> chain_of(const Bytes& payload, const std::map<std::string, Bytes>& data, const std::string& name) {
  TOSAIC_TRY(const vulkan_backend::File file, vulkan_backend::read(payload, name));
  TOSAIC_TRY(const Graph graph, vulkan_backend::aten_graph(file, found_in(data), name));
  const std::string text = print(graph, ConstantText::all);
  return Payload{Bytes::copy(text.data(), text.size()), "txt"};
}

// The bytes say what they are: other tools' delegates may carry the same formats under names of their own.
Result<Payload> artifact_of(const pte::Delegate& delegate, const std::map<std::string, Bytes>& data,
                            const std::string& name) {
  const Bytes payload = delegate.payload.joined();
  if (vgf::is_vgf(payload)) return Payload{payload, "vgf"};
  if (tosa_file::is_tosa(payload)) {
    if (!has_constants_outside(delegate)) return Payload{payload, "tosa"};
    TOSAIC_TRY(const Graph graph, tosa_graph(delegate, data, name));
    TOSAIC_TRY(Rope whole, tosa_file::write(graph));
    return Payload{std::move(whole), "tosa"};
  }
  if (vulkan_program::is_program(payload)) {
    const auto alone = vulkan_program::read(payload);
    if (alone.ok() || alone.error().code != "vulkan-program.constant-outside") return Payload{payload, "bin"};
    TOSAIC_TRY(const vulkan_program::Program whole, vulkan_program::read(payload, found_in(data)));
    return Payload{vulkan_program::write(whole), "bin"};
  }
  if (vulkan_backend::is_payload(payload)) return chain_of(payload, data, name);
  if (!payload.text().starts_with("vela_bin_stream")) return Payload{payload, "bin"};
  // A stream alone is worth nothing without what the program keeps elsewhere: the file holds all of it.
  TOSAIC_TRY(vela::Payload stream, vela::read(payload));
  if (!stream.commands.external() && !stream.weights.external()) return Payload{payload, "vela"};
  TOSAIC_TRY(stream.commands.data, vela::resolve(stream.commands, "commands", &data));
  TOSAIC_TRY(stream.weights.data, vela::resolve(stream.weights, "weights", &data));
  stream.commands.external_key.clear();
  stream.weights.external_key.clear();
  TOSAIC_TRY(Bytes whole, vela::write(stream));
  return Payload{std::move(whole), "vela"};
}

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
  TOSAIC_TRY(Bytes file, map_file(request.program));
  if (bpte::is_bpte(file)) {
    TOSAIC_TRY(const bpte::File bundle, bpte::read(file, request.program));
    file = bundle.program;
  }
  TOSAIC_TRY(const pte::Program program, pte::read(file, request.program));
  TOSAIC_TRY(auto data, read_named_data(request.data));
  for (const pte::NamedData& named : program.named_data) data.insert_or_assign(named.key, named.data.joined());
  std::vector<Extracted> list;
  std::vector<Rope> contents;
  std::set<std::string> taken;
  for (const pte::Plan& plan : program.plans)
    for (std::size_t i = 0; i < plan.delegates.size(); ++i) {
      const pte::Delegate& delegate = plan.delegates[i];
      const std::string place = fmt::format("{} (delegate {})", request.program, i);
      auto artifact = artifact_of(delegate, data, place);
      if (!artifact.ok()) return std::move(artifact.error()).at({place, 0, ""});
      const std::string stem = fmt::format("{}_delegate{}", as_file_name(plan.name), i);
      std::string name = fmt::format("{}.{}", stem, artifact->format);
      for (int k = 2; !taken.insert(name).second; ++k) name = fmt::format("{}_{}.{}", stem, k, artifact->format);
      list.push_back({(fs::path(request.output_dir) / name).string(), plan.name, i, delegate.id, artifact->format,
                      artifact->data.size()});
      contents.push_back(std::move(artifact->data));
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

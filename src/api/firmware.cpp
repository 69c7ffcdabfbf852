// SPDX-License-Identifier: Apache-2.0
#include "api/firmware.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include "api/guard.h"
#include "api/likely_inputs.h"
#include "api/program.h"
#include "api/session_tensors.h"
#include "base/delegate_ids.h"
#include "base/size_text.h"
#include "c_source/names.h"
#include "pipeline/arguments.h"

namespace tosaic {
namespace {

struct SelfTest {
  std::vector<Tensor> sample, results;
};

// What the program gives here for a sample. Its states are in their first contents.
Result<SelfTest> run_here(const Artifact::Impl& artifact, const std::string& method, const Graph& program,
                          std::vector<Tensor> sample) {
  SessionOptions how;
  how.method = method;
  TOSAIC_TRY(Session session, Session::load(artifact.compiled.program.joined(), "program", how));
  if (sample.size() != session.inputs().size()) {
    sample.clear();
    TOSAIC_TRY(const std::vector<OwnedTensor> likely, likely_inputs(session));
    for (const OwnedTensor& t : likely) sample.push_back({{t.dtype, Shape(t.sizes), {}}, t.data});
  }
  std::vector<TensorType> wanted;
  for (const TensorInfo& in : session.inputs()) wanted.push_back({in.dtype, Shape(in.sizes()), {}});
  sample = arguments_for(program, wanted, sample);
  TOSAIC_TRY(std::vector<Tensor> results, results_of(session, sample));
  return SelfTest{std::move(sample), std::move(results)};
}

}  // namespace

std::string firmware_name(const std::string& model) {
  const std::string stem = std::filesystem::path(model).stem().string();
  return stem.empty() ? "net" : c_source::name_in_c(stem, "net_");
}

Result<std::vector<firmware::SourceFile>> firmware_of(const Artifact::Impl& artifact, const std::string& name) {
  const Compiled& compiled = artifact.compiled;
  const bool npu = compiled.target.delegate_id == delegate_ids::ethos_u;
  if (!npu && !compiled.target.becomes_c)
    return error("firmware.target", fmt::format("firmware is not made for the target {}", compiled.target.name))
        .hint("use --target cortex-m55, or an Ethos-U next to a Cortex-M: --target ethos-u55-128");
  std::vector<Bytes> payloads;
  for (const Emitted& e : compiled.emitted)
    if (npu) payloads.push_back(e.payload.joined());
  std::vector<firmware::MethodSource> methods;
  const auto add = [&](std::size_t i, const Graph& outer, std::size_t first,
                       const std::vector<Tensor>& sample) -> Status {
    const std::string method = compiled.packed.plans.at(i).name;
    TOSAIC_TRY(SelfTest test, run_here(artifact, method, i == 0 ? compiled.quantised : outer, sample));
    const auto count = static_cast<std::ptrdiff_t>(first);
    std::vector<Bytes> its_own(npu ? payloads.begin() + count : payloads.end(), payloads.end());
    methods.push_back({method, outer, std::span(compiled.lowered).subspan(first), std::move(its_own),
                       std::move(test.sample), std::move(test.results)});
    return {};
  };
  TOSAIC_CHECK(add(0, compiled.partition.outer, 0, compiled.sample));
  for (std::size_t i = 0; i < compiled.further.size(); ++i)
    TOSAIC_CHECK(add(i + 1, compiled.further[i].outer, compiled.further[i].first_region, compiled.further[i].sample));
  firmware::FirmwareOptions options;
  options.name = name;
  options.target = compiled.target.name;
  options.made_by = fmt::format("tosaic {} from {}", TOSAIC_VERSION,
                                std::filesystem::path(artifact.program.impl().name).filename().string());
  const Options& said = artifact.options.emit;
  options.limits = {parsed_board_size(said.text("flash")), parsed_board_size(said.text("sram"))};
  if (said.text("kernels") == "cmsis-nn") options.kernels = c_source::Kernels::cmsis_nn;
  return firmware::firmware_files(methods, options);
}

Result<std::map<std::string, std::string>> Artifact::firmware(const std::string& name) const {
  const std::string& model = impl_->program.name();
  return guarded(model, [&]() -> Result<std::map<std::string, std::string>> {
    TOSAIC_TRY(auto files, firmware_of(*impl_, name.empty() ? firmware_name(model) : name));
    std::map<std::string, std::string> texts;
    for (firmware::SourceFile& file : files) texts.emplace(std::move(file.name), std::move(file.text));
    return texts;
  });
}

}  // namespace tosaic

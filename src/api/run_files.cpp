// SPDX-License-Identifier: Apache-2.0
// A run over files: inputs from .npy, outputs into .npy.
#include <fmt/format.h>
#include <chrono>
#include <filesystem>

#include "api/guard.h"
#include "api/likely_inputs.h"
#include "api/profile.h"
#include "api/program.h"
#include "api/run_samples.h"
#include "api/shown_output.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/output.h"
#include "formats/npy/npy.h"
#include "tosaic/files.hpp"

namespace tosaic {
namespace {

using Clock = SteadyClock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

bool fits(const Shape& shape, const TensorInfo& wanted) {
  return std::ranges::equal(shape.sizes(), wanted.dims, [](std::int64_t size, const Dimension& d) {
    return d.dynamic() ? size >= d.lowest && (d.size < 0 || size <= d.size) : size == d.size;
  });
}

Result<OwnedTensor> read_input(const std::string& path, const TensorInfo& wanted, std::size_t i) {
  TOSAIC_TRY(Bytes file, map_file(path));
  TOSAIC_TRY(Tensor tensor, npy::read(file, path));
  // NumPy has no 4-bit and 48-bit integers: int8 and int64 hold them.
  const DType given = tensor.type.dtype;
  const bool same = given == wanted.dtype ||
                    (storage_size(given) == storage_size(wanted.dtype) && is_integer(given) &&
                     is_integer(wanted.dtype) && (wanted.dtype == DType::i4 || wanted.dtype == DType::i48)) ||
                    (given == DType::f8e4m3 && wanted.dtype == DType::f8e5m2) ||  // both are raw bytes
                    ((given == DType::f8e4m3 || given == DType::u8) && is_of_blocks(wanted.dtype));
  if (!same || !fits(tensor.type.shape, wanted)) {
    Diagnostic why = error("run.input-type", fmt::format("input {} is {}, the program takes {}", i,
                                                         to_string(tensor.type), to_string(wanted)));
    for (std::size_t k = 0; k < wanted.dims.size(); ++k)
      if (const Dimension& d = wanted.dims[k]; d.dynamic()) {
        const std::string range = fmt::format("{}..{}", d.lowest, d.size < 0 ? "" : std::to_string(d.size));
        why.notes.push_back(wanted.name.empty() ? fmt::format("{} is {}", d.expression, range)
                                                : fmt::format("{}.{} is {} ({})", wanted.name, k, range, d.expression));
      }
    return std::move(why).at({path, 0, ""});
  }
  return OwnedTensor{wanted.dtype, tensor.type.shape.sizes(), tensor.data};
}

Result<std::vector<OwnedTensor>> inputs_for(const Session& session, const RunRequest& request) {
  std::vector<OwnedTensor> inputs;
  const auto& wanted = session.inputs();
  if (request.inputs.empty()) {
    auto likely = likely_inputs(session);
    if (likely.ok()) return likely;
    return std::move(likely.error())
        .at({request.program, 0, ""})
        .hint("give --input FILE.npy once per input, in order");
  }
  if (request.inputs.size() != wanted.size())
    return error("run.input-count",
                 fmt::format("{} inputs are given, {} takes {}", request.inputs.size(), request.program, wanted.size()))
        .hint("give --input FILE.npy once per input, in order; `tosaic inspect` lists them");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    TOSAIC_TRY(OwnedTensor input, read_input(request.inputs[i], wanted[i], i));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// Names come from the program: none leads out of the folder.
Result<std::string> state_file(const RunRequest& request, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find_first_of("/\\") != std::string::npos ||
      name.find('\0') != std::string::npos)
    return error("run.state", fmt::format("state '{}' cannot be a file's name", name)).at({request.program, 0, ""});
  return (std::filesystem::path(request.states) / (name + ".npy")).string();
}

Status read_states(Session& session, const RunRequest& request) {
  if (request.states.empty()) return {};
  if (session.states().empty())
    return error("run.state", "the program keeps no states from run to run").at({request.program, 0, ""});
  for (const TensorInfo& state : session.states()) {
    TOSAIC_TRY(const std::string path, state_file(request, state.name));
    if (std::error_code none; !std::filesystem::exists(path, none)) continue;
    TOSAIC_TRY(Bytes file, map_file(path));
    TOSAIC_TRY(const Tensor content, npy::read(file, path));
    if (content.type.dtype != state.dtype || content.type.shape.sizes() != state.sizes())
      return error("run.state-type", fmt::format("state '{}' is {}, this file holds {}", state.name, to_string(state),
                                                 to_string(content.type)))
          .at({path, 0, ""});
    const OwnedTensor lent{state.dtype, state.sizes(), content.data};
    TOSAIC_CHECK(session.set_state(state.name, lent.view()));
  }
  return {};
}

Status write_states(Outputs& files, const Session& session, const RunRequest& request, RunOutcome& outcome) {
  for (const TensorInfo& state : session.states()) {
    outcome.states.push_back(fmt::format("{}: {}", state.name, to_string(state)));
    if (request.states.empty()) continue;
    TOSAIC_TRY(const OwnedTensor content, session.state(state.name));
    TOSAIC_TRY(const std::string path, state_file(request, state.name));
    TOSAIC_CHECK(files.write(path, npy::write({{content.dtype, Shape(content.sizes), {}}, content.data})));
  }
  return {};
}

// What cannot be written is worth saying before the run.
Status plan(Outputs& files, const RunRequest& request, const Session& session) {
  files.reads(request.program);
  for (const auto* list : {&request.inputs, &request.data})
    for (const std::string& file : *list) files.reads(file);
  if (!request.samples.empty()) files.reads(request.samples);
  if (!request.states.empty()) {
    TOSAIC_CHECK(make_folder(request.states));
    for (const TensorInfo& state : session.states()) {
      TOSAIC_TRY(const std::string file, state_file(request, state.name));
      TOSAIC_CHECK(files.plan(file));
    }
  }
  if (request.output_dir.empty()) return {};
  TOSAIC_CHECK(make_folder(request.output_dir));
  for (std::size_t i = 0; i < session.outputs().size(); ++i)
    TOSAIC_CHECK(files.plan(output_file(request.output_dir, i)));
  return {};
}

// The program's own cases, of all methods unless one is asked for.
Result<RunOutcome> run_cases(Bundle bundle, const RunRequest& request, const SessionOptions& options,
                             const Messages& messages) {
  if (!request.output_dir.empty() || request.repeat > 1 || request.profile)
    return error("run.bundled",
                 fmt::format("{} has cases of its own, which are compared and not kept or measured", request.program))
        .hint("give --input to run it as any other program, or neither --output-dir, --repeat nor --profile");
  if (options.method != SessionOptions().method) {
    std::erase_if(bundle.cases, [&](const BundledCase& one) { return one.method != options.method; });
    if (bundle.cases.empty())
      return error("method.missing", fmt::format("{} has no cases of a method '{}'", request.program, options.method))
          .at({request.program, 0, ""})
          .hint("`tosaic inspect` lists its methods; --input runs one of them");
  }
  RunOutcome outcome;
  const auto begin = Clock::now();
  TOSAIC_TRY(outcome.cases, check_cases(bundle, request.program, options, {}, messages));
  outcome.run_seconds.push_back(since(begin));
  return outcome;
}

Result<RunOutcome> try_run(const RunRequest& request, const Messages& messages) {
  RunOutcome outcome;
  if (request.repeat < 1)
    return error("option.value", fmt::format("'repeat' is {}: a program runs once at least", request.repeat));
  TOSAIC_CHECK(check_samples(request));
  const auto begin = Clock::now();
  SessionOptions options = request.session;
  if (!request.samples.empty()) options.threads = 1;
  options.data.clear();
  for (const std::string& path : request.data) {
    TOSAIC_TRY(Bytes file, map_file(path));
    options.data.emplace_back(path, std::move(file));
  }
  TOSAIC_TRY(Bytes program, map_file(request.program));
  if (request.inputs.empty() && request.samples.empty() && is_bundle(program)) {
    TOSAIC_TRY(Bundle bundle, read_bundle(program, request.program));
    if (!bundle.cases.empty()) return run_cases(std::move(bundle), request, options, messages);
  }
  TOSAIC_TRY(Session session, Session::load(std::move(program), request.program, options, messages));
  outcome.load_seconds = since(begin);
  outcome.device = session.device();
  for (const TensorInfo& t : session.inputs()) outcome.input_types.push_back(to_string(t));
  Outputs files;
  if (!request.samples.empty()) {
    TOSAIC_CHECK(plan(files, request, session));
    TOSAIC_CHECK(run_samples(session, request, messages, files, outcome));
    TOSAIC_CHECK(files.commit());
    return outcome;
  }
  TOSAIC_TRY(const std::vector<OwnedTensor> inputs, inputs_for(session, request));
  std::vector<InputTensor> lent;
  for (const OwnedTensor& t : inputs) lent.push_back(t.view());
  TOSAIC_CHECK(plan(files, request, session));
  std::vector<Output> outputs;
  RepeatedProfile profile;
  TOSAIC_CHECK(session.measure(request.profile));
  TOSAIC_CHECK(read_states(session, request));
  if (request.repeat > 1) TOSAIC_CHECK(session.warm(lent));
  for (int i = 0; i < request.repeat; ++i) {
    const auto start = Clock::now();
    TOSAIC_TRY(outputs, session.run(lent));
    outcome.run_seconds.push_back(since(start));
    if (const double seconds = session.device_seconds(); seconds > 0) outcome.device_seconds.push_back(seconds);
    TOSAIC_TRY(const std::vector<OperationTime> times, session.profile());
    profile.add(times);
  }
  outcome.profile = profile.times();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ShownOutput output = shown(outputs[i]);
    outcome.output_types.push_back(output.type);
    outcome.output_values.push_back(output.value);
    if (request.output_dir.empty()) continue;
    outcome.written.push_back(output.tensor ? output_file(request.output_dir, i) : "");
    if (output.tensor) TOSAIC_CHECK(files.write(outcome.written.back(), npy::write(*output.tensor)));
  }
  TOSAIC_CHECK(write_states(files, session, request, outcome));
  TOSAIC_CHECK(files.commit());
  return outcome;
}

}  // namespace

Result<RunOutcome> run(const RunRequest& request, const Messages& messages) {
  return guarded(request.program, [&] { return try_run(request, messages); });
}

}  // namespace tosaic

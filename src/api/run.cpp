// SPDX-License-Identifier: Apache-2.0
// Running artifacts: a .tosa on either executor, a .pte through the runtime, a .pt2 as lowered float TOSA.
#include <fmt/format.h>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "api/message.h"
#include "api/named_data.h"
#include "api/way_out.h"
#include "base/memory.h"
#include "base/output.h"
#include "cpu/cpu.h"
#include "delegates/delegates.h"
#include "formats/npy/npy.h"
#include "formats/pte/pte_file.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vgf/vgf_graph.h"
#include "interp/interp.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "ops/tosa_op.h"
#include "read/pt2.h"
#include "runtime/method.h"
#include "targets/target.h"
#include "tidy/tidy.h"
#include "vulkan/model.h"

namespace tosaic {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Something loaded that turns inputs into outputs, again and again.
struct Runnable {
  std::vector<TensorType> inputs;
  std::size_t outputs = 0;
  std::vector<Tensor> default_inputs;  // used when none are given
  std::string device;
  std::function<double()> device_seconds;  // of the last run; empty: the device has no clock
  std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>&)> run;
  std::function<FixedValues()> other_outputs;  // those of the last run that are no tensors; empty: there are none
};

// A product is named as the target that compiles for it; the other devices name none.
Result<std::string> product_of(const RunRequest& request) {
  for (const char* other : {"auto", "cpu", "vulkan", "ethos-u"})
    if (request.device == other) return std::string();
  auto target = find_target(request.device, "");
  if (target.ok() && target->delegate_id == "EthosUBackend") return target->name;
  if (!target.ok() && request.device.starts_with("ethos-u")) return std::move(target.error());  // names the nearest
  return error("run.device", fmt::format("'{}' is no device", request.device))
      .hint("auto, cpu, vulkan, ethos-u, or a product such as ethos-u55-128");
}

// Of programs that are graphs and not made for a device.
Status no_npu(const RunRequest& request) {
  TOSAIC_TRY(const std::string product, product_of(request));
  if (product.empty() && request.device != "ethos-u") return {};
  return error("run.device", fmt::format("{} has no Ethos-U delegate", request.program))
      .at({request.program, 0, ""})
      .hint("compile the model with --target ethos-u55-128 or another Ethos-U target");
}

Result<Runnable> runnable_on_vulkan(vgf::File file, const RunRequest& request) {
  TOSAIC_TRY(vulkan::Model model, vulkan::Model::load(std::move(file), {.device = request.vulkan_device}));
  auto shared = std::make_shared<vulkan::Model>(std::move(model));
  Runnable r;
  r.inputs = shared->inputs();
  r.outputs = shared->outputs().size();
  r.device = "vulkan: " + shared->device();
  r.device_seconds = [shared] { return shared->device_seconds(); };
  r.run = [shared](const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
    std::vector<const void*> in;
    std::vector<void*> out;
    std::vector<Tensor> outputs;
    for (const Tensor& t : inputs) in.push_back(t.data.data());
    for (const TensorType& type : shared->outputs()) {
      std::vector<std::byte> data(type.storage_bytes());
      out.push_back(data.data());
      outputs.push_back({type, Bytes::of(std::move(data))});  // moved, its elements stay where they are
    }
    TOSAIC_CHECK(shared->run(in, out));
    return outputs;
  };
  return r;
}

// A graph has no place of its own: it runs on the CPU, or as a VGF file on a Vulkan device.
Result<Runnable> runnable_graph(Graph graph, const RunRequest& request) {
  if (request.device == "vulkan") {
    TOSAIC_TRY(vgf::File file, vgf::from_graph(graph));
    return runnable_on_vulkan(std::move(file), request);
  }
  TOSAIC_CHECK(no_npu(request));
  Runnable r;
  r.device = request.executor;
  for (ValueId v : graph.inputs) r.inputs.push_back(graph[v].type);
  r.outputs = graph.outputs.size();
  if (request.executor == "interp") {
    auto shared = std::make_shared<Graph>(std::move(graph));
    r.run = [shared](const std::vector<Tensor>& inputs) { return interp::run(*shared, inputs); };
    return r;
  }
  TOSAIC_TRY(cpu::Program program, cpu::Program::compile(graph, {.threads = request.threads, .observed = {}}));
  auto shared = std::make_shared<cpu::Program>(std::move(program));
  r.run = [shared](const std::vector<Tensor>& inputs) { return shared->run(inputs); };
  return r;
}

Result<Runnable> load_tosa(const Bytes& file, const RunRequest& request) {
  TOSAIC_TRY(Graph graph, tosa_file::read(file, request.program));
  tosa::Spec spec = tosa::Spec::everything();
  if (request.level_8k) spec.level = tosa::level_8k;
  TOSAIC_CHECK(tosa::verify_graph(graph, spec));
  return runnable_graph(std::move(graph), request);
}

Result<Runnable> load_vgf(const Bytes& bytes, const RunRequest& request) {
  if (request.device == "vulkan") {
    auto loaded = [&]() -> Result<Runnable> {
      TOSAIC_TRY(vgf::File file, vgf::read(bytes));
      return runnable_on_vulkan(std::move(file), request);
    }();
    if (!loaded.ok()) return std::move(loaded.error()).at({request.program, 0, ""});
    return loaded;
  }
  TOSAIC_TRY(Graph graph, vgf::read_graph(bytes, request.program));
  return runnable_graph(std::move(graph), request);
}

Result<Runnable> load_pt2(const Bytes& file, const RunRequest& request, const Sink& sink) {
  TOSAIC_TRY(ExportedProgram program, read_pt2(file, request.program, sink));
  if (program.methods.size() != 1)
    return error("model.methods", "the archive holds several models, one is expected").at({request.program, 0, ""});
  TOSAIC_TRY(Graph graph, normalise(std::move(program.methods[0].graph), {.fold_quantisation = false}, sink));
  TOSAIC_TRY(Lowered lowered, lower(graph));
  tidy(lowered.graph);
  TOSAIC_TRY(Runnable r, runnable_graph(std::move(lowered.graph), request));
  r.other_outputs = [others = program.methods[0].fixed_outputs] { return others; };
  if (!program.methods[0].sample_inputs.empty()) r.default_inputs = program.methods[0].sample_inputs[0];
  return r;
}

// What runs on a simulated device is said to be that.
Status check_device(const pte::Program& program, const RunRequest& request, const Sink& sink) {
  const auto has = [&](std::string_view id) {
    for (const pte::Plan& plan : program.plans)
      for (const pte::Delegate& d : plan.delegates)
        if (d.id == id) return true;
    return false;
  };
  const bool simulated = has("EthosUBackend");
  if (simulated && sink) {
    Diagnostic note = warning("run.simulated",
                              "the Ethos-U delegate runs on a functional simulator, checked against "
                              "TOSA and not against silicon; its time says nothing of the device's");
    note.severity = Severity::note;
    sink(note);
  }
  if (request.device == "auto") return {};
  const bool vulkan = request.device == "vulkan", cpu = request.device == "cpu";
  if (cpu && simulated)
    return error("run.device", fmt::format("{} has an Ethos-U delegate, which the CPU does not run", request.program))
        .at({request.program, 0, ""})
        .hint("without --device its commands run on a simulated NPU");
  if ((vulkan && !has("VgfBackend")) || (!vulkan && !cpu && !simulated))
    return error("run.device", fmt::format("{} has no {} delegate", request.program, vulkan ? "VGF" : "Ethos-U"))
        .at({request.program, 0, ""})
        .hint(vulkan ? "compile it with --target vgf"
                     : "compile it with --target ethos-u55-128 or another Ethos-U target");
  return {};
}

Result<Runnable> load_pte(const Bytes& file, const RunRequest& request, const Sink& sink) {
  TOSAIC_TRY(pte::Program program, pte::read(file, request.program));
  runtime::Options options;
  options.threads = request.threads;
  options.interpret = request.executor == "interp";
  options.file = request.program;
  options.trace = request.trace;
  TOSAIC_TRY(const std::string product, product_of(request));
  options.delegates = all_delegates({request.device == "vulkan", request.vulkan_device, product});
  TOSAIC_CHECK(check_device(program, request, sink));
  TOSAIC_TRY(options.data, read_named_data(request.data));
  TOSAIC_TRY(runtime::Method method, runtime::Method::load(program, request.method, options));
  auto shared = std::make_shared<runtime::Method>(std::move(method));
  Runnable r;
  r.inputs = shared->input_types();
  r.outputs = shared->output_types().size();
  for (const std::string& device : shared->devices()) r.device += (r.device.empty() ? "" : ", ") + device;
  if (r.device.empty()) r.device = request.executor;
  r.device_seconds = [shared] { return shared->device_seconds(); };
  r.run = [shared](const std::vector<Tensor>& inputs) { return shared->run(inputs); };
  r.other_outputs = [shared] { return shared->other_outputs(); };
  return r;
}

Result<Runnable> load(const RunRequest& request, const Sink& sink) {
  TOSAIC_TRY(Bytes file, map_file(request.program));
  std::string_view head = file.text().substr(0, 16);
  if (tosa_file::is_tosa(file)) return load_tosa(file, request);
  if (head.size() >= 8 && head.substr(4, 2) == "ET") return load_pte(file, request, sink);
  if (vgf::is_vgf(file)) return load_vgf(file, request);
  if (head.starts_with("PK")) return load_pt2(file, request, sink);
  return error("run.unknown-format", request.program + " is neither a .pte, a .tosa, a .vgf nor a .pt2")
      .at({request.program, 0, ""});
}

Result<std::vector<Tensor>> inputs_for(const Runnable& program, const RunRequest& request) {
  std::vector<Tensor> inputs;
  if (request.inputs.empty()) {
    if (!program.default_inputs.empty()) return program.default_inputs;
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      TOSAIC_TRY(Bytes zeros, zeroed_bytes(program.inputs[i].storage_bytes(), fmt::format("input {}", i)));
      inputs.push_back({program.inputs[i], std::move(zeros)});
    }
    return inputs;
  }
  if (request.inputs.size() != program.inputs.size())
    return error("run.input-count", fmt::format("{} inputs are given, {} takes {}", request.inputs.size(),
                                                request.program, program.inputs.size()))
        .hint("give --input FILE.npy once per input, in order; `tosaic inspect` lists them");
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    TOSAIC_TRY(Bytes file, map_file(request.inputs[i]));
    TOSAIC_TRY(Tensor tensor, npy::read(file, request.inputs[i]));
    const TensorType& wanted = program.inputs[i];
    // NumPy has no 4-bit and 48-bit integers: int8 and int64 hold them.
    const bool same = tensor.type.dtype == wanted.dtype ||
                      (storage_size(tensor.type.dtype) == storage_size(wanted.dtype) && is_integer(tensor.type.dtype) &&
                       is_integer(wanted.dtype) && (wanted.dtype == DType::i4 || wanted.dtype == DType::i48)) ||
                      (tensor.type.dtype == DType::f8e4m3 && wanted.dtype == DType::f8e5m2);  // both are raw bytes
    if (!same || tensor.type.shape.dims() != wanted.shape.dims())
      return error("run.input-type", fmt::format("input {} is {}, the program takes {}", i, to_string(tensor.type),
                                                 to_string(wanted.with(std::optional<Scales>{}))))
          .at({request.inputs[i], 0, ""});
    inputs.push_back({wanted, tensor.data});
  }
  return inputs;
}

// One output, tensor or not.
struct Output {
  std::string type, value;       // as RunOutcome has them
  std::optional<Tensor> tensor;  // what a .npy file can hold of it
};

std::string json_number(double number) {
  return std::isfinite(number) ? to_string(number) : json_quote(to_string(number));
}

Output output_of(const Attr& value) {
  auto tensor = [](DType type, std::vector<std::int64_t> shape, const auto& elements) {
    return Tensor{{type, Shape(std::move(shape)), {}}, constant_bytes(type, elements)};
  };
  using Ints = std::vector<std::int64_t>;
  using Reals = std::vector<double>;
  auto size = [](const auto& list) { return Ints{static_cast<std::int64_t>(list.size())}; };
  if (const auto* i = std::get_if<std::int64_t>(&value))
    return {"int", std::to_string(*i), tensor(DType::i64, {}, Ints{*i})};
  if (const auto* d = std::get_if<double>(&value)) return {"float", json_number(*d), tensor(DType::f64, {}, Reals{*d})};
  if (const auto* b = std::get_if<bool>(&value))
    return {"bool", *b ? "true" : "false", tensor(DType::boolean, {}, Ints{*b})};
  if (const auto* s = std::get_if<std::string>(&value)) return {"str", json_quote(*s), {}};
  if (const auto* l = std::get_if<Ints>(&value))
    return {"int[]", fmt::format("[{}]", fmt::join(*l, ", ")), tensor(DType::i64, size(*l), *l)};
  if (const auto* l = std::get_if<Reals>(&value)) {
    std::vector<std::string> texts;
    for (double d : *l) texts.push_back(json_number(d));
    return {"float[]", fmt::format("[{}]", fmt::join(texts, ", ")), tensor(DType::f64, size(*l), *l)};
  }
  return {"None", "null", {}};
}

// All outputs in order: `others` at their positions, tensors between them.
std::vector<Output> all_outputs(std::vector<Tensor> tensors, const FixedValues& others) {
  std::vector<Output> outputs;
  for (Tensor& t : tensors) outputs.push_back({to_string(t.type.with(std::optional<Scales>{})), "", std::move(t)});
  for (const FixedValue& f : others)
    outputs.insert(outputs.begin() + static_cast<std::ptrdiff_t>(std::min(f.position, outputs.size())),
                   output_of(f.value));
  return outputs;
}

std::string output_file(const RunRequest& request, std::size_t i) {
  return (std::filesystem::path(request.output_dir) / fmt::format("output_{}.npy", i)).string();
}

// What cannot be written is worth saying before the run.
Status plan(Outputs& files, const RunRequest& request, std::size_t outputs) {
  files.reads(request.program);
  for (const auto* list : {&request.inputs, &request.data})
    for (const std::string& file : *list) files.reads(file);
  if (request.output_dir.empty()) return {};
  TOSAIC_CHECK(make_folder(request.output_dir));
  for (std::size_t i = 0; i < outputs; ++i) TOSAIC_CHECK(files.plan(output_file(request, i)));
  return {};
}

Result<RunOutcome> try_run(const RunRequest& request, const MessageSink& sink) {
  if (request.device == "vulkan" && request.executor == "interp")
    return error("run.device", "the reference interpreter runs on the CPU, not on a Vulkan device");
  RunOutcome outcome;
  auto begin = Clock::now();
  TOSAIC_TRY(Runnable program, load(request, to_messages(sink)));
  outcome.load_seconds = since(begin);
  TOSAIC_TRY(std::vector<Tensor> inputs, inputs_for(program, request));
  Outputs files;
  const std::size_t others = program.other_outputs ? program.other_outputs().size() : 0;
  TOSAIC_CHECK(plan(files, request, program.outputs + others));
  std::vector<Tensor> outputs;
  for (int i = request.repeat > 1 ? -1 : 0; i < request.repeat; ++i) {
    auto start = Clock::now();
    TOSAIC_TRY(outputs, program.run(inputs));
    if (i < 0) continue;
    outcome.run_seconds.push_back(since(start));
    if (const double seconds = program.device_seconds ? program.device_seconds() : 0; seconds > 0)
      outcome.device_seconds.push_back(seconds);
  }
  outcome.device = program.device;
  auto plain = [](const TensorType& t) { return to_string(t.with(std::optional<Scales>{})); };
  for (const TensorType& t : program.inputs) outcome.input_types.push_back(plain(t));
  const auto all = all_outputs(std::move(outputs), program.other_outputs ? program.other_outputs() : FixedValues());
  for (std::size_t i = 0; i < all.size(); ++i) {
    outcome.output_types.push_back(all[i].type);
    outcome.output_values.push_back(all[i].value);
    if (request.output_dir.empty()) continue;
    outcome.written.push_back(all[i].tensor ? output_file(request, i) : "");
    if (all[i].tensor) TOSAIC_CHECK(files.write(outcome.written.back(), npy::write(*all[i].tensor)));
  }
  TOSAIC_CHECK(files.commit());
  return outcome;
}

}  // namespace

RunOutcome run(const RunRequest& request, const MessageSink& sink) {
  auto result = try_run(request, sink);
  if (result.ok()) return *std::move(result);
  RunOutcome failed;
  failed.error = to_message(with_way_out(result.error(), request.program));
  return failed;
}

}  // namespace tosaic

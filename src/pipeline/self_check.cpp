// SPDX-License-Identifier: Apache-2.0
#include "pipeline/self_check.h"

#include "pipeline/arguments.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "contract/serve.h"
#include "cpu/cpu.h"
#include "delegates/delegates.h"
#include "execute/executable.h"
#include "formats/pte/pte_file.h"
#include "kernels/lowered_kernel.h"
#include "runtime/method.h"

namespace tosaic {
namespace {

// What the delegates of one program found.
struct Findings {
  std::map<std::size_t, Fault> faults;          // by delegate
  std::map<std::size_t, Diagnostic> undecided;  // the same
  std::set<std::size_t> compared;
};

// ---- where a stream goes wrong

// One operation of the stream that stored a tensor, read off the simulator's trace: "... -> ofm 8x9x16 i8 ... sum
// 12ab".
struct Stored {
  std::int64_t elements, row;
  int bits;
  std::uint64_t sum;
};

std::optional<Stored> stored_by(const std::string& line) {
  const auto map = line.find("ofm "), sum = line.rfind("sum ");
  if (map == std::string::npos || sum == std::string::npos) return std::nullopt;
  long long h = 0, w = 0, c = 0;
  int bits = 0;
  char sign = 0;
  unsigned long long hash = 0;
  if (std::sscanf(line.c_str() + map, "ofm %lldx%lldx%lld %c%d", &h, &w, &c, &sign, &bits) != 5 ||
      std::sscanf(line.c_str() + sum, "sum %llx", &hash) != 1)
    return std::nullopt;
  return Stored{h * w * c, w * c, bits, hash};
}

// The simulator's checksum of a tensor that is stored in rows of so many elements.
std::uint64_t sum_in_rows(const TensorView& tensor, std::int64_t row) {
  const std::size_t bytes = static_cast<std::size_t>(row) * storage_size(tensor.type.dtype);
  const auto* at = static_cast<const std::byte*>(tensor.data);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < tensor.type.shape.elements(); i += row, at += bytes) sum = hash_of(at, bytes, sum);
  return sum;
}

// Which values of the graph some operation of the stream stored as they should be. What is fused into a command never
// appears; neither does what is stored in parts.
std::vector<char> values_in_stream(const Graph& graph, const std::vector<const void*>& inputs,
                                   const std::vector<std::string>& trace) {
  std::vector<char> found(graph.values.size(), 0);
  std::vector<Stored> stored;
  for (const std::string& line : trace)
    if (auto s = stored_by(line)) stored.push_back(*s);
  cpu::Options options{.threads = 0, .observed = {}};
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs) options.observed.push_back(v);
  auto program = cpu::Program::compile(graph, options);
  if (!program.ok()) return found;
  const cpu::Observer compare = [&](ValueId v, const TensorView& content, ThreadPool&) {
    std::map<std::int64_t, std::uint64_t> sums;  // by length of a row
    for (const Stored& s : stored) {
      if (s.elements != content.type.shape.elements() || s.row == 0 ||
          static_cast<std::size_t>(s.bits) != 8 * storage_size(content.type.dtype))
        continue;
      if (!sums.contains(s.row)) sums[s.row] = sum_in_rows(content, s.row);
      found[v] |= sums[s.row] == s.sum;
    }
  };
  std::vector<std::vector<std::byte>> space;
  std::vector<void*> outputs;
  for (ValueId v : graph.outputs) space.emplace_back(graph[v].type.storage_bytes());
  for (auto& bytes : space) outputs.push_back(bytes.data());
  if (!program->run(inputs, outputs, &compare).ok()) return found;
  return found;
}

std::string in_words(const Graph& graph, const Node& node) {
  std::string text = fmt::format("{} (%{})", node.op, graph[node.outputs[0]].name);
  if (node.loc && !node.loc->op.empty()) text += ", from " + node.loc->op;
  if (const std::string place = place_text(node.loc); !place.empty()) text += " at " + place;
  return text;
}

// Back from a wrong output to what the stream stored rightly: the first node between is where it goes wrong.
Diagnostic blamed(Diagnostic why, const Graph& graph, ValueId output, const std::vector<char>& found) {
  const auto made_by = producers(graph);
  std::vector<char> suspect(graph.nodes.size(), 0);
  std::vector<ValueId> open{output};
  int last_right = -1;
  for (std::size_t i = 0; i < open.size(); ++i) {
    const int n = made_by[open[i]];
    if (n < 0 || suspect[static_cast<std::size_t>(n)]) continue;
    if (found[open[i]] && open[i] != output) {
      last_right = std::max(last_right, n);
      continue;
    }
    suspect[static_cast<std::size_t>(n)] = 1;
    for (ValueId v : graph.nodes[static_cast<std::size_t>(n)].inputs)
      if (v != no_value && !graph[v].is_constant()) open.push_back(v);
  }
  const auto first = static_cast<std::size_t>(std::find(suspect.begin(), suspect.end(), 1) - suspect.begin());
  if (first == suspect.size()) return why;
  if (last_right >= 0)
    why.notes.push_back("the stream is right up to " +
                        in_words(graph, graph.nodes[static_cast<std::size_t>(last_right)]));
  const Node& node = graph.nodes[first];
  why.notes.push_back("the first that it does not give is " + in_words(graph, node));
  return located(std::move(why), node.loc);
}

// ---- a delegate compared with its graph

// What a payload that opens is checked against.
struct Check {
  const Compiled& compiled;
  runtime::DelegateChoice device;
  runtime::NamedData data;
  Findings& findings;
};

class Checked : public contract::Payload {
 public:
  explicit Checked(const Check& check) : check_(check) {}

  Status open(const contract::Opening& opening) {
    const auto& emitted = check_.compiled.emitted;
    while (region_ < emitted.size() && hash_of(emitted[region_].payload) != hash_of(opening.payload)) ++region_;
    if (region_ == emitted.size()) return internal_error("the program holds a payload that no region gave");
    payload_ = opening.payload;
    for (const contract::Spec& spec : opening.specs)
      specs_.push_back({std::string(spec.key), Bytes::copy(spec.value.data(), spec.value.size())});
    options_ = {opening.threads, false, false, opening.name, &check_.data, {}};
    int status = 0;
    if (auto opened = open_device(options_, &status); opened.ok())
      device_.emplace(*std::move(opened));
    else
      refused(std::move(opened.error()), status, {});
    TOSAIC_TRY(reference_, execute::Executable::make(graph(), {.threads = opening.threads}));
    return {};
  }

  contract::Description describe() const override {
    contract::Description description;
    for (ValueId v : graph().inputs) description.inputs.push_back(contract::TensorInfo::of(graph()[v].type, ""));
    for (ValueId v : graph().outputs) description.outputs.push_back(contract::TensorInfo::of(graph()[v].type, ""));
    return description;
  }

  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int&) override {
    std::vector<std::vector<std::byte>> space;
    std::vector<void*> expected;
    for (const TensorType& type : reference_->output_types()) space.emplace_back(type.storage_bytes());
    for (auto& bytes : space) expected.push_back(bytes.data());
    TOSAIC_CHECK(reference_->run(inputs, expected));
    int status = 0;
    if (device_) {
      if (Status ran = device_->execute(call(inputs, outputs), &status); !ran.ok())
        refused(std::move(ran.error()), status, inputs);
    }
    for (std::size_t i = 0; device_ && i < outputs.size(); ++i)
      if (std::memcmp(outputs[i], expected[i], space[i].size()) != 0) differs(i, inputs, outputs, expected[i]);
    if (device_) check_.findings.compared.insert(region_);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!space[i].empty()) std::memcpy(outputs[i], expected[i], space[i].size());
    return {};
  }

 private:
  const Graph& graph() const { return check_.compiled.lowered[region_]; }

  Result<runtime::OpenDelegate> open_device(const runtime::DelegateOptions& options, int* status) const {
    TOSAIC_TRY(auto device, runtime::OpenDelegate::open(check_.device, payload_, specs_, options, status));
    *status = TOSAIC_DELEGATE_ARGUMENT;
    std::vector<TensorType> types;
    for (const auto* values : {&graph().inputs, &graph().outputs})
      for (ValueId v : *values) types.push_back(graph()[v].type);
    TOSAIC_CHECK(device.check(types));
    return device;
  }

  std::vector<tosaic_delegate_tensor> call(std::span<const void* const> inputs, std::span<void* const> outputs) const {
    std::vector<tosaic_delegate_tensor> tensors;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      tensors.push_back(contract::tensor_of(graph()[graph().inputs[i]].type, const_cast<void*>(inputs[i])));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      tensors.push_back(contract::tensor_of(graph()[graph().outputs[i]].type, outputs[i]));
    return tensors;
  }

  // The graph's results go on in place of what the payload should have given. What the simulator cannot decide, or
  // has no memory for, is not the payload's fault.
  void refused(Diagnostic why, int status, std::span<const void* const> inputs) {
    device_.reset();
    if (status == TOSAIC_DELEGATE_UNSUPPORTED || why.code == "ethosu.memory")
      check_.findings.undecided.emplace(region_, std::move(why));
    else
      found(std::move(why), inputs);
  }

  void found(Diagnostic why, std::span<const void* const> inputs) {
    Fault fault{region_, std::move(why), {}};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Value& value = graph()[graph().inputs[i]];
      fault.inputs.emplace(value.name, Tensor{value.type, Bytes::copy(inputs[i], value.type.storage_bytes())});
    }
    check_.findings.compared.erase(region_);  // in an earlier turn of a loop
    check_.findings.faults.emplace(region_, std::move(fault));
  }

  void differs(std::size_t output, std::span<const void* const> inputs, std::span<void* const> outputs,
               const void* expected) {
    const ValueId v = graph().outputs[output];
    const TensorType& type = graph()[v].type;
    const std::size_t size = storage_size(type.dtype);
    const auto *a = static_cast<const std::byte*>(outputs[output]), *b = static_cast<const std::byte*>(expected);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < type.shape.elements(); ++i, a += size, b += size)
      wrong += std::memcmp(a, b, size) != 0;
    Diagnostic why =
        error("self-check.differs",
              fmt::format("output {} (%{}) of delegate {} differs from its TOSA graph in {} of {} elements, in the "
                          "simulator of {}",
                          output, graph()[v].name, region_, wrong, type.shape.elements(), check_.compiled.target.name));
    std::vector<std::string> trace;
    runtime::DelegateOptions options = options_;
    options.trace = [&](const std::string& line) { trace.push_back(line); };
    int status = 0;
    auto again = open_device(options, &status);
    if (again.ok() && again->execute(call(inputs, outputs)).ok())
      why = blamed(std::move(why), graph(), v, values_in_stream(graph(), {inputs.begin(), inputs.end()}, trace));
    device_.reset();
    found(std::move(why), inputs);
  }

  const Check& check_;
  std::size_t region_ = 0;
  Bytes payload_;
  std::vector<pte::CompileSpec> specs_;
  runtime::DelegateOptions options_;
  std::optional<runtime::OpenDelegate> device_;  // none: it cannot decide
  std::optional<execute::Executable> reference_;
};

Result<std::unique_ptr<contract::Payload>> open_checked(const contract::Opening& opening, const void* check, int&) {
  auto payload = std::make_unique<Checked>(*static_cast<const Check*>(check));
  TOSAIC_CHECK(payload->open(opening));
  return std::unique_ptr<contract::Payload>(std::move(payload));
}

runtime::NamedData external_data(const Compiled& compiled) {
  runtime::NamedData data;
  for (const Emitted& emitted : compiled.emitted)
    for (const ExternalData& part : emitted.external) data.insert_or_assign(part.key, part.data);
  return data;
}

// The whole program on the sample: every delegate sees what the others and the kernels between them give.
Status check_program(const Compiled& compiled, const std::vector<Tensor>& sample, const runtime::Options& options) {
  TOSAIC_TRY(const pte::Program program, pte::read(compiled.program.joined(), ""));
  TOSAIC_TRY(runtime::Method method, runtime::Method::load(program, program.plans.at(0).name, options));
  TOSAIC_TRY(const auto results, method.run(arguments_for(compiled.quantised, method.input_types(), sample)));
  (void)results;
  return {};
}

// Delegates that the program did not reach, on what is given and seeded quantised values.
Status check_alone(const Compiled& compiled, std::size_t region, const runtime::Options& options,
                   const GivenInputs& inputs) {
  const Graph& graph = compiled.lowered[region];
  std::mt19937 random(1);
  std::vector<TensorType> types;
  std::vector<std::vector<std::byte>> memory;
  for (const auto* values : {&graph.inputs, &graph.outputs})
    for (ValueId v : *values) {
      types.push_back(graph[v].type);
      const auto given = values == &graph.inputs ? inputs.find(graph[v].name) : inputs.end();
      const bool fits = given != inputs.end() && given->second.data.size() == graph[v].type.storage_bytes();
      const Tensor tensor = fits ? given->second : seeded(graph[v].type, random);
      memory.emplace_back(tensor.data.data(), tensor.data.data() + tensor.data.size());
    }
  std::vector<tosaic_delegate_tensor> arguments;
  for (std::size_t i = 0; i < types.size(); ++i) arguments.push_back(contract::tensor_of(types[i], memory[i].data()));
  runtime::DelegateOptions how;
  how.threads = options.threads;
  TOSAIC_TRY(auto delegate, runtime::OpenDelegate::open(options.delegates.at(compiled.target.delegate_id),
                                                        compiled.emitted[region].payload.joined(), {}, how));
  return delegate.execute(arguments);
}

// `sample`: none where the delegates alone are checked.
Findings check(const Compiled& compiled, const std::vector<Tensor>* sample, const GivenInputs& inputs, int threads) {
  Findings findings;
  runtime::Options options;
  options.threads = threads;
  options.data = external_data(compiled);
  options.delegates = all_delegates();
  options.kernels = kernels::lowered_kernels();
  options.most_turns = 16;  // of a loop, each of which is simulated
  runtime::DelegateChoice& choice = options.delegates.at(compiled.target.delegate_id);
  const Check check{compiled, choice, options.data, findings};
  const contract::Server server{open_checked, &check};
  const tosaic_delegate_api wrapper = contract::table(choice.api->id, server);
  choice.api = &wrapper;
  // What fails outside the delegates is no finding of this check; then they are fed one by one.
  if (sample) (void)check_program(compiled, *sample, options);
  for (std::size_t region = 0; region < compiled.emitted.size(); ++region) {
    if (findings.compared.contains(region) || findings.undecided.contains(region) || findings.faults.contains(region))
      continue;
    Status alone = check_alone(compiled, region, options, inputs);
    if (!alone.ok() && !findings.faults.contains(region)) findings.undecided.emplace(region, std::move(alone.error()));
  }
  return findings;
}

}  // namespace

SelfChecked self_check(const Compiled& compiled, const std::vector<Tensor>& sample, int threads) {
  Findings findings = check(compiled, &sample, {}, threads);
  SelfChecked checked{findings.compared.size()};
  for (auto& [region, why] : findings.undecided) checked.undecided.push_back(std::move(why));
  for (auto& [region, fault] : findings.faults) checked.faults.push_back(std::move(fault));
  return checked;
}

std::optional<Fault> self_check_alone(const Target& target, const Graph& lowered, const Emitted& emitted,
                                      const GivenInputs& inputs, int threads) {
  Compiled compiled;
  compiled.target = target;
  compiled.lowered.push_back(lowered);
  compiled.emitted.push_back(emitted);
  Findings findings = check(compiled, nullptr, inputs, threads);
  if (findings.faults.empty()) return std::nullopt;
  return std::move(findings.faults.begin()->second);
}

}  // namespace tosaic

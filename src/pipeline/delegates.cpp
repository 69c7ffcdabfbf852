// SPDX-License-Identifier: Apache-2.0
#include "pipeline/steps.h"

#include <fmt/format.h>
#include <unordered_set>

#include "ir/program_operators.h"
#include "ir/source_notes.h"
#include "kernels/out_variant.h"
#include "ops/op.h"
#include "pack/pack.h"
#include "pipeline/self_check.h"

namespace tosaic {
namespace {

// Operators of no library that tosaic knows are called as kernels of the runtime, which may or may not have them.
void warn_of_kernels(const Partition& partition, const Sink& sink) {
  std::unordered_set<Operator> said;
  for (const Node& node : partition.outer.nodes) {
    const bool known = node.op == op::delegate || node.op.is_aten() || find_aten(node.op).op;
    const auto kernel = known ? std::nullopt : kernels::out_variant_by_name(node.op);
    if (!sink || !kernel || !said.insert(node.op).second) continue;
    const std::string name = fmt::format("{}.{}", kernel->name, kernel->overload);
    sink(located(
        warning("pack.unknown-kernel",
                fmt::format("operator {} is not known to tosaic: the program calls the kernel {}", node.op, name))
            .note("arguments that the exported program leaves at their defaults are not passed")
            .hint("run the program with ExecuTorch, linked with that kernel; `tosaic run` does not have it"),
        node.loc));
  }
}

// A program that is written although nobody could say whether it is right.
Diagnostic not_checked(const Diagnostic& why) {
  return warning("self-check.undecided",
                 "the simulator cannot decide what a delegate computes, so it is written unchecked")
      .note(fmt::format("{}: {}", why.code, why.message))
      .hint("compare it on the device, or with another Ethos-U target");
}

}  // namespace

bool of_the_graph(const Diagnostic& why) {
  return why.code == "vela.failed" || why.code == "vela.crashed" || why.code == "vela.interface";
}

Result<Compiled> emit_delegates(Tosa program, const Context& c) {
  Compiled made{std::move(program)};
  for (const Graph& region : made.lowered) {
    if (!c.request.pack) break;
    const Destination to{made.lowered.size() > 1 ? fmt::format("_{}", made.emitted.size()) : "",
                         c.request.several_methods};
    // Another compiler's payload says nothing of the source, and its estimates are told with source locations.
    Graph stripped;
    const bool strip = c.options.strip && !c.target.self_check;
    if (strip) stripped = without_source_notes(region);
    auto done = c.target.emit(strip ? stripped : region, c.target, c.options.emit, to);
    if (!done.ok() && c.target.self_check && of_the_graph(done.error())) {
      made.faults.push_back({made.emitted.size(), std::move(done.error()), {}});
      made.emitted.emplace_back();
      continue;
    }
    TOSAIC_TRY(Emitted one, std::move(done));
    for (const Diagnostic& note : one.notes)
      if (made.emitted.empty()) c.say(note);
    if (!c.request.written_at_once) {
      one.payload = one.payload.joined();
      for (ExternalData& part : one.external) part.data = Bytes::copy(part.data.data(), part.data.size());
    }
    made.emitted.push_back(std::move(one));
  }
  TOSAIC_CHECK(c.end("emit"));
  return made;
}

Result<Compiled> pack_delegates(Compiled program, const Context& c) {
  warn_of_kernels(program.partition, c.callbacks.sink);
  std::vector<DelegatePayload> payloads;
  std::vector<pte::NamedData> inside;
  for (const Emitted& e : program.emitted) {
    DelegatePayload& payload = payloads.emplace_back(DelegatePayload{e.payload});
    for (const auto& [key, value] : e.specs) payload.specs.push_back({key, Bytes::copy(value.data(), value.size())});
    for (const ExternalData& part : e.external)
      if (part.file.empty()) inside.push_back({part.key, part.data});
  }
  const Method& method = *c.method;
  TOSAIC_TRY(program.packed, pack_program(program.partition.outer, payloads, c.target.delegate_id,
                                          {method.input_spec, method.output_spec, method.fixed_inputs,
                                           method.fixed_outputs, method.scalar_outputs},
                                          c.callbacks.sink, {c.request.several_methods, c.target.in_place}));
  program.packed.named_data = std::move(inside);
  program.packed.plans.at(0).name = method.name;
  if (!c.request.several_methods || c.target.self_check) {  // else who puts them together writes the program
    TOSAIC_TRY(program.program, pte::write(program.packed));
    if (!c.request.written_at_once) program.program = program.program.joined();
  }
  TOSAIC_CHECK(c.end("pack"));
  return program;
}

Result<Compiled> check_delegates(Compiled program, const Context& c) {
  if (!c.options.self_check || !c.target.self_check || program.emitted.empty()) return program;
  SelfChecked found = self_check(program, program.sample, c.options.quantise.threads);
  TOSAIC_CHECK(c.end("self-check"));
  program.faults = std::move(found.faults);
  if (!program.faults.empty()) return program;
  for (const Diagnostic& why : found.undecided) c.say(not_checked(why));
  if (found.delegates != program.emitted.size()) return program;
  for (const auto& [stage, seconds] : c.trace->stage_seconds)
    if (stage == "self-check") program.self_check_seconds = seconds;
  return program;
}

}  // namespace tosaic

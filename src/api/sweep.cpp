// SPDX-License-Identifier: Apache-2.0
// The points of a sweep, and what becomes of each.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <mutex>
#include <ranges>

#include "api/artifact.h"
#include "api/guard.h"
#include "api/program.h"
#include "base/system/clock.h"
#include "base/system/thread_pool.h"
#include "tosaic/sweep.hpp"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

bool has_option(const TargetInfo& target, std::string_view name) {
  return std::ranges::any_of(target.options, [&](const OptionInfo& option) { return option.name == name; });
}
bool takes_floats(const TargetInfo& target) { return target.tosa_spec.find("FP") != std::string::npos; }

// A precision as options, and the targets that have it.
struct Precision {
  const char* name;
  std::vector<std::pair<const char*, const char*>> options;
  bool (*is_of)(const TargetInfo& target);
  bool usual_of_floats, usual_of_integers;
};
const std::vector<Precision>& precisions() {
  const auto any = [](const TargetInfo&) { return true; };
  static const std::vector<Precision> all{{"int8", {{"quantize", "int8"}}, any, true, true},
                                          {"int16x8", {{"quantize", "int16x8"}}, any, false, true},
                                          {"int4", {{"quantize", "int8"}, {"weights", "int4"}}, any, false, false},
                                          {"float", {}, takes_floats, true, false},
                                          {"fp16",
                                           {{"vulkan-precision", "fp16"}},
                                           [](const TargetInfo& t) { return has_option(t, "vulkan-precision"); },
                                           false,
                                           false}};
  return all;
}

Result<std::vector<const TargetInfo*>> chosen_targets(const std::vector<std::string>& asked) {
  std::vector<const TargetInfo*> chosen;
  const auto take = [&](const TargetInfo& target) {
    if (std::ranges::find(chosen, &target) == chosen.end()) chosen.push_back(&target);
  };
  if (asked.empty()) {
    for (const TargetInfo& target : targets())
      if (target.family == "Ethos-U" || target.name == "cortex-m55" || target.name == "vulkan") take(target);
    return chosen;
  }
  for (const std::string& name : asked) {
    const auto exact = std::ranges::find(targets(), name, &TargetInfo::name);
    const std::size_t before = chosen.size();
    for (const TargetInfo& target : targets())
      if (exact != targets().end() ? &target == &*exact : !name.empty() && target.name.starts_with(name)) take(target);
    if (chosen.size() == before && exact == targets().end()) {
      std::vector<std::string> names;
      for (const TargetInfo& target : targets()) names.push_back(target.name);
      return error("target.unknown", fmt::format("there is no target '{}', and none begins so", name))
          .hint(fmt::format("the targets are {}", fmt::join(names, ", ")));
    }
  }
  return chosen;
}

// Vela's own, of which each product takes some.
const char* const memory_modes[] = {"Sram_Only", "Shared_Sram", "Dedicated_Sram_256KB", "Dedicated_Sram_384KB",
                                    "Dedicated_Sram_512KB"};

std::vector<std::string> modes_for(const TargetInfo& target, const SweepQuestion& asked) {
  if (!has_option(target, "memory-mode")) return {""};
  std::vector<std::string> modes;
  const auto take = [&](const std::string& mode) {
    if (std::ranges::find(modes, mode) == modes.end()) modes.push_back(mode);
  };
  for (const std::string& mode : asked.memory_modes) {
    if (mode == "own")
      take("");
    else if (mode != "all")
      take(mode);
    else
      for (const char* name : memory_modes) take(name);
  }
  if (modes.empty()) modes.emplace_back();
  return modes;
}

Options options_for(const TargetInfo& target, const Precision& precision, const std::string& mode,
                    const Options& given) {
  Options options;
  for (const auto& [name, values] : given.all()) {
    const bool general =
        std::ranges::any_of(compile_options(), [&, &key = name](const OptionInfo& o) { return o.name == key; });
    if (general || has_option(target, name)) options.set(name, values);
  }
  for (const auto& [name, value] : precision.options) options.set(name, value);
  if (!mode.empty()) options.set("memory-mode", mode);
  return options;
}

// "512" of ethos-u65-512.
std::size_t macs_of(const TargetInfo& target) {
  const std::size_t dash = target.name.rfind('-');
  std::size_t macs = 0;
  if (target.family == "Ethos-U")
    std::from_chars(target.name.data() + dash + 1, target.name.data() + target.name.size(), macs);
  return macs;
}

double sum(const std::vector<NpuEstimate>& estimates, double NpuEstimate::*member) {
  double total = 0;
  for (const NpuEstimate& e : estimates) total += e.*member;
  return total;
}
double most(const std::vector<NpuEstimate>& estimates, double NpuEstimate::*member) {
  double found = 0;
  for (const NpuEstimate& e : estimates) found = std::max(found, e.*member);
  return found;
}

// Several delegates run one after the other, in the same memory.
void add_estimates(const std::vector<NpuEstimate>& estimates, SweepRow& row) {
  if (estimates.empty()) return;
  if (row.memory_mode.empty()) row.memory_mode = estimates[0].memory_mode;
  row.cycles = sum(estimates, &NpuEstimate::cycles);
  double seconds = 0;
  for (const NpuEstimate& e : estimates)
    if (e.inferences_per_second > 0) seconds += 1 / e.inferences_per_second;
  if (seconds > 0) row.inferences_per_second = 1 / seconds;
  row.sram_bytes = most(estimates, &NpuEstimate::sram_bytes);
  row.flash_bytes = sum(estimates, &NpuEstimate::flash_bytes) + sum(estimates, &NpuEstimate::dram_bytes);
}

// Of C: what memory.json says.
void add_memory(const Artifact& artifact, SweepRow& row) {
  const auto files = artifact.firmware();
  if (!files.ok()) {
    row.problem = one_line(files.error());
    return;
  }
  const auto found = std::ranges::find_if(*files, [](const auto& file) { return file.first.ends_with("memory.json"); });
  if (found == files->end()) return;
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(found->second).get(root)) return;
  const auto added = [&](const char* part) {
    double total = 0;
    simdjson::dom::object members;
    if (root[part].get(members)) return total;
    for (const auto& [name, bytes] : members)
      if (double value = 0; !bytes.get(value)) total += value;
    return total;
  };
  row.flash_bytes = added("flash");
  row.sram_bytes = added("ram");
}

SessionOptions one_thread(const Program& program) {
  SessionOptions options;
  options.threads = 1;
  options.method = program.methods().at(0).name;
  return options;
}

// The samples to run: those of the data set, or the first of the calibration.
std::vector<LabelledSample> samples_in(const SweepData& data) {
  if (!data.evaluation.empty()) return data.evaluation;
  std::vector<LabelledSample> samples;
  for (const auto& inputs : data.calibration | std::views::take(8))
    samples.push_back({inputs, {}, fmt::format("sample {}", samples.size())});
  return samples;
}
LabelledData one_by_one(const std::vector<LabelledSample>& samples) {
  return {[&samples, at = std::size_t{0}](LabelledSample& sample) mutable -> Result<bool> {
            if (at == samples.size()) return false;
            sample = samples[at++];
            return true;
          },
          samples.size()};
}

// Real numbers, so that nothing else has to be known of them.
bool says_real_numbers(const Session& session) {
  return std::ranges::all_of(session.outputs(), [](const Argument& a) { return !a.tensor || a.tensor->scale.empty(); });
}
std::size_t bytes_of(const std::vector<Output>& outputs) {
  std::size_t bytes = 0;
  for (const Output& o : outputs) bytes += o.tensor ? o.tensor->data.size() : 0;
  return bytes;
}

// As run_floats, which says what its failures mean.
Status keep_floats(const Program& program, SweepData& data, const SweepHow& how) {
  std::vector<LabelledSample> samples = samples_in(data), unlabelled = samples;
  for (LabelledSample& sample : unlabelled) sample.labels.clear();  // whether they fit is the points' question
  TOSAIC_TRY(const Session session, Session::load(program, one_thread(program)));
  if (!says_real_numbers(session)) return {};
  constexpr std::size_t most_bytes = std::size_t{1} << 29;
  std::size_t bytes = 0;
  EvaluateOptions options;
  options.workers = how.jobs;
  options.worst = 0;
  options.cancelled = how.cancelled;
  options.each = [&](std::size_t sample, const std::vector<Output>& outputs, const std::vector<Output>&) {
    if (bytes += bytes_of(outputs); bytes <= most_bytes) samples[sample].floats = outputs;
  };
  TOSAIC_CHECK(evaluate(session, nullptr, one_by_one(unlabelled), options));
  data.evaluation = std::move(samples);
  return {};
}

Result<Evaluated> run_against_floats(const Program& program, const Artifact& artifact, const SweepData& data,
                                     const std::function<bool()>& cancelled) {
  TOSAIC_TRY(const Session session, Session::load(artifact, one_thread(program)));
  const std::vector<LabelledSample> samples = samples_in(data);
  std::optional<Session> floats;  // for those that nobody ran before
  if (std::ranges::any_of(samples, [](const LabelledSample& s) { return s.floats.empty(); })) {
    TOSAIC_TRY(floats, Session::load(program, one_thread(program)));
  }
  EvaluateOptions how;
  how.workers = 1;
  how.worst = 0;
  how.cancelled = cancelled;
  return evaluate(session, floats ? &*floats : nullptr, one_by_one(samples), how);
}

void add_accuracy(const Program& program, const Artifact& artifact, const SweepData& data,
                  const std::function<bool()>& cancelled, SweepRow& row) {
  const auto found = run_against_floats(program, artifact, data, cancelled);
  if (!found.ok()) {
    row.problem = "not run: " + one_line(found.error());
    return;
  }
  for (const EvaluatedOutput& output : found->outputs)
    if (output.db) row.db = std::min(row.db.value_or(*output.db), *output.db);
  if (found->right) row.right = found->right->top1();
  if (found->right_in_floats) row.right_in_floats = found->right_in_floats->top1();
}

void measure(const Program& program, const SweepPoint& point, const SweepData& data,
             const std::function<bool()>& cancelled, SweepRow& row) {
  Callbacks callbacks;
  callbacks.message = [](const Diagnostic&) {};
  callbacks.cancelled = cancelled;
  const auto target = std::ranges::find(targets(), point.target, &TargetInfo::name);
  if (target != targets().end()) row.macs_per_cycle = macs_of(*target);
  const auto artifact = compile(program, point.target, point.options, callbacks,
                                data.calibration.empty() ? SampleSource() : samples_of(data.calibration));
  if (!artifact.ok()) {
    row.problem = one_line(artifact.error());
    return;
  }
  const Summary& summary = artifact->summary();
  row.nodes = summary.exported.size();
  row.delegated = static_cast<std::size_t>(std::ranges::count_if(summary.exported, &NodeVerdict::taken));
  row.delegates = summary.delegates;
  row.program_bytes = summary.program_bytes;
  add_estimates(summary.estimates, row);
  if (target != targets().end() && target->family == "Cortex-M") add_memory(*artifact, row);
  add_accuracy(program, *artifact, data, cancelled, row);
}

}  // namespace

Result<std::vector<SweepPoint>> sweep_points(const SweepQuestion& asked) {
  return guarded("", [&]() -> Result<std::vector<SweepPoint>> {
    TOSAIC_TRY(const auto chosen, chosen_targets(asked.targets));
    for (const std::string& name : asked.precisions)
      if (std::ranges::none_of(precisions(), [&](const Precision& p) { return name == p.name; })) {
        std::vector<std::string> names;
        for (const Precision& p : precisions()) names.emplace_back(p.name);
        return error("sweep.precision", fmt::format("there is no precision '{}'", name))
            .hint(fmt::format("one of {}", fmt::join(names, ", ")));
      }
    std::vector<SweepPoint> points;
    for (const TargetInfo* target : chosen)
      for (const Precision& precision : precisions()) {
        const bool usual = takes_floats(*target) ? precision.usual_of_floats : precision.usual_of_integers;
        const bool wanted = asked.precisions.empty() ? usual : std::ranges::count(asked.precisions, precision.name) > 0;
        if (!wanted || !precision.is_of(*target)) continue;
        for (const std::string& mode : modes_for(*target, asked))
          points.push_back({target->name, precision.name, mode, options_for(*target, precision, mode, asked.options)});
      }
    if (points.empty())
      return error("sweep.nothing", "no target that is asked for has a precision that is asked for")
          .hint("leave --precision or --targets out");
    return points;
  });
}

std::vector<TensorInfo> tensor_inputs(const Program& program) {
  std::vector<TensorInfo> inputs;
  for (const Argument& input : program.methods().at(0).inputs)
    if (input.tensor) inputs.push_back(*input.tensor);
  return inputs;
}

Result<SweepData> sweep_data(const Program& program, const SampleSource& calibration, const LabelledData& evaluation,
                             std::size_t limit) {
  return guarded(program.name(), [&]() -> Result<SweepData> {
    SweepData data;
    const MethodInfo& method = program.methods().at(0);
    for (std::size_t set = 0; !calibration && set < method.sample_sets; ++set) {
      TOSAIC_TRY(auto sample, program.sample_inputs(set, method.name));
      data.calibration.push_back(std::move(sample));
    }
    if (calibration) {
      TOSAIC_TRY(const Samples samples, samples_from(calibration)(program.impl().exported.methods.at(0).graph));
      for (const auto& sample : samples) {
        auto& to = data.calibration.emplace_back();
        for (const Tensor& x : sample) to.push_back(owned(x));
      }
    }
    for (LabelledSample sample; evaluation.next && (limit == 0 || data.evaluation.size() < limit);) {
      TOSAIC_TRY(const bool more, evaluation.next(sample));
      if (!more) break;
      data.evaluation.push_back(sample);
    }
    return data;
  });
}

void run_floats(const Program& program, SweepData& data, const SweepHow& how) {
  (void)guarded(program.name(), [&] { return keep_floats(program, data, how); });
}

SweepRow measure_point(const Program& program, const SweepPoint& point, const SweepData& data,
                       const std::function<bool()>& cancelled) {
  SweepRow row;
  const auto begin = SteadyClock::now();
  const Status done = guarded(program.name(), [&]() -> Status {
    row.target = point.target;
    row.precision = point.precision;
    row.memory_mode = point.memory_mode;
    measure(program, point, data, cancelled, row);
    return {};
  });
  if (!done.ok()) row.problem = one_line(done.error());
  row.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  return row;
}

Result<std::vector<SweepRow>> sweep(const Program& program, const std::vector<SweepPoint>& points,
                                    const SweepData& data, const SweepHow& how) {
  return guarded(program.name(), [&]() -> Result<std::vector<SweepRow>> {
    std::vector<SweepRow> rows(points.size());
    const std::size_t jobs = how.jobs > 0 ? static_cast<std::size_t>(how.jobs) : hardware_threads();
    std::mutex telling;
    std::size_t done = 0;
    std::atomic<bool> ended{false};
    const auto cancelled = [&] {
      const std::lock_guard held(telling);
      if (!ended && how.cancelled && how.cancelled()) ended = true;
      return ended.load();
    };
    SweepData with_floats = data;
    run_floats(program, with_floats, {how.jobs, {}, cancelled});
    ThreadPool pool(static_cast<int>(std::clamp<std::size_t>(points.size(), 1, jobs)));
    pool.run(static_cast<std::int64_t>(points.size()), [&](std::int64_t i, int) {
      if (cancelled()) return;
      rows[static_cast<std::size_t>(i)] =
          measure_point(program, points[static_cast<std::size_t>(i)], with_floats, cancelled);
      const std::lock_guard held(telling);
      if (how.progress) how.progress(++done, points.size());
    });
    if (ended) return error("run.cancelled", "the sweep was interrupted");
    mark_best(rows);
    return rows;
  });
}

}  // namespace tosaic

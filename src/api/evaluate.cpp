// SPDX-License-Identifier: Apache-2.0
// A data set run by several sessions at once.
#include <fmt/format.h>
#include <algorithm>
#include <mutex>

#include "api/guard.h"
#include "base/system/clock.h"
#include "base/system/thread_pool.h"
#include "evaluate/data_set.h"
#include "evaluate/fit_input.h"
#include "evaluate/sum.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

using Clock = SteadyClock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

struct Ran {
  std::vector<Output> outputs;
  double seconds = 0;
};
Result<Ran> run_on(Session& session, const LabelledSample& sample) {
  if (sample.inputs.size() != session.inputs().size())
    return error("evaluate.data", fmt::format("{} has {} inputs, the program takes {}", sample.name,
                                              sample.inputs.size(), session.inputs().size()))
        .hint("`tosaic inspect` shows what the program takes");
  std::vector<OwnedTensor> inputs;
  std::vector<InputTensor> lent;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    TOSAIC_TRY(OwnedTensor input, fit_input(sample.inputs[i], session.inputs()[i]));
    inputs.push_back(std::move(input));
    lent.push_back(inputs.back().view());
  }
  if (!session.states().empty()) TOSAIC_CHECK(session.reset());
  Ran ran;
  const auto begin = Clock::now();
  TOSAIC_TRY(ran.outputs, session.run(lent));
  ran.seconds = since(begin);
  return ran;
}

struct Pair {
  Session session;
  std::optional<Session> floats;
};

class Evaluating {
 public:
  Evaluating(std::vector<Pair>& pairs, const LabelledData& samples, const EvaluateOptions& options)
      : pairs_(pairs), samples_(samples), options_(options) {}

  // Takes sample after sample until there are none. What goes wrong anywhere ends it everywhere.
  void work(std::size_t worker) {
    LabelledSample sample;
    std::size_t number = 0;
    while (take(sample, number))
      if (Status done = evaluate_one(pairs_[worker], sample, number); !done.ok()) end(std::move(done.error()));
  }
  std::optional<Diagnostic>& problem() { return problem_; }
  const ScoreSum& sum() const { return sum_; }
  bool with_floats() const { return !without_floats_; }  // of every sample
  void write_times(Evaluated& to) const {
    to.run_seconds = median(seconds_);
    to.floats_run_seconds = median(floats_seconds_);
  }

 private:
  bool ended() {
    const std::lock_guard held(counting_);
    return problem_.has_value();
  }
  void end(Diagnostic why) {
    const std::lock_guard held(counting_);
    if (!problem_) problem_ = std::move(why);
  }

  bool take(LabelledSample& sample, std::size_t& number) {
    const std::lock_guard held(taking_);
    if (ended() || (options_.limit && taken_ == options_.limit)) return false;
    if (options_.cancelled && options_.cancelled()) {
      end(error("run.cancelled", "the evaluation was interrupted"));
      return false;
    }
    auto more = samples_.next(sample);
    if (!more.ok()) end(std::move(more.error()));
    if (!more.ok() || !*more) return false;
    number = taken_++;
    return true;
  }

  Status evaluate_one(Pair& pair, const LabelledSample& sample, std::size_t number) {
    TOSAIC_TRY(const Ran got, run_on(pair.session, sample));
    Ran wanted;
    std::optional<Results> floats;
    const std::vector<Argument> plain(sample.floats.size());  // described by nothing: real numbers
    if (!sample.floats.empty()) {
      wanted.outputs = sample.floats;
      floats = Results{wanted.outputs, plain};
    } else if (pair.floats) {
      TOSAIC_TRY(wanted, run_on(*pair.floats, sample));
      floats = Results{wanted.outputs, pair.floats->outputs()};
    }
    TOSAIC_TRY(SampleScore score, score_of({got.outputs, pair.session.outputs()}, floats, sample));
    const std::lock_guard held(counting_);
    sum_.add(number, sample.name, std::move(score));
    seconds_.push_back(got.seconds);
    if (pair.floats && sample.floats.empty()) floats_seconds_.push_back(wanted.seconds);
    without_floats_ |= !floats;
    if (options_.each) options_.each(number, got.outputs, wanted.outputs);
    const std::size_t expected =
        options_.limit && samples_.expected > options_.limit ? options_.limit : samples_.expected;
    if (options_.progress) options_.progress(sum_.samples(), std::max(expected, sum_.samples()));
    return {};
  }

  std::vector<Pair>& pairs_;
  const LabelledData& samples_;
  const EvaluateOptions& options_;
  std::mutex taking_, counting_;
  std::size_t taken_ = 0;
  std::optional<Diagnostic> problem_;
  ScoreSum sum_;
  bool without_floats_ = false;
  std::vector<double> seconds_, floats_seconds_;
};

// As many as run at once: no more than there are samples, where that is known.
std::size_t workers_for(const Session& session, const LabelledData& samples, const EvaluateOptions& options) {
  std::size_t count = options.workers > 0                      ? static_cast<std::size_t>(options.workers)
                      : session.device().starts_with("vulkan") ? 1
                                                               : hardware_threads();
  for (const std::size_t most : {samples.expected, options.limit})
    if (most) count = std::min(count, most);
  return std::max<std::size_t>(count, 1);
}

Result<Evaluated> evaluate_all(const Session& session, const Session* floats, const LabelledData& samples,
                               const EvaluateOptions& options) {
  if (options.workers < 0 || options.workers > SessionOptions::most_threads)
    return error("option.value", fmt::format("'workers' is {}", options.workers))
        .hint(fmt::format("0 to {}; 0: all cores", SessionOptions::most_threads));
  std::vector<Pair> pairs;
  const std::size_t workers = workers_for(session, samples, options);
  for (std::size_t i = 0; i < workers; ++i) {
    TOSAIC_TRY(Session one, session.clone());
    pairs.push_back({std::move(one), {}});
    if (floats) { TOSAIC_TRY(pairs.back().floats, floats->clone()); }
  }
  Evaluating evaluating(pairs, samples, options);
  const auto begin = Clock::now();
  ThreadPool pool(static_cast<int>(workers));
  pool.run(static_cast<std::int64_t>(workers),
           [&](std::int64_t worker, int) { evaluating.work(static_cast<std::size_t>(worker)); });
  Evaluated found;
  found.seconds = since(begin);
  if (evaluating.problem()) return std::move(*evaluating.problem());
  if (evaluating.sum().samples() == 0)
    return error("evaluate.nothing", "there are no samples").hint("give a data set with at least one");
  found.device = session.device();
  found.workers = static_cast<int>(workers);
  if (samples.skipped) found.skipped = samples.skipped();
  evaluating.sum().write(found, session.outputs(), evaluating.with_floats(), options.worst);
  evaluating.write_times(found);
  return found;
}

}  // namespace

Result<LabelledData> open_data_set(const std::string& path, const std::string& labels,
                                   const std::vector<TensorInfo>& inputs, const Messages& messages) {
  return guarded(path, [&]() -> Result<LabelledData> {
    TOSAIC_TRY(DataSet opened, DataSet::open(path, labels, inputs, messages));
    auto set = std::make_shared<DataSet>(std::move(opened));
    return LabelledData{[set](LabelledSample& sample) { return set->next(sample); }, set->expected(),
                        [set] { return set->skipped(); }};
  });
}

Result<Evaluated> evaluate(const Session& session, const Session* floats, const LabelledData& samples,
                           const EvaluateOptions& options) {
  return guarded("", [&] { return evaluate_all(session, floats, samples, options); });
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
// A data set run by several sessions at once.
#include <fmt/format.h>
#include <algorithm>
#include <mutex>

#include "api/each_sample.h"
#include "api/guard.h"
#include "base/median.h"
#include "base/system/clock.h"
#include "evaluate/data_set.h"
#include "evaluate/sum.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

using Clock = SteadyClock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class Evaluating {
 public:
  Evaluating(std::vector<Session>& sessions, std::vector<Session>& floats, const LabelledData& samples,
             const EvaluateOptions& options)
      : sessions_(sessions), floats_(floats), samples_(samples), options_(options) {}

  Status evaluate_one(const LabelledSample& sample, std::size_t number, std::size_t worker) {
    Session& session = sessions_[worker];
    Session* in_floats = floats_.empty() ? nullptr : &floats_[worker];
    TOSAIC_TRY(const SampleRun got, run_sample(session, sample));
    SampleRun wanted;
    std::optional<Results> floats;
    const std::vector<Argument> plain(sample.floats.size());  // described by nothing: real numbers
    if (!sample.floats.empty()) {
      wanted.outputs = sample.floats;
      floats = Results{wanted.outputs, plain};
    } else if (in_floats) {
      TOSAIC_TRY(wanted, run_sample(*in_floats, sample));
      floats = Results{wanted.outputs, in_floats->outputs()};
    }
    TOSAIC_TRY(SampleScore score, score_of({got.outputs, session.outputs()}, floats, sample));
    const std::lock_guard held(counting_);
    sum_.add(number, sample.name, std::move(score));
    seconds_.push_back(got.seconds);
    if (in_floats && sample.floats.empty()) floats_seconds_.push_back(wanted.seconds);
    without_floats_ |= !floats;
    if (options_.each) options_.each(number, got.outputs, wanted.outputs);
    const std::size_t expected =
        options_.limit && samples_.expected > options_.limit ? options_.limit : samples_.expected;
    if (options_.progress) options_.progress(sum_.samples(), std::max(expected, sum_.samples()));
    return {};
  }

  const ScoreSum& sum() const { return sum_; }
  bool with_floats() const { return !without_floats_; }  // of every sample
  void write_times(Evaluated& to) const {
    to.run_seconds = median(seconds_);
    to.floats_run_seconds = median(floats_seconds_);
  }

 private:
  std::vector<Session>&sessions_, &floats_;  // one for each worker; floats: or none
  const LabelledData& samples_;
  const EvaluateOptions& options_;
  std::mutex counting_;
  ScoreSum sum_;
  bool without_floats_ = false;
  std::vector<double> seconds_, floats_seconds_;
};

Result<Evaluated> evaluate_all(const Session& session, const Session* floats, const LabelledData& samples,
                               const EvaluateOptions& options) {
  if (options.workers < 0 || options.workers > SessionOptions::most_threads)
    return error("option.value", fmt::format("'workers' is {}", options.workers))
        .hint(fmt::format("0 to {}; 0: all cores", SessionOptions::most_threads));
  const std::size_t workers = sample_workers(session, options.workers, samples, options.limit);
  TOSAIC_TRY(std::vector<Session> sessions, clones(session, workers));
  std::vector<Session> in_floats;
  if (floats) { TOSAIC_TRY(in_floats, clones(*floats, workers)); }
  Evaluating evaluating(sessions, in_floats, samples, options);
  const auto begin = Clock::now();
  TOSAIC_CHECK(each_sample(samples, workers,
                           {.limit = options.limit,
                            .cancelled = options.cancelled,
                            .work = [&](const LabelledSample& sample, std::size_t number, std::size_t worker) {
                              return evaluating.evaluate_one(sample, number, worker);
                            }}));
  Evaluated found;
  found.seconds = since(begin);
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

// SPDX-License-Identifier: Apache-2.0
#include "api/each_sample.h"

#include <fmt/format.h>
#include <algorithm>
#include <mutex>
#include <optional>

#include "base/system/clock.h"
#include "base/system/thread_pool.h"
#include "evaluate/fit_input.h"

namespace tosaic {
namespace {

class Taking {
 public:
  Taking(const LabelledData& samples, const SampleLoop& loop) : samples_(samples), loop_(loop) {}

  void work(std::size_t worker) {
    LabelledSample sample;
    std::size_t number = 0;
    while (take(sample, number))
      if (Status done = loop_.work(sample, number, worker); !done.ok()) {
        const std::lock_guard held(taking_);
        end(std::move(done.error()));
      }
  }
  std::optional<Diagnostic>& problem() { return problem_; }

 private:
  bool take(LabelledSample& sample, std::size_t& number) {
    const std::lock_guard held(taking_);
    if (problem_ || (loop_.limit && taken_ == loop_.limit)) return false;
    if (loop_.cancelled && loop_.cancelled()) {
      end(error("run.cancelled", "the run over the samples was interrupted"));
      return false;
    }
    auto more = samples_.next(sample);
    if (!more.ok()) end(std::move(more.error()));
    if (!more.ok() || !*more) return false;
    number = taken_++;
    return true;
  }
  void end(Diagnostic why) {
    if (!problem_) problem_ = std::move(why);
  }

  const LabelledData& samples_;
  const SampleLoop& loop_;
  std::mutex taking_;
  std::size_t taken_ = 0;
  std::optional<Diagnostic> problem_;
};

}  // namespace

Result<SampleRun> run_sample(Session& session, const LabelledSample& sample) {
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
  SampleRun ran;
  const auto begin = SteadyClock::now();
  TOSAIC_TRY(ran.outputs, session.run(lent));
  ran.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  return ran;
}

Status each_sample(const LabelledData& samples, std::size_t workers, const SampleLoop& loop) {
  Taking taking(samples, loop);
  ThreadPool pool(static_cast<int>(workers));
  pool.run(static_cast<std::int64_t>(workers),
           [&](std::int64_t worker, int) { taking.work(static_cast<std::size_t>(worker)); });
  if (taking.problem()) return std::move(*taking.problem());
  return {};
}

std::size_t sample_workers(const Session& session, int asked, const LabelledData& samples, std::size_t limit) {
  auto count = static_cast<std::size_t>(asked > 0 ? asked : session.useful_clones());
  for (const std::size_t most : {samples.expected, limit})
    if (most) count = std::min(count, most);
  return std::max<std::size_t>(count, 1);
}

Result<std::vector<Session>> clones(const Session& session, std::size_t count) {
  std::vector<Session> made;
  for (std::size_t i = 0; i < count; ++i) {
    TOSAIC_TRY(Session one, session.clone());
    made.push_back(std::move(one));
  }
  return made;
}

}  // namespace tosaic

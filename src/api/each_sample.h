// SPDX-License-Identifier: Apache-2.0
// The samples of a data set, by several workers at once.
#pragma once
#include <cstddef>
#include <functional>

#include "tosaic/evaluation.hpp"
#include "tosaic/session.hpp"

namespace tosaic {

struct SampleRun {
  std::vector<Output> outputs;
  double seconds = 0;
};
// The sample's inputs are made to fit; what the session keeps from run to run begins anew. Errors: evaluate.data, those
// of Session::run.
Result<SampleRun> run_sample(Session& session, const LabelledSample& sample);

struct SampleLoop {
  std::size_t limit = 0;            // samples at most; 0: all
  std::function<bool()> cancelled;  // true: run.cancelled
  // Of several workers at once, each with its own number below `workers`; samples are numbered in their order.
  std::function<Status(const LabelledSample& sample, std::size_t number, std::size_t worker)> work;
};
// What goes wrong anywhere ends it everywhere; what others have begun is finished.
Status each_sample(const LabelledData& samples, std::size_t workers, const SampleLoop& loop);

// How many workers: `asked` (0: as many clones as are useful), but no more than there are samples.
std::size_t sample_workers(const Session& session, int asked, const LabelledData& samples, std::size_t limit = 0);
// One session for each. Errors: those of Session::clone.
Result<std::vector<Session>> clones(const Session& session, std::size_t count);

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
#include "api/run_samples.h"

#include <fmt/format.h>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "api/each_sample.h"
#include "api/shown_output.h"
#include "base/diagnostic.h"
#include "base/system/clock.h"
#include "formats/npy/npy.h"

namespace tosaic {
namespace {

// One output of all samples, in their order, whatever the order in which they come.
class Rows {
 public:
  Status put(const Output& output, std::size_t row, const LabelledSample& sample, std::size_t number) {
    const ShownOutput one = shown(output);
    if (first_.empty()) {
      first_ = sample.name;
      type_ = one.type;
      if (one.tensor) element_ = one.tensor->type;
    } else if (one.type != type_) {
      return error("run.rows", fmt::format("output {} is {} for {}, and {} for {}: this makes no array", number,
                                           one.type, sample.name, type_, first_))
          .hint("give samples of one size, or use Artifact.run_many in Python");
    }
    if (!one.tensor) return {};
    const Bytes& content = one.tensor->data;
    count_ = std::max(count_, row + 1);
    if (rows_.size() < count_ * content.size()) rows_.resize(count_ * content.size());
    if (!content.empty()) std::memcpy(rows_.data() + row * content.size(), content.data(), content.size());
    return {};
  }
  bool has_tensors() const { return element_.has_value(); }
  Tensor stacked() && {
    std::vector<std::int64_t> sizes = element_->shape.sizes();
    sizes.insert(sizes.begin(), static_cast<std::int64_t>(count_));
    return {{element_->dtype, Shape(std::move(sizes)), {}}, Bytes::of(std::move(rows_))};
  }
  const std::string& type() const { return type_; }

 private:
  std::string first_, type_;  // the sample that came first, and what it gave
  std::optional<TensorType> element_;
  std::size_t count_ = 0;
  std::vector<std::byte> rows_;
};

}  // namespace

std::string output_file(const std::string& folder, std::size_t number) {
  return (std::filesystem::path(folder) / fmt::format("output_{}.npy", number)).string();
}

Status check_samples(const RunRequest& request) {
  if (request.samples.empty()) return {};
  const std::string_view other = !request.inputs.empty()   ? "--input"
                                 : request.repeat > 1      ? "--repeat"
                                 : request.profile         ? "--profile"
                                 : !request.states.empty() ? "--states"
                                                           : "";
  if (other.empty()) return {};
  return error("run.samples", fmt::format("{} is for one call, and --samples asks for many", other))
      .hint(other == "--states" ? "what the program keeps begins anew with every sample"
                                : fmt::format("leave {} or --samples out", other));
}

Status run_samples(const Session& session, const RunRequest& request, const Messages& messages, Outputs& files,
                   RunOutcome& outcome) {
  TOSAIC_TRY(const LabelledData samples, open_data_set(request.samples, "", session.inputs(), messages));
  const std::size_t workers = sample_workers(session, request.session.threads, samples);
  TOSAIC_TRY(std::vector<Session> sessions, clones(session, workers));
  std::vector<Rows> outputs(session.outputs().size());
  const bool kept = !request.output_dir.empty();
  std::mutex counting;
  const auto begin = SteadyClock::now();
  TOSAIC_CHECK(
      each_sample(samples, workers,
                  {.cancelled = request.session.cancelled,
                   .work = [&](const LabelledSample& sample, std::size_t number, std::size_t worker) -> Status {
                     TOSAIC_TRY(const SampleRun ran, run_sample(sessions[worker], sample));
                     const std::lock_guard held(counting);
                     ++outcome.samples;
                     outcome.run_seconds.push_back(ran.seconds);
                     for (std::size_t i = 0; kept && i < outputs.size(); ++i)
                       TOSAIC_CHECK(outputs[i].put(ran.outputs[i], number, sample, i));
                     if (request.progress)
                       request.progress(outcome.samples, std::max(outcome.samples, samples.expected));
                     return {};
                   }}));
  outcome.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  outcome.workers = static_cast<int>(workers);
  if (outcome.samples == 0)
    return error("evaluate.nothing", "there are no samples").at({request.samples, 0, ""}).hint("give at least one");
  if (const std::size_t skipped = samples.skipped ? samples.skipped() : 0; skipped > 0 && kept)
    return error("run.rows", fmt::format("{} {} be read: the outputs would not be in line with the samples", skipped,
                                         skipped == 1 ? "file cannot" : "files cannot"))
        .at({request.samples, 0, ""})
        .hint("repair them, or take them away");
  for (std::size_t i = 0; kept && i < outputs.size(); ++i) {
    const bool written = outputs[i].has_tensors();
    const Tensor rows = written ? std::move(outputs[i]).stacked() : Tensor{};
    outcome.output_types.push_back(written ? to_string(rows.type) : outputs[i].type());
    outcome.output_values.emplace_back();
    outcome.written.push_back(written ? output_file(request.output_dir, i) : "");
    if (written) TOSAIC_CHECK(files.write(outcome.written.back(), npy::write(rows)));
  }
  return {};
}

}  // namespace tosaic

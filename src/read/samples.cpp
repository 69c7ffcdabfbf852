// SPDX-License-Identifier: Apache-2.0
#include "read/samples.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include "formats/npy/npy.h"

namespace tosaic {
namespace {

using Samples = std::vector<std::vector<Tensor>>;

// Splits a stacked array into samples of the input's type. numpy has no bf16: f32 serves for half-precision floats.
Result<std::vector<Tensor>> unstacked(Tensor stacked, const Value& input, const std::string& file) {
  const TensorType& wanted = input.type;
  if (is_float(wanted.dtype) && storage_size(wanted.dtype) == 2 && stacked.type.dtype == DType::f32)
    stacked = {stacked.type.with(wanted.dtype), converted({stacked.type, stacked.data.data()}, wanted.dtype)};
  auto bad = [&](const std::string& why) {
    return error("calibrate.sample-type",
                 fmt::format("samples for input '{}' are {}: {}", input.name, to_string(stacked.type), why))
        .at({file, 0, ""})
        .hint(fmt::format("the model takes {}; stack N samples into Nx{}", to_string(wanted), to_string(wanted)));
  };
  if (stacked.type.dtype != wanted.dtype) return bad(fmt::format("the dtype should be {}", name_of(wanted.dtype)));
  std::vector<std::int64_t> rest(stacked.type.shape.sizes());
  if (rest.size() != static_cast<std::size_t>(wanted.rank()) + 1) return bad("one axis more than the input is needed");
  const std::int64_t count = rest.front();
  rest.erase(rest.begin());
  for (std::size_t d = 0; d < rest.size(); ++d)
    if (!wanted.shape[static_cast<int>(d)].bounds().contain(rest[d]))
      return bad("the shape of one sample does not fit");
  const TensorType type = wanted.with(Shape(rest));
  std::vector<Tensor> samples;
  const std::size_t bytes = type.storage_bytes();
  for (std::int64_t i = 0; i < count; ++i)
    samples.push_back({type, stacked.data.slice(static_cast<std::size_t>(i) * bytes, bytes)});
  return samples;
}

Result<Samples> from_arrays(const std::vector<std::pair<std::string, Tensor>>& arrays, const Graph& graph,
                            const std::string& file) {
  std::vector<std::vector<Tensor>> columns(graph.inputs.size());
  std::vector<char> given(graph.inputs.size(), 0);
  for (const auto& [name, array] : arrays) {
    std::size_t which = graph.inputs.size();
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
      if (name == graph[graph.inputs[i]].name || name == fmt::format("input_{}", i) ||
          (name.empty() && graph.inputs.size() == 1))
        which = i;
    if (which == graph.inputs.size()) {
      std::string names;
      for (ValueId v : graph.inputs) names += (names.empty() ? "" : ", ") + graph[v].name;
      return error("calibrate.unknown-input", fmt::format("array '{}' belongs to no input of the model", name))
          .at({file, 0, ""})
          .hint("inputs: " + names);
    }
    TOSAIC_TRY(columns[which], unstacked(array, graph[graph.inputs[which]], file));
    given[which] = 1;
  }
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!given[i])
      return error("calibrate.missing-input",
                   fmt::format("there are no samples for input '{}'", graph[graph.inputs[i]].name))
          .at({file, 0, ""})
          .hint(fmt::format("add an array named '{}' or 'input_{}'", graph[graph.inputs[i]].name, i));
  for (std::size_t i = 1; i < columns.size(); ++i)
    if (columns[i].size() != columns[0].size())
      return error("calibrate.sample-count",
                   fmt::format("input '{}' has {} samples, input '{}' has {}", graph[graph.inputs[0]].name,
                               columns[0].size(), graph[graph.inputs[i]].name, columns[i].size()))
          .at({file, 0, ""});
  Samples samples(columns.empty() ? 0 : columns[0].size());
  for (std::size_t s = 0; s < samples.size(); ++s)
    for (auto& column : columns) samples[s].push_back(column[s]);
  return samples;
}

Result<Samples> from_file(const std::string& file, const Graph& graph) {
  TOSAIC_TRY(Bytes bytes, map_file(file));
  if (file.ends_with(".npy")) {
    if (graph.inputs.size() != 1)
      return error("calibrate.missing-input",
                   fmt::format("one .npy file cannot hold samples for {} inputs", graph.inputs.size()))
          .at({file, 0, ""})
          .hint("use a .npz with one array per input");
    TOSAIC_TRY(Tensor array, npy::read(bytes, file));
    return from_arrays({{"", std::move(array)}}, graph, file);
  }
  TOSAIC_TRY(auto arrays, npy::read_npz(bytes, file));
  return from_arrays(arrays, graph, file);
}

}  // namespace

Result<Samples> read_samples(const std::string& path, const Graph& graph) {
  std::error_code failure;
  std::vector<std::string> files;
  if (std::filesystem::is_directory(path, failure)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, failure))
      if (entry.path().extension() == ".npz" || entry.path().extension() == ".npy")
        files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  Samples all;
  for (const auto& file : files) {
    TOSAIC_TRY(Samples some, from_file(file, graph));
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  if (all.empty())
    return error("calibrate.no-samples", fmt::format("{} holds no samples", path))
        .at({path, 0, ""})
        .hint("give at least one sample per input");
  return all;
}

Result<LabelledSamples> read_labelled_samples(const std::string& path, const Graph& graph) {
  TOSAIC_TRY(const Bytes bytes, map_file(path));
  TOSAIC_TRY(auto arrays, npy::read_npz(bytes, path));
  const auto found =
      std::ranges::find_if(arrays, [](const auto& array) { return array.first == "labels" || array.first == "label"; });
  if (found == arrays.end() || is_float(found->second.type.dtype))
    return error("compare.labels", found == arrays.end() ? "there is no array 'labels'" : "the labels are no integers")
        .at({path, 0, ""})
        .hint("add an array 'labels' of integers: the class that each sample belongs to");
  LabelledSamples read;
  const Tensor labels = std::move(found->second);
  arrays.erase(found);
  for (std::size_t i = 0; i < static_cast<std::size_t>(labels.type.shape.elements()); ++i)
    read.labels.push_back(element_as_integer(labels.type.dtype, labels.data.data(), i));
  TOSAIC_TRY(read.samples, from_arrays(arrays, graph, path));
  return read;
}

}  // namespace tosaic

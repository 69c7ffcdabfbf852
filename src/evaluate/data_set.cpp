// SPDX-License-Identifier: Apache-2.0
#include "evaluate/data_set.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "evaluate/label_lines.h"
#include "formats/npy/npy.h"

namespace tosaic {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_told = 10;  // files that are left out

Diagnostic unfit(const std::string& message, const std::string& file) {
  return error("evaluate.data", message).at({file, 0, ""});
}

bool fits(std::int64_t size, const Dimension& wanted) {
  if (!wanted.dynamic()) return size == wanted.size;
  return size >= wanted.lowest && (wanted.size < 0 || size <= wanted.size);
}
bool fit(std::span<const std::int64_t> sizes, const std::vector<Dimension>& wanted) {
  return std::ranges::equal(sizes, wanted, [](std::int64_t s, const Dimension& d) { return fits(s, d); });
}

// How many samples an array holds for an input of such sizes, and the sizes of one.
struct Cut {
  std::size_t count = 1;
  std::vector<std::int64_t> sizes;
};
std::optional<Cut> cut_of(const std::vector<std::int64_t>& sizes, const std::vector<Dimension>& wanted) {
  if (fit(sizes, wanted)) return Cut{1, sizes};
  // One of a batch of one, without the batch.
  std::vector<std::int64_t> batch{1};
  batch.insert(batch.end(), sizes.begin(), sizes.end());
  if (fit(batch, wanted)) return Cut{1, batch};
  if (sizes.empty()) return std::nullopt;
  const std::span<const std::int64_t> rest(sizes.data() + 1, sizes.size() - 1);
  if (fit(rest, wanted)) return Cut{static_cast<std::size_t>(sizes[0]), {rest.begin(), rest.end()}};
  // Images as one batch of many, for a program that takes batches of `rows`.
  if (wanted.empty() || wanted[0].dynamic() || wanted[0].size <= 0 || sizes[0] % wanted[0].size != 0)
    return std::nullopt;
  Cut cut{static_cast<std::size_t>(sizes[0] / wanted[0].size), sizes};
  cut.sizes[0] = wanted[0].size;
  if (!fit(cut.sizes, wanted)) return std::nullopt;
  return cut;
}

std::string called(const TensorInfo& input) { return input.name.empty() ? "the input" : "input '" + input.name + "'"; }

Result<std::vector<OwnedTensor>> cut_up(const Tensor& array, const TensorInfo& input, const std::string& file) {
  const auto cut = cut_of(array.type.shape.sizes(), input.dims);
  if (!cut)
    return unfit(fmt::format("the samples for {} are {}, the program takes {}", called(input), to_string(array.type),
                             to_string(input)),
                 file)
        .hint(fmt::format("an array is one sample ({}) or N of them ({} with N before it)", to_string(input),
                          to_string(input)));
  const std::size_t bytes = cut->count ? array.data.size() / cut->count : 0;
  std::vector<OwnedTensor> samples;
  for (std::size_t i = 0; i < cut->count; ++i)
    samples.push_back({array.type.dtype, cut->sizes, array.data.slice(i * bytes, bytes)});
  return samples;
}

std::vector<std::int64_t> integers_of(const Tensor& labels) {
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(labels.type.shape.elements()); ++i)
    all.push_back(element_as_integer(labels.type.dtype, labels.data.data(), i));
  return all;
}

bool is_array(const fs::path& path) { return path.extension() == ".npy" || path.extension() == ".npz"; }
bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg" || ending == ".bmp" || ending == ".webp";
}

// The classes that folders stand for: their names where these are numbers, else their places in the order.
std::map<std::string, std::int64_t> classes_of(const std::vector<std::string>& folders) {
  std::map<std::string, std::int64_t> numbers, places;
  for (const std::string& name : folders) {
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failed == std::errc() && end == name.data() + name.size()) numbers[name] = number;
    places.emplace(name, 0);
  }
  std::int64_t place = 0;
  for (auto& [name, at] : places) at = place++;
  return numbers.size() == places.size() ? numbers : places;
}

}  // namespace

Result<DataSet> DataSet::open(const std::string& path, const std::string& labels, std::vector<TensorInfo> inputs,
                              Messages messages) {
  DataSet set;
  set.path_ = path;
  set.inputs_ = std::move(inputs);
  set.messages_ = std::move(messages);
  TOSAIC_CHECK(set.find_files(path));
  if (!set.folder_) TOSAIC_CHECK(set.read_file(set.files_[0]));
  if (!labels.empty()) TOSAIC_CHECK(set.find_labels(labels));
  return set;
}

Status DataSet::find_files(const std::string& path) {
  std::error_code failure;
  folder_ = fs::is_directory(path, failure);
  if (!folder_) {
    files_.push_back({path, fs::path(path).filename().string(), {}});
    if (is_image(path)) return unfit("an image is no array", path).hint("see `tosaic help evaluate`");
    return {};
  }
  std::vector<std::string> folders;
  bool images = false, loose = false;
  for (auto entry = fs::recursive_directory_iterator(path, failure); entry != fs::recursive_directory_iterator();
       entry.increment(failure)) {
    if (failure) break;
    const fs::path below = entry->path().lexically_relative(path);
    images |= is_image(below);
    if (!is_array(below) || entry->is_directory(failure)) continue;
    if (below.has_parent_path())
      folders.push_back(below.begin()->string());
    else
      loose = true;
    files_.push_back({entry->path().string(), below.generic_string(), {}});
  }
  if (failure) return unfit(fmt::format("the folder cannot be read: {}", failure.message()), path);
  if (files_.empty())
    return unfit(images ? "the folder holds images, and no arrays" : "the folder holds no .npy and no .npz", path)
        .hint(images ? "images need the model's own preprocessing; in Python: artifact.evaluate(ImageFolder(...))"
                     : "save a sample, or several along a new first axis, by numpy.save");
  std::ranges::sort(files_, {}, &File::name);
  if (loose) return {};
  const auto classes = classes_of(folders);
  for (File& file : files_) file.label = classes.at(fs::path(file.name).begin()->string());
  return {};
}

Status DataSet::find_labels(const std::string& path) {
  labels_path_ = path;
  TOSAIC_TRY(const Bytes bytes, map_file(path));
  if (path.ends_with(".npy")) {
    TOSAIC_TRY(const Tensor array, npy::read(bytes, path));
    if (is_float(array.type.dtype))
      return error("evaluate.labels", "the labels are no integers").at({path, 0, ""}).hint("labels.astype('int64')");
    in_order_ = integers_of(array);
  } else {
    TOSAIC_TRY(LabelLines lines, read_label_lines(bytes.text(), path));
    in_order_ = std::move(lines.in_order);
    by_name_ = std::move(lines.by_name);
  }
  if (by_name_.empty() && (expected() == 0 || in_order_.size() % expected() != 0))
    return error("evaluate.labels",
                 fmt::format("{} labels for {} {}", in_order_.size(), expected(), folder_ ? "files" : "samples"))
        .at({path, 0, ""})
        .hint("give one to each sample, or one to each row of its first output");
  return {};
}

Status DataSet::read_file(const File& file) {
  TOSAIC_TRY(const Bytes bytes, map_file(file.path));
  std::vector<std::pair<std::string, Tensor>> arrays;
  if (file.path.ends_with(".npy")) {
    TOSAIC_TRY(Tensor array, npy::read(bytes, file.path));
    arrays.emplace_back("", std::move(array));
  } else {
    TOSAIC_TRY(arrays, npy::read_npz(bytes, file.path));
  }
  return split(std::move(arrays), file);
}

Status DataSet::split(std::vector<std::pair<std::string, Tensor>> arrays, const File& file) {
  own_labels_.clear();
  std::vector<std::vector<OwnedTensor>> columns(inputs_.size());
  std::vector<bool> given(inputs_.size());
  for (auto& [name, array] : arrays) {
    if ((name == "labels" || name == "label") && !is_float(array.type.dtype)) {
      own_labels_ = integers_of(array);
      continue;
    }
    std::size_t which = 0;
    const bool only = inputs_.size() == 1 && !given[0];  // the files of many programs do not tell their inputs' names
    while (which < inputs_.size() && name != inputs_[which].name && name != fmt::format("input_{}", which) &&
           !(only && (name.empty() || inputs_[0].name.empty())))
      ++which;
    if (which == inputs_.size()) {
      std::string names;
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        names += (i == 0 ? "" : ", ") + (inputs_[i].name.empty() ? fmt::format("input_{}", i) : inputs_[i].name);
      return unfit(name.empty() ? "a .npy holds samples for one input only"
                                : fmt::format("array '{}' belongs to no input of the program", name),
                   file.path)
          .hint("arrays are named after the inputs: " + names);
    }
    TOSAIC_TRY(columns[which], cut_up(array, inputs_[which], file.path));
    given[which] = true;
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!given[i])
      return unfit(fmt::format("there are no samples for {}", called(inputs_[i])), file.path)
          .hint(fmt::format("add an array named 'input_{}'", i));
    if (columns[i].size() != columns[0].size())
      return unfit(fmt::format("input 0 has {} samples, input {} has {}", columns[0].size(), i, columns[i].size()),
                   file.path);
  }
  const std::size_t count = columns.empty() ? 0 : columns[0].size();
  if (folder_ && !in_order_.empty() && count != 1)
    return error("evaluate.labels", fmt::format("{} has {} samples, and the labels go by files", file.name, count))
        .at({labels_path_, 0, ""})
        .hint("a file for each sample, or an array 'labels' in each .npz");
  if (!own_labels_.empty() && (count == 0 || own_labels_.size() % count != 0))
    return error("evaluate.labels", fmt::format("{} labels for {} samples", own_labels_.size(), count))
        .at({file.path, 0, ""})
        .hint("give one to each sample, or one to each row of its first output");
  columns_ = std::move(columns);
  samples_ = count;
  next_sample_ = 0;
  return {};
}

Result<std::vector<std::int64_t>> DataSet::labels_of(const File& file, std::size_t sample) const {
  const auto part = [](const std::vector<std::int64_t>& all, std::size_t i, std::size_t count) {
    const std::size_t each = all.size() / count;
    return std::vector<std::int64_t>(all.begin() + static_cast<std::ptrdiff_t>(i * each),
                                     all.begin() + static_cast<std::ptrdiff_t>((i + 1) * each));
  };
  if (!by_name_.empty()) {
    const auto found = by_name_.find(file.name);
    if (found != by_name_.end()) return part(found->second, sample, samples_);
    return error("evaluate.labels", fmt::format("there is no label for {}", file.name))
        .at({labels_path_, 0, ""})
        .hint("names are those of the files below the folder of the data");
  }
  if (!in_order_.empty())
    return folder_ ? part(in_order_, next_file_ - 1, files_.size()) : part(in_order_, sample, samples_);
  if (!own_labels_.empty()) return part(own_labels_, sample, samples_);
  if (file.label) return std::vector<std::int64_t>(samples_ ? 1 : 0, *file.label);
  return std::vector<std::int64_t>();
}

Result<bool> DataSet::next(LabelledSample& sample) {
  if (!folder_ && next_file_ == 0) next_file_ = 1;
  while (next_sample_ == samples_) {
    if (next_file_ == files_.size()) {
      if (given_ == 0 && first_problem_) return *first_problem_;
      return false;
    }
    const File& file = files_[next_file_++];
    samples_ = next_sample_ = 0;
    if (const Status read = read_file(file); !read.ok()) {
      if (read.error().code == "evaluate.labels") return read.error();
      if (!first_problem_) first_problem_ = read.error();
      ++skipped_;
      if (messages_ && skipped_ <= most_told)
        messages_(warning("evaluate.skipped", "this file is left out: " + read.error().message).at({file.path, 0, ""}));
    }
  }
  const File& file = files_[next_file_ - 1];
  TOSAIC_TRY(sample.labels, labels_of(file, next_sample_));
  sample.name = samples_ == 1 ? file.name : fmt::format("{}[{}]", file.name, next_sample_);
  sample.inputs.clear();
  for (const auto& column : columns_) sample.inputs.push_back(column[next_sample_]);
  ++next_sample_;
  ++given_;
  return true;
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
// The samples and labels of a data set in files, one file in memory at a time.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/tensor.h"
#include "tosaic/evaluation.hpp"

namespace tosaic {

class DataSet {
 public:
  // As open_data_set.
  static Result<DataSet> open(const std::string& path, const std::string& labels, std::vector<TensorInfo> inputs,
                              Messages messages);
  Result<bool> next(LabelledSample& sample);
  std::size_t expected() const { return files_.size() == 1 ? samples_ : files_.size(); }
  std::size_t skipped() const { return skipped_; }

 private:
  struct File {
    std::string path, name;             // `name`: below the folder
    std::optional<std::int64_t> label;  // that its folder says
  };
  Status find_files(const std::string& path);
  Status find_labels(const std::string& path);
  Status read_file(const File& file);
  Status split(std::vector<std::pair<std::string, Tensor>> arrays, const File& file);
  Result<std::vector<std::int64_t>> labels_of(const File& file, std::size_t sample) const;

  std::string path_, labels_path_;
  bool folder_ = false;
  std::vector<TensorInfo> inputs_;
  Messages messages_;
  std::vector<File> files_;
  std::size_t next_file_ = 0, skipped_ = 0;
  std::optional<Diagnostic> first_problem_;
  // Of --labels.
  std::vector<std::int64_t> in_order_;
  std::map<std::string, std::vector<std::int64_t>> by_name_;
  // The file in memory: a list of samples for each input, and the labels of all.
  std::vector<std::vector<OwnedTensor>> columns_;
  std::vector<std::int64_t> own_labels_;
  std::size_t samples_ = 0, next_sample_ = 0, given_ = 0;
};

}  // namespace tosaic

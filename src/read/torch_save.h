// SPDX-License-Identifier: Apache-2.0
// A file that torch.save wrote: a zip of a pickle and the storages of its tensors. Plain tensors are understood,
// nothing else. Private to read/.
#pragma once
#include <optional>
#include <string>

#include "formats/zip/zip.h"
#include "read/pickle.h"
#include "read/stored_tensor.h"

namespace tosaic {

class TorchSave {
 public:
  static Result<TorchSave> open(Bytes file, const std::string& name);

  const Pickle& pickle() const { return pickle_; }
  // The tensor that a value of the pickle stands for; nothing when it is none. Throws ReadError when it is one that
  // the file does not hold.
  std::optional<StoredTensor> tensor(PickleRef ref) const;
  // The value of a dict's (or OrderedDict's) text key.
  std::optional<PickleRef> member(PickleRef dict, std::string_view key) const;

 private:
  std::optional<std::vector<std::int64_t>> integers(PickleRef ref) const;

  zip::Archive archive_;
  std::string root_, name_;
  Pickle pickle_;
};

}  // namespace tosaic

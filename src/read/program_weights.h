// SPDX-License-Identifier: Apache-2.0
// Parameters, buffers and constants of an exported program, by fully qualified name; each is looked at only when
// the graph asks for it. Private to read/.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/zip/zip.h"
#include "ir/tensor.h"
#include "read/json.h"
#include "read/pt2.h"
#include "read/torch_save.h"

namespace tosaic {

class ProgramWeights {
 public:
  ProgramWeights(const zip::Archive& archive, const Sink& sink) : archive_(archive), sink_(sink) {}

  // What torch 2.9 and later write: a JSON record that tells where each tensor's raw storage lies.
  void add_config(const std::string& record, const std::string& folder);
  // What torch 2.8 and earlier write: all tensors in one torch.save file.
  void add_pickle(const std::string& record);

  // What lies in the memory of the process that exported the program.
  void add_tensor(const std::string& name, StoredTensor tensor);

  // The tensor `name` ("conv.weight"), dense. Throws pt2.missing-weight, pt2.pickled-weight, pt2.tensor-beyond-record,
  // ... `kind` is what the program calls it ("parameter", "buffer", "constant").
  Tensor load(const std::string& name, std::string_view kind);

 private:
  struct Payload {
    Json meta;
    std::string folder;
  };
  StoredTensor find(const std::string& name, const std::string& what);
  void warn_unless_finite(const Tensor& tensor, const std::string& what);

  const zip::Archive& archive_;
  const Sink& sink_;
  std::vector<std::unique_ptr<JsonDocument>> documents_;
  std::unordered_map<std::string, Payload> payloads_;
  std::vector<std::pair<std::string, TorchSave>> pickles_;
  std::unordered_map<std::string, StoredTensor> tensors_;
  // Tied weights that had to be copied share the copy: the storage, and the view of it.
  struct Copy {
    StoredTensor source;
    Bytes content;
  };
  std::unordered_multimap<const std::byte*, Copy> copies_;
};

}  // namespace tosaic

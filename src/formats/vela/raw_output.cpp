// SPDX-License-Identifier: Apache-2.0
#include "formats/vela/raw_output.h"

#include <fmt/format.h>
#include <limits>

#include "formats/npy/npy.h"
#include "formats/zip/zip.h"
#include "ir/tensor.h"

namespace tosaic::vela {
namespace {

class Reader {
 public:
  Reader(const zip::Archive& archive, const std::string& name) : archive_(archive), name_(name) {}

  Result<Payload> run() {
    Payload output;
    TOSAIC_TRY(output.commands.data, bytes("cmd_data"));
    TOSAIC_TRY(output.weights.data, bytes("weight_data"));
    TOSAIC_TRY(auto scratch, integers("scratch_shape"));
    if (scratch.size() != 1 || scratch[0] < 0 || scratch[0] > std::numeric_limits<std::uint32_t>::max())
      return wrong("scratch_shape", "is not one size");
    output.scratch_bytes = static_cast<std::uint32_t>(scratch[0]);
    TOSAIC_TRY(output.inputs, places("input"));
    TOSAIC_TRY(output.outputs, places("output"));
    return output;
  }

 private:
  Diagnostic wrong(const std::string& member, const std::string& why) const {
    return error("vela.raw-output", fmt::format("'{}' {}", member, why)).at({name_, 0, ""});
  }
  Result<tosaic::Tensor> array(const std::string& member) {
    const zip::Entry* entry = archive_.find(member + ".npy");
    if (!entry) return wrong(member, "is missing: this is not what Vela writes with --output-format=raw");
    TOSAIC_TRY(Bytes file, archive_.read(*entry));
    return npy::read(file, name_ + ":" + member);
  }
  Result<Bytes> bytes(const std::string& member) {
    TOSAIC_TRY(tosaic::Tensor tensor, array(member));
    if (tensor.type.dtype != DType::u8) return wrong(member, "is not a string of bytes");
    return tensor.data;
  }
  Result<std::vector<std::int64_t>> integers(const std::string& member) {
    TOSAIC_TRY(tosaic::Tensor tensor, array(member));
    if (tensor.type.shape.elements() == 0) return std::vector<std::int64_t>{};  // NumPy gives empty lists a float type
    if (tensor.type.dtype != DType::i64) return wrong(member, "is not made of int64");
    auto values = tensor.data.as<std::int64_t>();
    return std::vector<std::int64_t>(values.begin(), values.end());
  }
  Result<std::vector<Tensor>> places(const std::string& kind) {
    TOSAIC_TRY(auto shapes, integers(kind + "_shape"));
    TOSAIC_TRY(auto sizes, integers(kind + "_elem_size"));
    TOSAIC_TRY(auto offsets, integers(kind + "_offset"));
    TOSAIC_TRY(auto regions, integers(kind + "_region"));
    constexpr std::size_t rank = std::tuple_size_v<decltype(Tensor::shape)>;
    if (shapes.size() != sizes.size() * rank || offsets.size() != sizes.size() || regions.size() != sizes.size())
      return wrong(kind + "_shape", "does not fit the number of tensors");
    for (const auto* list : {&shapes, &sizes, &offsets, &regions})
      for (std::int64_t x : *list)
        if (x < 0 || x > std::numeric_limits<std::int32_t>::max())
          return wrong(kind, fmt::format("holds {}, which is not an int32 size", x));
    std::vector<Tensor> result(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (std::size_t d = 0; d < rank; ++d) result[i].shape[d] = static_cast<std::int32_t>(shapes[i * rank + d]);
      result[i].element_bytes = static_cast<std::int32_t>(sizes[i]);
      result[i].offset = static_cast<std::int32_t>(offsets[i]);
      result[i].region = static_cast<std::int32_t>(regions[i]);
    }
    return result;
  }

  const zip::Archive& archive_;
  const std::string& name_;
};

}  // namespace

Result<Payload> read_raw_output(const Bytes& npz, const std::string& name) {
  TOSAIC_TRY(const zip::Archive archive, zip::Archive::open(npz, name));
  return Reader(archive, name).run();
}

}  // namespace tosaic::vela

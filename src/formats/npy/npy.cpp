// SPDX-License-Identifier: Apache-2.0
// .npy: "\x93NUMPY", version, header length, a Python dict literal with descr, fortran_order and shape, then the data.
#include "formats/npy/npy.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "formats/zip/zip.h"

namespace tosaic::npy {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

// NumPy's kind and item size. ml_dtypes registers bfloat16 and float8_e4m3fn as raw bytes; float8_e5m2 it saves as
// "f1", which numpy.load then refuses, so that is read and raw bytes are written.
struct Descr {
  std::string_view text;
  DType dtype;
};
constexpr std::array<Descr, 12> descrs{{
    {"b1", DType::boolean},
    {"i1", DType::i8},
    {"u1", DType::u8},
    {"i2", DType::i16},
    {"i4", DType::i32},
    {"i8", DType::i64},
    {"f2", DType::f16},
    {"f4", DType::f32},
    {"f8", DType::f64},
    {"V2", DType::bf16},
    {"V1", DType::f8e4m3},
    {"f1", DType::f8e5m2},
}};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// The few forms of a Python literal that such a header has.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  std::optional<Header> parse() {
    Header header;
    bool descr = false, order = false, shape = false;
    if (!take("{")) return std::nullopt;
    while (!take("}")) {
      const auto key = quoted();
      if (!key || !take(":")) return std::nullopt;
      if (*key == "descr") {
        auto text = quoted();
        if (!text) return std::nullopt;
        header.descr = *text;
        descr = true;
      } else if (*key == "fortran_order") {
        header.fortran_order = take("True");
        if (!header.fortran_order && !take("False")) return std::nullopt;
        order = true;
      } else if (*key == "shape") {
        if (!take("(")) return std::nullopt;
        while (!take(")")) {
          space();
          std::int64_t dim = 0;
          const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
          if (problem != std::errc() || dim < 0) return std::nullopt;
          rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
          header.shape.push_back(dim);
          if (!take(",") && !rest_.starts_with(")")) return std::nullopt;
        }
        shape = true;
      } else {
        return std::nullopt;
      }
      take(",");
    }
    if (!descr || !order || !shape) return std::nullopt;
    return header;
  }

 private:
  void space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::optional<std::string> quoted() {
    space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const auto end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::string_view rest_;
};

Diagnostic wrong(const std::string& name, std::string message) {
  return error("npy.corrupt", std::move(message)).at({name, 0, ""});
}

// Column-major to row-major.
Bytes transposed(const Bytes& data, const std::vector<std::int64_t>& shape, std::size_t item) {
  std::vector<std::byte> out(data.size());
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::size_t at = 0; at < data.size(); at += item) {
    std::int64_t row_major = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) row_major = row_major * shape[d] + index[d];
    std::memcpy(out.data() + static_cast<std::size_t>(row_major) * item, data.data() + at, item);
    for (std::size_t d = 0; d < shape.size() && ++index[d] == shape[d]; ++d) index[d] = 0;
  }
  return Bytes::of(std::move(out));
}

Bytes byte_swapped(const Bytes& data, std::size_t item) {
  std::vector<std::byte> out(data.data(), data.data() + data.size());
  for (std::size_t at = 0; at + item <= out.size(); at += item)
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(at), out.begin() + static_cast<std::ptrdiff_t>(at + item));
  return Bytes::of(std::move(out));
}

}  // namespace

Result<Tensor> read(const Bytes& file, const std::string& name) {
  if (file.size() < 10 || !file.text().starts_with(magic))
    return error("npy.not-npy", "this is not a NumPy array file").at({name, 0, ""});
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint64_t>(file.data()[i]); };
  const std::uint64_t version = byte(6);
  if (version < 1 || version > 3) return wrong(name, fmt::format("format version {} is not known", version));
  std::size_t start = version == 1 ? 10 : 12;
  if (file.size() < start) return wrong(name, "the file ends within its header");
  const std::uint64_t length =
      version == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > file.size() - start) return wrong(name, "the file ends within its header");
  const auto header = HeaderParser(file.text().substr(start, length)).parse();
  if (!header) return wrong(name, "the header is not one that NumPy writes for a plain array");

  const std::string_view descr = header->descr;
  if (descr.starts_with("|S") && header->shape.empty()) {  // a string of bytes, trailing zeros and all
    std::uint64_t bytes = 0;
    const auto [end, problem] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), bytes);
    if (problem != std::errc() || end != descr.data() + descr.size() || bytes > file.size() - start - length)
      return wrong(name, fmt::format("the string '{}' does not fit into the file", descr));
    return Tensor{TensorType{DType::u8, Shape({static_cast<std::int64_t>(bytes)})}, file.slice(start + length, bytes)};
  }
  const auto found = std::find_if(descrs.begin(), descrs.end(),
                                  [&](const Descr& d) { return descr.size() == 3 && d.text == descr.substr(1); });
  if (found == descrs.end() || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    return error("npy.dtype", fmt::format("elements of type '{}' have no counterpart here", descr))
        .at({name, 0, ""})
        .hint("convert the array first, e.g. with .astype(numpy.float32) or .astype(numpy.int64)");
  const std::size_t item = storage_size(found->dtype);
  std::uint64_t bytes = item;
  for (std::int64_t dim : header->shape) {
    if (dim > 0 && bytes > (std::uint64_t{1} << 60) / static_cast<std::uint64_t>(dim))
      return wrong(name, "the number of elements overflows");
    bytes *= static_cast<std::uint64_t>(dim);
  }
  start += length;
  if (file.size() - start < bytes)
    return wrong(name, fmt::format("the array needs {} bytes, the file holds {}", bytes, file.size() - start));
  Bytes data = file.slice(start, bytes);
  if (descr[0] == '>' && item > 1) data = byte_swapped(data, item);
  if (header->fortran_order && header->shape.size() > 1) data = transposed(data, header->shape, item);
  if (reinterpret_cast<std::uintptr_t>(data.data()) % item != 0) data = Bytes::copy(data.data(), data.size());
  if (found->dtype == DType::boolean &&
      std::any_of(data.data(), data.data() + data.size(), [](std::byte b) { return std::to_integer<int>(b) > 1; }))
    return wrong(name, "a boolean is neither 0 nor 1");
  return Tensor{TensorType{found->dtype, Shape(header->shape)}, std::move(data)};
}

Result<std::vector<std::pair<std::string, Tensor>>> read_npz(const Bytes& file, const std::string& name) {
  TOSAIC_TRY(auto archive, zip::Archive::open(file, name));
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (const zip::Entry& entry : archive.entries()) {
    if (!entry.name.ends_with(".npy")) continue;
    TOSAIC_TRY(auto content, archive.read(entry));
    TOSAIC_TRY(auto tensor, read(content, name + ":" + entry.name));
    arrays.emplace_back(entry.name.substr(0, entry.name.size() - 4), std::move(tensor));
  }
  return arrays;
}

Bytes write(const Tensor& tensor) {
  DType dtype = tensor.type.dtype;  // as stored, then: int4 in bytes, int48 and shapes in eight
  if (dtype == DType::i4) dtype = DType::i8;
  if (dtype == DType::i48 || dtype == DType::shape) dtype = DType::i64;
  if (dtype == DType::f8e5m2) dtype = DType::f8e4m3;  // V1
  if (is_of_blocks(dtype)) dtype = DType::u8;         // NumPy has none of them
  const auto found = std::find_if(descrs.begin(), descrs.end(), [&](const Descr& d) { return d.dtype == dtype; });
  std::string shape;
  for (std::int64_t dim : tensor.type.shape.sizes()) shape += fmt::format("{}, ", dim);
  if (tensor.type.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.type.rank() == 1) shape.resize(shape.size() - 1);
  // NumPy: bool and bytes have no byte order, but ml_dtypes' raw types are written with one.
  const bool plain_byte = storage_size(dtype) == 1 && !is_float(dtype);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   plain_byte ? '|' : '<', found->text, shape);
  header.append(63 - (magic.size() + 4 + header.size()) % 64, ' ');  // data starts on a multiple of 64
  header += '\n';
  std::string file(magic);
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  std::vector<std::byte> out(file.size() + tensor.data.size());
  std::memcpy(out.data(), file.data(), file.size());
  if (!tensor.data.empty()) std::memcpy(out.data() + file.size(), tensor.data.data(), tensor.data.size());
  return Bytes::of(std::move(out));
}

}  // namespace tosaic::npy

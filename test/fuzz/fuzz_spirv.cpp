// SPDX-License-Identifier: Apache-2.0
// Any words as a SPIR-V module: the reader returns a graph that verifies, or a diagnostic that says what is wrong. What
// it reads, the writer writes and the reader reads again.
#include "formats/spirv/graph/graph_module.h"

#include <cstring>
#include "ops/definitions/tosa_op.h"

namespace {

using namespace tosaic;

Bytes zeros(std::size_t size) { return Bytes::of(std::vector<std::byte>(size)); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  if (size < sizeof(spirv::Word)) return 0;
  std::vector<spirv::Word> words(size / sizeof(spirv::Word));
  std::memcpy(words.data(), data, words.size() * 4);
  const std::vector<std::pair<spirv::Word, spirv::OutsideConstant>> constants{
      {0, {{DType::f32, {2, 3, 3, 4}, {}}, zeros(288)}}, {1, {{DType::i8, {4, 8}, {}}, zeros(32)}}};
  const std::string entry = "graph_partition_0";
  auto graph = spirv::read_graph(words, entry, constants);
  if (!graph.ok()) {
    if (graph.error().internal) __builtin_trap();
    return 0;
  }
  if (!verify(*graph).ok()) __builtin_trap();
  if (!tosa::verify_graph(*graph, tosa::Spec::everything()).ok()) return 0;
  const auto again = spirv::write_graph(*graph, entry);
  if (!again.ok()) return 0;
  std::vector<std::pair<spirv::Word, spirv::OutsideConstant>> kept;
  for (std::uint32_t i = 0; i < again->constants.size(); ++i) {
    const Value& v = (*graph)[again->constants[i]];
    kept.push_back({i, {v.type, v.constant}});
  }
  if (!spirv::read_graph(again->words, entry, kept).ok()) __builtin_trap();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A SPIR-V module under construction: sections in the order that the specification wants (2.4, "Logical Layout of a
// Module"), and each type and constant made once, because graph interfaces are compared by id.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "formats/spirv/spirv.h"
#include "ir/type.h"

namespace tosaic::spirv {

class Module {
 public:
  Module();

  void use_replicated_composites(bool allowed) { replicates_ = allowed; }
  Id fresh() { return next_++; }
  // The whole module, header first.
  std::vector<Word> words() const;

  // ---- types; rank 0 becomes shape [1], as SPIR-V has no tensors of rank 0
  Id element(DType type);
  Id tensor(DType type, const Shape& shape);
  Id structure(std::vector<Id> members);
  Id graph_type(std::uint32_t inputs, std::vector<Id> types);

  // ---- constants
  Id integer(std::uint32_t value);  // 32 bits
  Id text(std::string_view bytes);  // an array of 8-bit integers; arrays are not empty, so nothing is one zero
  Id boolean(bool value);
  Id scalar(DType type, const void* element);        // one element in storage form
  Id list(const std::vector<std::int64_t>& values);  // a rank-1 tensor of 32-bit integers
  // Dense, row-major elements in storage form, at least one.
  Id tensor_constant(DType type, const Shape& shape, const Bytes& elements);
  // Does the extension that repeats one element, or none at all, say all of this tensor?
  bool is_uniform(DType type, const Bytes& elements) const;
  Id graph_constant(Id tensor_type, std::uint32_t number);

  // ---- the graph and its interface
  Id tosa_instructions() const { return tosa_; }
  Id instructions(std::string_view set);               // imported anew with each call
  Id variable(Id tensor_type, std::uint32_t binding);  // descriptor set 0
  void name(Id id, std::string_view text);
  void entry_point(Id graph, std::string_view name, const std::vector<Id>& interface);
  void body(Opcode opcode, const std::vector<Word>& operands);

 protected:
  using Words = std::vector<Word>;
  struct Empty {};
  explicit Module(Empty) {}  // without what every graph module has: for modules of another kind
  static void put(Words& section, Opcode opcode, const Words& operands);
  // The instruction of the globals' section with these operands; the result id stands first, or behind the type.
  Id global(Opcode opcode, Words operands, bool typed);
  void require(Capability capability, const char* extension = nullptr);

  Id next_ = 1;
  std::set<Word> capabilities_;
  std::set<std::string> extensions_;
  Words imports_, names_, decorations_, globals_, entry_points_, body_;

 private:
  Id nested(DType type, const std::vector<std::int64_t>& dims, std::size_t level, const std::byte* elements);

  std::map<Words, Id> interned_;
  Id tosa_ = 0;
  bool replicates_ = true;
};

// Text as SPIR-V literal: UTF-8, zero-terminated, padded to words.
std::vector<Word> literal(std::string_view text);

}  // namespace tosaic::spirv

// SPDX-License-Identifier: Apache-2.0
// What the statements of a graph's text are made of: types, attributes, locations, constants. Private to ir/.
#pragma once
#include <optional>

#include "ir/graph.h"
#include "ir/text_reader.h"

namespace tosaic::text {

// Where a comment says "behind", that character has been read.
class ValueParser : protected TextReader {
 protected:
  using TextReader::TextReader;

  TensorType type();
  // What an integer is that follows from sizes, where its brackets follow.
  std::optional<Dim> size();
  Attrs attributes();  // behind "{"
  LocRef location();   // behind "loc("
  Bytes constant(const TensorType& t);

 private:
  Dim symbolic_dim();  // behind "("
  DType dtype();
  Scales scales();  // behind "<"
  Attr attribute();
  Attr number();
  Attr list();  // behind "["
  SymbolicArgument argument();
};

}  // namespace tosaic::text

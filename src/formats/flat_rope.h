// SPDX-License-Identifier: Apache-2.0
// Flatbuffers with large vectors of bytes, which stay where they are: the builder leaves room for them and writes
// nothing there (memory that nobody touches costs nothing), and the finished file is a rope with views in these places.
// Its bytes are those that the builder would have written. Such vectors begin at lines of the cache, of which whoever
// maps the file into memory reads whole registers.
#pragma once
#include <flatbuffers/flatbuffers.h>
#include <vector>

#include "base/rope.h"

namespace tosaic::formats {

class FlatRope {
 public:
  // The builder has to have room for everything from the beginning: growing, it copies what was never written.
  explicit FlatRope(flatbuffers::FlatBufferBuilder& builder) : builder_(builder) {}

  flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> bytes(const Rope& data, std::size_t alignment);
  // Once the builder's buffer is finished; takes it.
  Rope finished();

 private:
  struct View {
    flatbuffers::uoffset_t from_end;
    Rope data;
  };
  flatbuffers::FlatBufferBuilder& builder_;
  std::vector<View> views_;
};

}  // namespace tosaic::formats

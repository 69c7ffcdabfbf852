// SPDX-License-Identifier: Apache-2.0
// Groups of channels (tosaic.grouped_conv2d) as the batches of one product: each has rows of all pixels, some of the
// input's channels and some of the result's columns.
#pragma once
#include "shaders/fetched_operand.h"

namespace tosaic::shaders {

struct ConvolutionGroups {
  std::int64_t count, channels, columns;  // of each group: channels that it reads, and columns that it makes
  explicit ConvolutionGroups(const tosa::View& view);
};

// The one that a work group makes a tile of; of other convolutions the only one.
class ConvolvedGroup {
 public:
  // Its number is taken out of that of the work group; each has so many tiles. Beyond the last there are no rows.
  ConvolvedGroup(Kernel& s, const ConvolutionGroups& groups, const Dim& tiles, Value& work_group, Value& rows);

  // Binds the image, of which the group's channels are read.
  std::optional<Windows::Steps> bind(Fetched& fetched, const tosa::View& view, std::int64_t unit) const;
  // So many for each group before.
  Value before(std::int64_t of_each) const { return number_ ? *number_ * s_.param(of_each) : s_.integer(0); }
  // The same column, or number of columns, of all groups'.
  Value column(Value own) const { return number_ ? *number_ * s_.param(groups_.columns) + own : own; }
  Value columns_apart(Value own) const { return number_ ? s_.param(groups_.count * groups_.columns) : own; }
  // Columns are multiples of four.
  FirstSums first_sums(FirstSums all) const;

 private:
  Kernel& s_;
  const ConvolutionGroups groups_;
  std::optional<Value> number_;
};

}  // namespace tosaic::shaders

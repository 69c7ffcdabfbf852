// SPDX-License-Identifier: Apache-2.0
// The factors of a product as the invocations of a work group read them.
#pragma once
#include "shaders/axes.h"

namespace tosaic::shaders {

// Neighbours of a factor for each place of an invocation: fetched, and later made what the product takes: four
// floats, or in four words eight f16 or sixteen 8-bit quantised values, of which a row has a multiple of four or at
// least a vector. Where they need not lie at a multiple of as many they are loaded one by one, or as the two vectors
// that they lie in.
class Fetched {
 public:
  enum class As : std::uint8_t { floats, f16, int8 };
  // `row`: elements of a row, which is whole vectors or not.
  Fetched(Kernel& s, DType type, std::optional<Value> zero_point, const Dim& row, As as = As::floats);
  void bind(ValueId v);
  // Of a few elements that lie so far apart.
  void bind(ValueId v, Value apart);
  void bind(Bytes constant);
  static constexpr std::uint32_t width_of(As as) { return as == As::f16 ? 8 : as == As::int8 ? 16 : 4; }
  std::uint32_t width() const { return width_of(as_); }
  // How many vectors a row of so many elements has, and how far apart rows lie in the buffer's units.
  Value vectors_in(Value elements) const;
  Value pitch(Value elements) const {
    return whole_ ? vectors_in(elements) : by_words() ? shift_right_unsigned(elements, s_.integer(2)) : elements;
  }
  // A number of elements, whole vectors where rows are, as the buffer counts.
  Dim units(const Dim& elements) const {
    if (whole_) return floor_div(elements, std::int64_t{width()});
    return by_words() ? floor_div(elements, 4) : elements;
  }
  // What that many vectors count in the buffer.
  Value scaled(Value vectors) const {
    if (apart_) return vectors * width() * *apart_;
    return whole_ ? vectors : vectors * (by_words() ? 4 : width());
  }

  // The vector at `at` for place i, or zeros (quantised values of them); `left` of its elements are there, if rows are
  // not whole vectors.
  void fetch(std::size_t i, Value at, Value inside, Value left);
  // The same where all of it is there; of whole rows.
  void fetch(std::size_t i, Value at);
  bool is_whole() const { return whole_; }
  bool as_int8() const { return as_ == As::int8; }
  Vector vector(std::size_t i);

 private:
  struct Slot {
    std::optional<RawVariable> raw, next;  // next: what the vector's end is in
    std::optional<Variable> begin, left;   // where in raw the vector begins, and how many of its elements are there
    std::optional<Variable> inside;        // none: all of it is
    std::optional<VectorVariable> made;
  };
  template <class V, class X>
  void keep(std::optional<V>& variable, const X& value) {
    if (variable)
      variable->set(value);
    else
      variable = s_.variable(value);
  }
  bool by_words() const { return as_ == As::int8 && !across_; }
  Value held(Value number, Value inside);
  void fetch_across(Slot& slot, Value at, Value inside, Value left);
  Vector joined(const Slot& slot);
  Vector joined_bytes(const std::vector<Value>& words, Value begin, Value left);
  Vector one_by_one(Value at, Value inside, Value left);

  Kernel& s_;
  const DType type_;
  std::optional<Value> zero_point_;
  const As as_;
  bool whole_, whole_words_;
  bool across_ = false;       // are vectors that begin anywhere read as the two that they lie in?
  const std::uint32_t most_;  // elements of a vector that there can be
  Buffer buffer_;
  std::optional<Value> last_;   // the last whole vector's number
  std::optional<Value> zeros_;  // four quantised values of 0
  std::optional<Value> apart_;  // how far elements lie, if not together
  std::vector<Slot> slots_;
};

// The left factor: windows of pixels, or plain rows where there are no axes.
class Windows {
 public:
  // Where pixels lie, if not one behind the other: as the factor counts.
  struct Steps {
    Value begin, image;
    std::vector<Value> axes;
  };
  Windows(Kernel& s, std::vector<Axis> axes, Value channels, Value rows, Fetched& fetched,
          std::optional<Steps> steps = {})
      : s_(s),
        axes_(std::move(axes)),
        channels_(channels),
        all_rows_(rows),
        fetched_(fetched),
        steps_(std::move(steps)) {}

  // Its row for the next place; `before`: rows of the batches before.
  void add_row(Value number, std::optional<Value> before);
  // A plain one that begins at vector or element `begin`, as the factor counts.
  void add_plain_row(Value number, Value begin) { rows_.push_back({number < all_rows_, {}, begin}); }
  // A plain one that is a pixel, whose channels lie together.
  void add_pixel(Value exists, Value pixel) { rows_.push_back({exists, {}, pixel * fetched_.pitch(channels_)}); }
  // Vector `depth` of each row, of as many as channels in all taps. `set`: of places, where there are several.
  void fetch(Value depth, Value all, std::size_t set = 0);
  // The same where there are so many; of plain rows, those that do not exist as something.
  void fetch(Value depth, std::size_t set = 0);
  Value vectors_of_channels();

 private:
  struct Row {
    Value exists;
    std::vector<Value> begin;
    Value at;
  };
  Kernel& s_;
  std::vector<Axis> axes_;
  Value channels_, all_rows_;
  Fetched& fetched_;
  std::optional<Steps> steps_;
  std::optional<Value> vectors_;
  std::vector<Row> rows_;
};

// Binds an image where it was before data layout operators, if it can be read there.
std::optional<Windows::Steps> bind_image(Kernel& s, Fetched& fetched, ValueId v, std::int64_t unit);

// Constant weights [columns, taps, channels] as the right factor: a row for each channel of each tap. Channels and
// columns are filled up with zeros to a multiple of `unit`. Four 8-bit quantised values are a channel of i32. Of
// several groups one behind the other.
Bytes packed_weights(const Bytes& weights, DType type, std::int64_t columns, std::int64_t taps, std::int64_t channels,
                     std::int64_t unit = 4, std::int64_t groups = 1);
// The same by columns of `depth` 8-bit quantised values, filled up alone.
Bytes packed_columns(const Bytes& weights, std::int64_t columns, std::int64_t depth, std::int64_t unit);
// What a column's sums of 8-bit products with weights begin with, as activations count from their zero point: the sum
// of its weights times a factor.
struct FirstSums {
  Buffer of_weights;  // i32, one for each column
  Value factor;
  std::optional<Value> first_quad = {};  // where the columns' begin, if there are more
  Quad at(Kernel& s, Value quad) const { return s.load_quad(of_weights, first_quad ? *first_quad + quad : quad); }
};
FirstSums first_sums(Kernel& s, const Bytes& weights, std::int64_t columns, Value zero_point);

}  // namespace tosaic::shaders

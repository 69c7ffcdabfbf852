// SPDX-License-Identifier: Apache-2.0
#include "shaders/kernel.h"

#include <bit>

namespace tosaic::shaders {

using vulkan_program::View;

bool reads_texels(TierId tier) { return tier == TierId::cpu; }
bool shares_memory(TierId tier) { return tier != TierId::cpu; }

bool packs_f16(const Work& work) { return work.in_half_precision && tiers_of_matrices.has(work.tier); }

Kernel::Kernel(const Work& work, std::string name, const Dim& invocations, std::uint32_t group_size)
    : Shader(group_size), work_(work) {
  made_.name = std::move(name);
  if (packs_f16(work)) pack_f16_by_device();
  made_.group_size = group_size;
  made_.invocations = invocations;
  index_ = invocation();
  when(!below_unsigned(index_, param(invocations)), [&] { leave(); });
}

Kernel::Kernel(const Work& work, std::string name, const Groups& groups) : Shader(groups.size), work_(work) {
  made_.name = std::move(name);
  if (packs_f16(work)) pack_f16_by_device();
  made_.group_size = groups.size;
  made_.invocations = groups.count * std::int64_t{groups.size};
}

// Equal numbers are not shared: that they are equal here would make another shader of it.
Value Kernel::told(const Push& given) {
  const std::size_t place = next_param_++;
  if (place >= most_pushes) return told_by_buffer(place - most_pushes, given);
  if (place == params_.size()) {
    made_.pushes.push_back(given);
    params_.push_back(push(static_cast<std::uint32_t>(place)));
  }
  return params_[place];
}

Value Kernel::told_by_buffer(std::size_t place, const Push& given) {
  overflowed_ |= !has_more_params_ || !given.number.is_number() || given.reciprocal;
  if (overflowed_) return params_[0];
  if (!more_params_buffer_) {
    more_params_binding_ = made_.bound.size();
    made_.bound.push_back({Bytes(), false, View::buffer, true});
    more_params_buffer_ = buffer(DType::i32, false, true);
  }
  if (place == more_numbers_.size()) more_numbers_.push_back(static_cast<std::int32_t>(given.number.value()));
  if (place / 4 == more_params_.size())
    more_params_.push_back(load_quad_first(*more_params_buffer_, integer(static_cast<std::int64_t>(place / 4))));
  return more_params_[place / 4][place % 4];
}

void Kernel::repeat(int times, const std::function<void(int i)>& body) {
  const std::size_t param = next_param_, constant = next_constant_;
  for (int i = 0; i < times; ++i) {
    next_param_ = param;
    next_constant_ = constant;
    body(i);
  }
}

Elements::Elements(const Work& work, const Dim& elements) : count(elements) {
  constexpr std::int64_t many = 1 << 16;
  if (work.tier != TierId::cpu && most(elements) >= many) at_once = 4;
}

void Kernel::for_each(const Elements& all, const std::function<void(Value index)>& body) {
  if (all.at_once == 1) return body(index());
  const Value apart = param(all.invocations()), count = param(all.count);
  const auto one = [&](Value number) {
    const Value element = index() + number * apart;
    when(below_unsigned(element, count), [&] { body(element); });
  };
  loop(integer(0), integer(all.at_once), integer(1), one, Unrolling::all);
}

Value Kernel::real_param(double number) {
  return real_of(param(std::bit_cast<std::int32_t>(static_cast<float>(number))));
}

namespace {

View view_of(DType type, bool quads) {
  if (type == DType::f32) return quads ? View::rgba32_float : View::r32_float;
  switch (storage_size(type)) {
    case 1: return quads ? View::r32_uint : View::r8_uint;
    case 2: return View::r16_uint;
    default: return quads ? View::rgba32_uint : View::r32_uint;
  }
}

}  // namespace

Buffer Kernel::read(DType type, bool quads, What what) {
  const bool by_texels = reads_texels(work_.tier);
  made_.bound.push_back({std::move(what), false, by_texels ? view_of(type, quads) : View::buffer, quads});
  return by_texels ? texels(type, quads) : buffer(type, false, quads);
}

Buffer Kernel::input(ValueId v, bool quads) {
  const auto [found, added] = inputs_.try_emplace({v, quads});
  if (added) found->second = read(type(v).dtype, quads, v);
  return found->second;
}

Buffer Kernel::input_words(ValueId v, bool quads) {
  const auto [found, added] = words_.try_emplace({v, quads});
  if (added) found->second = read(DType::i32, quads, v);
  return found->second;
}

Buffer Kernel::output(ValueId v, bool quads) {
  const auto [found, added] = outputs_.try_emplace({v, quads});
  if (added) {
    found->second = buffer(type(v).dtype, true, quads);
    made_.bound.push_back({v, true, View::buffer, quads});
  }
  return found->second;
}

Kernel::Table Kernel::table(ValueId v) {
  if (!joins_tables) return {input(v), 0};
  Tables& tables = tables_[type(v).dtype];
  if (tables.values.empty()) {
    tables.binding = made_.bound.size();
    tables.buffer = read(type(v).dtype, false, Bytes());
  }
  std::int64_t first = 0;
  for (const ValueId other : tables.values) {
    if (other == v) return {tables.buffer, first};
    first += type(other).shape.elements();
  }
  tables.values.push_back(v);
  return {tables.buffer, first};
}

Buffer Kernel::constant(DType dtype, Bytes elements, bool quads) {
  if (next_constant_ == constants_.size()) constants_.push_back(read(dtype, quads, std::move(elements)));
  return constants_[next_constant_++];
}

Buffer Kernel::write_scratch(DType type, const Scratch& scratch) {
  made_.bound.push_back({scratch, true, View::buffer, true});
  return buffer(type, true, true);
}

Buffer Kernel::integers(const std::vector<std::int32_t>& numbers) { return constant(DType::i32, Bytes::of(numbers)); }

Value Kernel::scalar(ValueId v) {
  const Bytes& data = graph()[v].constant;
  const DType dtype = type(v).dtype;
  if (graph()[v].size && is_float(dtype)) return real_of(told({*graph()[v].size, true}));
  if (graph()[v].size) return told({*graph()[v].size});
  if (is_float(dtype)) return real_param(element_as_double(dtype, data.data(), 0));
  const std::int64_t number = element_as_integer(dtype, data.data(), 0);
  if (dtype == DType::boolean) return param(number) != integer(0);
  if (storage_size(dtype) == 8) {
    const Value low = param(number & 0xffffffff), high = param(number >> 32);
    return {this, low.id, Kind::wide, high.id};
  }
  return param(number);
}

Made Kernel::made() {
  made_.module = finish();
  if (more_params_buffer_) made_.bound[more_params_binding_].what = Bytes::of(more_numbers_);
  for (const auto& [dtype, tables] : tables_) {
    std::vector<std::byte> all;
    for (const ValueId v : tables.values) {
      const Bytes& table = graph()[v].constant;
      all.insert(all.end(), table.data(), table.data() + table.size());
    }
    made_.bound[tables.binding].what = Bytes::of(std::move(all));
  }
  return std::move(made_);
}

}  // namespace tosaic::shaders

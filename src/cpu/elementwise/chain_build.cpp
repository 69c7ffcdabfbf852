// SPDX-License-Identifier: Apache-2.0
// How a chain is made of an expression: one or more block operations for each of its calls.
#include <algorithm>

#include "cpu/elementwise/chain.h"

namespace tosaic::cpu {
namespace {

constexpr std::size_t max_instructions = 48;
// A small tensor is repeated into scratch once per task; a longer one block by block.
constexpr std::size_t max_pattern_bytes = 16 * 1024;

bool is_narrow_float(DType type) { return type == DType::f16 || type == DType::bf16; }
// The dtype that a value has inside blocks.
DType block_type(DType type) { return is_narrow_float(type) ? DType::f32 : type; }

template <class T>
void copy_block(const Block& block) {
  std::copy_n(static_cast<const T*>(block.in[0]), block.count, static_cast<T*>(block.out));
}
BlockKernel copy_kernel(std::size_t size) {
  switch (size) {
    case 1: return copy_block<std::uint8_t>;
    case 2: return copy_block<std::uint16_t>;
    case 4: return copy_block<std::uint32_t>;
    default: return copy_block<std::uint64_t>;
  }
}

}  // namespace

struct ChainBuilder {
  const Graph& graph;
  const plan::Expression& expression;
  Chain& chain;
  ValueId streamed;
  // While building, inputs have registers from 0 and instruction i computes 1000 + i.
  static constexpr int first_result = 1000;
  std::vector<std::size_t> result_size;
  std::vector<int> loaded, computed;  // the registers that hold each input and each call's result in block form

  // ---- operands
  int input(const plan::Expression::Input& from) {
    Chain::Input in;
    in.value = from.value;
    in.size = storage_size(graph[from.value].type.dtype);
    if (from.value == streamed)
      in.access = Chain::Access::streamed;
    else
      classify(in, from.strides);
    const bool in_memory = from.value != streamed && (!graph[from.value].is_constant() || in.constant_pattern.empty());
    chain.inputs_.push_back(std::move(in));
    if (in_memory) chain.reads_.push_back(from.value);
    return static_cast<int>(chain.inputs_.size()) - 1;
  }
  void classify(Chain::Input& in, const std::vector<std::int64_t>& strides) const {
    const Shape &from = graph[in.value].type.shape, &shape = expression.shape;
    const std::int64_t count = from.elements();
    if (count == shape.elements()) return;  // full
    // Trailing dims as they are and all others 1: repeated.
    int d = shape.rank();
    std::int64_t period = 1;
    while (d > 0 && from.size(d - 1) == shape.size(d - 1)) period *= from.size(--d);
    if (period == count) {
      in.period = period;
      const std::size_t bytes = static_cast<std::size_t>(period + Chain::block_elements) * in.size;
      const Value& value = graph[in.value];
      in.access = value.is_constant() || bytes <= max_pattern_bytes ? Chain::Access::pattern : Chain::Access::repeated;
      if (value.is_constant()) {
        in.constant_pattern.resize(bytes);
        Chain::expand(in, value.constant.data(), 0, period + Chain::block_elements, in.constant_pattern.data());
      }
      return;
    }
    in.access = Chain::Access::strided;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      if (shape.size(i) == 1) continue;
      const std::int64_t s = strides[static_cast<std::size_t>(i)];
      // Neighbouring dims walked the same way are one.
      if (!in.dims.empty() && (s == 0 ? in.strides.back() == 0 : in.strides.back() * in.dims.back() == s))
        in.dims.back() *= shape.size(i);
      else
        in.dims.push_back(shape.size(i)), in.strides.push_back(s);
    }
    std::reverse(in.dims.begin(), in.dims.end());
    std::reverse(in.strides.begin(), in.strides.end());
  }
  // The register with an operand in block form: loaded, and widened when it is a narrow float.
  std::optional<int> operand(int which) {
    if (which < 0) return computed[static_cast<std::size_t>(~which)];
    if (static_cast<std::size_t>(which) < loaded.size()) return loaded[static_cast<std::size_t>(which)];
    const plan::Expression::Input& from = expression.inputs[static_cast<std::size_t>(which)];
    int reg = input(from);
    const DType type = graph[from.value].type.dtype;
    if (is_narrow_float(type)) {
      const auto wide = emit({.op = block::load, .in = type, .out = DType::f32}, {reg, -1, -1}, {}, 4);
      if (!wide) return std::nullopt;
      reg = *wide;
    }
    loaded.push_back(reg);  // inputs come by first use
    return reg;
  }

  // ---- instructions
  std::optional<int> emit(const BlockKey& key, std::array<int, 3> in, BlockConstants constants, std::size_t size) {
    return push(block_kernel(key), in, std::move(constants), size);
  }
  std::optional<int> push(BlockKernel kernel, std::array<int, 3> in, BlockConstants constants, std::size_t size) {
    if (!kernel || chain.instructions_.size() >= max_instructions) return std::nullopt;
    Chain::Instruction& instruction = chain.instructions_.emplace_back();
    instruction.kernel = kernel;
    instruction.in = in;
    instruction.constants = std::make_shared<BlockConstants>(std::move(constants));
    result_size.push_back(size);
    return first_result + static_cast<int>(chain.instructions_.size()) - 1;
  }

  bool constant_parameters(const Node& node, std::size_t first) const {
    return std::all_of(node.inputs.begin() + static_cast<std::ptrdiff_t>(first), node.inputs.end(),
                       [&](ValueId v) { return v == no_value || graph[v].is_constant(); });
  }
  std::int64_t number(const Node& node, std::size_t operand) const {
    const Value& value = graph[node.inputs[operand]];
    return element_as_integer(value.type.dtype, value.constant.data(), 0);
  }

  bool add(const plan::Expression::Call& call) {
    const Node& n = graph.nodes[call.node];
    const tosa::Op* op = tosa::find(n.op);
    if (call.operands.empty() || call.operands.size() > 3 || !constant_parameters(n, call.operands.size()))
      return false;
    std::array<int, 3> in{-1, -1, -1};
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const auto reg = operand(call.operands[i]);
      if (!reg) return false;
      in[i] = *reg;
    }
    const DType in_type = graph[n.inputs[0]].type.dtype, out_type = graph[n.outputs[0]].type.dtype;
    std::optional<int> result;
    if (op->name == "rescale")
      result = rescale(n, in[0], in_type, out_type);
    else if (op->name == "cast")
      result = cast(in[0], in_type, out_type);
    else
      result = simple(*op, n, in, out_type);
    if (!result) return false;
    computed.push_back(*result);
    return true;
  }

  std::optional<int> simple(const tosa::Op& op, const Node& n, std::array<int, 3> in, DType out) {
    // SELECT's elements are those of its second operand; every other operator is known by its first.
    const DType type = graph[n.inputs[op.name == "select" ? 1 : 0]].type.dtype;
    BlockKey key{.op = n.op, .in = block_type(type), .out = block_type(out)};
    key.ignore_nan = n.attrs.get_or<std::string>("nan_mode", "propagate") == "ignore";
    key.rounded = n.attrs.get_or<bool>("round", false);
    BlockConstants constants;
    if (op.name == "clamp") {
      if (is_float(type)) {
        constants.lowest_f32 = static_cast<float>(n.attrs.get<double>("min_val"));
        constants.highest_f32 = static_cast<float>(n.attrs.get<double>("max_val"));
      } else {
        constants.lowest = n.attrs.get<std::int64_t>("min_val");
        constants.highest = n.attrs.get<std::int64_t>("max_val");
      }
    } else if (op.name == "negate" && !is_float(type)) {
      constants.input_zp = static_cast<std::int32_t>(number(n, 1));
      constants.output_zp = static_cast<std::int32_t>(number(n, 2));
    } else if (op.name == "mul" && !is_float(type)) {
      constants.shift = static_cast<int>(number(n, 2));
    } else if (op.name == "table") {
      constants.table = graph[n.inputs[1]].constant.data();
    }
    const auto result = emit(key, in, std::move(constants), storage_size(key.out));
    if (!result || !is_narrow_float(out)) return result;
    return emit({.op = block::round, .in = DType::f32, .out = out}, {*result, -1, -1}, {}, 4);
  }

  std::optional<int> cast(int in, DType from, DType to) {
    if (is_float(from) && block_type(from) == DType::f32 && block_type(to) == DType::f32) {
      // Widening changes nothing in block form; narrowing rounds.
      if (!is_narrow_float(to)) return in;
      return emit({.op = block::round, .in = DType::f32, .out = to}, {in, -1, -1}, {}, 4);
    }
    // i32 to bf16 through f32 would round twice.
    if (from == DType::i32 && to == DType::bf16) return std::nullopt;
    const auto result = emit({.op = tosa::op::cast, .in = block_type(from), .out = block_type(to)}, {in, -1, -1}, {},
                             storage_size(block_type(to)));
    if (!result || !is_narrow_float(to)) return result;
    return emit({.op = block::round, .in = DType::f32, .out = to}, {*result, -1, -1}, {}, 4);
  }

  std::optional<int> rescale(const Node& n, int in, DType from, DType to) {
    BlockKey key{.op = tosa::op::rescale, .in = from, .out = to};
    key.input_unsigned = n.attrs.get<bool>("input_unsigned");
    key.output_unsigned = n.attrs.get<bool>("output_unsigned");
    key.per_channel = n.attrs.get<bool>("per_channel");
    key.double_round = n.attrs.get<std::string>("rounding_mode") == "double_round";
    BlockConstants constants;
    const Value &multiplier = graph[n.inputs[1]], &shift = graph[n.inputs[2]];
    const std::int64_t scales = multiplier.type.shape.elements();
    constants.channels = scales;
    const std::int64_t repeated = scales == 1 ? 1 : scales + Chain::block_elements;
    for (std::int64_t i = 0; i < repeated; ++i) {
      const auto c = static_cast<std::size_t>(i % scales);
      constants.multiplier.push_back(
          static_cast<std::int32_t>(element_as_integer(multiplier.type.dtype, multiplier.constant.data(), c)));
      constants.scale_shift.push_back(
          static_cast<std::int32_t>(element_as_integer(shift.type.dtype, shift.constant.data(), c)));
    }
    key.per_channel = scales > 1;
    auto zero_point = [](std::int64_t zp, bool is_unsigned, DType type) {
      return static_cast<std::int32_t>(!is_unsigned ? zp : type == DType::i8 ? zp & 0xff : zp & 0xffff);
    };
    constants.input_zp = zero_point(number(n, 3), key.input_unsigned, from);
    constants.output_zp = zero_point(number(n, 4), key.output_unsigned, to);
    const IntegerRange range = range_of(to);
    constants.lowest = key.output_unsigned ? 0 : range.lowest;
    constants.highest = key.output_unsigned ? 2 * range.highest + 1 : range.highest;
    if (block_kernel(key)) return emit(key, {in, -1, -1}, std::move(constants), storage_size(to));
    std::optional<int> x = in;
    if (from != DType::i48) {
      key.op = block::widen;
      x = emit(key, {*x, -1, -1}, constants, 4);
    }
    key.op = block::scale;
    if (x) x = emit(key, {*x, -1, -1}, constants, 4);
    key.op = block::narrow;
    if (x) x = emit(key, {*x, -1, -1}, constants, storage_size(to));
    return x;
  }

  // ---- the end: the output's memory form, and memory for what stays inside
  bool finish() {
    const Value& out = graph[chain.output_];
    const DType type = out.type.dtype;
    const int result = computed.back();
    std::optional<int> last = result;
    if (is_narrow_float(type))
      last = emit({.op = block::store, .in = DType::f32, .out = type}, {result, -1, -1}, {}, 2);
    else if (result < first_result || result != first_result + static_cast<int>(chain.instructions_.size()) - 1)
      last = push(copy_kernel(storage_size(type)), {result, -1, -1}, {}, storage_size(type));
    if (!last) return false;
    number_registers();
    place_registers();
    return true;
  }
  void number_registers() {
    const int inputs = static_cast<int>(chain.inputs_.size());
    auto renumber = [&](int reg) { return reg >= first_result ? reg - first_result + inputs : reg; };
    for (std::size_t i = 0; i < chain.instructions_.size(); ++i) {
      Chain::Instruction& instruction = chain.instructions_[i];
      for (int& reg : instruction.in) reg = renumber(reg);
      instruction.out = inputs + static_cast<int>(i);
    }
  }
  // Expanded operands keep their memory for the whole run; results take turns.
  void place_registers() {
    const std::size_t inputs = chain.inputs_.size(), results = chain.instructions_.size();
    std::size_t bytes = 0;
    for (Chain::Input& in : chain.inputs_) {
      const bool pattern = in.access == Chain::Access::pattern && in.constant_pattern.empty();
      const bool expanded = in.access == Chain::Access::repeated || in.access == Chain::Access::strided;
      if (!pattern && !expanded) continue;
      in.memory = bytes;
      bytes += align_up(static_cast<std::size_t>(Chain::block_elements + (pattern ? in.period : 0)) * in.size);
    }
    std::vector<std::size_t> last_use(results, 0);
    for (std::size_t i = 0; i < results; ++i)
      for (int reg : chain.instructions_[i].in)
        if (reg >= static_cast<int>(inputs)) last_use[static_cast<std::size_t>(reg) - inputs] = i;
    chain.register_memory_.assign(results, 0);
    // Free memory by element size: blocks of 4-byte elements are what nearly all results are.
    std::vector<std::pair<std::size_t, std::size_t>> idle;  // bytes, offset
    for (std::size_t i = 0; i + 1 < results; ++i) {
      const std::size_t need = align_up(static_cast<std::size_t>(Chain::block_elements) * result_size[i]);
      auto fit = std::find_if(idle.begin(), idle.end(), [&](const auto& free) { return free.first >= need; });
      if (fit != idle.end()) {
        chain.register_memory_[i] = fit->second;
        result_size[i] = fit->first / static_cast<std::size_t>(Chain::block_elements);
        idle.erase(fit);
      } else {
        chain.register_memory_[i] = bytes;
        bytes += need;
      }
      for (std::size_t j = 0; j <= i; ++j)
        if (last_use[j] == i)
          idle.push_back(
              {align_up(static_cast<std::size_t>(Chain::block_elements) * result_size[j]), chain.register_memory_[j]});
    }
    chain.scratch_bytes_ = bytes;
  }
};

std::shared_ptr<const Chain> Chain::make(const Graph& graph, const std::vector<std::uint32_t>& nodes,
                                         ValueId streamed) {
  const plan::Expression expression = plan::expression_of(graph, nodes);
  auto chain = std::make_shared<Chain>();
  chain->output_ = expression.output;
  chain->output_size_ = storage_size(graph[expression.output].type.dtype);
  chain->elements_ = expression.shape.elements();
  ChainBuilder builder{graph, expression, *chain, streamed, {}, {}, {}};
  for (const plan::Expression::Call& call : expression.calls)
    if (!builder.add(call)) return nullptr;
  if (!builder.finish()) return nullptr;
  return chain;
}

bool chainable(const Graph& graph, std::uint32_t n) {
  const Node& node = graph.nodes[n];
  const tosa::Op* op = tosa::find(node.op);
  return op && op->elementwise && node.outputs.size() == 1 && Chain::make(graph, {n}) != nullptr;
}

plan::Fusing chaining(const Planning& planning) {
  return {.can = [&planning](std::uint32_t n) { return !planning.taken[n] && chainable(planning.graph, n); },
          .max_nodes = max_instructions / 4};
}

}  // namespace tosaic::cpu

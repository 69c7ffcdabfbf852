// SPDX-License-Identifier: Apache-2.0
// How a chain is made of an expression: one or more block operations for each of its calls.
#include <algorithm>

#include "cpu/elementwise/byte_function.h"
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
  Chain::Tables tables;
  // While building, inputs have registers from 0 and instruction i computes 1000 + i.
  static constexpr int first_result = 1000;
  std::vector<std::size_t> result_size;
  // The registers that hold each input and each call's result in block form; none yet.
  std::vector<std::optional<int>> loaded = std::vector<std::optional<int>>(expression.inputs.size());
  std::vector<std::optional<int>> computed = std::vector<std::optional<int>>(expression.calls.size());

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
    if (which < 0) return result(static_cast<std::size_t>(~which));
    std::optional<int>& known = loaded[static_cast<std::size_t>(which)];
    if (known) return known;
    const plan::Expression::Input& from = expression.inputs[static_cast<std::size_t>(which)];
    int reg = input(from);
    const DType type = graph[from.value].type.dtype;
    if (is_narrow_float(type)) {
      const auto wide = emit({.op = block::load, .in = type, .out = DType::f32}, {reg, -1, -1}, {}, 4);
      if (!wide) return std::nullopt;
      reg = *wide;
    }
    return known = reg;
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

  // The register with a call's result. From the last call backwards, so that what only a table stands for is left out.
  std::optional<int> result(std::size_t call) {
    std::optional<int>& known = computed[call];
    if (!known && tables != Chain::Tables::none)
      if (auto function = byte_function(graph, expression, call)) known = look_up(std::move(*function));
    if (!known) known = joined(expression.calls[call]);
    if (!known) known = compute(expression.calls[call]);
    return known;
  }
  std::optional<int> look_up(ByteFunction function) {
    const auto reg = operand(function.operand);
    if (!reg) return std::nullopt;
    BlockConstants constants;
    constants.computed_table = std::move(function.table);
    constants.table = constants.computed_table.data();
    return emit({.op = tosa::op::table, .in = DType::i8, .out = DType::i8}, {*reg, -1, -1}, std::move(constants), 1);
  }
  std::optional<int> compute(const plan::Expression::Call& call) {
    const Node& n = graph.nodes[call.node];
    const tosa::Op* op = tosa::find(n.op);
    if (call.operands.empty() || call.operands.size() > 3 || !constant_parameters(n, call.operands.size()))
      return std::nullopt;
    std::array<int, 3> in{-1, -1, -1};
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const auto reg = operand(call.operands[i]);
      if (!reg) return std::nullopt;
      in[i] = *reg;
    }
    const DType in_type = graph[n.inputs[0]].type.dtype, out_type = graph[n.outputs[0]].type.dtype;
    if (op->name == "rescale") return rescale(n, in[0]);
    if (op->name == "cast") return cast(in[0], in_type, out_type);
    return simple(*op, n, in, out_type);
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

  // The constants of a RESCALE, and what is asked for.
  std::pair<BlockKey, BlockConstants> rescaling(const Node& n) const {
    const DType from = graph[n.inputs[0]].type.dtype, to = graph[n.outputs[0]].type.dtype;
    BlockKey key{.op = tosa::op::rescale, .in = from, .out = to};
    key.input_unsigned = n.attrs.get<bool>("input_unsigned");
    key.output_unsigned = n.attrs.get<bool>("output_unsigned");
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
    return {key, std::move(constants)};
  }

  std::optional<int> rescale(const Node& n, int in) {
    auto [key, constants] = rescaling(n);
    const std::size_t size = storage_size(key.out);
    if (block_kernel(key)) return emit(key, {in, -1, -1}, std::move(constants), size);
    std::optional<int> x = in;
    if (key.in != DType::i48) {
      key.op = block::widen;
      x = emit(key, {*x, -1, -1}, constants, 4);
    }
    key.op = block::scale;
    if (x) x = emit(key, {*x, -1, -1}, constants, 4);
    key.op = block::narrow;
    if (x) x = emit(key, {*x, -1, -1}, constants, size);
    return x;
  }

  // The constants of a RESCALE between these dtypes that has one scale and nothing unsigned.
  std::optional<BlockConstants> plain_rescale(const plan::Expression::Call& call, DType from, DType to) const {
    const Node& n = graph.nodes[call.node];
    if (n.op != tosa::op::rescale || !constant_parameters(n, 1)) return std::nullopt;
    auto [key, constants] = rescaling(n);
    if (key.in != from || key.out != to || !block_kernel(key)) return std::nullopt;
    return std::move(constants);
  }
  const plan::Expression::Call* call_of(int operand) const {
    return operand < 0 ? &expression.calls[static_cast<std::size_t>(~operand)] : nullptr;
  }
  // RESCALE to i8 of a sum, difference or product of RESCALEs from i8, in one go: what is between stays in registers.
  std::optional<int> joined(const plan::Expression::Call& last) {
    std::optional<BlockConstants> constants = plain_rescale(last, DType::i32, DType::i8);
    const plan::Expression::Call* join = constants ? call_of(last.operands[0]) : nullptr;
    if (!join || join->operands.size() != 2) return std::nullopt;
    const Node& node = graph.nodes[join->node];
    if (!constant_parameters(node, 2) || (node.op == tosa::op::mul && number(node, 2) != 0)) return std::nullopt;
    for (int which : join->operands) {
      const plan::Expression::Call* call = call_of(which);
      auto of_operand = call ? plain_rescale(*call, DType::i8, DType::i32) : std::nullopt;
      if (!of_operand) return std::nullopt;
      constants->operands.push_back(std::move(*of_operand));
    }
    const BlockKernel kernel = joined_kernel(node.op, *constants);
    if (!kernel) return std::nullopt;
    std::array<int, 3> in{-1, -1, -1};
    for (std::size_t i = 0; i < 2; ++i) {
      const auto reg = operand(call_of(join->operands[i])->operands[0]);
      if (!reg) return std::nullopt;
      in[i] = *reg;
    }
    return push(kernel, in, std::move(*constants), 1);
  }

  // ---- the end: the output's memory form, and memory for what stays inside
  bool finish(int output) {
    const Value& out = graph[chain.output_];
    const DType type = out.type.dtype;
    std::optional<int> last = output;
    if (is_narrow_float(type))
      last = emit({.op = block::store, .in = DType::f32, .out = type}, {output, -1, -1}, {}, 2);
    else if (output < first_result || output != first_result + static_cast<int>(chain.instructions_.size()) - 1)
      last = push(copy_kernel(storage_size(type)), {output, -1, -1}, {}, storage_size(type));
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

std::shared_ptr<const Chain> Chain::make(const Graph& graph, const std::vector<std::uint32_t>& nodes, ValueId streamed,
                                         Tables tables) {
  const plan::Expression expression = plan::expression_of(graph, nodes);
  auto chain = std::make_shared<Chain>();
  chain->output_ = expression.output;
  chain->output_size_ = storage_size(graph[expression.output].type.dtype);
  chain->elements_ = expression.shape.elements();
  ChainBuilder builder{
      .graph = graph, .expression = expression, .chain = *chain, .streamed = streamed, .tables = tables};
  const std::optional<int> output = builder.result(expression.calls.size() - 1);
  if (!output || !builder.finish(*output)) return nullptr;
  return chain;
}

bool chainable(const Graph& graph, std::uint32_t n) {
  const Node& node = graph.nodes[n];
  const tosa::Op* op = tosa::find(node.op);
  return op && op->elementwise && node.outputs.size() == 1 && Chain::make(graph, {n}) != nullptr;
}

plan::Fusing chaining(const Planning& planning) {
  return {.can = [&planning](std::uint32_t n) { return !planning.taken[n] && chainable(planning.graph, n); },
          .max_nodes = max_instructions / 4,
          .joins = true};
}

}  // namespace tosaic::cpu

// SPDX-License-Identifier: Apache-2.0
#include "runtime/method.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <list>
#include <map>

#include "base/interrupt.h"
#include "base/loop_limit.h"
#include "base/memory.h"
#include "base/zero_again.h"
#include "contract/tensors.h"
#include "runtime/cells.h"
#include "runtime/memory_order.h"
#include "runtime/sized_kernel.h"
#include "runtime/whole.h"

namespace tosaic::runtime {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

// An instruction made ready.
struct DelegateStep {
  std::size_t delegate;
  std::vector<std::int32_t> args;
};
struct MoveStep {
  std::int32_t from, to;
};
struct JumpStep {
  std::int32_t condition;
  std::size_t destination;
  std::int64_t turns = 0;  // of the loop that it closes, since that was entered
};
struct NoStep {};
using Step = std::variant<std::unique_ptr<Kernel>, DelegateStep, MoveStep, JumpStep, NoStep>;

// What a method and its clones have in common.
struct Origin {
  pte::Plan plan;
  Options options;
  NamedData data;  // the program's and that of .ptd files
};

struct Memory {
  std::shared_ptr<std::byte> start;
  std::size_t bytes = 0;
};

using Clock = std::chrono::steady_clock;

Diagnostic located(Diagnostic why, const Options& options) {
  if (why.place.file.empty()) why.place.file = options.file;
  return why;
}

}  // namespace

constexpr std::size_t lent_alignment = 16;  // as planned memory has it

struct Method::Impl {
  std::shared_ptr<const Origin> origin;
  Cells cells, first_cells;                              // now, and when it was loaded
  std::shared_ptr<SharedMemory> shared;                  // one of the arenas; null: none is
  std::vector<Memory> memory;                            // the arenas, then tensors that have no place there
  std::vector<std::pair<std::int32_t, Bytes>> contents;  // of tensors in memory, when it was loaded
  std::uint64_t wanted_bytes = 0;                        // of all of it
  std::vector<Bytes> constants;                          // kept alive
  std::vector<std::unique_ptr<OpenDelegate>> delegates;  // null: no instruction calls it
  std::vector<Step> steps;
  std::vector<std::int32_t> inputs;                          // those that are tensors
  std::vector<char> lent;                                    // by input: may it stay in the caller's memory?
  std::vector<std::int32_t> outputs;                         // those that are tensors; lists of tensors in place
  std::vector<std::pair<std::size_t, std::int32_t>> others;  // outputs that are not: position and cell
  std::vector<TensorType> input_types, output_types;
  std::vector<State> states;
  std::vector<std::int32_t> state_cells;
  bool timed = false;
  std::vector<double> seconds;                    // by step, of the last run
  std::vector<std::vector<OperationTime>> parts;  // by step: inside delegates

  explicit Impl(std::shared_ptr<const Origin> from) : origin(std::move(from)) {}
  const pte::Plan& plan() const { return origin->plan; }
  Status load();
  Status place();
  Status copy(const Impl& from);
  Status reset();
  Result<std::byte*> reserve(std::uint64_t bytes);
  Status add_output(std::int32_t i);
  Attr content(std::int32_t i) const;
  Status place_tensor(const pte::TensorValue& tensor, Cell& cell);
  Result<Bytes> external(const std::string& name, const TensorType& type) const;
  Status prepare();
  struct Roles {
    std::vector<char> changing, used;  // by cell
  };
  Roles roles() const;
  std::vector<char> find_lent() const;
  void give_back();
  Result<DelegateStep> prepare_delegate(const pte::DelegateCall& call);
  Status open_delegate(std::size_t number);
  Status run_steps();
  Result<std::size_t> run_step(std::size_t pc);
  void let_vary();
  Status resize_outputs(const DelegateStep& step);
  Status take(std::size_t i, const Tensor& given);
  Status count_turn(std::size_t pc);
  Status execute(DelegateStep& step);
  void note_parts(std::size_t step, const OpenDelegate& delegate, const std::string& id);
  Result<bool> truth(std::int32_t condition) const;
};

Method::Method(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Method::Method(Method&&) noexcept = default;
Method& Method::operator=(Method&&) noexcept = default;
Method::~Method() = default;
const std::vector<TensorType>& Method::input_types() const { return impl_->input_types; }
const std::vector<TensorType>& Method::output_types() const { return impl_->output_types; }
const std::vector<Method::State>& Method::states() const { return impl_->states; }

Tensor Method::state(std::size_t i) const {
  const TensorCell& cell = impl_->cells[at(impl_->state_cells[i])].tensor;
  std::vector<std::byte> space;
  return {cell.type, Bytes::copy(dense(cell, space), cell.type.storage_bytes())};
}

Status Method::set_state(std::size_t i, const Tensor& content) {
  const auto& [name, type] = impl_->states[i];
  if (content.type != type)
    return error("run.state-type",
                 fmt::format("state '{}' is {}, its new content {}", name, to_string(type), to_string(content.type)));
  store_dense(impl_->cells[at(impl_->state_cells[i])].tensor, content.data.data());
  return {};
}

// What a cell that is no tensor holds now.
Attr Method::Impl::content(std::int32_t i) const {
  const pte::Value& value = cells[at(i)].value;
  if (const auto* n = std::get_if<std::int64_t>(&value)) return *n;
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) return *reals;
  if (const auto* flags = std::get_if<std::vector<bool>>(&value))
    return std::vector<std::int64_t>(flags->begin(), flags->end());
  if (const auto* ints = std::get_if<pte::IntList>(&value)) {
    std::vector<std::int64_t> items;
    for (std::int32_t item : ints->items) {
      const auto* n = std::get_if<std::int64_t>(&cells[at(item)].value);
      items.push_back(n ? *n : 0);
    }
    return items;
  }
  return std::monostate{};
}

FixedValues Method::other_outputs() const {
  FixedValues list;
  for (auto [position, cell] : impl_->others) list.push_back({position, impl_->content(cell)});
  return list;
}

FixedValues Method::other_inputs() const {
  FixedValues list;
  const auto& inputs = impl_->plan().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!impl_->cells[at(inputs[i])].is_tensor) list.push_back({i, impl_->content(inputs[i])});
  return list;
}

const std::string& Method::input_tree() const { return impl_->plan().input_spec; }
const std::string& Method::output_tree() const { return impl_->plan().output_spec; }

Result<Method> Method::load(const pte::Program& program, const std::string& name, const Options& options) {
  std::string names;
  for (const pte::Plan& plan : program.plans) {
    names += (names.empty() ? "'" : ", '") + plan.name + "'";
    if (plan.name != name) continue;
    auto origin = std::make_shared<Origin>(Origin{plan, options, options.data});
    for (const pte::NamedData& named : program.named_data)
      origin->data.insert_or_assign(named.key, named.data.joined());
    auto impl = std::make_unique<Impl>(std::move(origin));
    impl->shared = options.shared;
    if (Status status = impl->load(); !status.ok()) return located(std::move(status.error()), options);
    return Method(std::move(impl));
  }
  return located(
      error("method.missing", fmt::format("the program has no method '{}'", name)).hint("its methods are " + names),
      options);
}

Result<Method> Method::clone() const {
  auto impl = std::make_unique<Impl>(impl_->origin);
  if (impl_->shared) { TOSAIC_TRY(impl->shared, impl_->shared->fresh()); }
  if (Status status = impl->copy(*impl_); !status.ok())
    return located(std::move(status.error()), impl_->origin->options);
  return Method(std::move(impl));
}

Status Method::reset() { return impl_->reset(); }

// Memory and cells as the program says.
Status Method::Impl::place() {
  for (std::size_t i = 0; i < plan().arena_sizes.size(); ++i)
    if (shared && i == SharedMemory::arena)
      memory.push_back({shared->start(), shared->bytes()});
    else
      TOSAIC_CHECK(reserve(static_cast<std::uint64_t>(plan().arena_sizes[i])));
  cells.resize(plan().values.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (const auto* tensor = std::get_if<pte::TensorValue>(&plan().values[i])) {
      TOSAIC_CHECK(place_tensor(*tensor, cells[i]));
      if (tensor->state_name.empty() || !tensor->is_planned) continue;
      states.push_back({tensor->state_name, cells[i].tensor.type});
      state_cells.push_back(static_cast<std::int32_t>(i));
    } else {
      cells[i].value = plan().values[i];
    }
  }
  first_cells = cells;
  return {};
}

// Sizes that the program leaves to the caller, and the delegates among them as far as they say, are the caller's here.
void Method::Impl::let_vary() {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto* value = std::get_if<pte::TensorValue>(&plan().values[i]);
    TensorCell& cell = cells[i].tensor;
    cell.varies = value && value->shape_dynamism != 0;
    if (cell.varies && lies_in_order(cell)) cell.dim_order.clear();
  }
  std::map<std::int32_t, Shape> said;  // by the delegates that take it
  for (const Step& step : steps) {
    const auto* call = std::get_if<DelegateStep>(&step);
    if (!call) continue;
    const OpenDelegate& delegate = *delegates[call->delegate];
    for (std::size_t k = 0; k < call->args.size(); ++k) {
      const TensorCell& cell = cells[at(call->args[k])].tensor;
      const tosaic_delegate_tensor_info& info = *delegate.tensor(k);
      if (!cell.varies || !cell.dim_order.empty() || info.rank != static_cast<std::uint32_t>(cell.type.rank()))
        continue;
      std::vector<Dim> dims = cell.type.shape.dims();
      for (std::uint32_t d = 0; d < info.rank; ++d)
        if (info.least[d] != info.most[d])
          dims[d] = Symbol{fmt::format("{}.{}", info.name, d), {info.least[d], info.most[d]}};
      said.insert_or_assign(call->args[k], Shape(dims));
    }
  }
  const auto tell = [&](const std::vector<std::int32_t>& list, std::vector<TensorType>& types, const char* what) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const TensorCell& cell = cells[at(list[i])].tensor;
      if (const auto known = said.find(list[i]); known != said.end()) {
        types[i].shape = known->second;
        continue;
      }
      for (int d = 0; cell.varies && d < cell.type.rank(); ++d)
        types[i].shape.set(d, Symbol{fmt::format("{} {}.{}", what, i, d), {0, cell.type.shape.size(d)}});
    }
  };
  tell(inputs, input_types, "input");
  tell(outputs, output_types, "output");
  first_cells = cells;
}

Status Method::Impl::load() {
  TOSAIC_CHECK(place());
  for (std::int32_t i : plan().inputs)
    if (cells[at(i)].is_tensor) {
      if (cells[at(i)].tensor.constant) return error("method.input", "an input of the method is a constant");
      inputs.push_back(i);
      input_types.push_back(cells[at(i)].tensor.type);
    }
  for (std::int32_t i : plan().outputs) TOSAIC_CHECK(add_output(i));
  TOSAIC_CHECK(prepare());
  TOSAIC_CHECK(check_whole(plan(), [&](std::size_t delegate) { return delegates[delegate]->inputs().size(); }));
  let_vary();
  lent = find_lent();
  return {};
}

// Inputs that delegates alone read. Whoever shares an input's planned memory must not expect the input there: it is
// first written by a delegate.
std::vector<char> Method::Impl::find_lent() const {
  std::vector<char> read_by_others(cells.size(), 0), written_first(cells.size(), 0), met(cells.size(), 0);
  const auto other = [&](std::int32_t i) {
    if (i < 0) return;
    read_by_others[at(i)] = met[at(i)] = 1;
    if (const auto* list = std::get_if<pte::TensorList>(&plan().values[at(i)]))
      for (std::int32_t item : list->items)
        if (item >= 0) read_by_others[at(item)] = met[at(item)] = 1;
  };
  for (const pte::Instruction& instruction : plan().instructions) {
    if (const auto* call = std::get_if<pte::DelegateCall>(&instruction)) {
      const std::size_t read_only = delegates[at(call->delegate)]->inputs().size();
      for (std::size_t k = 0; k < call->args.size(); ++k) {
        const std::size_t cell = at(call->args[k]);
        if (k >= read_only) (met[cell] ? read_by_others : written_first)[cell] = 1;
        met[cell] = 1;
      }
    } else if (const auto* kernel = std::get_if<pte::KernelCall>(&instruction)) {
      for (std::int32_t i : kernel->args) other(i);
    } else if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) {
      other(move->from);
      other(move->to);
    } else if (const auto* jump = std::get_if<pte::JumpFalseCall>(&instruction)) {
      other(jump->condition);
    }
  }
  for (std::int32_t i : plan().outputs) read_by_others[at(i)] |= !written_first[at(i)];
  const auto meets = [](const TensorCell& a, const TensorCell& b) {
    const auto *x = static_cast<const std::byte*>(a.data), *y = static_cast<const std::byte*>(b.data);
    return x && y && x < y + b.type.storage_bytes() && y < x + a.type.storage_bytes();
  };
  std::vector<char> found;
  for (std::int32_t i : inputs) {
    const TensorCell& input = cells[at(i)].tensor;
    bool may = !read_by_others[at(i)] && !written_first[at(i)] && input.dim_order.empty();
    for (std::size_t c = 0; may && c < cells.size(); ++c)
      if (c != at(i) && cells[c].is_tensor && met[c] && meets(cells[c].tensor, input)) may = written_first[c];
    found.push_back(may);
  }
  return found;
}

// Inputs that lay in the caller's memory.
void Method::Impl::give_back() {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (lent[i]) cells[at(inputs[i])].tensor.data = first_cells[at(inputs[i])].tensor.data;
}

// `from` may be running: of it only that is read which never changes.
Status Method::Impl::copy(const Impl& from) {
  TOSAIC_CHECK(place());
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (const TensorCell& other = from.first_cells[i].tensor; other.varies) {
      cells[i].tensor.varies = true;
      cells[i].tensor.dim_order = other.dim_order;
    }
  first_cells = cells;
  inputs = from.inputs;
  lent = from.lent;
  outputs = from.outputs;
  others = from.others;
  input_types = from.input_types;
  output_types = from.output_types;
  delegates.resize(from.delegates.size());
  for (std::size_t i = 0; i < delegates.size(); ++i) {
    if (!from.delegates[i]) continue;
    TOSAIC_TRY(auto made, from.delegates[i]->clone());
    if (made)
      delegates[i] = std::make_unique<OpenDelegate>(*std::move(made));
    else
      TOSAIC_CHECK(open_delegate(i));
  }
  for (const Step& step : from.steps) {
    if (const auto* kernel = std::get_if<std::unique_ptr<Kernel>>(&step)) {
      TOSAIC_TRY(auto made, (*kernel)->clone());
      steps.emplace_back(std::move(made));
    } else if (const auto* delegate = std::get_if<DelegateStep>(&step)) {
      steps.emplace_back(*delegate);
    } else if (const auto* move = std::get_if<MoveStep>(&step)) {
      steps.emplace_back(*move);
    } else if (const auto* jump = std::get_if<JumpStep>(&step)) {
      steps.emplace_back(*jump);
    } else {
      steps.emplace_back(NoStep{});
    }
  }
  return {};
}

Status Method::Impl::reset() {
  for (const Memory& part : memory)
    if (!shared || part.start != shared->start()) zero_again(part.start, part.bytes);
  if (shared) shared->reset();
  cells = first_cells;
  for (const auto& [cell, content] : contents) std::memcpy(cells[at(cell)].tensor.data, content.data(), content.size());
  for (const auto& delegate : delegates)
    if (delegate) TOSAIC_CHECK(delegate->reset());
  return {};
}

// Memory for tensors; zeroed, as ExecuTorch's Module gives it, and aligned for any element and vector load.
Result<std::byte*> Method::Impl::reserve(std::uint64_t bytes) {
  wanted_bytes = bytes > UINT64_MAX - wanted_bytes ? UINT64_MAX : wanted_bytes + bytes;
  TOSAIC_CHECK(check_memory(wanted_bytes, fmt::format("method '{}'", plan().name)));
  auto fresh = zeroed_memory(bytes);
  if (!fresh)
    return error("method.memory", fmt::format("there are no {} bytes of memory for the method's tensors", bytes))
        .hint("close other programs, or run it on a larger machine");
  memory.push_back({std::move(fresh), static_cast<std::size_t>(bytes)});
  return memory.back().start.get();
}

Status Method::Impl::add_output(std::int32_t i) {
  const Cell& cell = cells[at(i)];
  if (cell.is_tensor) {
    outputs.push_back(i);
    output_types.push_back(cell.tensor.type);
    return {};
  }
  const auto* tensors = std::get_if<pte::TensorList>(&cell.value);
  if (!tensors) {
    others.emplace_back(outputs.size() + others.size(), i);
    return {};
  }
  for (std::int32_t item : tensors->items) {
    if (item < 0 || !cells[at(item)].is_tensor)
      return error("method.output", fmt::format("output {} is a list with None in it", outputs.size() + others.size()))
          .hint("return tensors, scalars, None and lists of tensors");
    TOSAIC_CHECK(add_output(item));
  }
  return {};
}

Status Method::Impl::place_tensor(const pte::TensorValue& tensor, Cell& cell) {
  cell.is_tensor = true;
  cell.tensor.type = {tensor.dtype, Shape(std::vector<std::int64_t>(tensor.sizes.begin(), tensor.sizes.end())), {}};
  cell.tensor.dim_order = tensor.dim_order;
  const std::size_t bytes = cell.tensor.type.storage_bytes();
  Bytes constant = tensor.constant;
  if (!tensor.external_name.empty()) { TOSAIC_TRY(constant, external(tensor.external_name, cell.tensor.type)); }
  if (tensor.is_planned) {
    if (tensor.planned.memory_id == 0 || tensor.planned.memory_id > memory.size() ||
        tensor.planned.offset + bytes > static_cast<std::uint64_t>(plan().arena_sizes[tensor.planned.memory_id - 1]))
      return error("method.memory", "a tensor is planned outside its arena");
    cell.tensor.data = memory[tensor.planned.memory_id - 1].start.get() + tensor.planned.offset;
    const bool kept_together = shared && tensor.planned.memory_id == SharedMemory::arena + 1;
    if (!constant.empty() && !kept_together) {
      std::memcpy(cell.tensor.data, constant.data(), constant.size());
      contents.emplace_back(static_cast<std::int32_t>(&cell - cells.data()), constant);
    }
  } else if (!constant.null()) {
    cell.tensor.constant = true;
    cell.tensor.data = const_cast<std::byte*>(constant.data());  // `constant` keeps everyone from writing
    constants.push_back(constant);
  } else {  // memory that the caller or a move would give
    TOSAIC_TRY(cell.tensor.data, reserve(bytes));
  }
  return {};
}

// A constant that the program keeps in a .ptd file.
Result<Bytes> Method::Impl::external(const std::string& name, const TensorType& type) const {
  const auto found = origin->data.find(name);
  if (found == origin->data.end())
    return error("method.external-data", fmt::format("the data of '{}' is in another file", name))
        .hint("give it with --data FILE.ptd");
  if (found->second.size() != type.storage_bytes())
    return error("method.external-data",
                 fmt::format("'{}' is {} ({} bytes) in the program and {} bytes in the data file", name,
                             to_string(type), type.storage_bytes(), found->second.size()));
  const bool aligned = reinterpret_cast<std::uintptr_t>(found->second.data()) % storage_size(type.dtype) == 0;
  return aligned ? found->second : Bytes::copy(found->second.data(), found->second.size());
}

// What changes while the method runs, and what is read at all.
Method::Impl::Roles Method::Impl::roles() const {
  const pte::Plan& plan = origin->plan;
  Roles roles{std::vector<char>(cells.size(), 0), std::vector<char>(cells.size(), 0)};
  std::vector<char>&changing = roles.changing, &used = roles.used;
  std::vector<int> mentions(cells.size(), 0);
  for (std::int32_t i : plan.outputs) used[at(i)] = 1;
  for (std::int32_t i : plan.inputs) used[at(i)] = 1;
  for (const pte::Instruction& instruction : plan.instructions) {
    if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) {
      changing[at(move->to)] = used[at(move->from)] = used[at(move->to)] = 1;
    } else if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) {
      if (std::int32_t n = written_number(plan.operators[at(call->op)], *call); n >= 0) changing[at(n)] = 1;
      // The same value twice in one call is its result, which is passed again as what the call returns.
      std::vector<std::int32_t> once = call->args;
      for (std::int32_t i : call->args)
        if (const auto* list = std::get_if<pte::TensorList>(&plan.values[at(i)]))
          once.insert(once.end(), list->items.begin(), list->items.end());
      std::sort(once.begin(), once.end());
      once.erase(std::unique(once.begin(), once.end()), once.end());
      for (std::int32_t i : once)
        if (i >= 0 && ++mentions[at(i)] > 1) used[at(i)] = 1;
    } else if (const auto* delegate = std::get_if<pte::DelegateCall>(&instruction)) {
      for (std::int32_t i : delegate->args) used[at(i)] = 1;
    } else if (const auto* jump = std::get_if<pte::JumpFalseCall>(&instruction)) {
      used[at(jump->condition)] = 1;
    }
  }
  // Planned memory may be shared with a value of another name (elided views, which have as many bytes): then both
  // count as read.
  for (std::size_t a = 0; a < cells.size(); ++a)
    if (cells[a].is_tensor && !used[a])
      for (std::size_t b = 0; b < cells.size() && !used[a]; ++b)
        if (a != b && cells[b].is_tensor && cells[b].tensor.data == cells[a].tensor.data &&
            cells[b].tensor.type.dtype == cells[a].tensor.type.dtype && mentions[b] > 0 &&
            cells[a].tensor.type.storage_bytes() > 0 &&
            cells[b].tensor.type.storage_bytes() == cells[a].tensor.type.storage_bytes())
          used[a] = 1;
  return roles;
}

Status Method::Impl::prepare() {
  const pte::Plan& plan = origin->plan;
  const Options& options = origin->options;
  auto [changing, used] = roles();
  const auto making = std::make_shared<const Making>(
      Making{origin, &plan, std::move(changing), std::move(used), options.threads, options.interpret, options.kernels});
  delegates.resize(plan.delegates.size());
  for (const pte::Instruction& instruction : plan.instructions) {
    const std::size_t number = steps.size();
    auto in_instruction = [&](Diagnostic why) {
      why.notes.push_back(fmt::format("in instruction {} of method '{}'", number, plan.name));
      return why;
    };
    if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) {
      auto kernel = make_kernel(making, *call, cells);
      if (!kernel.ok()) return in_instruction(std::move(kernel.error()));
      steps.emplace_back(std::move(*kernel));
    } else if (const auto* delegate = std::get_if<pte::DelegateCall>(&instruction)) {
      auto step = prepare_delegate(*delegate);
      if (!step.ok()) return in_instruction(std::move(step.error()));
      steps.emplace_back(std::move(*step));
    } else if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) {
      const Cell &from = cells[at(move->from)], &to = cells[at(move->to)];
      if (from.is_tensor != to.is_tensor || (from.is_tensor && !(from.tensor.type == to.tensor.type)))
        return in_instruction(error("method.move", "a move is between values of different types"));
      steps.emplace_back(MoveStep{move->from, move->to});
    } else if (const auto* jump = std::get_if<pte::JumpFalseCall>(&instruction)) {
      steps.emplace_back(JumpStep{jump->condition, at(jump->destination)});
    } else {
      steps.emplace_back(NoStep{});  // frees: memory belongs to the method as a whole
    }
  }
  return {};
}

Status Method::Impl::open_delegate(std::size_t number) {
  const Options& options = origin->options;
  const pte::Delegate& from = plan().delegates[number];
  const auto choice = options.delegates.find(from.id);
  if (choice == options.delegates.end()) {
    std::string known;
    for (const auto& [id, other] : options.delegates) known += (known.empty() ? "'" : ", '") + id + "'";
    return error("delegate.unknown", fmt::format("the program needs the delegate '{}', which is not here", from.id))
        .note("the delegates here are " + (known.empty() ? "none" : known))
        .hint("run the program where that delegate is linked in, or compile the model for another target");
  }
  TOSAIC_TRY(OpenDelegate open, OpenDelegate::open(choice->second, from.payload.joined(), from.specs,
                                                   {options.threads, options.interpret, false,
                                                    fmt::format("{} (delegate {})", options.file, number),
                                                    &origin->data, options.trace, options.told}));
  delegates[number] = std::make_unique<OpenDelegate>(std::move(open));
  return {};
}

Result<DelegateStep> Method::Impl::prepare_delegate(const pte::DelegateCall& call) {
  std::vector<TensorType> types;
  for (std::int32_t i : call.args) {
    if (!cells[at(i)].is_tensor)
      return error("delegate.arguments", fmt::format("delegate '{}' is given a value that is no tensor",
                                                     plan().delegates[at(call.delegate)].id));
  }
  std::unique_ptr<OpenDelegate>& delegate = delegates[at(call.delegate)];
  if (!delegate) TOSAIC_CHECK(open_delegate(at(call.delegate)));
  for (std::size_t k = 0; k < call.args.size(); ++k)
    types.push_back(type_in_memory(cells[at(call.args[k])].tensor, delegate->tensor(k)));
  TOSAIC_CHECK(delegate->check(types));
  return DelegateStep{at(call.delegate), call.args};
}

// For the inputs at hand; within the memory that the program has for them.
Status Method::Impl::resize_outputs(const DelegateStep& step) {
  OpenDelegate& delegate = *delegates[step.delegate];
  const std::size_t count = delegate.inputs().size();
  std::vector<tosaic_delegate_tensor> given;
  for (std::size_t k = 0; k < count; ++k) {
    const TensorCell& cell = cells[at(step.args[k])].tensor;
    given.push_back(contract::tensor_of(cell.type, cell.data));
  }
  TOSAIC_TRY(const std::vector<Shape> sizes, delegate.sizes(given));
  for (std::size_t k = count; k < step.args.size(); ++k) {
    TensorCell& cell = cells[at(step.args[k])].tensor;
    const Shape& most = first_cells[at(step.args[k])].tensor.type.shape;
    const Shape& made = sizes[k - count];
    if (!cell.varies && made == most) continue;
    bool fits = cell.varies && made.rank() == most.rank();
    for (int d = 0; fits && d < made.rank(); ++d) fits = made.size(d) <= most.size(d);
    if (!fits)
      return error("delegate.arguments", fmt::format("output {} is {} for these inputs, the program has {}", k - count,
                                                     to_string(made), to_string(most)));
    cell.type.shape = made;
  }
  return {};
}

// An input, of sizes that the program takes.
Status Method::Impl::take(std::size_t i, const Tensor& given) {
  TensorCell& cell = cells[at(inputs[i])].tensor;
  const TensorType& wanted = input_types[i];
  bool fits = given.type.dtype == wanted.dtype && given.type.rank() == wanted.rank();
  for (int d = 0; fits && d < wanted.rank(); ++d) fits = wanted.shape[d].bounds().contain(given.type.shape.size(d));
  if (!fits || given.data.size() != given.type.storage_bytes())
    return error("run.input-type", fmt::format("input {} is {}, method '{}' takes {}", i, to_string(given.type),
                                               plan().name, to_string(wanted)));
  if (cell.varies) cell.type.shape = given.type.shape;
  if (lent[i] && reinterpret_cast<std::uintptr_t>(given.data.data()) % lent_alignment == 0)
    cell.data = const_cast<std::byte*>(given.data.data());  // nobody writes there
  else
    store_dense(cell, given.data.data());
  return {};
}

Status Method::Impl::execute(DelegateStep& step) {
  OpenDelegate& delegate = *delegates[step.delegate];
  const auto may_vary = [&](std::int32_t i) {
    const TensorCell& cell = cells[at(i)].tensor;
    return cell.varies && cell.dim_order.empty();  // payloads have one size of what lies in another order
  };
  if (std::ranges::any_of(step.args, may_vary)) TOSAIC_CHECK(resize_outputs(step));
  const std::size_t read_only = delegate.inputs().size();
  std::vector<tosaic_delegate_tensor> arguments;
  std::list<TensorType> reordered;  // what arguments' dims point into
  for (std::size_t k = 0; k < step.args.size(); ++k) {
    const TensorCell& tensor = cells[at(step.args[k])].tensor;
    if (k >= read_only && tensor.constant) return error("delegate.arguments", "a delegate would write to a constant");
    const TensorType& type =
        tensor.dim_order.empty() ? tensor.type : reordered.emplace_back(type_in_memory(tensor, delegate.tensor(k)));
    arguments.push_back(contract::tensor_of(type, tensor.data));
  }
  return delegate.execute(arguments);
}

// False: a false boolean, or a boolean tensor with a false element.
Result<bool> Method::Impl::truth(std::int32_t condition) const {
  const Cell& cell = cells[at(condition)];
  if (const auto* b = std::get_if<bool>(&cell.value); b && !cell.is_tensor) return *b;
  if (!cell.is_tensor || cell.tensor.type.dtype != DType::boolean)
    return error("method.condition", "a condition is no boolean");
  const auto* elements = static_cast<const std::uint8_t*>(cell.tensor.data);
  for (std::int64_t i = 0; i < cell.tensor.type.shape.elements(); ++i)
    if (!elements[i]) return false;
  return true;
}

// Returns the number of the next one.
Result<std::size_t> Method::Impl::run_step(std::size_t pc) {
  Step& step = steps[pc];
  if (auto* kernel = std::get_if<std::unique_ptr<Kernel>>(&step)) {
    TOSAIC_CHECK((*kernel)->run(cells));
  } else if (auto* delegate = std::get_if<DelegateStep>(&step)) {
    TOSAIC_CHECK(execute(*delegate));
  } else if (auto* move = std::get_if<MoveStep>(&step)) {
    cells[at(move->to)] = cells[at(move->from)];
  } else if (auto* jump = std::get_if<JumpStep>(&step)) {
    TOSAIC_TRY(bool holds, truth(jump->condition));
    if (!holds && jump->destination <= pc) TOSAIC_CHECK(count_turn(pc));
    if (!holds) return jump->destination;
  }
  return pc + 1;
}

// The jump goes back. What it encloses is entered anew, loops as well.
Status Method::Impl::count_turn(std::size_t pc) {
  auto& back = std::get<JumpStep>(steps[pc]);
  std::int64_t most = origin->options.most_turns;
  if (most <= 0) { TOSAIC_TRY(most, most_turns()); }
  if (back.turns == most) return too_many_turns(most);
  for (std::size_t s = back.destination; s < pc; ++s)
    if (auto* inner = std::get_if<JumpStep>(&steps[s])) inner->turns = 0;
  ++back.turns;
  return {};
}

Status Method::Impl::run_steps() {
  for (Step& step : steps)
    if (auto* jump = std::get_if<JumpStep>(&step)) jump->turns = 0;
  for (std::size_t pc = 0; pc < steps.size();) {
    TOSAIC_CHECK(go_on());
    if (!timed) {
      TOSAIC_TRY(pc, run_step(pc));
      continue;
    }
    const std::size_t now = pc;
    const auto begin = Clock::now();
    TOSAIC_TRY(pc, run_step(pc));
    seconds[now] += std::chrono::duration<double>(Clock::now() - begin).count();
    if (const auto* step = std::get_if<DelegateStep>(&steps[now]))
      note_parts(now, *delegates[step->delegate], plan().delegates[step->delegate].id);
  }
  return {};
}

// What the delegate tells of the execution that has just ended.
void Method::Impl::note_parts(std::size_t step, const OpenDelegate& delegate, const std::string& id) {
  const tosaic_delegate_profile profile = delegate.profile();
  const std::string device = delegate.device();
  const tosaic_delegate_time whole{device.c_str(), "", "", profile.seconds};
  std::span<const tosaic_delegate_time> told(profile.times, profile.count);
  if (told.empty() && profile.clock == TOSAIC_DELEGATE_CLOCK_DEVICE) told = {&whole, 1};
  parts[step].resize(told.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    parts[step][i].operation = told[i].name;
    parts[step][i].seconds += told[i].seconds;
    parts[step][i].within = id;
    parts[step][i].value = told[i].value;
    parts[step][i].place = told[i].place;
  }
}

Status Method::measure(bool on) {
  impl_->timed = on;
  impl_->seconds.assign(on ? impl_->steps.size() : 0, 0);
  impl_->parts.assign(on ? impl_->steps.size() : 0, {});
  for (const auto& delegate : impl_->delegates)
    if (delegate) TOSAIC_CHECK(delegate->measure(on));
  return {};
}

std::vector<OperationTime> Method::profile() const {
  std::vector<OperationTime> list;
  const pte::Plan& plan = impl_->plan();
  for (std::size_t s = 0; s < impl_->seconds.size(); ++s) {
    if (const auto* call = std::get_if<pte::KernelCall>(&plan.instructions[s]))
      list.push_back({name_of(plan.operators[at(call->op)]), impl_->seconds[s], "", "", ""});
    if (const auto* call = std::get_if<pte::DelegateCall>(&plan.instructions[s]))
      list.push_back({plan.delegates[at(call->delegate)].id, impl_->seconds[s], "", "", ""});
    list.insert(list.end(), impl_->parts[s].begin(), impl_->parts[s].end());
  }
  return list;
}

std::vector<std::string> Method::devices() const {
  std::vector<std::string> list;
  for (const auto& delegate : impl_->delegates)
    if (delegate && std::find(list.begin(), list.end(), delegate->device()) == list.end())
      list.push_back(delegate->device());
  return list;
}

double Method::device_seconds() const {
  double seconds = 0;
  for (const auto& delegate : impl_->delegates)
    if (const auto profile = delegate ? delegate->profile() : tosaic_delegate_profile();
        profile.clock == TOSAIC_DELEGATE_CLOCK_DEVICE)
      seconds += profile.seconds;
  return seconds;
}

Result<std::vector<Tensor>> Method::run(const std::vector<Tensor>& tensors) {
  Impl& m = *impl_;
  m.seconds.assign(m.seconds.size(), 0);
  m.parts.assign(m.parts.size(), {});
  if (tensors.size() != m.inputs.size())
    return error("run.input-count", fmt::format("method '{}' takes {} inputs, {} are given", m.plan().name,
                                                m.inputs.size(), tensors.size()));
  struct Loan {
    Impl& of;
    ~Loan() { of.give_back(); }
  } const loan{m};
  for (std::size_t i = 0; i < tensors.size(); ++i) TOSAIC_CHECK(m.take(i, tensors[i]));
  TOSAIC_CHECK(m.run_steps());
  std::vector<Tensor> outputs;
  for (std::int32_t i : m.outputs) {
    const TensorCell& cell = m.cells[at(i)].tensor;
    std::vector<std::byte> space;
    const void* elements = dense(cell, space);
    outputs.push_back({cell.type, Bytes::copy(elements, cell.type.storage_bytes())});
  }
  return outputs;
}

}  // namespace tosaic::runtime

// SPDX-License-Identifier: Apache-2.0
#include "runtime/shared_memory.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "base/memory.h"
#include "base/zero_again.h"

namespace tosaic::runtime {
namespace {

// Two arenas each, of which the second has one size everywhere. A planner of someone's own may use two arenas for
// something else: then names of buffers may contradict each other.
bool may_share(const pte::Program& program) {
  if (program.plans.size() < 2) return false;
  const auto& first = program.plans[0].arena_sizes;
  if (first.size() != SharedMemory::arena + 1 || first[SharedMemory::arena] <= 0) return false;
  return std::ranges::all_of(program.plans, [&](const pte::Plan& plan) {
    return plan.arena_sizes.size() == first.size() &&
           plan.arena_sizes[SharedMemory::arena] == first[SharedMemory::arena];
  });
}

// A mutex for boards, too, which have none.
class Alone {
 public:
  explicit Alone(std::atomic_flag& busy) : busy_(busy) {
    while (busy_.test_and_set(std::memory_order_acquire)) continue;
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone() { busy_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& busy_;
};

std::uint64_t bytes_of(const pte::TensorValue& tensor) {
  std::uint64_t bytes = storage_size(tensor.dtype);
  for (std::int32_t size : tensor.sizes) bytes *= static_cast<std::uint64_t>(std::max<std::int32_t>(size, 0));
  return bytes;
}

}  // namespace

Result<std::shared_ptr<SharedMemory>> SharedMemory::of(const pte::Program& program) {
  const std::shared_ptr<SharedMemory> none;
  if (!may_share(program)) return none;
  auto made = std::make_shared<SharedMemory>();
  made->bytes_ = static_cast<std::size_t>(program.plans[0].arena_sizes[arena]);
  std::map<std::uint64_t, std::pair<std::string, std::uint64_t>> buffers;  // by place: name, bytes
  for (const pte::Plan& plan : program.plans)
    for (const pte::Value& value : plan.values) {
      const auto* tensor = std::get_if<pte::TensorValue>(&value);
      if (!tensor || !tensor->is_planned || tensor->planned.memory_id != arena + 1) continue;
      const std::uint64_t bytes = bytes_of(*tensor), at = tensor->planned.offset;
      if (at > made->bytes_ || bytes > made->bytes_ - at) return none;  // which loading it tells
      const auto [known, fresh] = buffers.try_emplace(at, tensor->state_name, bytes);
      const auto& [name, known_bytes] = known->second;
      if (name != tensor->state_name || (!name.empty() && known_bytes != bytes)) return none;
      const bool has_content = std::ranges::any_of(made->contents_, [&](const auto& c) { return c.first == at; });
      if (tensor->constant.size() == bytes && bytes > 0 && !has_content)
        made->contents_.emplace_back(at, tensor->constant);
    }
  TOSAIC_CHECK(made->make());
  return made;
}

Status SharedMemory::make() {
  TOSAIC_CHECK(check_memory(bytes_, "what the methods keep together"));
  start_ = zeroed_memory(bytes_);
  if (!start_)
    return error("method.memory", fmt::format("there are no {} bytes of memory for what the methods keep", bytes_))
        .hint("close other programs, or run it on a larger machine");
  for (const auto& [at, content] : contents_) std::memcpy(start_.get() + at, content.data(), content.size());
  return {};
}

void SharedMemory::kept_by(Keeper* keeper) {
  const Alone alone(busy_);
  keeper_ = keeper;
}

Status SharedMemory::claim(const Keeper* by) {
  const Alone alone(busy_);
  if (!keeper_ || keeper_ == by) return {};
  TOSAIC_CHECK(keeper_->bring_back());
  keeper_->let_go();
  keeper_ = nullptr;
  return {};
}

void SharedMemory::leave(const Keeper* keeper) {
  const Alone alone(busy_);
  if (keeper_ != keeper) return;
  (void)keeper_->bring_back();  // of a device that is lost nothing comes back
  keeper_ = nullptr;
}

void SharedMemory::reset() {
  const Alone alone(busy_);
  if (keeper_) keeper_->let_go();
  keeper_ = nullptr;
  zero_again(start_, bytes_);
  for (const auto& [at, content] : contents_) std::memcpy(start_.get() + at, content.data(), content.size());
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::fresh() const {
  auto made = std::make_shared<SharedMemory>();
  made->bytes_ = bytes_;
  made->contents_ = contents_;
  TOSAIC_CHECK(made->make());
  return made;
}

}  // namespace tosaic::runtime

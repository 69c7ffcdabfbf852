// SPDX-License-Identifier: Apache-2.0
// Buffers that stay with a delegate, on one that counts what it is given and what it gives.
#include "runtime/staying.h"

#include <gtest/gtest.h>
#include <array>
#include <cstring>

#include "contract/serve.h"
#include "runtime/method.h"

namespace tosaic::runtime {
namespace {

struct Counts {
  int uploads = 0, downloads = 0, fetches = 0;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << c.uploads << " uploads, " << c.downloads << " downloads, " << c.fetches << " fetches";
}

// What the payload of these tests is opened with.
struct Device {
  Counts counts;
  bool outputs_stay = true, fails = false;
  const void* y = nullptr;  // where the last run wrote it
};

const TensorType four_floats{DType::f32, Shape{4}, {}};
using Floats = std::array<float, 4>;

// A running sum: of x and the old sum, the new one and y, which is the two sums together.
class Sums : public contract::Payload {
 public:
  explicit Sums(Device& device) : device_(device) {}

  contract::Description describe() const override {
    const auto info = [](const char* name, std::uint32_t flags) {
      return contract::TensorInfo::of(four_floats, name, flags);
    };
    return {{info("x", 0), info("old", 0)},
            {info("new", device_.outputs_stay ? TOSAIC_TENSOR_STAYS : 0), info("y", 0)},
            "sums"};
  }
  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int& status) override {
    const std::uint32_t origins[] = {0, 0};
    const char stays[] = {0, 0};
    return execute_staying(inputs, outputs, origins, stays, status);
  }
  Status execute_staying(std::span<const void* const> inputs, std::span<void* const> outputs,
                         std::span<const std::uint32_t> origins, std::span<const char> stays, int& status) override {
    if (device_.fails) {
      status = TOSAIC_DELEGATE_ARGUMENT;
      return error("test.refused", "the test wants it so");
    }
    Floats x, y;
    std::memcpy(&x, inputs[0], sizeof x);
    if (origins[1] == 0) {
      ++device_.counts.uploads;
      std::memcpy(&buffer_, inputs[1], sizeof buffer_);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      buffer_[i] += x[i];
      y[i] = 2 * buffer_[i] - x[i];
    }
    if (!stays[0]) {
      ++device_.counts.downloads;
      std::memcpy(outputs[0], &buffer_, sizeof buffer_);
    }
    std::memcpy(outputs[1], &y, sizeof y);
    device_.y = outputs[1];
    return {};
  }
  Status fetch(std::size_t output, std::span<std::byte> to, int&) override {
    EXPECT_EQ(output, 0u);
    ++device_.counts.fetches;
    std::memcpy(to.data(), &buffer_, to.size());
    return {};
  }
  Result<std::unique_ptr<contract::Payload>> clone(const contract::Lent&) const override {
    return std::unique_ptr<contract::Payload>(std::make_unique<Sums>(device_));
  }

 private:
  Device& device_;
  Floats buffer_{};
};

enum Cell : std::int32_t { x, buffer, y };

// A method of one call.
pte::Plan plan_of(const char* name, std::uint32_t buffer_memory = 1) {
  pte::Plan plan;
  plan.name = name;
  const auto tensor = [&](std::uint32_t memory, std::uint64_t offset, const char* state) {
    pte::TensorValue value;
    value.sizes = {4};
    value.is_planned = true;
    value.planned = {memory, offset};
    value.state_name = state;
    plan.values.emplace_back(value);
  };
  tensor(1, 0, "");
  tensor(buffer_memory, buffer_memory == 1 ? 16 : 0, "sum");
  tensor(1, 32, "");
  plan.inputs = {x};
  plan.outputs = {y};
  plan.instructions = {pte::DelegateCall{0, {x, buffer, buffer, y}}};
  plan.delegates = {{"Sums", Bytes::copy("sums", 4), {}}};
  plan.arena_sizes = {48};
  if (buffer_memory == 2) plan.arena_sizes.push_back(16);
  return plan;
}

class Stays : public testing::Test {
 protected:
  Method load(const pte::Program& program, const char* name = "forward", std::shared_ptr<SharedMemory> shared = {}) {
    Options options;
    options.delegates = {{"Sums", {&api_}}};
    options.shared = std::move(shared);
    auto method = Method::load(program, name, options);
    EXPECT_TRUE(method.ok()) << render(method.error(), false);
    return *std::move(method);
  }
  static pte::Program of(pte::Plan plan) {
    pte::Program program;
    program.plans.push_back(std::move(plan));
    return program;
  }
  // One more run with ones: the first element of y.
  static float run(Method& method) {
    auto results = method.run({{four_floats, Bytes::of(std::vector<float>(4, 1.0f))}});
    EXPECT_TRUE(results.ok()) << render(results.error(), false);
    return results.ok() ? first(results->back()) : -1;
  }
  static float first(const Tensor& tensor) {
    float value = 0;
    std::memcpy(&value, tensor.data.data(), sizeof value);
    return value;
  }
  static float state(Method& method) {
    auto content = method.state(0);
    EXPECT_TRUE(content.ok()) << render(content.error(), false);
    return content.ok() ? first(*content) : -1;
  }

  Device device_;
  contract::Server server_{[](const contract::Opening&, const void* user, int&) {
                             auto& device = *static_cast<Device*>(const_cast<void*>(user));
                             return Result<std::unique_ptr<contract::Payload>>(std::make_unique<Sums>(device));
                           },
                           &device_};
  tosaic_delegate_api api_ = contract::table("Sums", server_);
};

TEST_F(Stays, WithTheDelegateFromRunToRun) {
  Method method = load(of(plan_of("forward")));
  EXPECT_EQ(run(method), 1);
  EXPECT_EQ(run(method), 3);
  EXPECT_EQ(run(method), 5);
  EXPECT_EQ(device_.counts, (Counts{1, 0, 0}));
  EXPECT_EQ(state(method), 3);
  EXPECT_EQ(state(method), 3);
  EXPECT_EQ(device_.counts, (Counts{1, 0, 1})) << "fetched once";
  EXPECT_EQ(run(method), 7);
  EXPECT_EQ(device_.counts, (Counts{1, 0, 1})) << "to read a buffer does not move it";
}

TEST_F(Stays, UntilItsContentIsSet) {
  Method method = load(of(plan_of("forward")));
  run(method);
  ASSERT_TRUE(method.set_state(0, {four_floats, Bytes::of(std::vector<float>(4, 10.0f))}).ok());
  EXPECT_EQ(state(method), 10);
  EXPECT_EQ(run(method), 21);
  EXPECT_EQ(state(method), 11);
  ASSERT_TRUE(method.reset().ok());
  EXPECT_EQ(state(method), 0);
  EXPECT_EQ(run(method), 1);
  EXPECT_EQ(device_.counts.uploads, 3);
}

TEST_F(Stays, AndAClonesBufferIsItsOwn) {
  Method method = load(of(plan_of("forward")));
  run(method);
  auto clone = method.clone();
  ASSERT_TRUE(clone.ok());
  EXPECT_EQ(run(*clone), 1);
  EXPECT_EQ(run(*clone), 3);
  EXPECT_EQ(run(method), 3);
  EXPECT_EQ(state(*clone), 2);
  EXPECT_EQ(state(method), 2);
}

TEST_F(Stays, UntilAnotherMethodRuns) {
  pte::Program program = of(plan_of("prefill", 2));
  program.plans.push_back(plan_of("decode", 2));
  auto shared = SharedMemory::of(program);
  ASSERT_TRUE(shared.ok() && *shared);
  auto prefill = std::make_unique<Method>(load(program, "prefill", *shared));
  Method decode = load(program, "decode", *shared);
  EXPECT_EQ(run(*prefill), 1);
  EXPECT_EQ(run(decode), 3);
  EXPECT_EQ(run(decode), 5);
  EXPECT_EQ(device_.counts, (Counts{2, 0, 1}));
  EXPECT_EQ(state(*prefill), 3) << "of what the other one keeps";
  EXPECT_EQ(run(*prefill), 7);
  prefill.reset();
  EXPECT_EQ(state(decode), 4) << "what it kept is not lost with it";
  EXPECT_EQ(run(decode), 9);
  ASSERT_TRUE(decode.reset().ok());
  EXPECT_EQ(run(decode), 1);
}

TEST_F(Stays, WhereARunIsRefused) {
  Method method = load(of(plan_of("forward")));
  const std::vector<Tensor> ones{{four_floats, Bytes::of(std::vector<float>(4, 1.0f))}};
  run(method);
  for (const bool read_between : {false, true}) {
    device_.fails = true;
    EXPECT_EQ(method.run(ones).error().code, "test.refused");
    if (read_between) state(method);
    device_.fails = false;
  }
  EXPECT_EQ(run(method), 3);
  EXPECT_EQ(state(method), 2);
}

// In these it does not.
TEST_F(Stays, OnlyWhereNobodyElseHasIt) {
  const auto counts = [&](const pte::Plan& plan) {
    device_.counts = {};
    Method method = load(of(plan));
    EXPECT_EQ(run(method), 1);
    EXPECT_EQ(run(method), 3);
    return device_.counts;
  };
  pte::Plan given = plan_of("forward");
  given.outputs.insert(given.outputs.begin(), buffer);
  EXPECT_EQ(counts(given), (Counts{2, 2, 0}));

  pte::Plan moved = plan_of("forward");
  moved.values.push_back(moved.values[buffer]);
  std::get<pte::TensorValue>(moved.values.back()).state_name.clear();
  EXPECT_EQ(counts(moved), (Counts{2, 2, 0})) << "another tensor lies there";

  pte::Plan unnamed = plan_of("forward");
  std::get<pte::TensorValue>(unnamed.values[buffer]).state_name.clear();
  EXPECT_EQ(counts(unnamed), (Counts{2, 2, 0}));

  device_.outputs_stay = false;
  EXPECT_EQ(counts(plan_of("forward")), (Counts{2, 2, 0}));
  device_.outputs_stay = true;

  pte::Plan twice = plan_of("forward");
  twice.instructions.push_back(twice.instructions[0]);
  device_.counts = {};
  Method method = load(of(twice));
  EXPECT_EQ(run(method), 3);
  EXPECT_EQ(device_.counts, (Counts{2, 2, 0}));
}

TEST_F(Stays, WhereasResultsAreWrittenToTheirOwnMemory) {
  Method method = load(of(plan_of("forward")));
  const std::vector<Tensor> ones{{four_floats, Bytes::of(std::vector<float>(4, 1.0f))}};
  const auto one = method.run(ones), two = method.run(ones);
  EXPECT_EQ(static_cast<const void*>(two->back().data.data()), device_.y);
  EXPECT_EQ(first(one->back()), 1) << "the next run leaves it alone";
  EXPECT_EQ(first(two->back()), 3);
  EXPECT_EQ(method.run({}).error().code, "run.input-count");

  const std::vector<float> values(4, 1.0f);
  const TensorView view{four_floats, values.data()};
  ASSERT_TRUE(method.compute({&view, 1}).ok());
  EXPECT_EQ(method.output(0), device_.y) << "where the program plans it";
  EXPECT_EQ(*static_cast<const float*>(method.output(0)), 5);

  pte::Plan kept = plan_of("forward");  // y is a buffer as well
  std::get<pte::TensorValue>(kept.values[y]).state_name = "last";
  Method with_two = load(of(kept));
  const auto result = with_two.run(ones);
  EXPECT_NE(static_cast<const void*>(result->back().data.data()), device_.y);
  EXPECT_EQ(first(*with_two.state(1)), 1);
}

// What a caller in C is told.
TEST_F(Stays, NotWithoutOrder) {
  tosaic_delegate* delegate = nullptr;
  tosaic_delegate_error why{};
  why.struct_bytes = sizeof why;
  const tosaic_delegate_program program{sizeof program, "", "sums", 4, nullptr, 0, nullptr, nullptr};
  ASSERT_EQ(api_.open(api_.user, &program, nullptr, nullptr, &delegate, &why), TOSAIC_DELEGATE_OK);
  Floats in{}, old{}, made{}, out{};
  const std::int64_t four = 4;
  std::vector<tosaic_delegate_tensor> tensors;
  for (Floats* data : {&in, &old, &made, &out}) tensors.push_back({data, sizeof *data, TOSAIC_DTYPE_F32, 1, &four, 0});
  const auto refused = [&] {
    EXPECT_EQ(api_.execute(delegate, tensors.data(), tensors.size(), &why), TOSAIC_DELEGATE_ARGUMENT);
    return std::string(why.message);
  };
  tensors[1].stays = 1;
  EXPECT_EQ(refused(), "input 1: no output 0 of 16 bytes stayed in the last execution");
  tensors[1].stays = 7;
  EXPECT_EQ(refused(), "input 1: no output 6 of 16 bytes stayed in the last execution");
  tensors[1].stays = 0;
  tensors[3].stays = 1;
  EXPECT_EQ(refused(), "output 1: it cannot stay with the payload");
  tensors[3].stays = 0;
  EXPECT_EQ(api_.fetch(delegate, 0, &made, sizeof made, &why), TOSAIC_DELEGATE_ARGUMENT);
  tensors[2].stays = 1;
  ASSERT_EQ(api_.execute(delegate, tensors.data(), tensors.size(), &why), TOSAIC_DELEGATE_OK);
  EXPECT_EQ(api_.fetch(delegate, 0, nullptr, sizeof made, &why), TOSAIC_DELEGATE_ARGUMENT);
  EXPECT_EQ(api_.fetch(delegate, 0, &made, 4, &why), TOSAIC_DELEGATE_ARGUMENT);
  EXPECT_EQ(api_.fetch(delegate, 2, &made, sizeof made, &why), TOSAIC_DELEGATE_ARGUMENT);
  EXPECT_EQ(api_.fetch(delegate, 0, &made, sizeof made, &why), TOSAIC_DELEGATE_OK);
  ASSERT_EQ(api_.reset(delegate, &why), TOSAIC_DELEGATE_OK);
  EXPECT_EQ(api_.fetch(delegate, 0, &made, sizeof made, &why), TOSAIC_DELEGATE_ARGUMENT);
  api_.close(delegate);
}

}  // namespace
}  // namespace tosaic::runtime

// SPDX-License-Identifier: Apache-2.0
#include "shaders/on_device.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "shaders/tier_limits.h"
#include "vulkan/compute_model.h"

namespace tosaic::test {

bool without_vulkan() { return std::getenv("TOSAIC_WITHOUT_VULKAN") != nullptr; }

namespace {

// As a device gets it: from its bytes.
vulkan_program::Program read_back(const vulkan_program::Program& made) {
  auto read = vulkan_program::read(vulkan_program::write(made).joined());
  if (!read.ok()) {
    ADD_FAILURE() << render(read.error(), false);
    return {};
  }
  expect_within_limits(*read);
  return *std::move(read);
}

}  // namespace

vulkan_program::Program compiled(const Graph& graph, std::span<const vulkan_program::TierId> tiers,
                                 shaders::Precision precision) {
  auto made = shaders::compile(graph, tiers, precision);
  if (!made.ok()) {
    ADD_FAILURE() << render(made.error(), false);
    return {};
  }
  return read_back(*made);
}

std::vector<vulkan_program::TierId> every_tier() {
  std::vector<vulkan_program::TierId> all;
  for (const auto& row : vulkan_program::tier_rows()) all.push_back(row.id);
  return all;
}

namespace {

Result<std::vector<Tensor>> run_once(vulkan::ComputeModel& model, const Net& net) {
  std::vector<const void*> in;
  for (const Tensor& t : net.inputs) in.push_back(t.data.data());
  std::vector<std::vector<std::byte>> data;
  std::vector<void*> out;
  for (const auto& t : model.outputs())
    out.push_back(data.emplace_back(t.type.storage_bytes(), std::byte{0x5a}).data());
  TOSAIC_CHECK(model.run(in, out));
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < data.size(); ++i)
    results.push_back({model.outputs()[i].type, Bytes::of(std::move(data[i]))});
  return results;
}

// Does the device take numbers of f32 below 1.2e-38 as zero, as TOSA lets it?
bool takes_denormals_as_zero() {
  static const bool does = [] {
    Net net;
    const ValueId x = net.input(DType::f32, {1}, 1e-40, 1e-40);
    net.output(net.node("greater", {x, net.zero(DType::f32)}));
    const auto base = vulkan_program::TierId::base;
    auto model = vulkan::ComputeModel::load(compiled(net.graph, {&base, 1}));
    if (!model.ok()) return false;
    const auto ran = run_once(*model, net);
    return ran.ok() && ran->at(0).data.data()[0] == std::byte{0};
  }();
  return does;
}

// What the interpreter makes where this processor takes them so, too; as ever elsewhere.
Result<std::vector<Tensor>> without_denormals(const Net& net) {
#ifdef __SSE2__
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // results, and operands
  auto made = interp::run(net.graph, net.inputs);
  _mm_setcsr(before);
  return made;
#else
  return interp::run(net.graph, net.inputs);
#endif
}

// Of each element that one of the two that it may be which is nearer to what was computed.
Tensor nearer(const Tensor& got, const Tensor& kept, const Tensor& flushed) {
  std::byte* to = nullptr;
  const Bytes chosen = Bytes::fresh(kept.data.size(), to);
  std::memcpy(to, kept.data.data(), kept.data.size());
  const std::size_t size = storage_size(kept.type.dtype);
  for (std::size_t i = 0; i < kept.data.size() / size; ++i) {
    const auto at = [&](const Tensor& t) {
      return is_float(t.type.dtype) ? element_as_double(t.type.dtype, t.data.data(), i)
                                    : static_cast<double>(element_as_integer(t.type.dtype, t.data.data(), i));
    };
    const double x = at(got), a = at(kept), b = at(flushed);
    const bool is_kept = x == a || (std::isnan(x) && std::isnan(a)) || std::fabs(x - a) <= std::fabs(x - b);
    if (!is_kept) std::memcpy(to + i * size, flushed.data.data() + i * size, size);
  }
  return {kept.type, chosen};
}

// Those of f32 and bf16 are moved as they are, and chosen between by what they are taken for.
Tensor zeroed(const Tensor& t) {
  if (t.type.dtype == DType::bf16) {
    std::vector<std::uint16_t> bits(t.data.as<std::uint16_t>().begin(), t.data.as<std::uint16_t>().end());
    for (std::uint16_t& x : bits)
      if ((x & 0x7f80) == 0) x &= 0x8000;
    return {t.type, Bytes::of(std::move(bits))};
  }
  if (t.type.dtype != DType::f32) return t;
  std::vector<float> numbers(t.data.as<float>().begin(), t.data.as<float>().end());
  for (float& x : numbers)
    if (std::fpclassify(x) == FP_SUBNORMAL) x = std::copysign(0.0f, x);
  return {t.type, Bytes::of(std::move(numbers))};
}

void expect_of_tier(vulkan_program::TierId tier, const Net& net, const std::vector<Tensor>& wanted,
                    const Tolerance& tolerance, const std::string& what, shaders::Precision precision) {
  vulkan_program::Program program = compiled(net.graph, {&tier, 1}, precision);
  ASSERT_FALSE(program.tiers.empty()) << what;
  auto model = vulkan::ComputeModel::load(std::move(program));
  if (!model.ok() && model.error().code == "vulkan.tier") return;  // not for this device
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  for (int again = 0; again < 2; ++again) {
    const auto ran = run_once(*model, net);
    ASSERT_TRUE(ran.ok()) << render(ran.error(), false);
    if (!takes_denormals_as_zero()) {
      for (std::size_t i = 0; i < wanted.size(); ++i) expect_same((*ran)[i], wanted[i], tolerance, what);
      continue;
    }
    const auto flushed = without_denormals(net);
    ASSERT_TRUE(flushed.ok()) << what;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Tensor got = zeroed((*ran)[i]);
      expect_same(got, zeroed(nearer(got, wanted[i], (*flushed)[i])), tolerance, what);
    }
  }
}

void expect_of_tiers(std::span<const vulkan_program::TierId> tiers, const Net& net, const Tolerance& tolerance,
                     const std::string& what, shaders::Precision precision = shaders::Precision::fp32) {
  ASSERT_TRUE(verify(net.graph).ok()) << verify(net.graph).error().message;
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok()) << what << ": " << wanted.error().message;
  for (const auto tier : tiers)
    expect_of_tier(tier, net, *wanted, tolerance, what + " (tier " + std::string(row_of(tier).name) + ")", precision);
}

}  // namespace

void expect_on_device(const Net& net, const Tolerance& tolerance, const std::string& what,
                      shaders::Precision precision) {
  expect_of_tiers(every_tier(), net, tolerance, what, precision);
}

void expect_as_interpreted(const Net& net, const Tolerance& tolerance, const std::string& what, const std::string&) {
  static int count = 0;
  const bool all = std::getenv("TOSAIC_ALL_SHADERS");
  if (!all && count++ % 5 != 0) return;
  const std::vector<vulkan_program::TierId> every = every_tier();
  const auto made = shaders::compile(net.graph, every);
  if (!made.ok()) {  // shaders move 64-bit integers, and compute nothing with them
    const bool wide = std::ranges::any_of(net.graph.values, [](const Value& v) { return v.type.dtype == DType::i64; });
    EXPECT_TRUE(wide && made.error().code == "vulkan.dtype") << what << render(made.error(), false);
    return;
  }
  read_back(*made);  // each tier is within its limits
  if (without_vulkan()) return;
  if (all)
    expect_on_device(net, tolerance, what);
  else
    expect_of_tiers({&every[static_cast<std::size_t>(count) / 5 % every.size()], 1}, net, tolerance, what);
}

}  // namespace tosaic::test

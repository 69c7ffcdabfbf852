// SPDX-License-Identifier: Apache-2.0
// Places that inputs say: outside of the rows they are refused before anything runs, as on the CPU. (Shaders wrote
// nothing there, and read something.) Payloads that lie about them.
#include "shaders/on_device.h"
#include "vulkan/compute_model.h"

namespace tosaic::test {
namespace {

using vulkan_program::Program;

constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};

// %p: of a cache, %k: of a table through moves, %c: of places one further, %h: of which a half is read, %w: counted
// from the end where it is negative, %m: of which places are computed otherwise.
constexpr const char* caches = R"(graph @main(%cache: 1x8x2xf32, %p: 2xi32, %rows: 1x2x2xf32, %k: 1x2xi32, %c: 1x2xi32,
    %h: 1x4xi32, %w: 1x1xi32, %m: 1x2xi32) -> (%now, %a, %b, %d, %e, %f) {
  %flat: 2xshape = constant [1, 2]
  %twice: 2xshape = constant [1, 2]
  %from: 2xshape = constant [0, 0]
  %one: 1x1xi32 = constant [1]
  %at: 1x2xi32 = tosa.reshape(%p, %flat)
  %now: 1x8x2xf32 = tosa.scatter(%cache, %at, %rows)
  %kk: 1x4xi32 = tosa.tile(%k, %twice)
  %a: 1x4x2xf32 = tosa.gather(%cache, %kk)
  %next: 1x2xi32 = tosa.add(%c, %one)
  %b: 1x2x2xf32 = tosa.gather(%cache, %next)
  %half: 1x2xi32 = tosa.slice(%h, %from, %flat)
  %d: 1x2x2xf32 = tosa.gather(%cache, %half)
  %zero: 1x1xi32 = constant [0]
  %eight: 1x1xi32 = constant [8]
  %below: 1x1xbool = tosa.greater(%zero, %w)
  %behind: 1x1xi32 = tosa.add(%w, %eight)
  %place: 1x1xi32 = tosa.select(%below, %behind, %w)
  %pair: 1x2xi32 = constant [0, 1]
  %both: 1x2xi32 = tosa.add(%pair, %place)
  %e: 1x2x2xf32 = tosa.gather(%cache, %both)
  %most: 1x2xi32 = tosa.bitwise_and(%m, %pair)
  %f: 1x2x2xf32 = tosa.gather(%cache, %most)
})";

Program of(const char* text) {
  const auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << render(graph.error(), false);
  auto program = vulkan_program::read(vulkan_program::write(compiled(*graph, base)).joined());
  EXPECT_TRUE(program.ok()) << render(program.error(), false);
  return program.ok() ? *std::move(program) : Program();
}

TEST(VulkanPlaces, OfInputsAreKnown) {
  const Program program = of(caches);
  ASSERT_EQ(program.inputs.size(), 8u);
  for (std::size_t i : {0, 2, 5, 7}) EXPECT_FALSE(program.inputs[i].rows) << program.inputs[i].name;
  using Places = std::pair<std::int64_t, Dim>;
  const auto places = [&](std::size_t i) {
    return Places(program.inputs[i].first_row, program.inputs[i].rows.value());
  };
  for (std::size_t i : {1, 3}) EXPECT_EQ(places(i), Places(0, 8)) << program.inputs[i].name;
  EXPECT_EQ(places(4), Places(-1, 7));
  EXPECT_EQ(places(6), Places(-8, 7));
  const Program varying = of(R"(graph @main(%cache: 1x(n in 1..8)x2xf32, %p: 1x2xi32) -> (%a) {
    %a: 1x2x2xf32 = tosa.gather(%cache, %p)
  })");
  EXPECT_EQ(varying.inputs[1].rows, Dim(Symbol{"n", {1, 8}}));
}

TEST(VulkanPlaces, OutsideOfTheRowsAreRefused) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  auto model = vulkan::ComputeModel::load(of(caches));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  const std::vector<float> cache(16, 1), rows(4, 2);
  std::vector<float> now(16), a(8), b(4), d(4), e(4), f(4);
  std::vector<std::int32_t> c{-1, 6};
  std::int32_t w = -8;
  const auto said = [&](std::vector<std::int32_t> p, std::vector<std::int32_t> k) {
    const std::vector<std::int32_t> h{0, 1, 99, -5}, m{0, 99};
    const void* in[] = {cache.data(), p.data(), rows.data(), k.data(), c.data(), h.data(), &w, m.data()};
    void* out[] = {now.data(), a.data(), b.data(), d.data(), e.data(), f.data()};
    const Status ran = model->run(in, out);
    return ran.ok() ? "ran" : ran.error().code + ": " + ran.error().message;
  };
  EXPECT_EQ(said({0, 7}, {7, 0}), "ran") << "what is computed otherwise, and what nobody reads, is not looked at";
  EXPECT_EQ(now[14], 2);
  EXPECT_EQ(said({0, 8}, {7, 0}), "tosa.unpredictable: input 'p': index 8 is outside 0..7");
  EXPECT_EQ(said({-1, 7}, {7, 0}), "tosa.unpredictable: input 'p': index -1 is outside 0..7");
  EXPECT_EQ(said({0, 7}, {7, 9}), "tosa.unpredictable: input 'k': index 9 is outside 0..7");
  w = 7;
  EXPECT_EQ(said({0, 7}, {7, 0}), "tosa.unpredictable: input 'w': index 7 is outside -8..6");
  w = 6;
  EXPECT_EQ(said({0, 7}, {7, 0}), "ran");
  c[0] = 7;
  EXPECT_EQ(said({0, 7}, {7, 0}), "tosa.unpredictable: input 'c': index 7 is outside -1..6");
}

TEST(VulkanPlaces, OfRowsThatVary) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  auto model = vulkan::ComputeModel::load(of(R"(graph @main(%cache: 1x(n in 1..8)x2xf32, %p: 1x2xi32) -> (%a) {
    %a: 1x2x2xf32 = tosa.gather(%cache, %p)
  })"));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  const std::vector<float> cache(16, 1);
  const std::vector<std::int32_t> p{0, 5};
  std::vector<float> a(4);
  const void* in[] = {cache.data(), p.data()};
  void* out[] = {a.data()};
  for (const auto& [n, runs] : {std::pair{8, true}, {5, false}, {6, true}}) {
    ASSERT_TRUE(model->resize(std::vector<Shape>{{1, n, 2}, {1, 2}}).ok());
    EXPECT_EQ(model->run(in, out).ok(), runs) << n;
  }
}

TEST(VulkanPlaces, LiesAreRefused) {
  const auto refusal = [](std::size_t input, const Dim& rows) {
    Program program = of(caches);
    program.inputs[input].rows = rows;
    const auto read = vulkan_program::read(vulkan_program::write(program).joined());
    return read.ok() ? "accepted" : read.error().message;
  };
  EXPECT_EQ(refusal(1, 3), "accepted");
  EXPECT_NE(refusal(1, -3).find("tensor 'p' has indices into -3 rows"), std::string::npos) << refusal(1, -3);
  EXPECT_NE(refusal(0, 3).find("tensor 'cache' has indices that are no i32"), std::string::npos) << refusal(0, 3);
}

}  // namespace
}  // namespace tosaic::test

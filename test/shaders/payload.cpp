// SPDX-License-Identifier: Apache-2.0
// Payloads that lie, and what the runtime promises: they are refused before a driver sees them.
#include <atomic>
#include <cstring>
#include <thread>

#include "formats/spirv/compute/check_shader.h"
#include "formats/spirv/packed_module.h"
#include "ir/tosa_operators.h"
#include "shaders/on_device.h"
#include "vulkan/compute_model.h"

namespace tosaic::test {
namespace {

using vulkan_program::Arena;
using vulkan_program::Program;

constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};

constexpr vulkan_program::TierId of_cpus[] = {vulkan_program::TierId::cpu};

Program sum(std::span<const vulkan_program::TierId> tiers = base) {
  auto graph = parse("graph @main(%a: 100xf32, %b: 100xf32) -> (%sum) { %sum: 100xf32 = tosa.add(%a, %b) }");
  return compiled(*graph, tiers);
}

std::string refusal(const Program& program) {
  const auto read = vulkan_program::read(vulkan_program::write(program).joined());
  return read.ok() ? "accepted" : read.error().code + ": " + read.error().message;
}

TEST(VulkanPayload, LiesAreRefused) {
  EXPECT_EQ(refusal(sum()), "accepted");
  const auto changed = [](const std::function<void(Program&)>& change) {
    Program p = sum();
    change(p);
    return refusal(p);
  };
  const auto dispatch = [&](const std::function<void(vulkan_program::Dispatch&)>& change) {
    return changed([&](Program& p) { change(p.tiers[0].dispatches[0]); });
  };
  using D = vulkan_program::Dispatch;
  const std::string format = "vulkan-program.format: ";
  EXPECT_EQ(dispatch([](D& d) { d.module = 7; }), format + "dispatch 0 has module 7 of 1");
  EXPECT_EQ(dispatch([](D& d) { d.groups[1] = 0; }), format + "dispatch 0 has 0 groups along an axis");
  EXPECT_EQ(dispatch([](D& d) { d.groups[0] = 1 << 20; }), format + "dispatch 0 has 1048576 groups along an axis");
  EXPECT_EQ(dispatch([](D& d) { d.ranges.pop_back(); }), format + "dispatch 0 has 2 ranges for a module of 3 bindings");
  EXPECT_EQ(dispatch([](D& d) { d.ranges[0].offset = 4; }),
            format + "dispatch 0 begins at 4, which is no multiple of 256");
  EXPECT_EQ(dispatch([](D& d) { d.ranges[0].offset = std::uint64_t{1} << 63; }),
            format + "dispatch 0 has 400 bytes from 9223372036854775808 on, its memory has 1536");
  EXPECT_EQ(dispatch([](D& d) { d.ranges[2].bytes = 1 << 20; }),
            format + "dispatch 0 has 1048576 bytes from 1024 on, its memory has 1536");
  EXPECT_EQ(dispatch([](D& d) { d.ranges[0].bytes = 0; }), format + "dispatch 0 has a range of 0 bytes");
  EXPECT_EQ(dispatch([](D& d) { d.ranges[0].arena = static_cast<Arena>(3); }), format + "dispatch 0 has an arena 3");
  EXPECT_EQ(dispatch([](D& d) { d.ranges[2].arena = Arena::constants; }), format + "dispatch 0 writes to constants");
  EXPECT_EQ(dispatch([](D& d) { d.ranges[0].written = true; }),
            format + "dispatch 0: range 0 and its module disagree on writing");
  EXPECT_EQ(dispatch([](D& d) { d.pushes.resize(33); }), format + "dispatch 0 has 33 push constants");
  EXPECT_EQ(changed([](Program& p) { p.inputs[1].offset = 1536; }),
            format + "tensor 'b' has 400 bytes from 1536 on, its memory has 1536");
  EXPECT_EQ(changed([](Program& p) {
              p.inputs[0].type.shape = Shape{0, 1 << 30, 1 << 30, 1 << 30};
            }),
            format + "tensor 'a' fits no memory");
  EXPECT_EQ(changed([](Program& p) { p.inputs[0].type.dtype = DType::i32, p.inputs[0].narrow = true; }),
            format + "tensor 'a' is narrow, and no f32");
  EXPECT_EQ(changed([](Program& p) { p.tiers.clear(); }), format + "there is no tier");
  EXPECT_EQ(changed([](Program& p) { p.tiers.push_back(p.tiers[0]); }), format + "tier 'base' is there twice");
}

// Of a tier that only a newer version knows, the shaders may be what this one does not know, either.
TEST(VulkanPayload, TiersOfNewerVersions) {
  Program p = sum();
  p.tiers.push_back(p.tiers[0]);
  p.tiers[1].name = "quantum";
  p.tiers[1].modules[0] = Bytes::of(std::vector<std::uint32_t>{1, 2, 3});
  EXPECT_EQ(refusal(p), "accepted");
  p.tiers.erase(p.tiers.begin());
  EXPECT_EQ(refusal(p), "accepted");
  if (without_vulkan()) GTEST_SKIP() << no_device;
  const auto model = vulkan::ComputeModel::load(*vulkan_program::read(vulkan_program::write(p).joined()));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, "vulkan.tier");
}

// Version 1 had the words as they are: a RELU of three numbers, as it was written then.
TEST(VulkanPayload, OlderAndNewerVersions) {
  auto file = map_file(TOSAIC_TEST_DATA "/shaders/version_1.bin");
  ASSERT_TRUE(file.ok());
  const auto old = vulkan_program::read(*file);
  ASSERT_TRUE(old.ok()) << render(old.error(), false);
  EXPECT_LT(vulkan_program::write(*old).size(), file->size());
  const auto again = vulkan_program::read(vulkan_program::write(*old).joined());
  ASSERT_TRUE(again.ok());
  for (std::size_t i = 0; i < old->tiers[0].modules.size(); ++i)
    EXPECT_TRUE(
        std::ranges::equal(old->tiers[0].modules[i].as<spirv::Word>(), again->tiers[0].modules[i].as<spirv::Word>()));
  if (!without_vulkan()) { EXPECT_TRUE(vulkan::ComputeModel::load(*old).ok()); }
  // The version is the one byte that decides.
  std::size_t found = 0;
  for (std::size_t at = 0; at < file->size(); ++at) {
    Bytes newer = Bytes::copy(file->data(), file->size());
    if (std::to_integer<int>(newer.data()[at]) != 1) continue;
    const_cast<std::byte*>(newer.data())[at] = std::byte{77};
    const auto read = vulkan_program::read(newer);
    if (read.ok() || read.error().code != "vulkan-program.version") continue;
    ++found;
    EXPECT_EQ(read.error().message, "the program has version 77, this runtime knows 1 to 6");
    EXPECT_FALSE(read.error().help.empty());
  }
  EXPECT_EQ(found, 1u);
}

// Constants that methods share lie next to the payload, each once; the rest is inside, and all of it is as it was.
TEST(VulkanPayload, ConstantsOutside) {
  Program p = sum();
  const auto filled = [](std::size_t bytes, int with) {
    return Bytes::of(std::vector<std::byte>(bytes, static_cast<std::byte>(with)));
  };
  for (const Bytes& piece : {filled(256, 1), filled(2048, 2), filled(512, 3), filled(512, 4), filled(2048, 2),
                             filled(4096, 5), filled(256, 6)})
    p.constants.append(piece);
  const vulkan_program::Parts parts = vulkan_program::write_parts(p, 1024);
  ASSERT_EQ(parts.outside.size(), 2u);  // equal ones are one
  const Bytes file = parts.file.joined(), whole = vulkan_program::write(p).joined();
  EXPECT_LT(file.size() + 6144, whole.size() - 1000);
  std::map<std::string, Bytes> data(parts.outside.begin(), parts.outside.end());
  const auto lookup = [&](const std::string& key) { return data.contains(key) ? data.at(key) : Bytes(); };
  const auto read = vulkan_program::read(file, lookup);
  ASSERT_TRUE(read.ok()) << render(read.error(), false);
  EXPECT_TRUE(read->constants.joined() == p.constants.joined());
  EXPECT_TRUE(vulkan_program::write(*read).joined() == whole);
  std::vector<std::byte> copied(static_cast<std::size_t>(p.constants.size()));
  RopeReader reader(read->constants);
  for (std::size_t at = 0; at < copied.size(); at += std::min<std::size_t>(1000, copied.size() - at))
    reader.next(std::min<std::size_t>(1000, copied.size() - at), &copied[at]);
  EXPECT_TRUE(Bytes::of(copied) == p.constants.joined());
  // With nothing outside it is the file that older versions read.
  EXPECT_TRUE(vulkan_program::write_parts(p, 1 << 20).file.joined() == whole);

  const auto code = [&](const Bytes& of) {
    const auto again = vulkan_program::read(of, lookup);
    return again.ok() ? std::string() : again.error().code;
  };
  EXPECT_EQ(vulkan_program::read(file).error().code, "vulkan-program.constant-outside");
  const auto largest = std::ranges::max_element(data, {}, [](const auto& part) { return part.second.size(); });
  largest->second = largest->second.slice(0, 4092);
  EXPECT_EQ(code(file), "vulkan-program.constant-outside");
  data.erase(largest);
  EXPECT_EQ(code(file), "vulkan-program.constant-outside");
  data = {parts.outside.begin(), parts.outside.end()};
  EXPECT_EQ(code(file), "");
  std::size_t told = 0;  // a number of bytes that is another, wherever it stands
  for (std::size_t at = 0; at + 8 <= file.size(); at += 4) {
    std::uint64_t number = 0;
    std::memcpy(&number, file.data() + at, 8);
    if (number != 1024) continue;  // of two pieces inside that follow one another
    for (const std::uint64_t other : {std::uint64_t{1020}, std::uint64_t{4096}, ~std::uint64_t{0}}) {
      const Bytes changed = Bytes::copy(file.data(), file.size());
      std::memcpy(const_cast<std::byte*>(changed.data()) + at, &other, 8);
      told += code(changed) == "vulkan-program.format";
    }
  }
  EXPECT_GE(told, 3u);
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {  // any answer, but no harm
    const Bytes changed = Bytes::copy(file.data(), file.size());
    const_cast<std::byte*>(changed.data())[random() % changed.size()] ^= static_cast<std::byte>(1 << random() % 8);
    (void)vulkan_program::read(changed, lookup).ok();
  }
}

TEST(VulkanPayload, PackedModules) {
  std::size_t words = 0, bytes = 0;
  for (const Program& p : {sum(), sum(of_cpus)})
    for (const Bytes& module : p.tiers[0].modules) {
      const auto packed = spirv::pack(module.as<spirv::Word>());
      ASSERT_TRUE(packed);
      const auto unpacked = spirv::unpack(*packed);
      ASSERT_TRUE(unpacked);
      EXPECT_TRUE(std::ranges::equal(*unpacked, module.as<spirv::Word>()));
      words += module.size(), bytes += packed->size();
      for (std::size_t size = 0; size < packed->size(); ++size) {  // cut: nothing, or less
        const auto part = spirv::unpack(std::span(*packed).first(size));
        EXPECT_TRUE(!part || part->size() < unpacked->size());
      }
    }
  EXPECT_LT(bytes, words / 2);
  // Any words behind a header, those that no difference of 31 bits reaches among them; long instructions too.
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    std::vector<spirv::Word> any{spirv::magic, 1, 2, 0xffffffff, 4};
    while (any.size() < 100) {
      const std::uint32_t count = random() % 40;
      any.push_back((count + 1) << 16 | (random() & 0xffff));
      for (std::uint32_t k = 0; k < count; ++k)
        any.push_back(random() % 3 ? random() : random() % 2 ? 0x80000000 : 0x7fffffff);
    }
    const auto packed = spirv::pack(any);
    ASSERT_TRUE(packed);
    EXPECT_EQ(spirv::unpack(*packed), any);
    any.pop_back();
    EXPECT_TRUE(any.back() >> 16 == 1 || !spirv::pack(any) || spirv::pack(any) != packed);
    std::vector<std::byte> noise(300);
    for (auto& b : noise) b = static_cast<std::byte>(random());
    if (const auto found = spirv::unpack(noise)) { EXPECT_LE(found->size(), noise.size() + 1); }
  }
}

TEST(VulkanTiers, Choice) {
  using vulkan_program::tiers_for;
  const vulkan_program::DeviceTraits gpu{.subgroup_size = 32, .shuffles = true},
      cpu{.is_cpu = true, .subgroup_size = 8, .shuffles = true}, plain_cpu{.is_cpu = true, .subgroup_size = 4},
      narrow_gpu{.subgroup_size = 8, .shuffles = true};
  const std::vector<std::string_view> both{"base", "cpu"}, one{"cpu"}, other{"quantum", "base"};
  using Places = std::vector<std::size_t>;
  EXPECT_EQ(tiers_for(cpu, both), (Places{1, 0}));
  EXPECT_EQ(tiers_for(plain_cpu, both), (Places{0}));
  EXPECT_EQ(tiers_for(gpu, both), (Places{0}));
  EXPECT_EQ(tiers_for(narrow_gpu, both), (Places{0, 1}));
  EXPECT_EQ(tiers_for(gpu, one), Places());
  EXPECT_EQ(tiers_for(narrow_gpu, one), (Places{0}));
  EXPECT_EQ(tiers_for(cpu, other), (Places{1}));
  const std::vector<std::string_view> dots{"base", "dot"};
  const vulkan_program::DeviceTraits slow_dots{.dots = true}, fast_dots{.dots = true, .fast_dots = true};
  EXPECT_EQ(tiers_for(gpu, dots), (Places{0}));
  EXPECT_EQ(tiers_for(slow_dots, dots), (Places{0, 1}));
  EXPECT_EQ(tiers_for(fast_dots, dots), (Places{1, 0}));
}

TEST(VulkanTiers, SharedConstants) {
  Net net;
  net.output(net.node("add", {net.input(DType::f32, {4, 1000}, -1, 1), net.constant(DType::f32, {1, 1000}, -1, 1)}));
  const Program alone = compiled(net.graph, base), all = compiled(net.graph, every_tier());
  EXPECT_EQ(all.tiers.size(),
            every_tier().size() - 3);  // without matrices and quantised values those tiers are base
  EXPECT_EQ(all.constants.size(), alone.constants.size());
}

// What is seen by texels: of the format that the module has, and whole ones.
TEST(VulkanPayload, LiesOfViewsAreRefused) {
  using vulkan_program::Range;
  using vulkan_program::View;
  EXPECT_EQ(refusal(sum(of_cpus)), "accepted");
  const auto changed = [](std::size_t range, const std::function<void(Range&)>& change) {
    Program p = sum(of_cpus);
    change(p.tiers[0].dispatches[0].ranges[range]);
    return refusal(p);
  };
  const std::string otherwise = "vulkan-program.format: dispatch 0: range ";
  for (View view : {View::buffer, View::r8_uint, View::r16_uint, View::r32_uint, View::rgba32_uint})
    EXPECT_EQ(changed(0, [&](Range& r) { r.view = view; }), otherwise + "0 and its module disagree on what is seen");
  EXPECT_EQ(changed(0, [](Range& r) { r.view = static_cast<View>(7); }),
            otherwise + "0 and its module disagree on what is seen");
  EXPECT_EQ(changed(2, [](Range& r) { r.view = View::rgba32_float; }),
            otherwise + "2 and its module disagree on what is seen");
  EXPECT_EQ(changed(0, [](Range& r) { r.view = View::rgba32_float, r.bytes -= 8; }),
            "vulkan-program.format: dispatch 0 has a range of 392 bytes, which are no whole texels");
}

TEST(VulkanPayload, CutAndDamagedFiles) {
  const Bytes file = vulkan_program::write(sum()).joined();
  for (std::size_t size = 0; size + 64 < file.size(); size += 13)
    EXPECT_FALSE(vulkan_program::read(Bytes::copy(file.data(), size)).ok()) << size;
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {  // any answer, but no harm
    Bytes copy = Bytes::copy(file.data(), file.size());
    const_cast<std::byte*>(copy.data())[random() % copy.size()] ^= static_cast<std::byte>(1 << random() % 8);
    (void)vulkan_program::read(copy).ok();
  }
}

// Every word of a shader replaced by others: what is accepted is a shader still, and never an accident.
void expect_safe_when_damaged(const Bytes& module) {
  const auto words = module.as<spirv::Word>();
  ASSERT_TRUE(spirv::check_shader(words).ok());
  std::size_t refused = 0, tried = 0;
  for (std::size_t at = 0; at < words.size(); ++at)
    for (const spirv::Word other : {0u, 1u, words[at] + 1, words[at] ^ 0x10000u, 0xffffffffu}) {
      std::vector<spirv::Word> changed(words.begin(), words.end());
      changed[at] = other;
      const auto checked = spirv::check_shader(changed);
      ++tried;
      refused += !checked.ok();
      if (!checked.ok()) { EXPECT_EQ(checked.error().code, "vulkan-program.shader"); }
    }
  EXPECT_GT(refused, tried * 3 / 4);
  for (std::size_t size = 0; size < words.size(); ++size) EXPECT_FALSE(spirv::check_shader(words.first(size)).ok());
}

TEST(VulkanPayload, DamagedShaders) {
  for (const Bytes& module : {sum().tiers[0].modules[0], sum(of_cpus).tiers[0].modules[0]})
    expect_safe_when_damaged(module);
}

TEST(VulkanCompute, RefusalsSayWhatThereIsNoShaderFor) {
  Net net;
  net.output(net.node("cast", {net.input(DType::i32, {3}, 0, 1)}, {}, DType::f32));
  net.graph.nodes[0].op = tosa::op::custom;
  const auto made = shaders::compile(net.graph, every_tier());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, "vulkan.no-kernel");
  // What no device binds, and windows whose reciprocals are in no table: one more is too many.
  const auto refused = [](const std::string& op, DType type, const Shape& shape, Attrs attrs, std::int64_t zeros) {
    Net n;
    const ValueId x = n.graph.add_value("x", TensorType{type, shape});
    n.graph.inputs = {x};
    std::vector<ValueId> operands{x};
    for (std::int64_t i = 0; i < zeros; ++i) operands.push_back(n.zero(type));
    n.output(n.node(op, operands, std::move(attrs)));
    const auto violation = shaders::refusal(tosa::View(n.graph, n.graph.nodes.back()));
    return violation ? violation->label : "";
  };
  EXPECT_EQ(refused("abs", DType::f32, {1 << 15, 1 << 10}, {}, 0), "");
  EXPECT_EQ(refused("abs", DType::f32, {1 << 15, (1 << 10) + 1}, {}, 0), "vulkan.storage-range");
  for (const std::int64_t side : {256, 257})
    EXPECT_EQ(refused("avg_pool2d", DType::i8, {1, side, side, 1},
                      {{"kernel", std::vector<std::int64_t>{side, side}},
                       {"stride", std::vector<std::int64_t>{1, 1}},
                       {"pad", std::vector<std::int64_t>{0, 0, 0, 0}},
                       {"acc_type", DType::i32}},
                      2),
              side == 256 ? "" : "vulkan.pool-window");
}

TEST(VulkanCompute, ClonesAndThreads) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  auto model = vulkan::ComputeModel::load(sum());
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      auto own = model->clone();
      if (!own.ok()) return void(++wrong);
      for (int k = 0; k < 10; ++k) {
        const std::vector<float> a(100, static_cast<float>(t)), b(100, static_cast<float>(k));
        std::vector<float> out(100, -1);
        const void* in[] = {a.data(), b.data()};
        void* to[] = {out.data()};
        if (!own->run(in, to).ok()) ++wrong;
        for (float x : out) wrong += x != static_cast<float>(t + k);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(VulkanCompute, TimesOfDispatches) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  auto model = vulkan::ComputeModel::load(sum());
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(model->measure(true).ok());
  const std::vector<float> a(100, 1);
  std::vector<float> out(100);
  const void* in[] = {a.data(), a.data()};
  void* to[] = {out.data()};
  ASSERT_TRUE(model->run(in, to).ok());
  ASSERT_EQ(model->times().size(), 1u);
  EXPECT_EQ(model->times()[0].value, "sum");
  EXPECT_EQ(model->run(in, {}).error().code, "run.input-count");
}

// Groups: what is computed together, and outputs that share memory with something else.
TEST(VulkanCompute, OutputsOfEveryKind) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  Net net;
  const ValueId x = net.input(DType::f32, {2, 6}, -1, 1);
  const ValueId y = net.node("abs", {x});
  const ValueId seen = net.node("reshape", {y, net.shape({3, 4})});
  const ValueId of_input = net.node("reshape", {x, net.shape({12})});
  const ValueId z = net.node("add", {seen, seen});
  for (ValueId v : {seen, z, y, seen, of_input, x}) net.output(v);
  net.output(net.constant(DType::i32, {3}, -9, 9));
  net.output(net.constant(DType::i8, {5}, -9, 9));
  expect_on_device(net);
}

// Outputs that are large enough for four pixels at once, with a rest, over borders; and per-channel epilogues.
TEST(VulkanCompute, LargeConvolutions) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  struct Case {
    DType in, weight, out;
    std::vector<std::int64_t> stride, dilation;
    bool volume;
  };
  for (const Case& c : {Case{DType::f32, DType::f32, DType::f32, {1, 1}, {1, 1}, false},
                        Case{DType::i8, DType::i8, DType::i32, {2, 1}, {1, 2}, false},
                        Case{DType::i16, DType::i8, DType::i48, {1, 1}, {1, 1}, false},
                        Case{DType::f16, DType::f16, DType::f16, {1, 1}, {1, 1}, false},
                        Case{DType::i8, DType::i8, DType::i32, {1, 1, 1}, {1, 1, 1}, true}}) {
    Net net(7);
    const bool floats = is_float(c.in);
    const double range = floats ? 1 : 128, most = floats ? 1 : 127;
    const std::vector<std::int64_t> middle =
        c.volume ? std::vector<std::int64_t>{3, 29, 47} : std::vector<std::int64_t>{59, 73};
    std::vector<std::int64_t> size{1}, kernel{16}, pad;
    for (std::size_t i = 0; i < middle.size(); ++i) {
      const std::int64_t reach = 2 * c.dilation[i], room = middle[i] + 2 - reach - 1;
      size.push_back(middle[i] - room % c.stride[i]);
      kernel.push_back(3);
      pad.insert(pad.end(), {1, 1});
    }
    size[0] = c.stride[0] == 2 ? 3 : 2;
    size.push_back(3);
    kernel.push_back(3);
    const ValueId x = net.input(c.in, Shape(size), -range, most),
                  w = net.constant(c.weight, Shape(kernel), -range, most);
    const ValueId b = net.constant(c.out, {16}, floats ? -1 : -9000, floats ? 1 : 9000);
    const bool i8 = c.in == DType::i8;
    ValueId v = net.node(c.volume ? "conv3d" : "conv2d",
                         {x, w, b, net.numbers(c.in, {i8 ? -11 : 0}), net.numbers(c.weight, {i8 ? 3 : 0})},
                         {{"pad", pad},
                          {"stride", c.stride},
                          {"dilation", c.dilation},
                          {"acc_type", floats ? DType::f32 : c.out},
                          {"local_bound", false}});
    ASSERT_GE(net.graph[v].type.shape.elements(), 4096 * 16);
    if (!floats)
      v = net.rescale(v, DType::i8, c.out == DType::i48 ? 28 : 38, c.out == DType::i48 ? 30 : 40, true, 0, 5);
    net.output(v);
    expect_on_device(net, {c.in == DType::f16 ? 2e-3 : 1e-5, c.in == DType::f16 ? 1e-3 : 1e-5},
                     std::string(name_of(c.in)));
  }
}

TEST(VulkanCompute, Fourier) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  for (const Shape& shape : {Shape{2, 8, 16}, Shape{1, 32, 4}, Shape{3, 1, 2}})
    for (const bool inverse : {false, true}) {
      Net net;
      const ValueId re = net.input(DType::f32, shape, -1, 1), im = net.input(DType::f32, shape, -1, 1);
      const auto pair = [&](const char* op, std::vector<ValueId> in, const Shape& out, Attrs attrs) {
        std::vector<ValueId> made;
        for (const char* part : {"r", "i"})
          made.push_back(net.graph.add_value(std::string(op) + part, TensorType{DType::f32, out}));
        attrs.set("local_bound", false);
        Node& node = net.graph.nodes.emplace_back();
        node.op = Operator(std::string("tosa.") + op);
        node.inputs = std::move(in);
        node.outputs = made;
        node.attrs = std::move(attrs);
        for (ValueId v : made) net.output(v);
      };
      pair("fft2d", {re, im}, shape, {{"inverse", inverse}});
      if (!inverse) pair("rfft2d", {re}, {shape.size(0), shape.size(1), shape.size(2) / 2 + 1}, {});
      expect_on_device(net, {1e-6, 2e-6}, to_string(shape));
    }
}

// Every code of the 8-bit floats becomes a number; and numbers of every size, half way between two quantised values
// too, are quantised.
TEST(VulkanCompute, FloatsOfEightBits) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  for (const DType type : {DType::f8e4m3, DType::f8e5m2}) {
    Net codes;
    const ValueId c = codes.input(type, {256}, 0, 1);
    std::vector<std::uint8_t> all;
    for (int i = 0; i < 256; ++i) all.push_back(static_cast<std::uint8_t>(i));
    codes.inputs[0].data = Bytes::of(std::move(all));
    for (const DType to : {DType::f32, DType::f16, DType::bf16}) codes.output(codes.node("cast", {c}, {}, to));
    codes.output(codes.node("reshape", {c, codes.shape({16, 16})}));
    expect_on_device(codes, {}, std::string(name_of(type)));
    Net numbers;
    std::vector<float> values{NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
    for (int e = -20; e < 20; ++e)
      for (int m = 0; m < 32; ++m) {
        values.push_back(std::ldexp(1 + static_cast<float>(m) / 32, e));
        values.push_back(-std::nextafter(values.back(), 0.0f));
      }
    const ValueId x = numbers.input(DType::f32, {static_cast<std::int64_t>(values.size())}, 0, 1);
    numbers.inputs[0].data = Bytes::of(std::move(values));
    const ValueId narrow = numbers.node("cast", {x}, {}, type);
    numbers.output(narrow);
    numbers.output(numbers.node("cast", {narrow}, {}, DType::f32));  // fused: rounded without being stored
    expect_on_device(numbers, {}, std::string(name_of(type)));
  }
}

TEST(VulkanCompute, Scatter) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  Net net;
  const ValueId values = net.input(DType::i16, {2, 5, 3}, -99, 99), rows = net.input(DType::i16, {2, 2, 3}, -99, 99);
  net.output(net.node("scatter", {values, net.numbers(DType::i32, {4, 1, 0, 3}), rows}));
  net.graph[net.graph.nodes.back().inputs[1]].type.shape = Shape{2, 2};
  expect_on_device(net);
}

}  // namespace
}  // namespace tosaic::test

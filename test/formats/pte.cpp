// SPDX-License-Identifier: Apache-2.0
// .pte files: read(write(p)) == p, files that ExecuTorch wrote (pte/, by make_pte.py), and files that are not what
// they seem.
#include <gtest/gtest.h>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "formats/pte/layout.h"
#include "formats/pte/pte_file.h"
#include "ir/tensor.h"

namespace tosaic {
namespace {

using pte::Program;
namespace s = pte_schema;

// ---- programs as text, to compare
std::string text(const Bytes& bytes) { return std::to_string(bytes.size()) + ":" + std::to_string(hash_of(bytes)); }
std::string text(const std::vector<std::int32_t>& list) {
  std::string out = "[";
  for (auto v : list) out += std::to_string(v) + " ";
  return out + "]";
}
struct ValueText {
  std::string operator()(const pte::None&) const { return "None"; }
  std::string operator()(std::int64_t v) const { return "int " + std::to_string(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(double v) const { return "double " + std::to_string(v); }
  std::string operator()(const std::string& v) const { return "'" + v + "'"; }
  std::string operator()(const pte::IntList& v) const { return "ints " + text(v.items); }
  std::string operator()(const pte::TensorList& v) const {
    return "tensors" + std::string(v.optional ? "? " : " ") + text(v.items);
  }
  std::string operator()(const std::vector<double>& v) const {
    std::string out = "doubles";
    for (double d : v) out += " " + std::to_string(d);
    return out;
  }
  std::string operator()(const std::vector<bool>& v) const {
    std::string out = "bools";
    for (bool b : v) out += b ? " 1" : " 0";
    return out;
  }
  std::string operator()(const pte::TensorValue& t) const {
    std::string out = std::string(name_of(t.dtype)) + text(t.sizes) + " order";
    for (auto d : t.dim_order) out += " " + std::to_string(d);
    if (t.is_planned) out += " @" + std::to_string(t.planned.memory_id) + "+" + std::to_string(t.planned.offset);
    if (!t.constant.null()) out += " = " + text(t.constant);
    if (!t.external_name.empty()) out += " from " + t.external_name;
    return out + " dynamism " + std::to_string(t.shape_dynamism);
  }
};
struct InstructionText {
  std::string operator()(const pte::KernelCall& c) const { return "kernel " + std::to_string(c.op) + text(c.args); }
  std::string operator()(const pte::DelegateCall& c) const {
    return "delegate " + std::to_string(c.delegate) + text(c.args);
  }
  std::string operator()(const pte::MoveCall& c) const {
    return "move " + std::to_string(c.from) + " " + std::to_string(c.to);
  }
  std::string operator()(const pte::JumpFalseCall& c) const {
    return "jump " + std::to_string(c.condition) + " " + std::to_string(c.destination);
  }
  std::string operator()(const pte::FreeCall& c) const { return "free " + std::to_string(c.value); }
};
std::string text(const Program& p) {
  std::string out = "version " + std::to_string(p.version) + "\n";
  for (const pte::Plan& plan : p.plans) {
    out += plan.name + " in '" + plan.input_spec + "' out '" + plan.output_spec + "' " + text(plan.inputs) +
           text(plan.outputs);
    for (auto size : plan.arena_sizes) out += " arena " + std::to_string(size);
    for (const auto& op : plan.operators) out += "\n op " + op.name + "." + op.overload;
    for (const auto& v : plan.values) out += "\n  " + std::visit(ValueText(), v);
    for (const auto& i : plan.instructions) out += "\n  " + std::visit(InstructionText(), i);
    for (const auto& d : plan.delegates) {
      out += "\n delegate " + d.id + " " + text(d.payload.joined());
      for (const auto& spec : d.specs) out += " " + spec.key + "=" + text(spec.value);
    }
  }
  for (const auto& d : p.named_data)
    out += "\nnamed " + d.key + " " + text(d.data.joined()) + " align " + std::to_string(d.alignment);
  return out;
}

Bytes numbers(std::vector<double> values) { return constant_bytes(DType::f32, values); }

// y = x + w, out-variant, everything planned.
Program add_program() {
  Program program;
  pte::Plan plan;
  pte::TensorValue x{DType::f32, {2, 2}, {}, {}, true, {1, 0}}, w{DType::f32, {2, 2}, {}, numbers({1, 2, 3, 4})}, y = x;
  y.planned.offset = 16;
  plan.values = {x, w, std::int64_t{1}, y};
  plan.inputs = {0};
  plan.outputs = {3};
  plan.operators = {{"aten::add", "out"}};
  plan.instructions = {pte::KernelCall{0, {0, 1, 2, 3, 3}}};
  plan.arena_sizes = {32};
  program.plans = {plan};
  return program;
}

// One of everything that the format holds.
Program full_program() {
  Program program = add_program();
  pte::Plan& plan = program.plans[0];
  plan.input_spec = "spec in";
  plan.output_spec = "spec out";
  pte::TensorValue initialised{DType::i8, {3},    {}, constant_bytes(DType::i8, std::vector<std::int64_t>{1, 2, 3}),
                               true,      {2, 16}};
  pte::TensorValue channels_last{DType::bf16, {1, 2, 2, 2}, {0, 2, 3, 1}, {}, true, {1, 0}, 1};
  pte::TensorValue external{DType::f32, {5}};
  external.external_name = "weights.0";
  pte::TensorValue same{DType::f32, {2, 2}, {}, numbers({1, 2, 3, 4})};
  pte::TensorValue empty{DType::f32, {0, 4}, {}, Bytes::copy("", 0)};
  for (pte::Value v : std::vector<pte::Value>{pte::None{}, true, 2.5, std::string("mean"), initialised, channels_last,
                                              external, same, empty, pte::IntList{{2, 2}}, std::vector<double>{0.5, -1},
                                              std::vector<bool>{true, false}, pte::TensorList{{0, 1}, false},
                                              pte::TensorList{{0, -1}, true}, pte::TensorValue{DType::i64, {}}})
    plan.values.push_back(v);
  plan.arena_sizes.push_back(64);
  plan.operators.push_back({"aten::relu", "out"});
  plan.delegates = {{"TOSABackend",
                     Bytes::copy("payload one", 11),
                     {{"tosa_spec", Bytes::copy("TOSA-1.0+FP", 11)}, {"empty", Bytes::copy("", 0)}}},
                    {"Other", Bytes::copy("payload two", 11), {}},
                    {"Again", Bytes::copy("payload one", 11), {}}};
  plan.instructions = {pte::KernelCall{0, {0, 1, 2, 3, 3}}, pte::DelegateCall{1, {0, 3}}, pte::MoveCall{0, 3},
                       pte::JumpFalseCall{5, 5}, pte::FreeCall{0}};
  pte::Plan second = add_program().plans[0];
  second.name = "second";
  program.plans.push_back(second);
  program.named_data = {{"key", Bytes::copy("named data", 10), 256}, {"other", Bytes::copy("x", 1), 128}};
  return program;
}

Bytes written(const Program& program, const pte::WriteOptions& options = {}) {
  auto file = pte::write(program, options);
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : render(file.error(), false));
  return file.ok() ? file->joined() : Bytes();
}
std::string code(const Bytes& file) {
  auto program = pte::read(file, "test.pte");
  return program.ok() ? "" : program.error().code;
}
Bytes fixture(const std::string& name) {
  auto file = map_file(std::string(TOSAIC_TEST_DATA) + "/formats/pte/" + name);
  EXPECT_TRUE(file.ok());
  return file.ok() ? *file : Bytes();
}

TEST(PteFile, ReadsWhatItWrote) {
  for (bool in_segments : {true, false}) {
    pte::WriteOptions options;
    options.delegates_in_segments = in_segments;
    const Program program = full_program();
    auto again = pte::read(written(program, options), "test.pte");
    ASSERT_TRUE(again.ok()) << render(again.error(), false);
    for (auto& data : again->named_data) EXPECT_GE(data.alignment, 128u);
    for (std::size_t i = 0; i < 2; ++i) again->named_data[i].alignment = program.named_data[i].alignment;
    EXPECT_EQ(text(*again), text(program));
  }
}

TEST(PteFile, SameProgramSameBytes) { EXPECT_TRUE(written(full_program()) == written(full_program())); }

TEST(PteFile, EqualPiecesAreStoredOnce) {
  const Bytes file = written(full_program());
  EXPECT_EQ(file.text().find("payload one"), file.text().rfind("payload one"));
  EXPECT_NE(file.text().find("payload one"), std::string_view::npos);
}

TEST(PteFile, SegmentsAndDataAreAligned) {
  const Bytes file = written(full_program(), {4096, true});
  const auto* root = s::GetProgram(file.data());
  std::uint64_t base;
  std::memcpy(&base, file.data() + 24, 8);
  EXPECT_EQ(base % 4096, 0u);
  for (const auto* segment : *root->segments()) EXPECT_EQ(segment->offset() % 4096, 0u);
  EXPECT_EQ(code(Bytes::copy(file.data(), file.size())), "");
  EXPECT_FALSE(pte::write(full_program(), {8, true}).ok());
}

TEST(PteFile, InlineDelegatesNeedNoSegments) {
  Program program = add_program();
  program.plans[0].values[1] = pte::TensorValue{DType::f32, {2, 2}, {}, {}, true, {1, 16}};
  program.plans[0].delegates = {{"X", Bytes::copy("abc", 3), {}}};
  const Bytes file = written(program, {128, false});
  auto again = pte::read(file, "test.pte");
  ASSERT_TRUE(again.ok()) << render(again.error(), false);
  EXPECT_EQ(again->plans[0].delegates[0].payload.joined().text(), "abc");
}

TEST(PteFile, DtypesThatExecutorchLacks) {
  Program program = add_program();
  std::get<pte::TensorValue>(program.plans[0].values[0]).dtype = DType::i48;
  auto file = pte::write(program);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, "pte.dtype");
}

TEST(PteFile, ReadsExecutorchsFiles) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TOSAIC_TEST_DATA) + "/formats/pte")) {
    if (entry.path().extension() != ".pte") continue;
    ++files;
    auto program = pte::read(fixture(entry.path().filename().string()), entry.path().string());
    ASSERT_TRUE(program.ok()) << render(program.error(), false);
    auto again = pte::read(written(*program), "again.pte");
    ASSERT_TRUE(again.ok()) << render(again.error(), false);
    EXPECT_EQ(text(*again), text(*program)) << entry.path();
  }
  EXPECT_GE(files, 6);
}

TEST(PteFile, InitialValuesOfBuffersAreRead) {
  auto program = pte::read(fixture("counter.pte"), "counter.pte");
  ASSERT_TRUE(program.ok());
  int found = 0;
  for (const auto& v : program->plans[0].values)
    if (const auto* t = std::get_if<pte::TensorValue>(&v); t && t->is_planned && !t->constant.null()) {
      ++found;
      EXPECT_EQ(t->constant.as<float>()[0], 1.0f);
    }
  EXPECT_EQ(found, 1);
}

// ---- files that are not what they seem

// The written file, with one field of the flatbuffer changed in place.
std::string code_after(const std::function<void(s::Program*, std::byte*)>& change, Program program = full_program()) {
  const Bytes good = written(program);
  std::vector<std::byte> bytes(good.data(), good.data() + good.size());
  change(flatbuffers::GetMutableRoot<s::Program>(bytes.data()), bytes.data());
  return code(Bytes::of(std::move(bytes)));
}
void set(const void* table, flatbuffers::voffset_t slot, auto value) {
  auto* t = const_cast<flatbuffers::Table*>(static_cast<const flatbuffers::Table*>(table));
  ASSERT_TRUE(t->SetField(slot, value, static_cast<decltype(value)>(~value)));
}
void set_first(const flatbuffers::Vector<std::int32_t>* list, std::int32_t value) {
  const_cast<flatbuffers::Vector<std::int32_t>*>(list)->Mutate(0, value);
}
const s::ExecutionPlan* plan_of(s::Program* p) { return p->execution_plan()->Get(0); }
const s::Tensor* tensor_of(s::Program* p, unsigned i) { return plan_of(p)->values()->Get(i)->val_as_Tensor(); }

TEST(PteFile, OtherIdentifiers) {
  EXPECT_EQ(code(Bytes()), "pte.not-pte");
  EXPECT_EQ(code(Bytes::copy("PK\3\4\0\0\0\0", 8)), "pte.not-pte");
  auto newer = pte::read(Bytes::copy("\x10\0\0\0ET13\0\0\0\0\0\0\0\0", 16), "new.pte");
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().code, "pte.version");
  EXPECT_NE(newer.error().message.find("ET13"), std::string::npos);
  EXPECT_EQ(newer.error().place.file, "new.pte");
}
TEST(PteFile, NewerSchemaVersion) {
  Program program = add_program();
  program.version = 7;
  auto read = pte::read(written(program), "new.pte");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, "pte.version");
  EXPECT_NE(read.error().message.find("7"), std::string::npos);
}
TEST(PteFile, HeaderFieldsOutOfRange) {
  for (std::size_t at : {16u, 24u, 32u}) {
    EXPECT_EQ(code_after([&](s::Program*, std::byte* b) { std::memset(b + at, 0xff, 8); }), "pte.corrupt") << at;
    EXPECT_EQ(code_after([&](s::Program*, std::byte* b) { b[at + 5] = std::byte{1}; }), "pte.corrupt") << at;
  }
  EXPECT_EQ(code_after([&](s::Program*, std::byte* b) { b[12] = std::byte{8}; }), "pte.corrupt");
  EXPECT_EQ(code_after([&](s::Program*, std::byte* b) { std::memset(b, 0xff, 4); }), "pte.corrupt");
}
TEST(PteFile, SegmentsOutsideTheFile) {
  for (auto [slot, value] : {std::pair{s::DataSegment::VT_OFFSET, std::uint64_t{1} << 40},
                             std::pair{s::DataSegment::VT_SIZE, ~std::uint64_t{0} - 5},
                             std::pair{s::DataSegment::VT_SIZE, std::uint64_t{1} << 20}})
    EXPECT_EQ(code_after([&](s::Program* p, std::byte*) { set(p->segments()->Get(1), slot, value); }), "pte.corrupt");
}
TEST(PteFile, ValueIndicesOutOfRange) {
  EXPECT_EQ(code_after([](s::Program* p, std::byte*) { set_first(plan_of(p)->inputs(), 1000); }), "pte.corrupt");
  EXPECT_EQ(code_after([](s::Program* p, std::byte*) { set_first(plan_of(p)->outputs(), -1); }), "pte.corrupt");
  EXPECT_EQ(code_after([](s::Program* p, std::byte*) {
              set_first(plan_of(p)->chains()->Get(0)->instructions()->Get(0)->instr_args_as_KernelCall()->args(), 99);
            }),
            "pte.corrupt");
}
TEST(PteFile, InstructionsOutOfRange) {
  auto with = [](pte::Instruction i) {
    Program program = add_program();
    program.plans[0].instructions = {i};
    return code(written(program));
  };
  EXPECT_EQ(with(pte::KernelCall{1, {}}), "pte.corrupt");
  EXPECT_EQ(with(pte::DelegateCall{0, {}}), "pte.corrupt");
  EXPECT_EQ(with(pte::MoveCall{0, 4}), "pte.corrupt");
  EXPECT_EQ(with(pte::JumpFalseCall{0, 2}), "pte.corrupt");
  EXPECT_EQ(with(pte::JumpFalseCall{0, 1}), "");
  EXPECT_EQ(with(pte::FreeCall{-1}), "pte.corrupt");
}
TEST(PteFile, ListsOfTheWrongThings) {
  auto with = [](pte::Value v) {
    Program program = add_program();
    program.plans[0].values.push_back(v);
    return code(written(program));
  };
  EXPECT_EQ(with(pte::IntList{{2}}), "");
  EXPECT_EQ(with(pte::IntList{{0}}), "pte.corrupt");
  EXPECT_EQ(with(pte::IntList{{77}}), "pte.corrupt");
  EXPECT_EQ(with(pte::TensorList{{2}, false}), "pte.corrupt");
  EXPECT_EQ(with(pte::TensorList{{-1}, false}), "pte.corrupt");
  EXPECT_EQ(with(pte::TensorList{{-1}, true}), "");
}
TEST(PteFile, TensorsThatCannotBe) {
  auto with = [](auto change) {
    Program program = add_program();
    change(std::get<pte::TensorValue>(program.plans[0].values[0]));
    return code(written(program));
  };
  EXPECT_EQ(with([](auto& t) { t.planned.memory_id = 2; }), "pte.corrupt");
  EXPECT_EQ(with([](auto& t) { t.planned.memory_id = 0; }), "pte.corrupt");
  EXPECT_EQ(with([](auto& t) { t.planned.offset = 20; }), "pte.corrupt");
  EXPECT_EQ(with([](auto& t) { t.planned.offset = 1; }), "pte.corrupt");
  EXPECT_EQ(with([](auto& t) { t.sizes = {2, -2}; }), "pte.corrupt");
  EXPECT_EQ(with([](auto& t) { t.sizes = {2147483647, 2147483647, 2147483647}; }), "pte.corrupt");
  EXPECT_EQ(with([](auto& t) { t.dim_order = {0, 0}; }), "pte.corrupt");
  EXPECT_EQ(with([](auto& t) { t.dim_order = {0}; }), "pte.corrupt");
  EXPECT_EQ(with([](auto& t) { t.shape_dynamism = 2; }), "pte.dynamic");
  Program large = add_program();
  std::get<pte::TensorValue>(large.plans[0].values[1]).sizes = {3, 2};  // its constant is smaller
  EXPECT_EQ(code(written(large)), "pte.corrupt");
  EXPECT_EQ(
      code_after([](s::Program* p, std::byte*) { set(tensor_of(p, 0), s::Tensor::VT_SCALAR_TYPE, std::int8_t{27}); }),
      "pte.dtype");
  EXPECT_EQ(code_after([](s::Program* p, std::byte*) { set(tensor_of(p, 1), s::Tensor::VT_DATA_BUFFER_IDX, 99u); }),
            "pte.corrupt");
}
TEST(PteFile, ImpossibleArenas) {
  Program program = add_program();
  program.plans[0].arena_sizes = {-1};
  EXPECT_EQ(code(written(program)), "pte.corrupt");
  program.plans[0].arena_sizes = {std::int64_t{1} << 60};
  EXPECT_EQ(code(written(program)), "pte.corrupt");
}
TEST(PteFile, MethodsOfOneName) {
  Program program = full_program();
  program.plans[1].name = "forward";
  EXPECT_EQ(code(written(program)), "pte.corrupt");
  program.plans.clear();
  EXPECT_EQ(code(written(program)), "pte.corrupt");
}

TEST(PteFile, TruncatedAnywhere) {
  for (const Bytes& good : {written(full_program()), fixture("add_mul.pte"), fixture("tosa_delegate.pte")})
    for (std::size_t size = 0; size < good.size(); ++size)
      EXPECT_NE(code(Bytes::copy(good.data(), size)), "") << "cut to " << size << " of " << good.size();
}

// Whatever the bytes, reading ends with a program that can be written, or with a diagnostic.
TEST(PteFile, MutatedFiles) {
  std::mt19937 random(1964);
  int accepted = 0;
  const std::vector<Bytes> files{written(full_program()), fixture("branch.pte"), fixture("counter.pte"),
                                 fixture("mlp.pte")};
  for (int round = 0; round < 20000; ++round) {
    const Bytes& good = files[random() % files.size()];
    std::vector<std::byte> bytes(good.data(), good.data() + good.size());
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
      const std::size_t at = random() % bytes.size();
      if (random() % 2)
        bytes[at] = static_cast<std::byte>(random());
      else
        bytes[at] ^= static_cast<std::byte>(1u << (random() % 8));
    }
    auto program = pte::read(Bytes::of(std::move(bytes)), "mutated.pte");
    if (program.ok()) {
      ++accepted;
      EXPECT_TRUE(pte::write(*program).ok());
    } else {
      EXPECT_FALSE(program.error().internal) << render(program.error(), false);
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace tosaic

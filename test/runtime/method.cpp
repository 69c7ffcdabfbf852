// SPDX-License-Identifier: Apache-2.0
// Programs that ExecuTorch wrote (test/formats/pte, by make_pte.py) give the outputs that ExecuTorch computed.
#include "runtime/method.h"

#include <gtest/gtest.h>
#include <cmath>

#include "delegates/delegates.h"
#include "formats/npy/npy.h"
#include "formats/pte/pte_file.h"
#include "formats/vela/vela.h"
#include "formats/vgf/vgf_graph.h"
#include "ir/tensor.h"
#include "kernels/lowered_kernel.h"
#include "tosa_generated.h"

namespace tosaic {
namespace {

using runtime::Method;

std::string path_of(const std::string& name) { return std::string(TOSAIC_TEST_DATA) + "/formats/pte/" + name; }

pte::Program program_of(const std::string& name) {
  auto file = map_file(path_of(name));
  EXPECT_TRUE(file.ok());
  auto program = pte::read(*file, name);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : render(program.error(), false));
  return *program;
}

void expect_close(const Tensor& ours, const Tensor& theirs, double tolerance) {
  ASSERT_EQ(to_string(ours.type), to_string(theirs.type));
  for (std::size_t i = 0; i < static_cast<std::size_t>(ours.type.shape.elements()); ++i) {
    const double a = element_as_double(ours.type.dtype, ours.data.data(), i);
    const double b = element_as_double(theirs.type.dtype, theirs.data.data(), i);
    ASSERT_NEAR(a, b, tolerance * std::max(1.0, std::fabs(b))) << "element " << i;
  }
}

class OfExecutorch : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(OfExecutorch, GivesItsOutputs) {
  const auto [name, interpret] = GetParam();
  auto arrays = npy::read_npz(*map_file(path_of(std::string(name) + ".npz")), name);
  ASSERT_TRUE(arrays.ok()) << render(arrays.error(), false);
  std::vector<Tensor> inputs, outputs;
  for (const auto& [key, tensor] : *arrays) (key.starts_with("in") ? inputs : outputs).push_back(tensor);
  runtime::Options options;
  options.interpret = interpret;
  options.file = name;
  options.delegates = all_delegates();
  options.kernels = kernels::lowered_kernels();
  auto method = Method::load(program_of(std::string(name) + ".pte"), "forward", options);
  ASSERT_TRUE(method.ok()) << render(method.error(), false);
  auto results = method->run(inputs);
  ASSERT_TRUE(results.ok()) << render(results.error(), false);
  ASSERT_EQ(results->size(), outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) expect_close((*results)[i], outputs[i], 1e-5);
}

TEST(Method, ADeviceOfFixedSizesRefusesSizesThatVary) {
  pte::Program program = program_of("mlp.pte");
  runtime::Options options;
  options.file = "mlp.pte";
  options.delegates = all_delegates();
  options.kernels = kernels::lowered_kernels();
  options.fixed_sizes = true;
  EXPECT_TRUE(Method::load(program, "forward", options).ok());
  pte::Plan& plan = program.plans.front();
  std::get<pte::TensorValue>(plan.values[static_cast<std::size_t>(plan.inputs.front())]).shape_dynamism = 1;
  const auto refused = Method::load(program, "forward", options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "method.sizes-vary");
}

INSTANTIATE_TEST_SUITE_P(
    Programs, OfExecutorch,
    testing::Combine(testing::Values("add_mul", "mlp", "counter", "branch", "conv", "tosa_delegate"), testing::Bool()),
    [](const auto& instance) {
      return std::string(std::get<0>(instance.param)) + (std::get<1>(instance.param) ? "_interpreted" : "");
    });

class OnExecutor : public testing::TestWithParam<bool> {
 protected:
  Result<Method> load(const char* name) {
    return Method::load(program_of(name), "forward", {.interpret = GetParam(), .kernels = kernels::lowered_kernels()});
  }
};

TEST_P(OnExecutor, BothBranchesOfACondition) {
  auto method = load("branch.pte");
  ASSERT_TRUE(method.ok()) << render(method.error(), false);
  const TensorType type{DType::f32, {2}, {}};
  for (double x : {5.0, -5.0, 5.0}) {
    auto y = method->run({{type, constant_bytes(DType::f32, std::vector<double>{x, x})}});
    ASSERT_TRUE(y.ok());
    EXPECT_EQ((*y)[0].data.as<float>()[0], x > 0 ? x + 1 : x * 2);
  }
}

TEST_P(OnExecutor, BuffersKeepTheirContent) {
  auto method = load("counter.pte");
  ASSERT_TRUE(method.ok()) << render(method.error(), false);
  const Tensor ten{{DType::f32, {2}, {}}, constant_bytes(DType::f32, std::vector<double>{10, 10})};
  for (float expected : {11.0f, 21.0f, 31.0f}) {
    auto y = method->run({ten});
    ASSERT_TRUE(y.ok());
    EXPECT_EQ((*y)[0].data.as<float>()[0], expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Method, OnExecutor, testing::Bool(),
                         [](const auto& i) { return i.param ? "interpreted" : "cpu"; });

std::string code(const pte::Program& program, const std::string& method = "forward") {
  auto loaded = Method::load(program, method,
                             {.threads = 1,
                              .interpret = false,
                              .file = "p.pte",
                              .delegates = all_delegates(),
                              .kernels = kernels::lowered_kernels()});
  if (loaded.ok()) return "";
  EXPECT_EQ(loaded.error().place.file, "p.pte");
  return loaded.error().code;
}

TEST(Method, WhatIsNotThereIsNamed) {
  EXPECT_EQ(code(program_of("mlp.pte"), "backward"), "method.missing");
  pte::Program program = program_of("tosa_delegate.pte");
  program.plans[0].delegates[0].id = "NoSuchBackend";
  auto loaded = Method::load(program, "forward", {.kernels = kernels::lowered_kernels()});
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, "delegate.unknown");
  EXPECT_NE(loaded.error().message.find("NoSuchBackend"), std::string::npos);
  EXPECT_FALSE(loaded.error().help.empty());
  program = program_of("add_mul.pte");
  program.plans[0].operators[0] = {"aten::frobnicate", "out"};
  loaded = Method::load(program, "forward", {.kernels = kernels::lowered_kernels()});
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, "kernel.unknown");
  EXPECT_NE(loaded.error().message.find("aten::frobnicate.out"), std::string::npos);
}

TEST(Method, BrokenDelegates) {
  pte::Program program = program_of("tosa_delegate.pte");
  program.plans[0].delegates[0].payload = Bytes::copy("nonsense", 8);
  EXPECT_EQ(Method::load(program, "forward", {.delegates = all_delegates(), .kernels = kernels::lowered_kernels()})
                .error()
                .code,
            "tosa-file.not-tosa");
  program = program_of("tosa_delegate.pte");
  auto& call = std::get<pte::DelegateCall>(program.plans[0].instructions[0]);
  call.args = {0};
  EXPECT_EQ(code(program), "delegate.arguments");
  call.args = {1, 0};
  EXPECT_EQ(code(program), "delegate.arguments");
}

// What a later compiler may have put into a program: refused by its version, with the delegate's number.
TEST(Method, PayloadsOfNewerVersions) {
  const auto refused = [](const std::string& id, const Bytes& payload) {
    pte::Program program = program_of("tosa_delegate.pte");
    program.plans[0].delegates[0].id = id;
    program.plans[0].delegates[0].payload = payload;
    const auto loaded = Method::load(
        program, "forward", {.file = "new.pte", .delegates = all_delegates(), .kernels = kernels::lowered_kernels()});
    if (loaded.ok()) return std::string("loaded");
    EXPECT_EQ(loaded.error().place.file, "new.pte (delegate 0)");
    return loaded.error().code + ": " + loaded.error().message;
  };
  const Bytes tosa = program_of("tosa_delegate.pte").plans[0].delegates[0].payload.joined();
  std::vector<std::byte> newer(tosa.data(), tosa.data() + tosa.size());
  auto* version = const_cast<tosa_schema::Version*>(tosa_schema::GetTosaGraph(newer.data())->version());
  auto* fields = reinterpret_cast<flatbuffers::Table*>(version);
  ASSERT_TRUE(fields->SetField<std::int32_t>(tosa_schema::Version::VT__MINOR, 2, -1));
  EXPECT_EQ(refused("TOSABackend", Bytes::of(newer)),
            "tosa-file.version: the file is TOSA 1.2.0, which cannot be read");
  ASSERT_TRUE(fields->SetField<std::int32_t>(tosa_schema::Version::VT__MAJOR, 2, -1));
  EXPECT_EQ(refused("TOSABackend", Bytes::of(newer)),
            "tosa-file.version: the file is TOSA 2.2.0, which cannot be read");

  vgf::File file;
  file.version = {0, 6, 0};
  EXPECT_EQ(refused("VgfBackend", vgf::write(file)->joined()), "vgf.version: the file has format 0.6.0");
  file.version = {1, 0, 0};
  EXPECT_EQ(refused("VgfBackend", vgf::write(file)->joined()), "vgf.version: the file has format 1.0.0");

  // COP2 holds its commands behind "COP2", a version, lengths and "VEUM" with a version of its own.
  const auto stream = [](std::uint32_t cop, std::uint32_t veum) {
    std::vector<std::uint32_t> words{0x32504f43, cop, 64, 0, 1, 52, 0, 0x4d554556, veum, 0, 0x1807, 0x10066001};
    words.resize(20);
    vela::Payload payload;
    payload.commands.data = Bytes::of(words);
    return *vela::write(payload);
  };
  EXPECT_EQ(refused("EthosUBackend", stream(2, 1)),
            "ethosu.container: command stream container, byte 4: COP2 version 2.0, only 1.0 is known");
  EXPECT_EQ(refused("EthosUBackend", stream(1, 2)),
            "ethosu.container: command stream container, byte 28: the metadata is not VEUM version 1.0");
}

TEST(Method, WrongInputsAreRefused) {
  auto method = Method::load(program_of("counter.pte"), "forward", {.kernels = kernels::lowered_kernels()});
  ASSERT_TRUE(method.ok());
  EXPECT_EQ(method->run({}).error().code, "run.input-count");
  EXPECT_EQ(
      method->run({{{DType::i32, {2}, {}}, constant_bytes(DType::i32, std::vector<std::int64_t>{1, 1})}}).error().code,
      "run.input-type");
  EXPECT_EQ(method->run({{{DType::f32, {1}, {}}, constant_bytes(DType::f32, std::vector<double>{1})}}).error().code,
            "run.input-type");
}

// Kernel calls with arguments of the wrong kind end in a diagnostic, whatever the program.
TEST(Method, ShuffledArguments) {
  for (const char* name : {"add_mul.pte", "mlp.pte", "counter.pte", "branch.pte", "conv.pte"}) {
    const pte::Program good = program_of(name);
    for (std::size_t i = 0; i < good.plans[0].instructions.size(); ++i) {
      const auto* call = std::get_if<pte::KernelCall>(&good.plans[0].instructions[i]);
      if (!call) continue;
      for (std::size_t a = 0; a < call->args.size(); ++a)
        for (std::int32_t v = 0; v < static_cast<std::int32_t>(good.plans[0].values.size()); v += 3) {
          pte::Program program = good;
          std::get<pte::KernelCall>(program.plans[0].instructions[i]).args[a] = v;
          auto loaded = Method::load(
              program, "forward", {.threads = 1, .interpret = true, .file = "", .kernels = kernels::lowered_kernels()});
          if (!loaded.ok()) continue;
          std::vector<Tensor> inputs;
          for (const TensorType& t : loaded->input_types())
            inputs.push_back({t, Bytes::of(std::vector<std::byte>(t.storage_bytes()))});
          (void)loaded->run(inputs).ok();
        }
    }
  }
}

}  // namespace
}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
// What callers give that is not what it says: tensors shorter than their sizes, dtypes that there are not, objects that
// were moved from. Each is refused by name, before anything of it is looked at.
#include <gtest/gtest.h>
#include <cstring>
#include <span>

#include "api/digits.h"

namespace tosaic::test {
namespace {

constexpr auto no_dtype = static_cast<DType>(99);

OwnedTensor image(std::size_t bytes) { return {DType::f32, {1, 1, 8, 8}, Bytes::of(std::vector<std::byte>(bytes))}; }

Session session() { return good(Session::load(good(compile(digits(), "tosa-fp")))); }

TEST(Owners, TensorsShorterThanTheirSizes) {
  Session s = session();
  EXPECT_TRUE(s.run({image(256).view()}).ok());
  for (const std::size_t bytes : {0, 1, 4, 255}) {
    const OwnedTensor tensor = image(bytes);
    EXPECT_EQ(s.run({tensor.view()}).error().code, "run.input-type") << bytes;
  }
  InputTensor strided = image(256).view();
  const OwnedTensor owner = image(256);
  strided.data = owner.data.data();
  strided.strides = {64, 64, 1, 8};
  EXPECT_TRUE(s.run({strided}).ok());
  strided.strides = {64, 64, 9, 1};
  EXPECT_EQ(s.run({strided}).error().code, "run.input-type");
  strided.strides = {64, 64, -8, 1};
  EXPECT_EQ(s.run({strided}).error().code, "run.input-type");
}

TEST(Owners, DtypesThatThereAreNot) {
  Session s = session();
  const OwnedTensor right = image(256);
  InputTensor wrong = right.view();
  wrong.dtype = no_dtype;
  EXPECT_EQ(s.run({wrong}).error().code, "run.input-type");
  std::vector<float> memory(64);
  const OutputTensor out{memory.data(), no_dtype, {1, 10}};
  EXPECT_EQ(s.run(std::vector{right.view()}, std::vector{out}).error().code, "run.output-type");
}

TEST(Owners, CasesOfBundles) {
  const Bytes pte = good(good(compile(digits(), "tosa-fp")).piece("pte"));
  const OwnedTensor out{DType::f32, {1, 10}, Bytes::of(std::vector<std::byte>(40))};
  OwnedTensor no_type = image(256), short_one = image(255), huge = image(256);
  no_type.dtype = no_dtype;
  huge.sizes = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  for (const OwnedTensor& tensor : {no_type, short_one, huge}) {
    const Bundle inputs{pte, {{"forward", {{tensor, {}}}, {{out, {}}}}}};
    const Bundle outputs{pte, {{"forward", {{image(256), {}}}, {{tensor, {}}}}}};
    for (const Bundle* bundle : {&inputs, &outputs}) {
      EXPECT_EQ(write_bundle(*bundle).error().code, "tensor.wrong");
      EXPECT_EQ(check_cases(*bundle).error().code, "tensor.wrong");
    }
  }
}

TEST(Owners, CalibrationSamples) {
  OwnedTensor no_type = image(256);
  no_type.dtype = no_dtype;
  for (const OwnedTensor& tensor : {no_type, image(255), image(0)}) {
    const auto made = compile(digits(), "tosa-int", {}, {}, samples_of({{tensor}}));
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, "calibrate.sample-type");
  }
}

TEST(Owners, SessionsThatWereMovedFrom) {
  Session first = session();
  Session second = std::move(first);
  const OwnedTensor right = image(256);
  EXPECT_TRUE(second.run({right.view()}).ok());
  // NOLINTBEGIN(bugprone-use-after-move)
  EXPECT_EQ(first.run({right.view()}).error().code, "session.empty");
  EXPECT_EQ(first.run(std::vector{right.view()}, std::span<const OutputTensor>()).error().code, "session.empty");
  EXPECT_EQ(first.warm().error().code, "session.empty");
  EXPECT_EQ(first.reset().error().code, "session.empty");
  EXPECT_EQ(first.clone().error().code, "session.empty");
  EXPECT_EQ(first.state("x").error().code, "session.empty");
  EXPECT_EQ(first.set_state("x", right.view()).error().code, "session.empty");
  EXPECT_EQ(first.method("forward").error().code, "session.empty");
  EXPECT_EQ(first.measure(true).error().code, "session.empty");
  EXPECT_EQ(first.profile().error().code, "session.empty");
  EXPECT_TRUE(first.inputs().empty() && first.outputs().empty() && first.arguments().empty());
  EXPECT_TRUE(first.states().empty() && first.methods().empty() && first.examples().empty());
  EXPECT_TRUE(first.device().empty() && first.input_tree().empty() && first.output_tree().empty());
  EXPECT_EQ(first.device_seconds(), 0);
  first = std::move(second);
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_TRUE(first.run({right.view()}).ok());
}

TEST(Owners, ProgramsAndArtifactsThatWereMovedFrom) {
  Program program = digits();
  const Program other = std::move(program);
  Artifact artifact = good(compile(other, "tosa-fp"));
  const Artifact second = std::move(artifact);
  // NOLINTBEGIN(bugprone-use-after-move)
  EXPECT_EQ(program.methods().size(), 1u);  // copies share, and so does who was moved from
  EXPECT_TRUE(compile(program, "tosa-fp").ok());
  EXPECT_TRUE(artifact.piece("pte").ok());
  // NOLINTEND(bugprone-use-after-move)
}

TEST(Owners, ProgramsAndArtifactsOfNothing) {
  const Program none(nullptr);
  EXPECT_TRUE(none.name().empty() && none.torch_version().empty() && none.methods().empty());
  EXPECT_TRUE(none.input_tree().empty() && none.output_tree().empty());
  EXPECT_EQ(none.sample_inputs().error().code, "program.method");
  EXPECT_EQ(compile(none, "tosa-fp").error().code, "program.empty");
  EXPECT_EQ(explain(none, "tosa-fp").error().code, "program.empty");
  EXPECT_FALSE(supports(none, "tosa-fp").ok());
  EXPECT_FALSE(plan(none, "tosa-int").ok());
  EXPECT_FALSE(annotation(none, "tosa-int").ok());
  EXPECT_FALSE(equalized_parameters(none, "tosa-int", {}, {}, {}).ok());
  EXPECT_FALSE(Session::load(none).ok());
  EXPECT_FALSE(Program::together({{"forward", none}}).ok());
  EXPECT_FALSE(read_samples("samples.npz", none).ok());
  const Artifact nothing(nullptr);
  EXPECT_TRUE(nothing.pieces().empty() && nothing.summary().nodes.empty());
  EXPECT_EQ(nothing.piece("pte").error().code, "artifact.no-piece");
  EXPECT_TRUE(nothing.manifest().ok());
  EXPECT_FALSE(Session::load(nothing).ok());
}

}  // namespace
}  // namespace tosaic::test

// SPDX-License-Identifier: Apache-2.0
// Programs compiled in memory: pieces, options, samples, messages, cancellation.
#include <algorithm>
#include <utility>

#include "api/digits.h"

namespace tosaic::test {
namespace {

TEST(Program, SaysWhatItIs) {
  const Program program = digits();
  ASSERT_EQ(program.methods().size(), 1u);
  const MethodInfo& method = program.methods()[0];
  EXPECT_EQ(method.name, "forward");
  ASSERT_EQ(method.inputs.size(), 1u);
  ASSERT_TRUE(method.inputs[0].tensor);
  EXPECT_EQ(to_string(*method.inputs[0].tensor), "1x1x8x8xf32");
  EXPECT_EQ(method.outputs.size(), 1u);
  EXPECT_NE(program.input_tree().find("builtins.tuple"), std::string::npos);
  EXPECT_FALSE(program.torch_version().empty());
  EXPECT_EQ(good(program.sample_inputs()).size(), 1u);
  EXPECT_EQ(program.sample_inputs(99).error().code, "program.sample");
  EXPECT_EQ(program.sample_inputs(0, "backward").error().code, "program.method");
}

TEST(Program, FromGraphText) {
  const std::string text = "graph @main(%x: 2x3xf32) -> (%y) {\n  %y: 2x3xf32 = aten.relu.default(%x)\n}\n";
  const auto program = Program::read(Bytes::copy(text.data(), text.size()), "net.txt");
  ASSERT_TRUE(program.ok()) << render(program.error(), false);
  Session session = good(Session::load(*program));
  const float x[6] = {-1, 2, -3, 4, -5, 6};
  const auto y = good(session.run({{x, DType::f32, {2, 3}}}));
  EXPECT_EQ(y[0].tensor->data.as<float>()[1], 2);
  EXPECT_EQ(y[0].tensor->data.as<float>()[2], 0);
}

TEST(Program, RefusesWhatIsNone) {
  EXPECT_EQ(Program::open("/no/such/file.pt2").error().code, "file.missing");
  const auto bad = Program::read(Bytes::copy("PK\x03\x04 nothing", 12), "bad.pt2");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().place.file, "bad.pt2");
  EXPECT_FALSE(bad.error().help.empty());
}

TEST(Compile, GivesItsPieces) {
  const Artifact artifact = good(compile(digits(), "tosa-int"));
  EXPECT_EQ(artifact.pieces(), (std::vector<std::string>{"pte", "header", "tosa", "payload"}));
  EXPECT_GT(good(artifact.piece("pte")).size(), 1000u);
  EXPECT_EQ(good(artifact.piece("tosa")).text().substr(4, 4), "TOSA");
  EXPECT_NE(good(artifact.piece("header")).text().find("static const size_t model_pte_size"), std::string_view::npos);
  EXPECT_NE(good(artifact.manifest()).find("\"delegated\""), std::string::npos);
  const auto none = artifact.piece("vgf");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, "artifact.no-piece");
  EXPECT_NE(none.error().help.find("header"), std::string::npos);
}

TEST(Compile, TheArrayLiesWhereItIsSaid) {
  Options options;
  options.set("header-name", "net");
  options.set("header-section", ".model");
  options.set("header-alignment", "64");
  const Artifact artifact = good(compile(digits(), "tosa-int", options));
  const Bytes file = good(artifact.piece("header"));
  const std::size_t size = good(artifact.piece("pte")).size();
  for (const std::string& line :
       {"#define NET_SIZE " + std::to_string(size) + "\n", std::string("#define NET_ALIGNMENT 64\n"),
        std::string("net[NET_SIZE] __attribute__((section(\".model\"), aligned(NET_ALIGNMENT))) = {\n")})
    EXPECT_NE(file.text().find(line), std::string_view::npos) << line;
  for (const auto& [name, value] :
       {std::pair("header-name", "2nd"), {"header-section", "a\"b"}, {"header-alignment", "48"}}) {
    Options wrong;
    wrong.set(name, value);
    const auto made = compile(digits(), "tosa-int", wrong);
    ASSERT_FALSE(made.ok()) << name;
    EXPECT_EQ(made.error().code, "option.value");
    EXPECT_NE(made.error().message.find(name), std::string::npos);
  }
}

TEST(Compile, MessagesAreData) {
  std::vector<Diagnostic> heard;
  Callbacks callbacks;
  callbacks.message = [&](const Diagnostic& m) { heard.push_back(m); };
  const Artifact artifact = good(compile(digits(), "tosa-int", {}, callbacks));
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard[0].code, "calibrate.stored-samples");
  EXPECT_EQ(heard[0].severity, Severity::note);
  EXPECT_EQ(artifact.summary().messages.size(), heard.size());
}

TEST(Compile, OptionsAreChecked) {
  const Program program = digits();
  const auto code = [&](const std::string& target, const Options& options) {
    const auto result = compile(program, target, options);
    return result.ok() ? "taken" : result.error().code + ": " + result.error().message + " / " + result.error().help;
  };
  EXPECT_EQ(code("tosa-int", Options().set("quantise", "int16x8")), "taken");
  EXPECT_EQ(code("tosa-int", Options().set("quantize", "int9")),
            "option.value: option 'quantize' takes auto, int8, int16x8 or dynamic-int8, not 'int9' / `tosaic help "
            "compile` lists the "
            "options and what they take");
  EXPECT_EQ(code("tosa-int", Options().set("qantize", "int8")),
            "option.unknown: there is no option 'qantize' / did you mean quantize?");
  EXPECT_EQ(code("tosa-int", Options().set("memory-mode", "Shared_Sram")),
            "option.target: the target tosa-int takes no option 'memory-mode' / it belongs to Ethos-U targets, such as "
            "ethos-u55-32");
  EXPECT_EQ(code("tosa-int", Options().set("threads", 1025)).substr(0, 13), "option.value:");
  EXPECT_EQ(code("tosa-into", {}).substr(0, 15), "target.unknown:");
}

// The same bytes whichever way the samples come, and other bytes with other samples.
TEST(Compile, NumbersOfAnyTypeAreOptions) {
  EXPECT_EQ(Options().set("threads", std::size_t{2}).text("threads"), "2");
  EXPECT_EQ(Options().set("threads", 3L).text("threads"), "3");
  EXPECT_EQ(Options().set("threads", std::uint8_t{4}).text("threads"), "4");
  EXPECT_EQ(Options().set("threads", -5LL).number("threads"), -5);
  EXPECT_EQ(Options().set("threads", 6.0).text("threads"), "6");
  EXPECT_EQ(Options().set("threads", 1e9).text("threads"), "1000000000");
  EXPECT_EQ(Options().set("threads", 0).text("threads"), "0");
  EXPECT_EQ(Options().set("flag", true).text("flag"), "true");
  EXPECT_EQ(Options().set("quantize", "int8").text("quantize"), "int8");
  EXPECT_TRUE(compile(digits(), "tosa-int", Options().set("threads", 1.0f)).ok());
  EXPECT_EQ(compile(digits(), "tosa-int", Options().set("threads", 1.5)).error().code, "option.value");
}

TEST(Compile, BracesAreNoSamples) {
  const Bytes plain = good(good(compile(digits(), "tosa-int")).piece("pte"));
  EXPECT_EQ(good(good(compile(digits(), "tosa-int", {}, {}, {})).piece("pte")).text(), plain.text());
  EXPECT_TRUE(compile(digits(), "tosa-int", {}, {}, nullptr).ok());
}

TEST(Compile, SamplesComeFromWhereverTheyAre) {
  const Program program = digits();
  const auto sample = good(program.sample_inputs());
  const Bytes stored = good(good(compile(program, "tosa-int")).piece("pte"));
  const SampleSource same = samples_of({sample});
  EXPECT_TRUE(good(good(compile(program, "tosa-int", {}, {}, same)).piece("pte")) == stored);
  EXPECT_TRUE(good(good(compile(program, "tosa-int", {}, {}, same)).piece("pte")) == stored);  // used again

  std::vector<float> half(64);
  for (std::size_t i = 0; i < 64; ++i) half[i] = sample[0].data.as<float>()[i] / 2;
  bool given = false;
  const SampleSource lent = [&](std::vector<InputTensor>& tensors) -> Result<bool> {
    tensors = {{half.data(), DType::f32, {1, 1, 8, 8}}};
    return !std::exchange(given, true);
  };
  EXPECT_FALSE(good(good(compile(program, "tosa-int", {}, {}, lent)).piece("pte")) == stored);

  const SampleSource wrong = [&](std::vector<InputTensor>& tensors) -> Result<bool> {
    tensors = {{half.data(), DType::f32, {8, 8}}};
    return true;
  };
  EXPECT_EQ(compile(program, "tosa-int", {}, {}, wrong).error().code, "calibrate.sample-type");
  const SampleSource fails = [&](std::vector<InputTensor>&) -> Result<bool> {
    Diagnostic why;
    why.code = "camera.off";
    return why;
  };
  EXPECT_EQ(compile(program, "tosa-int", {}, {}, fails).error().code, "camera.off");
  EXPECT_EQ(compile(program, "tosa-int", {}, {}, samples_of({})).error().code, "calibrate.no-samples");
  const auto file = good(read_samples(TOSAIC_TEST_DATA "/../examples/digits/digits_samples.npz", program));
  EXPECT_GT(good(compile(program, "tosa-int", {}, {}, file)).summary().samples, 1u);
}

TEST(Compile, SamplesOfSeveralMethods) {
  const Program one = digits();
  const Program both = good(Program::together({{"first", one}, {"second", one}}));
  const auto count = [&](const MethodSamples& samples) {
    return good(compile(both, "tosa-int", {}, {}, samples)).summary().samples;
  };
  const auto file = [&] {
    return good(read_samples(TOSAIC_TEST_DATA "/../examples/digits/digits_samples.npz", both, "second"));
  };
  EXPECT_EQ(count({}), 2u);  // those that the program holds, one each
  EXPECT_EQ(count({{"second", file()}}), 65u);
  EXPECT_EQ(count({{"first", {}}, {"second", file()}}), 65u);
  EXPECT_EQ(count({{"first", file()}, {"second", file()}}), 128u);
  const auto refused = [&](const MethodSamples& samples) {
    const auto artifact = compile(both, "tosa-int", {}, {}, samples);
    return artifact.ok() ? std::string() : artifact.error().code;
  };
  EXPECT_EQ(refused({{"third", file()}}), "calibrate.methods");
  EXPECT_EQ(refused({{"first", file()}, {"first", file()}}), "calibrate.methods");
  EXPECT_EQ(refused({{"", file()}}), "calibrate.methods");
  EXPECT_EQ(compile(both, "tosa-int", {}, {}, file()).error().code, "calibrate.methods");
  EXPECT_EQ(read_samples("any.npz", both).error().code, "calibrate.methods");
  EXPECT_EQ(good(compile(one, "tosa-int", {}, {}, MethodSamples{{"forward", file()}})).summary().samples, 64u);
}

TEST(Compile, ProgressAndCancellation) {
  const Program program = digits();
  const auto samples = samples_of(std::vector<std::vector<OwnedTensor>>(20, good(program.sample_inputs())));
  std::size_t most = 0;
  Callbacks callbacks;
  callbacks.progress = [&](std::string_view stage, std::size_t done, std::size_t total) {
    EXPECT_EQ(stage, "calibrate");
    EXPECT_EQ(total, 20u);
    most = std::max(most, done);
  };
  good(compile(program, "tosa-int", {}, callbacks, samples));
  EXPECT_EQ(most, 20u);
  most = 0;
  callbacks.cancelled = [&] { return most >= 5; };
  EXPECT_EQ(compile(program, "tosa-int", {}, callbacks, samples).error().code, "compile.cancelled");
  EXPECT_EQ(most, 5u);
}

TEST(Compile, EveryTargetDescribesItsOptions) {
  for (const TargetInfo& target : targets())
    for (const OptionInfo& option : target.options) {
      EXPECT_FALSE(option.sentence.empty()) << target.name << " " << option.name;
      for (const OptionInfo& general : compile_options()) EXPECT_NE(general.name, option.name);
    }
}

TEST(Supports, NeedsNoSamples) {
  const std::string text = "graph @main(%x: 2x3xf32) -> (%y) {\n  %y: 2x3xf32 = aten.relu.default(%x)\n}\n";
  const Program program = good(Program::read(Bytes::copy(text.data(), text.size()), "net.txt"));
  for (const TargetInfo& target : targets()) {
    const auto verdicts = good(supports(program, target.name));
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].name, "y");
    EXPECT_TRUE(verdicts[0].taken) << target.name;
    EXPECT_EQ(good(explain(program, target.name)).summary().delegated, 1u) << target.name;
  }
}

TEST(Supports, TellsOfTheNodesThatTheUserKnows) {
  const Program program = digits();
  const std::size_t count = program.methods()[0].nodes;
  for (const TargetInfo& target : targets()) EXPECT_EQ(good(supports(program, target.name)).size(), count);
  const auto refused = good(supports(program, "tosa-fp", Options().set("tosa-spec", "TOSA-1.0+INT")));
  ASSERT_EQ(refused.size(), count);
  EXPECT_EQ(good(explain(program, "tosa-int")).summary().exported.size(), count);
  EXPECT_EQ(supports(program, "tosa-it").error().code, "target.unknown");
}

// Nodes that are taken, and why the others are not.
std::string told(const std::vector<NodeVerdict>& verdicts) {
  std::string out;
  for (const NodeVerdict& v : verdicts) out += v.name + (v.taken ? " " : ":" + v.reason->code + " ");
  return out;
}

TEST(Supports, AsksAboutWhatIsDecided) {
  const Program program = digits();
  for (const TargetInfo& target : targets())
    for (const char* decided : {"block2: float", "*: int8"}) {
      const Options options = Options().set("override", decided);
      const auto asked = supports(program, target.name, options);
      const auto explained = explain(program, target.name, options);
      ASSERT_EQ(asked.ok(), explained.ok()) << target.name;
      if (asked.ok())
        EXPECT_EQ(told(*asked), told(explained->summary().exported)) << target.name;
      else
        EXPECT_EQ(asked.error().code, explained.error().code) << target.name;
    }
  EXPECT_NE(told(good(supports(program, "tosa-int", Options().set("override", "block2: float")))).find("by-plan"),
            std::string::npos);
  EXPECT_EQ(supports(program, "tosa-int", Options().set("override", "blok2: float")).error().code,
            "plan.names-nothing");
  EXPECT_EQ(supports(program, "tosa-int", Options().set("tosa-spec", "TOSA-1.0+INT").set("override", "stem: int16x8"))
                .error()
                .code,
            "plan.refused");
}

}  // namespace
}  // namespace tosaic::test

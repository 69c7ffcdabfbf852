// SPDX-License-Identifier: Apache-2.0
// Sessions: what is lent to them, what they refuse, threads.
#include <atomic>
#include <limits>
#include <thread>

#include "api/digits.h"

namespace tosaic::test {
namespace {

Artifact compiled(const char* target = "tosa-int") { return good(compile(digits(), target)); }
std::vector<OwnedTensor> sample() { return good(digits().sample_inputs()); }

TEST(Session, EveryFormGivesTheSame) {
  const Artifact artifact = compiled();
  const auto inputs = sample();
  Session session = good(Session::load(artifact));
  EXPECT_EQ(session.device(), "cpu");
  ASSERT_EQ(session.inputs().size(), 1u);
  EXPECT_EQ(session.inputs()[0].sizes(), (std::vector<std::int64_t>{1, 1, 8, 8}));
  ASSERT_EQ(session.outputs().size(), 1u);
  const std::string expected = bytes_of(good(session.run(lent(inputs))));
  Session of_bytes = good(Session::load(good(artifact.piece("pte")), "digits.pte"));
  EXPECT_EQ(bytes_of(good(of_bytes.run(lent(inputs)))), expected);
  SessionOptions interpreter;
  interpreter.executor = "interp";
  Session interpreted = good(Session::load(artifact, interpreter));
  EXPECT_EQ(bytes_of(good(interpreted.run(lent(inputs)))), expected);
  Session exported = good(Session::load(digits()));  // in floats
  EXPECT_EQ(exported.examples().size(), 1u);
  EXPECT_EQ(good(exported.run(lent(inputs)))[0].tensor->sizes, (std::vector<std::int64_t>{1, 10}));
}

TEST(Session, TakesStrides) {
  Session session = good(Session::load(compiled()));
  const auto inputs = sample();
  const std::string expected = bytes_of(good(session.run(lent(inputs))));
  // The same picture, columns first, and mirrored: strides say how to read it.
  std::vector<float> turned(64), mirrored(64);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x) {
      turned[x * 8 + y] = inputs[0].data.as<float>()[y * 8 + x];
      mirrored[y * 8 + 7 - x] = inputs[0].data.as<float>()[y * 8 + x];
    }
  EXPECT_EQ(bytes_of(good(session.run({{turned.data(), DType::f32, {1, 1, 8, 8}, {64, 64, 1, 8}}}))), expected);
  EXPECT_EQ(bytes_of(good(session.run({{mirrored.data() + 7, DType::f32, {1, 1, 8, 8}, {64, 64, 8, -1}}}))), expected);
}

TEST(Session, WritesIntoTheCallersMemory) {
  Session session = good(Session::load(compiled()));
  const auto inputs = sample();
  const auto given = lent(inputs);
  const std::string expected = bytes_of(good(session.run(given)));
  float dense[10];
  const OutputTensor to_dense{dense, DType::f32, {1, 10}};
  ASSERT_TRUE(session.run(given, std::vector<OutputTensor>{to_dense}).ok());
  EXPECT_EQ(std::string(reinterpret_cast<char*>(dense), sizeof dense), expected);
  float spread[20] = {};
  const OutputTensor to_spread{spread, DType::f32, {1, 10}, {20, 2}};
  ASSERT_TRUE(session.run(given, std::vector<OutputTensor>{to_spread}).ok());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(spread[2 * i], dense[i]);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(spread[2 * i + 1], 0);
}

TEST(Session, RefusesWhatDoesNotFit) {
  Session session = good(Session::load(compiled()));
  float x[64] = {}, y[10];
  const InputTensor right{x, DType::f32, {1, 1, 8, 8}};
  const auto code = [&](std::vector<InputTensor> inputs) {
    const auto result = session.run(inputs);
    return result.ok() ? "" : result.error().code;
  };
  EXPECT_EQ(code({right}), "");
  EXPECT_EQ(code({}), "run.input-count");
  EXPECT_EQ(code({right, right}), "run.input-count");
  EXPECT_EQ(code({{x, DType::f64, {1, 1, 8, 8}}}), "run.input-type");
  EXPECT_EQ(code({{x, DType::f32, {1, 1, 8, 9}}}), "run.input-type");
  EXPECT_EQ(code({{x, DType::f32, {1, 8, 8}}}), "run.input-type");
  EXPECT_EQ(code({{x, DType::f32, {1, 1, 8, 8}, {1}}}), "run.input-type");
  EXPECT_EQ(code({{nullptr, DType::f32, {1, 1, 8, 8}}}), "run.null");
  EXPECT_EQ(code({{x, static_cast<DType>(200), {1, 1, 8, 8}}}), "run.input-type");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(code({{x, DType::f32, {most, most, -1, least}}}), "run.input-type");
  for (const std::int64_t far : {most, least, most / 7, least / 7, most / 28})
    EXPECT_EQ(code({{x, DType::f32, {1, 1, 8, 8}, {64, 64, 8, far}}}), "run.input-type");
  EXPECT_EQ(code({{x, DType::f32, {1, 1, 8, 8}, {most, least, 8, 1}}}), "");  // of dims of one element
  const auto refused = [&](std::vector<OutputTensor> outputs) {
    const Status status = session.run(std::vector<InputTensor>{right}, outputs);
    return status.ok() ? "" : status.error().code;
  };
  EXPECT_EQ(refused({{y, DType::f32, {1, 10}}}), "");
  EXPECT_EQ(refused({}), "run.output-count");
  EXPECT_EQ(refused({{y, DType::i8, {1, 10}}}), "run.output-type");
  EXPECT_EQ(refused({{y, DType::f32, {10}}}), "run.output-type");
  EXPECT_EQ(refused({{nullptr, DType::f32, {1, 10}}}), "run.null");
  EXPECT_EQ(refused({{y, DType::f32, {1, 10}, {1}}}), "run.output-type");
  EXPECT_EQ(refused({{y, DType::f32, {1, 10}, {10, 1, 1}}}), "run.output-type");
  for (const std::int64_t far : {most, least, most / 9, least / 9})
    EXPECT_EQ(refused({{y, DType::f32, {1, 10}, {10, far}}}), "run.output-type");
  EXPECT_EQ(refused({{x + 60, DType::f32, {1, 10}}}), "run.overlap");
  EXPECT_EQ(refused({{y, DType::f32, {1, 10}, {0, 0}}}), "run.overlap");
  // Inputs are looked at first, whatever the outputs are.
  const auto both = [&](const InputTensor& input) {
    const Status status =
        session.run(std::vector<InputTensor>{input}, std::vector<OutputTensor>{{y, DType::f32, {1, 10}}});
    return status.ok() ? "" : status.error().code;
  };
  EXPECT_EQ(both({x, DType::f32, {1, 1, 8, 8}, {8}}), "run.input-type");
  EXPECT_EQ(both({x, DType::f32, {1, 1, 8, 8}, {most, most, most, most}}), "run.input-type");
  EXPECT_EQ(both({x, DType::f32, {most, most, most}}), "run.input-type");
  EXPECT_EQ(both({nullptr, DType::f32, {1, 1, 8, 8}}), "run.null");
  EXPECT_EQ(code({right}), "");  // and the session works
}

TEST(Session, OneRunAtATime) {
  SessionOptions options;
  Session* running = nullptr;
  std::string inside;
  Session outer = good(Session::load(digits(), options));
  running = &outer;
  // Every thread runs the same session: those that come during a run are told.
  const auto inputs = sample();
  std::atomic<int> done{0}, busy{0}, other{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto result = running->run(lent(inputs));
        ++(result.ok() ? done : result.error().code == "session.busy" ? busy : other);
        for (const Status& status : {running->reset(), running->measure(i % 2 == 0)})
          other += !status.ok() && status.error().code != "session.busy";
        const auto times = running->profile();
        other += !times.ok() && times.error().code != "session.busy";
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(done + busy, 800);
  EXPECT_GT(done, 0);
}

TEST(Session, ClonesRunInThreadsOfTheirOwn) {
  Session first = good(Session::load(compiled()));
  const auto inputs = sample();
  const std::string expected = bytes_of(good(first.run(lent(inputs))));
  std::vector<Session> clones;
  for (int i = 0; i < 4; ++i) clones.push_back(good(first.clone()));
  std::atomic<int> equal{0};
  std::vector<std::thread> threads;
  for (Session& clone : clones)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) equal += bytes_of(good(clone.run(lent(inputs)))) == expected;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(equal, 400);
}

TEST(Session, ResetForgets) {
  Session session = good(Session::load(compiled()));
  const auto inputs = sample();
  const std::string expected = bytes_of(good(session.run(lent(inputs))));
  ASSERT_TRUE(session.reset().ok());
  EXPECT_EQ(bytes_of(good(session.run(lent(inputs)))), expected);
}

// Adds what it is given to what it has had.
const char sums[] = R"(graph @sums(%x: 2xf32) -> (%sum) {
  %start: 2xf32 = constant [1.0, 2.0]
  tosa.variable(%start) {name="v", var_shape=[2], type=f32}
  %before: 2xf32 = tosa.variable_read() {name="v"}
  %sum: 2xf32 = tosa.add(%before, %x)
  tosa.variable_write(%sum) {name="v"}
})";

TEST(Session, StatesPersistUntilTheyAreReset) {
  const float x[2] = {10, 20};
  const InputTensor given{x, DType::f32, {2}};
  const auto next = [&](Session& session) { return good(session.run({given}))[0].tensor->data.as<float>()[1]; };
  for (const char* executor : {"cpu", "interp"}) {
    SessionOptions options;
    options.executor = executor;
    Session session = good(Session::load(Bytes::copy(sums, sizeof sums - 1), "sums.txt", options));
    for (float expected : {22.0f, 42.0f, 62.0f}) EXPECT_EQ(next(session), expected);
    Session clone = good(session.clone());
    EXPECT_EQ(next(clone), 22);
    EXPECT_EQ(next(session), 82);
    ASSERT_TRUE(session.reset().ok());
    EXPECT_EQ(next(session), 22);
    EXPECT_EQ(next(clone), 42);
  }
}

// Rows are added up into a state until they are many: sizes that vary, a loop that data end, a buffer.
const char grows[] = R"(graph @main(%x: (s0 in 1..8)x2xf32) -> (%z, %turns) {
  %kept: 2xf32 = state "kept" = [1.0, 2.0]
  %zero: i64 = constant [0]
  %rows: 2xf32 = aten.sum.dim_IntList(%x) {dim=[0], keepdim=false}
  %turns: i64, %sum: 2xf32 = higher_order.while_loop(%zero, %kept, %rows) {operands=[2, 1]} (
    graph @goes_on(%i: i64, %u: 2xf32, %r: 2xf32) -> (%more) {
      %all: f32 = aten.sum.default(%u)
      %more: bool = aten.lt.Scalar(%all) {other=20.0}
    }
    graph @turn(%i: i64, %u: 2xf32, %r: 2xf32) -> (%next, %v) {
      %next: i64 = aten.add.Tensor(%i, none) {other=1}
      %v: 2xf32 = aten.add.Tensor(%u, %r)
    }
  )
  %half: 2xf32 = aten.mul.Tensor(%sum, none) {other=0.5}
  %z: (s0 in 1..8)x2xf32 = aten.sub.Tensor(%x, %sum) {alpha=1}
  state "kept" %kept -> %half
})";

TEST(Session, SizesStatesAndLoopsOnBothExecutors) {
  const Program program = good(Program::read(Bytes::copy(grows, sizeof grows - 1), "grows.txt"));
  const std::vector<float> ones(16, 1.0f);
  const Artifact fixed = good(compile(program, "tosa-fp", Options().set("sizes", "x.0=3")));
  for (const char* executor : {"cpu", "interp"})
    for (const bool itself : {true, false}) {
      SessionOptions options;
      options.executor = executor;
      Session session = itself ? good(Session::load(program, options)) : good(Session::load(fixed, options));
      const std::vector<std::int64_t> sizes =
          itself ? std::vector<std::int64_t>{3, 1, 8} : std::vector<std::int64_t>(3, 3);
      float kept[2] = {1, 2};
      for (const std::int64_t rows : sizes) {
        std::int64_t turns = 0;
        for (; kept[0] + kept[1] < 20; ++turns)
          for (float& k : kept) k += static_cast<float>(rows);
        const auto got = good(session.run({{ones.data(), DType::f32, {rows, 2}}}));
        EXPECT_EQ(got[0].tensor->sizes, (std::vector<std::int64_t>{rows, 2}));
        EXPECT_EQ(got[0].tensor->data.as<float>()[2 * rows - 1], 1 - kept[1]) << executor << ", " << rows;
        EXPECT_EQ(got[1].tensor->data.as<std::int64_t>()[0], turns) << executor << ", " << rows;
        for (float& k : kept) k *= 0.5f;
      }
    }
}

// `item` and `condition`: of the number %n, and of what the program asserts of it.
Result<Session> asserting(const std::string& item, const std::string& condition) {
  const std::string text =
      "graph @main(%x: 2xf32, %k: 1xi64, %none: 0xi64) -> (%y) {\n  %n: i64(u0 in 0..9) = " + item +
      "\n  %b: bool = " + condition +
      "\n  aten._assert_scalar.default() {self=$b, assert_msg=\"Runtime assertion failed for "
      "expression u0 <= 9 on node 'b'\"}\n  %y: 2xf32 = aten.add.Tensor(%x, %x)\n}";
  TOSAIC_TRY(const Program program, Program::read(Bytes::copy(text.data(), text.size()), "asserts.txt"));
  return Session::load(program);
}

TEST(Session, ChecksWhatAProgramAsserts) {
  const auto said = [](Session& session, std::int64_t k) {
    const float x[2] = {1, 2};
    const auto got = session.run({{x, DType::f32, {2}}, {&k, DType::i64, {1}}, {&k, DType::i64, {0}}});
    return got.ok() ? "ran" : got.error().code + ": " + got.error().message;
  };
  const std::string item = "aten.item.default(%k)", at_most_nine = "_operator.le() {a=$n(u0 in 0..9), b=9}";
  Session session = good(asserting(item, at_most_nine));
  EXPECT_EQ(said(session, 9), "ran");
  EXPECT_EQ(said(session, 10), "run.assumption: the program is the module's only where u0 <= 9, and u0 is 10");
  // What no program of PyTorch's says asserts nothing.
  int loaded = 0;
  for (const auto& [of, condition] : {std::pair{item, "torch.sym_not() {a=$b}"},
                                      {item, "_operator.eq() {a=$b, b=$b}"},
                                      {item, "torch.sym_ite() {b=$b, t=$b, f=$b}"},
                                      {item, "_operator.le() {a=$n(u0 in 0..9)}"},
                                      {item, "_operator.le() {a=$n(u1 in 0..9), b=\"9\"}"},
                                      {"aten.item.default(%none)", at_most_nine.c_str()},
                                      {"aten.item.default(none)", at_most_nine.c_str()},
                                      {"aten.item.default()", at_most_nine.c_str()}}) {
    auto damaged = asserting(of, condition);
    if (!damaged.ok()) continue;
    EXPECT_EQ(said(*damaged, 10), "ran") << of << ", " << condition;
    ++loaded;
  }
  EXPECT_GT(loaded, 4);
}

TEST(Session, WarmLeavesNothingBehind) {
  const float x[2] = {10, 20};
  const InputTensor given{x, DType::f32, {2}};
  const auto next = [&](Session& session) { return good(session.run({given}))[0].tensor->data.as<float>()[1]; };
  for (const char* executor : {"cpu", "interp"}) {
    SessionOptions options;
    options.executor = executor;
    Session session = good(Session::load(Bytes::copy(sums, sizeof sums - 1), "sums.txt", options));
    ASSERT_TRUE(session.warm({&given, 1}).ok());
    EXPECT_EQ(next(session), 22);
    ASSERT_TRUE(session.warm().ok());  // it has run: it keeps what it keeps
    EXPECT_EQ(next(session), 42);
    Session other = good(session.clone());
    ASSERT_TRUE(other.warm().ok());
    EXPECT_EQ(next(other), 22);
    Session wrong = good(session.clone());
    const InputTensor longer{x, DType::f32, {1, 2}};
    EXPECT_EQ(wrong.warm({&longer, 1}).error().code, "run.input-type");
    EXPECT_EQ(next(wrong), 22);
  }
}

TEST(Session, TellsWhereItsTimeGoes) {
  const auto inputs = sample();
  for (const char* executor : {"cpu", "interp"}) {
    SessionOptions options;
    options.executor = executor;
    Session session = good(Session::load(digits(), options));
    good(session.run(lent(inputs)));
    EXPECT_TRUE(good(session.profile()).empty());
    ASSERT_TRUE(session.measure(true).ok());
    EXPECT_TRUE(good(session.profile()).empty());
    good(session.run(lent(inputs)));
    const auto times = good(session.profile());
    if (executor == std::string("interp")) {
      ASSERT_EQ(times.size(), 1u);
      EXPECT_EQ(times[0].operation, "interp");
    } else {
      EXPECT_GT(times.size(), 2u);
    }
    for (const OperationTime& t : times) EXPECT_GE(t.seconds, 0) << t.operation;
    ASSERT_TRUE(session.measure(false).ok());
    good(session.run(lent(inputs)));
    EXPECT_TRUE(good(session.profile()).empty());
  }
}

TEST(Session, SaysWhatItCannotLoad) {
  const auto code = [](Bytes file, SessionOptions options = {}) {
    const auto session = Session::load(std::move(file), "x.bin", options);
    return session.ok() ? "" : session.error().code;
  };
  EXPECT_EQ(code(Bytes::copy("what?", 5)), "run.unknown-format");
  EXPECT_EQ(code({}), "run.unknown-format");
  const Bytes pte = good(compiled().piece("pte"));
  EXPECT_EQ(code(pte.slice(0, pte.size() / 2)).substr(0, 4), "pte.");
  SessionOptions options;
  options.method = "backward";
  EXPECT_EQ(code(pte, options), "method.missing");
  options = {};
  options.device = "ethos-u";
  EXPECT_EQ(code(pte, options), "run.device");
  options = {};
  options.executor = "gpu";
  EXPECT_EQ(code(pte, options), "run.executor");
  for (const int threads : {-1, 1025}) {
    options = {};
    options.threads = threads;
    EXPECT_EQ(code(pte, options), "run.threads");
  }
}

}  // namespace
}  // namespace tosaic::test

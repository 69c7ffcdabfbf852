// SPDX-License-Identifier: Apache-2.0
// MobileNetV2 at 224 x 224 as a TOSA graph with random weights, f32 and int8, on the CPU executor: milliseconds per
// run (the least of many), memory, time to compile.
//   cpu_mobilenet [runs] [--steps]      --steps: the kernels in order
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "cpu/cpu.h"

namespace {

using namespace tosaic;
using Ints = std::vector<std::int64_t>;

class MobileNet {
 public:
  explicit MobileNet(bool quantised) : quantised_(quantised) {
    ValueId x = graph.add_value("image", TensorType{quantised ? DType::i8 : DType::f32, Shape{1, 224, 224, 3}});
    graph.inputs = {x};
    x = convolution(x, 32, 3, 2, true);
    struct Stage {
      std::int64_t expand, channels, count, stride;
    };
    for (const Stage& s : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                           Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}})
      for (std::int64_t i = 0; i < s.count; ++i) x = bottleneck(x, s.expand, s.channels, i ? 1 : s.stride);
    x = convolution(x, 1280, 1, 1, true);
    x = average(x);
    graph.outputs = {convolution(x, 1000, 1, 1, false)};
  }
  Graph graph;

 private:
  bool quantised_;
  std::mt19937 random_{7};

  ValueId value(DType dtype, Shape shape) {
    return graph.add_value("v" + std::to_string(graph.values.size()), TensorType{dtype, std::move(shape)});
  }
  ValueId numbers(DType dtype, Shape shape, const std::vector<double>& values) {
    Bytes data = constant_bytes(dtype, std::span<const double>(values));
    return graph.add_value("c" + std::to_string(graph.values.size()), TensorType{dtype, std::move(shape)},
                           std::move(data));
  }
  ValueId constant(DType dtype, double x) { return numbers(dtype, {1}, {x}); }
  ValueId filled(DType dtype, Shape shape, double lowest, double highest) {
    std::uniform_real_distribution<double> uniform(lowest, highest);
    std::vector<double> values(static_cast<std::size_t>(shape.elements()));
    for (double& v : values) v = dtype == DType::f32 ? uniform(random_) : std::floor(uniform(random_));
    return numbers(dtype, std::move(shape), values);
  }
  ValueId node(const std::string& op, std::vector<ValueId> inputs, Attrs attrs, DType dtype, Shape shape) {
    const ValueId out = value(dtype, std::move(shape));
    graph.nodes.push_back({"tosa." + op, std::move(inputs), std::move(attrs), {out}, {}, {}});
    return out;
  }
  ValueId rescale(ValueId x, DType to, double scale, std::int64_t channels, double zp_in, double zp_out) {
    const DType from = graph[x].type.dtype;
    int exponent;
    const double fraction = std::frexp(scale, &exponent);
    std::vector<double> multiplier, shift;
    for (std::int64_t i = 0; i < channels; ++i) {
      multiplier.push_back(std::floor(std::ldexp(fraction, 31)) - static_cast<double>(i % 1000));
      shift.push_back(31 - exponent);
    }
    const Shape one{channels};
    return node("rescale",
                {x, numbers(DType::i32, one, multiplier), numbers(DType::i8, one, shift), constant(from, zp_in),
                 constant(to, zp_out)},
                {{"scale32", true},
                 {"rounding_mode", std::string("single_round")},
                 {"per_channel", channels > 1},
                 {"input_unsigned", false},
                 {"output_unsigned", false}},
                to, graph[x].type.shape);
  }
  // After the sums: to quantised values, and ReLU6.
  ValueId finish(ValueId x, std::int64_t fan_in, bool relu6) {
    const Shape shape = graph[x].type.shape;
    if (quantised_)
      x = rescale(x, DType::i8, 0.02 / std::sqrt(static_cast<double>(fan_in)), shape.size(3), 0, relu6 ? -128 : 3);
    if (!relu6) return x;
    Attrs clamp{{"nan_mode", std::string("propagate")}};
    if (quantised_)
      clamp.set("min_val", std::int64_t{-128}), clamp.set("max_val", std::int64_t{120});
    else
      clamp.set("min_val", 0.0), clamp.set("max_val", 6.0);
    return node("clamp", {x}, clamp, graph[x].type.dtype, shape);
  }
  Attrs window(std::int64_t kernel, std::int64_t stride) const {
    // PyTorch pads by 1 on all sides; where the stride leaves the last line over, TOSA wants it gone.
    const std::int64_t before = kernel == 3 ? 1 : 0, after = kernel == 3 && stride == 1 ? 1 : 0;
    return {{"pad", Ints{before, after, before, after}},
            {"stride", Ints{stride, stride}},
            {"dilation", Ints{1, 1}},
            {"acc_type", quantised_ ? DType::i32 : DType::f32},
            {"local_bound", false}};
  }
  ValueId convolution(ValueId x, std::int64_t channels, std::int64_t kernel, std::int64_t stride, bool relu6) {
    const Shape in = graph[x].type.shape;
    const std::int64_t fan_in = kernel * kernel * in[3];
    const DType type = quantised_ ? DType::i8 : DType::f32, sums = quantised_ ? DType::i32 : DType::f32;
    const double range = quantised_ ? 127 : std::sqrt(6.0 / static_cast<double>(fan_in));
    const ValueId y = node("conv2d",
                           {x, filled(type, {channels, kernel, kernel, in[3]}, -range, range),
                            filled(sums, {channels}, quantised_ ? -1000 : -0.1, quantised_ ? 1000 : 0.1),
                            constant(type, quantised_ ? -5 : 0), constant(type, 0)},
                           window(kernel, stride), sums, Shape{1, in[1] / stride, in[2] / stride, channels});
    return finish(y, fan_in, relu6);
  }
  ValueId depthwise(ValueId x, std::int64_t stride) {
    const Shape in = graph[x].type.shape;
    const DType type = quantised_ ? DType::i8 : DType::f32, sums = quantised_ ? DType::i32 : DType::f32;
    const double range = quantised_ ? 127 : 0.8;
    const ValueId y = node("depthwise_conv2d",
                           {x, filled(type, {3, 3, in[3], 1}, -range, range),
                            filled(sums, {in[3]}, quantised_ ? -1000 : -0.1, quantised_ ? 1000 : 0.1),
                            constant(type, quantised_ ? -128 : 0), constant(type, 0)},
                           window(3, stride), sums, Shape{1, in[1] / stride, in[2] / stride, in[3]});
    return finish(y, 9, true);
  }
  ValueId bottleneck(ValueId x, std::int64_t expand, std::int64_t channels, std::int64_t stride) {
    const std::int64_t in = graph[x].type.shape.size(3);
    ValueId y = expand == 1 ? x : convolution(x, in * expand, 1, 1, true);
    y = convolution(depthwise(y, stride), channels, 1, 1, false);
    if (stride != 1 || in != channels) return y;
    const Shape shape = graph[x].type.shape;
    if (!quantised_) return node("add", {x, y}, {}, DType::f32, shape);
    const ValueId sum =
        node("add", {rescale(x, DType::i32, 1 << 19, 1, 3, 0), rescale(y, DType::i32, 1 << 18, 1, 3, 0)}, {},
             DType::i32, shape);
    return rescale(sum, DType::i8, 1.0 / (1 << 20), 1, 0, 3);
  }
  ValueId average(ValueId x) {
    const Shape in = graph[x].type.shape;
    const DType type = graph[x].type.dtype;
    return node("avg_pool2d", {x, constant(type, quantised_ ? -128 : 0), constant(type, quantised_ ? -128 : 0)},
                {{"kernel", Ints{in[1], in[2]}},
                 {"stride", Ints{1, 1}},
                 {"pad", Ints{0, 0, 0, 0}},
                 {"acc_type", quantised_ ? DType::i32 : DType::f32}},
                type, Shape{1, 1, 1, in[3]});
  }
};

double milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count();
}

void measure(bool quantised, int threads, int runs, bool steps) {
  const MobileNet net(quantised);
  double compiling = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    auto tried = cpu::Program::compile(net.graph, {.threads = threads, .observed = {}});
    compiling = std::min(compiling, milliseconds(start));
  }
  auto program = cpu::Program::compile(net.graph, {.threads = threads, .observed = {}});
  if (!program.ok()) return fmt::print("{}\n", program.error().message);
  std::vector<double> image(224 * 224 * 3);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<double>(i * 2654435761u % 255) - 127;
  const DType type = quantised ? DType::i8 : DType::f32;
  const Bytes input = constant_bytes(type, std::span<const double>(image));
  std::vector<std::uint64_t> output(1000);
  const void* in[] = {input.data()};
  void* out[] = {output.data()};
  double best = 1e9, total = 0;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!program->run(in, out).ok()) return;
    const double took = milliseconds(start);
    best = std::min(best, took);
    total += took;
  }
  std::map<std::string_view, int> kernels;
  for (std::string_view name : program->kernels()) ++kernels[name];
  fmt::print("{:5} {:7} {:8.3f} {:8.3f} {:10} {:10.2f}  ", quantised ? "int8" : "f32", threads, best, total / runs,
             program->arena_bytes(), compiling);
  for (const auto& [name, count] : kernels) fmt::print(" {}:{}", name, count);
  fmt::print("\n");
  if (!steps) return;
  for (std::string_view name : program->kernels()) fmt::print("  {}\n", name);
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 200;
  bool steps = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--steps")
      steps = true;
    else
      runs = std::max(1, std::atoi(argv[i]));
  }
  fmt::print("{:5} {:>7} {:>8} {:>8} {:>10} {:>10}   kernels\n", "", "threads", "best ms", "mean ms", "arena",
             "compile ms");
  for (bool quantised : {false, true})
    for (int threads : {1, 2}) measure(quantised, threads, runs, steps);
}

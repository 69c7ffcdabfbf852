// SPDX-License-Identifier: Apache-2.0
#include "pipeline/input_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/aten_operators.h"

namespace tosaic {
namespace {

constexpr std::string_view hint_text =
    "--input-layout nhwc, of all inputs of four dimensions, or --input-layout NAME=nhwc, of one";

Shape as_nhwc(const Shape& s) { return Shape(std::vector<Dim>{s[0], s[2], s[3], s[1]}); }

Tensor as_nhwc(const Tensor& nchw) {
  const Shape& shape = nchw.type.shape;
  const std::size_t size = storage_size(nchw.type.dtype);
  const auto channels = static_cast<std::size_t>(shape.size(1));
  const auto plane = static_cast<std::size_t>(shape.size(2) * shape.size(3));
  std::vector<std::byte> made(nchw.data.size());
  for (std::size_t i = 0; i * size < made.size(); ++i) {
    const std::size_t channel = i % channels, rest = i / channels, image = rest / plane;
    const std::size_t from = (image * channels + channel) * plane + rest % plane;
    std::memcpy(made.data() + i * size, nchw.data.data() + from * size, size);
  }
  return {nchw.type.with(as_nhwc(shape)), Bytes::of(std::move(made))};
}

// PT2E's conversions of an input, where nothing else reads it.
struct Conversions {
  const Node *quantise = nullptr, *dequantise = nullptr;
};

Conversions conversions_of(const Graph& graph, ValueId input) {
  const auto readers = consumers(graph);
  const auto only = [&](ValueId v, Operator op) -> const Node* {
    if (readers[v].size() != 1) return nullptr;
    const Node& node = graph.nodes[readers[v][0]];
    return node.op == op ? &node : nullptr;
  };
  const Node* quantise = only(input, quantized_decomposed::op::quantize_per_tensor);
  if (!quantise || readers[quantise->outputs[0]].empty()) return {};
  const Node& dequantise = graph.nodes[readers[quantise->outputs[0]][0]];
  if (dequantise.op != quantized_decomposed::op::dequantize_per_tensor) return {};
  return {quantise, &dequantise};
}

// The input's place is taken by one in the other order. What PT2E knows of its values is known before they are moved,
// so that integers are.
void take_as_nhwc(Graph& graph, std::size_t position) {
  const ValueId nchw = graph.inputs[position];
  const TensorType type = graph[nchw].type;
  const std::string name = std::exchange(graph[nchw].name, graph[nchw].name + "_nchw");
  ValueId moved = graph.inputs[position] = graph.add_value(name, type.with(as_nhwc(type.shape)));
  std::vector<Node> first;
  if (const auto [quantise, dequantise] = conversions_of(graph, nchw); quantise) {
    for (const Node* known : {quantise, dequantise}) {
      Node copy = *known;
      const Value like = graph[known->outputs[0]];
      copy.inputs[0] = std::exchange(moved, graph.add_value(like.name + "_nhwc", like.type.with(as_nhwc(type.shape))));
      copy.outputs = {moved};
      first.push_back(std::move(copy));
    }
  }
  Node permute{aten::op::permute, {moved}, {}, {nchw}, {}, {}};
  permute.attrs.set("dims", std::vector<std::int64_t>{0, 3, 1, 2});
  first.push_back(std::move(permute));
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
  make_names_unique(graph);
}

struct Choice {
  std::string text, input;  // "": all of four dimensions
  bool nhwc = false;
};

Result<Choice> read_choice(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::string layout = equals == text.npos ? text : text.substr(equals + 1);
  if (layout != "nhwc" && layout != "nchw")
    return error("option.layout", fmt::format("'{}' of --input-layout is no layout: nhwc and nchw are", layout))
        .hint(std::string(hint_text));
  return Choice{text, equals == text.npos ? "" : text.substr(0, equals), layout == "nhwc"};
}

// Which inputs of the method each choice is about; `used` is set where it is about one.
Result<std::vector<char>> chosen(const Method& method, const std::vector<Choice>& choices, std::vector<char>& used) {
  const Graph& graph = method.graph;
  std::vector<char> nhwc(graph.inputs.size());
  for (std::size_t c = 0; c < choices.size(); ++c)
    for (std::size_t i = 0; i < nhwc.size(); ++i) {
      const Value& input = graph[graph.inputs[i]];
      const bool is_image = input.type.rank() == 4;
      if (choices[c].input.empty() ? !is_image : choices[c].input != input.name) continue;
      used[c] = 1;
      nhwc[i] = choices[c].nhwc;
      if (!is_image)
        return error("option.layout",
                     fmt::format("--input-layout {}: the input is {}, and four dimensions are an image",
                                 choices[c].text, to_string(input.type)))
            .hint(std::string(hint_text));
      if (nhwc[i] && std::ranges::find(method.written_inputs, i) != method.written_inputs.end())
        return error("option.layout",
                     fmt::format("--input-layout {}: the program writes its input '{}'", choices[c].text, input.name))
            .hint(fmt::format("leave it as it is: --input-layout {}=nchw", input.name));
    }
  return nhwc;
}

}  // namespace

Result<ExportedProgram> with_input_layout(ExportedProgram program, const std::vector<std::string>& choices) {
  std::vector<Choice> read;
  for (const std::string& text : choices) {
    TOSAIC_TRY(Choice choice, read_choice(text));
    read.push_back(std::move(choice));
  }
  std::vector<char> used(read.size());
  std::vector<std::string> inputs;
  for (Method& method : program.methods) {
    TOSAIC_TRY(const std::vector<char> nhwc, chosen(method, read, used));
    for (std::size_t i = 0; i < nhwc.size(); ++i) {
      const Value& input = method.graph[method.graph.inputs[i]];
      inputs.push_back(fmt::format("{}: {}", input.name, to_string(input.type)));
      if (!nhwc[i]) continue;
      take_as_nhwc(method.graph, i);
      for (std::vector<Tensor>& sample : method.sample_inputs) sample[i] = as_nhwc(sample[i]);
    }
  }
  for (std::size_t c = 0; c < read.size(); ++c)
    if (!used[c])
      return error("option.layout",
                   read[c].input.empty()
                       ? fmt::format("--input-layout {}: no input of the program has four dimensions", read[c].text)
                       : fmt::format("--input-layout {}: the program has no such input", read[c].text))
          .hint(inputs.empty() ? "it has none" : fmt::format("it has {}", fmt::join(inputs, ", ")));
  return program;
}

}  // namespace tosaic

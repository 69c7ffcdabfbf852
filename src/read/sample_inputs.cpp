// SPDX-License-Identifier: Apache-2.0
#include "read/sample_inputs.h"

#include <fmt/format.h>
#include <array>
#include <span>

#include "read/read_error.h"
#include "read/torch_save.h"

namespace tosaic {
namespace {

// Walks the tree spec and the pickled value side by side; the leaves come out in the order of the program's inputs.
class Leaves {
 public:
  Leaves(const TorchSave& saved, std::vector<PickleRef>& out) : saved_(saved), out_(out) {}

  void walk(const Json& spec, PickleRef ref) {
    const auto type = spec.find("type");
    if (!type) return out_.push_back(ref);
    const auto children = spec.at("children_spec").items();
    const PickleValue& value = saved_.pickle()[ref];
    const std::string_view kind = type->text();
    if (kind == "builtins.dict" || kind == "collections.OrderedDict") {
      // The context is the list of keys, as JSON inside the JSON string.
      const JsonDocument context(spec.at("context").text(), "the tree spec");
      const auto keys = context.root().items();
      if (keys.size() != children.size()) fail("pt2.sample-inputs", "a dict of inputs has other keys than the program");
      for (std::size_t i = 0; i < keys.size(); ++i) {
        auto member = saved_.member(ref, keys[i].text());
        if (!member) fail("pt2.sample-inputs", fmt::format("there is no value for the key '{}'", keys[i].text()));
        walk(children[i], *member);
      }
      return;
    }
    if (value.kind != PickleValue::tuple && value.kind != PickleValue::list)
      fail("pt2.sample-inputs", fmt::format("a '{}' is among them; tuples, lists and dicts are read", kind));
    if (value.items.size() != children.size())
      fail("pt2.sample-inputs",
           fmt::format("a {} has {} items where the program takes {}", kind, value.items.size(), children.size()));
    for (std::size_t i = 0; i < children.size(); ++i) walk(children[i], value.items[i]);
  }

 private:
  const TorchSave& saved_;
  std::vector<PickleRef>& out_;
};

void check_fits(const TensorType& type, const Value& input, const std::string& what) {
  bool fits = type.dtype == input.type.dtype && type.rank() == input.type.rank();
  for (int i = 0; fits && i < type.rank(); ++i) fits = input.type.shape[i].bounds().contain(type.shape.size(i));
  if (!fits)
    fail("pt2.sample-inputs",
         fmt::format("{} is {}, but the program takes {}", what, to_string(type), to_string(input.type)));
}

void check_count(std::size_t tensors, const Graph& graph) {
  if (tensors != graph.inputs.size())
    fail("pt2.sample-inputs",
         fmt::format("there are {} tensors where the program takes {}", tensors, graph.inputs.size()));
}

Tensor input_tensor(const TorchSave& saved, PickleRef ref, const Value& input) {
  const std::string what = fmt::format("the one for '{}'", input.name);
  Tensor tensor;
  if (auto stored = saved.tensor(ref)) {
    tensor.data = dense(*stored, what);
    tensor.type = {stored->dtype, Shape(stored->sizes), std::nullopt};
  } else if (const PickleValue& value = saved.pickle()[ref];
             input.type.rank() == 0 && (value.kind == PickleValue::integer || value.kind == PickleValue::boolean)) {
    tensor.type = input.type;
    tensor.data = constant_bytes(input.type.dtype, std::span(&value.number, 1));
  } else {
    fail("pt2.sample-inputs", fmt::format("{} is not a plain tensor", what));
  }
  check_fits(tensor.type, input, what);
  return tensor;
}

}  // namespace

std::vector<Tensor> read_sample_inputs(const Bytes& file, const std::string& name, std::string_view in_spec,
                                       const Json& signature, const Graph& graph) {
  const TorchSave saved = value_or_fail(TorchSave::open(file, name));
  const JsonDocument spec(in_spec, "the tree spec");
  const auto versioned = spec.root().items();
  if (versioned.size() != 2) fail("pt2.sample-inputs", "the tree spec is not [version, spec]");
  std::vector<PickleRef> leaves;
  Leaves(saved, leaves).walk(versioned[1], saved.pickle().root);

  // One leaf per user input, tensor or not; only tensors and symbolic numbers became inputs of the graph.
  std::vector<Tensor> tensors;
  std::size_t leaf = 0;
  for (const Json& input : signature.at("input_specs").items()) {
    auto [kind, content] = input.tagged();
    if (kind != "user_input" && kind != "constant_input") continue;
    if (leaf >= leaves.size()) fail("pt2.sample-inputs", "there are fewer values than the program has inputs");
    const PickleRef value = leaves[leaf++];
    if (kind != "user_input" || tensors.size() >= graph.inputs.size()) continue;
    auto [tag, argument] = content.at("arg").tagged();
    const Value& wanted = graph[graph.inputs[tensors.size()]];
    const bool symbol = tag.starts_with("as_sym_") && argument.tagged().first == "as_name";
    if (tag == "as_tensor" || symbol) tensors.push_back(input_tensor(saved, value, wanted));
  }
  check_count(tensors.size(), graph);
  return tensors;
}

std::vector<Tensor> sample_set(const std::vector<OwnedTensor>& tensors, const Graph& graph) {
  check_count(tensors.size(), graph);
  std::vector<Tensor> set;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Value& input = graph[graph.inputs[i]];
    set.push_back({TensorType{tensors[i].dtype, Shape(tensors[i].sizes), {}}, tensors[i].data});
    check_fits(set.back().type, input, fmt::format("the one for '{}'", input.name));
  }
  return set;
}

}  // namespace tosaic

// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/recurrent.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {

Val sigmoid(Val x) { return calls::unary(aten::op::sigmoid, x); }
Val tanh(Val x) { return calls::unary(aten::op::tanh, x); }

// x[:, k*size : (k+1)*size], the k-th gate.
Val gate(Val x, std::int64_t k, std::int64_t size) { return calls::slice(x, -1, k * size, size); }
Val select(Val x, int dim, std::int64_t index) {
  return x.builder().aten(aten::op::select_int, {x}, {{"dim", std::int64_t{dim}}, {"index", index}});
}
Val stack(const std::vector<Val>& parts, int dim) {
  return parts[0].builder().aten(aten::op::stack, {parts.begin(), parts.end()}, {{"dim", std::int64_t{dim}}});
}
}  // namespace

Val linear(Val x, Val weight, std::optional<Val> bias) { return x.builder().aten(aten::op::linear, {x, weight, bias}); }

namespace {
void check_state(const std::vector<Val>& state, const char* op) {
  for (Val s : state)
    if (s.rank() != 2)
      s.builder().refuse(std::string("aten.") + op + ".state",
                         "a state of shape " + to_string(s.shape()) + " instead of batch, features");
}
}  // namespace

// Gates i, f, g, o: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'), or a projection of it.
std::vector<Val> lstm_step(Val projected, const std::vector<Val>& state, const RecurrentWeights& w) {
  check_state(state, "lstm");
  const std::int64_t n = state[1].dim(-1);
  Val gates = calls::add(projected, linear(state[0], w.hidden, w.hidden_bias));
  Val i = sigmoid(gate(gates, 0, n)), f = sigmoid(gate(gates, 1, n)), g = tanh(gate(gates, 2, n)),
      o = sigmoid(gate(gates, 3, n));
  Val cell = calls::add(calls::mul(f, state[1]), calls::mul(i, g));
  Val hidden = calls::mul(o, tanh(cell));
  return {w.projection ? linear(hidden, *w.projection, std::nullopt) : hidden, cell};
}

// Gates r, z, n: h' = n + z (h - n), where n = tanh(x_n + r h_n).
std::vector<Val> gru_step(Val projected, const std::vector<Val>& state, const RecurrentWeights& w) {
  check_state(state, "gru");
  const std::int64_t n = state[0].dim(-1);
  Val hidden = linear(state[0], w.hidden, w.hidden_bias);
  Val r = sigmoid(calls::add(gate(projected, 0, n), gate(hidden, 0, n)));
  Val z = sigmoid(calls::add(gate(projected, 1, n), gate(hidden, 1, n)));
  Val candidate = tanh(calls::add(gate(projected, 2, n), calls::mul(r, gate(hidden, 2, n))));
  return {calls::add(candidate, calls::mul(z, calls::sub(state[0], candidate)))};
}

std::vector<Val> tanh_step(Val projected, const std::vector<Val>& state, const RecurrentWeights& w) {
  return {tanh(calls::add(projected, linear(state[0], w.hidden, w.hidden_bias)))};
}
std::vector<Val> relu_step(Val projected, const std::vector<Val>& state, const RecurrentWeights& w) {
  return {calls::unary(aten::op::relu, calls::add(projected, linear(state[0], w.hidden, w.hidden_bias)))};
}

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The call's states, which stand before its weights: with a list for the states the call cannot tell where they end.
struct Layers {
  Layers(const Call& call, int states_of_each)
      : states(at(states_of_each)),
        layers(call.integer("num_layers")),
        directions(call.flag("bidirectional") ? 2 : 1),
        plain(call.flag("has_biases") ? 4 : 2) {
    if (states == 1) tensors.push_back(call.tensor("hx"));
    for (const auto& t : call.tensors(states > 1 ? "hx" : "params")) tensors.push_back(*t);
    const std::size_t count = at(layers * directions);
    projected = states == 2 && tensors.size() == states + count * (plain + 1);
    each = plain + projected;
    complete = tensors.size() == states + count * each;
  }
  Val state(std::size_t s, std::int64_t index) const { return select(tensors[s], 0, index); }
  RecurrentWeights weights(std::int64_t index) const {
    const Val* first = &tensors[states + at(index) * each];
    RecurrentWeights w{first[0], first[1], std::nullopt, std::nullopt, std::nullopt};
    if (plain == 4) w.input_bias = first[2], w.hidden_bias = first[3];
    if (projected) w.projection = first[plain];
    return w;
  }

  std::vector<Val> tensors;
  std::size_t states;
  std::int64_t layers, directions;
  std::size_t plain, each = 0;  // weights of a layer in one direction: without the projection, and all
  bool projected = false, complete = false;
};

void check(Builder& b, const Call& call, const Layers& all, Val x) {
  const std::string op = "aten." + call.schema().name;
  for (std::size_t s = 0; s < all.states && s < all.tensors.size(); ++s)
    if (all.tensors[s].rank() != 3)
      b.refuse(op + ".state",
               "a state of shape " + to_string(all.tensors[s].shape()) + " instead of layers, batch, features");
  if (all.layers < 1) b.refuse(op + ".weights", std::to_string(all.layers) + " layers");
  if (!all.complete)
    b.refuse(op + ".weights",
             std::to_string(all.tensors.size()) + " states and weights for " + std::to_string(all.layers) + " layers");
  if (call.flag("train") && call.number("dropout") != 0)
    b.refuse(op + ".dropout", "dropout is for training: export the model after eval()");
  if (x.rank() != 3)
    b.refuse(op + ".rank", "an input of shape " + to_string(x.shape()) + " instead of steps, batch, features");
}

// One layer in one direction: what it gives at each step; `state` becomes its last.
Val unrolled(Val x, std::vector<Val>& state, const RecurrentWeights& w, RecurrentStep step, bool backwards) {
  const Val inputs = linear(x, w.input, w.input_bias);
  const std::int64_t steps = x.dim(0);
  std::vector<Val> line(at(steps));
  for (std::int64_t t = 0; t < steps; ++t) {
    const std::int64_t now = backwards ? steps - 1 - t : t;
    state = step(select(inputs, 0, now), state, w);
    line[at(now)] = state[0];
  }
  return stack(line, 0);
}

}  // namespace

Vals lower_recurrent(Builder& b, const Call& call, int states, RecurrentStep step) {
  Val x = call.tensor("input");
  const Layers all(call, states);
  check(b, call, all, x);
  const bool batch_first = call.flag("batch_first");
  if (batch_first) x = calls::transpose(x, 0, 1);
  std::vector<std::vector<Val>> last(all.states);  // per state, per layer and direction
  for (std::int64_t layer = 0; layer < all.layers; ++layer) {
    std::vector<Val> outputs;
    for (std::int64_t direction = 0; direction < all.directions; ++direction) {
      const std::int64_t index = layer * all.directions + direction;
      std::vector<Val> state;
      for (std::size_t s = 0; s < all.states; ++s) state.push_back(all.state(s, index));
      outputs.push_back(unrolled(x, state, all.weights(index), step, direction == 1));
      for (std::size_t s = 0; s < all.states; ++s) last[s].push_back(state[s]);
    }
    x = calls::cat(outputs, 2);
  }
  Vals results{batch_first ? calls::transpose(x, 0, 1) : x};
  for (auto& s : last) results.push_back(stack(s, 0));
  return results;
}

}  // namespace tosaic

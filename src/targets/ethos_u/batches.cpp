// SPDX-License-Identifier: Apache-2.0
// U85 turns one image between channels first and channels last in one command, and a batch of them row by row: the
// images are turned one after the other. (Matrices of several heads are cheaper whole.)
#include "targets/ethos_u/rewrites.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {

void turn_images_one_by_one(Graph& graph) {
  constexpr std::int64_t most_images = 16;
  Rewriter out(graph);
  out.each([&](Node& node) {
    const bool turns = node.op == tosa::op::transpose;
    const Ints perm = turns ? node.attrs.get<Ints>("perms") : Ints{};
    const Shape x = turns ? graph[node.inputs[0]].type.shape : Shape{};
    const bool images_turn = perm == Ints{0, 2, 3, 1} || perm == Ints{0, 3, 1, 2};
    if (!images_turn || x.size(0) < 2 || x.size(0) > most_images) return out.keep(std::move(node));
    Ints start(perm.size(), 0), size = x.sizes();
    size[0] = 1;
    std::vector<ValueId> images;
    for (start[0] = 0; start[0] < x.size(0); ++start[0])
      images.push_back(out.transpose(out.slice(node.inputs[0], start, size, node.loc), perm, node.loc));
    out.add(tosa::op::concat, images, {{"axis", std::int64_t{0}}}, graph[node.outputs[0]].type, node.loc,
            node.outputs[0]);
  });
}

}  // namespace tosaic::ethos_u

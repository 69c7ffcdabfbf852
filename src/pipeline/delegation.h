// SPDX-License-Identifier: Apache-2.0
// What the line of stages says and asks about a program's delegates.
#pragma once
#include "pipeline/options.h"
#include "pipeline/stages.h"

namespace tosaic {

// Operators of no library that tosaic knows are called as kernels of the runtime, which may or may not have them.
void warn_of_kernels(const Partition& partition, const Sink& sink);
// Error: the reason of the first node that stays outside.
Status fully_delegated(const Partition& partition);
// A program that is written although nobody could say whether it is right.
Diagnostic not_checked(const Diagnostic& why);
// What the delegate's compiler made of this very graph, or could not; not what it is, or was told.
bool of_the_graph(const Diagnostic& why);
// The same, of a node that may not go elsewhere: located there.
Diagnostic stays_wrong(Diagnostic why, const Node& node, const CompileOptions& options);
// A graph that any device takes: a compiler that fails on it fails on all.
Graph least_graph();
// A program that runs on the CPU alone is seldom what the user wanted, and never who gave samples for the delegate.
Status delegated_something(const CompileOptions& options, const Partition& partition, bool samples_given,
                           const Sink& sink);
// The call of a region, in bodies, too; nullptr: there is none.
Node* delegate_of(Graph& outer, std::int64_t region);
// An operand may turn out to be none (what `copy` writes over): its delegate does not take it.
void drop_unread_inputs(Graph& region, Node& delegate);

}  // namespace tosaic

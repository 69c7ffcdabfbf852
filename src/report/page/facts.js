// SPDX-License-Identifier: Apache-2.0
// What several parts of the page ask for: rows out of the data, and which of them belong to a node of a graph.
const estimates = report.manifest?.estimates ?? [];
const operations = report.profile?.operations ?? [];
const comparedLayers = report.comparison?.layers ?? [];
const programGraphs = report.graphs.filter((g) => g.kind === "program");

// Vela's layers, those of all delegates one after another.
const npuLayers = estimates.flatMap((estimate, delegate) => estimate.layers.map((layer) => ({...layer, delegate})));

// Operations that are not made of others: what a delegate ran counts, not the delegate.
const timedOperations = operations.filter((o, i) => o.within || operations[i + 1]?.within !== o.operation).map((o) => {
  const comma = o.place.lastIndexOf(", ");  // "features.3.conv, model.py:6"
  const place = comma < 0 ? o.place : o.place.slice(comma + 2);
  return {...o, module: comma < 0 ? "" : o.place.slice(0, comma), place};
});

// The nodes of the program, with what became of them: of the graph that was partitioned, or of a manifest.
const placedNodes = programGraphs.length
  ? programGraphs.flatMap((g) => g.nodes.map((node) => ({...node, graph: g})))
  : (report.manifest?.nodes ?? []);
const isConversion = (node) => node.code === "target.conversion";
const isOutside = (node) => node.delegate === undefined ? false : node.delegate < 0;

function addTo(map, key, value) {
  if (key) map.set(key, (map.get(key) ?? 0) + value);
}

// By the names of exported nodes, and of what delegates compute. What stands for several nodes is shared among them, and
// of a node that became several calls each has a part.
const cyclesOf = new Map(), secondsOf = new Map(), layerOf = new Map(), callsOf = new Map();
const inDelegate = (delegate, name) => `${delegate} ${name}`;
const sharers = (names) => names.filter((name) => callsOf.has(name));
const share = (map, names, value) => names.forEach((name) => addTo(map, name, value / names.length));
const anyCost = npuLayers.length + timedOperations.length + comparedLayers.length > 0;
if (anyCost) for (const node of placedNodes) for (const name of namesOf(node)) addTo(callsOf, name, 1);
for (const layer of npuLayers) {
  addTo(cyclesOf, inDelegate(layer.delegate, layer.name), layer.cycles);
  share(cyclesOf, sharers((layer.node ?? "").split(/[, ]+/)), layer.cycles);
}
const delegateNodes = new Map();
if (timedOperations.length) for (const graph of report.graphs) if (graph.kind === "delegate") for (const node of graph.nodes) delegateNodes.set(node.name, node);
for (const operation of timedOperations) {
  addTo(secondsOf, inDelegate("any", operation.value), operation.seconds);
  const node = delegateNodes.get(operation.value);
  share(secondsOf, sharers(node?.exported ?? [operation.value]), operation.seconds);
}
for (const layer of comparedLayers) {
  layerOf.set(layer.value, layer);
  if (layer.node && !layerOf.has(layer.node)) layerOf.set(layer.node, layer);
}
function namesOf(node) { return node.exported?.length ? node.exported : [node.name]; }

// What is known of a node's cost: {cycles, seconds, layer}; nothing where it is not.
const NO_COST = {cycles: undefined, seconds: undefined, layer: undefined};
function costOf(graph, node) {
  if (!anyCost || graph.kind === "instructions") return NO_COST;
  if (graph.kind === "delegate") return {...NO_COST, cycles: cyclesOf.get(inDelegate(graph.delegate, node.name)), seconds: secondsOf.get(inDelegate("any", node.name))};
  const names = namesOf(node);
  const all = (map) => sum(names, (name) => (map.get(name) ?? 0) / (callsOf.get(name) ?? 1)) || undefined;
  return {cycles: all(cyclesOf), seconds: all(secondsOf), layer: layerOf.get(node.name) ?? names.map((n) => layerOf.get(n)).find(Boolean)};
}

// "features.3" of "features.3.conv.0": modules that a person thinks of as one.
const blockOf = (module) => (module ?? "").split(".").slice(0, 2).join(".");

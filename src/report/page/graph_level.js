// SPDX-License-Identifier: Apache-2.0
// A graph as a tree of modules, of which one level is laid out at a time. A level has few items: what has many (a flat
// program, a long list of blocks) is cut into runs.
//
// An item is a group {label, path, items, parent, first, size} or a leaf {node: index, parent}.
const MOST_ITEMS = 40;

function treeOf(graph) {
  const root = {label: graph.name, path: "", items: [], groups: new Map(), parent: null, size: 0};
  graph.nodes.forEach((node, index) => {
    let at = root;
    for (const part of (node.module ?? "").split(".").filter(Boolean)) {
      if (!at.groups.has(part)) {
        const group = {label: part, path: at.path ? `${at.path}.${part}` : part, items: [], groups: new Map(), parent: at, size: 0};
        at.groups.set(part, group);
        at.items.push(group);
      }
      at = at.groups.get(part);
    }
    at.items.push({node: index, parent: at});
  });
  settle(root, graph);
  return root;
}

// Groups of one group become one; long lists are cut into runs; sizes and first nodes.
function settle(group, graph) {
  group.items = group.items.map((item) => {
    if (item.node !== undefined) return item;
    while (item.items.length === 1 && item.items[0].items) {
      const only = item.items[0];
      item = {...only, label: `${item.label}.${only.label}`, parent: group};
      item.items.forEach((i) => { i.parent = item; });
    }
    settle(item, graph);
    if (item.items.length === 1 && item.items[0].node !== undefined) return {...item.items[0], parent: group, label: item.label};
    return item;
  });
  group.items.forEach((i) => { i.parent = group; });
  group.nodes = group.items.flatMap((i) => (i.node !== undefined ? [i.node] : i.nodes));
  group.size = group.nodes.length;
  group.type = graph.nodes[group.nodes[0]]?.module === group.path ? graph.nodes[group.nodes[0]].module_type : undefined;
  while (group.items.length > MOST_ITEMS) group.items = inRuns(group);
}

// As even as they get, and not more of them than a level may have.
function inRuns(group) {
  const runs = [], many = group.items.length;
  const size = Math.ceil(many / Math.ceil(many / (MOST_ITEMS * 0.75)));
  for (let i = 0; i < many; i += size) {
    const items = group.items.slice(i, i + size);
    const run = {label: "", path: group.path, items, parent: group, isRun: true, nodes: items.flatMap((x) => (x.node !== undefined ? [x.node] : x.nodes))};
    run.size = run.nodes.length;
    run.label = `nodes ${count(Math.min(...run.nodes))} to ${count(Math.max(...run.nodes))}`;
    items.forEach((x) => { x.parent = run; });
    runs.push(run);
  }
  return runs;
}

// The group in whose level a node is an item.
function groupWith(root, index) {
  let at = root;
  for (;;) {
    const next = at.items.find((i) => i.items && (i.set ??= new Set(i.nodes)).has(index));
    if (!next) return at;
    at = next;
  }
}

// Who makes a value, and who reads it, by node; asked once for a graph.
const linksOf = new WeakMap();
function links(graph) {
  let known = linksOf.get(graph);
  if (known) return known;
  const producer = new Int32Array(graph.values.length).fill(-1);
  graph.nodes.forEach((node, index) => (node.outputs ?? []).forEach((v) => { if (producer[v] < 0) producer[v] = index; }));
  known = {producer, isInput: new Set(graph.inputs ?? []), isOutput: new Set(graph.outputs ?? [])};
  linksOf.set(graph, known);
  return known;
}

// The edges of a level: {from, to, value, more}: items by number, or stubs for what lies outside of it.
function levelOf(graph, group) {
  const {producer, isInput, isOutput} = links(graph);
  const itemOf = new Int32Array(graph.nodes.length).fill(-1);
  group.items.forEach((item, i) => (item.node !== undefined ? [item.node] : item.nodes).forEach((n) => { itemOf[n] = i; }));
  const edges = new Map(), stubs = new Map();
  const link = (from, to, v) => {
    const key = `${from} ${to}`;
    const edge = edges.get(key);
    if (edge) edge.more += edge.values.has(v) ? 0 : 1, edge.values.add(v);
    else edges.set(key, {from, to, value: v, more: 0, values: new Set([v])});
  };
  const stub = (key, about) => {
    if (!stubs.has(key)) stubs.set(key, about);
    return key;
  };
  if (graph.sequence) {
    for (const n of group.nodes) if (n > 0 && itemOf[n - 1] >= 0 && itemOf[n - 1] !== itemOf[n]) link(itemOf[n - 1], itemOf[n], -1);
    return {edges: [...edges.values()], stubs};
  }
  for (const n of group.nodes)
    for (const v of graph.nodes[n].inputs ?? []) {
      if (graph.values[v].constant) continue;
      const p = producer[v];
      if (p >= 0 && itemOf[p] >= 0) { if (itemOf[p] !== itemOf[n]) link(itemOf[p], itemOf[n], v); }
      else if (p >= 0) link(stub(`from ${p}`, {node: p, text: graph.nodes[p].name || shortOp(graph.nodes[p].op), into: true}), itemOf[n], v);
      else link(stub(`input ${v}`, {text: graph.values[v].name, isEnd: true, into: true, input: isInput.has(v)}), itemOf[n], v);
    }
  const inside = new Set(group.nodes);
  if (inside.size < graph.nodes.length) {
    graph.nodes.forEach((node, n) => {
      if (inside.has(n)) return;
      for (const v of node.inputs ?? []) if (producer[v] >= 0 && inside.has(producer[v])) link(itemOf[producer[v]], stub(`to ${v}`, {node: n, text: node.name || shortOp(node.op)}), v);
    });
  }
  for (const v of isOutput) if (producer[v] >= 0 && inside.has(producer[v])) link(itemOf[producer[v]], stub(`output ${v}`, {text: graph.values[v].name, isEnd: true}), v);
  return {edges: [...edges.values()], stubs: fewer(stubs, edges)};
}

// Many stubs say less than their number does.
function fewer(stubs, edges) {
  for (const [into, key] of [[true, "from many"], [false, "to many"]]) {
    const some = [...stubs].filter(([, s]) => Boolean(s.into) === into && !s.isEnd).map(([k]) => k);
    if (some.length <= 8) continue;
    stubs.set(key, {text: `${count(some.length)} nodes elsewhere`, isEnd: true, into});
    for (const k of some) stubs.delete(k);
    const gone = new Set(some);
    for (const edge of edges.values()) {
      if (gone.has(edge.from)) edge.from = key;
      if (gone.has(edge.to)) edge.to = key;
    }
  }
  return stubs;
}

// SPDX-License-Identifier: Apache-2.0
// Memory while the program runs: how much is alive at each node, and whose it is.
function aliveAt(memory) {
  const steps = Math.max(report.graphs[memory.graph].nodes.length, 1);
  const change = new Float64Array(steps + 1);
  for (const b of memory.buffers) {
    change[b.first] += b.bytes;
    change[Math.min(b.last + 1, steps)] -= b.bytes;
  }
  const alive = new Float64Array(steps);
  for (let i = 0, now = 0; i < steps; ++i) alive[i] = now += change[i];
  return alive;
}

// The highest of each run of nodes: a peak is never lost.
function steppedPoints(alive, most = 800) {
  const size = Math.ceil(alive.length / most), points = [];
  for (let i = 0; i < alive.length; i += size) {
    let at = i;
    for (let k = i; k < Math.min(i + size, alive.length); ++k) if (alive[k] > alive[at]) at = k;
    points.push({x: at, y: alive[at]});
  }
  points.push({x: alive.length, y: alive.at(-1)});  // the last node takes as long as the others
  return points;
}

function memoryChart(memory, graph, chosen, act) {
  const points = steppedPoints(aliveAt(memory));
  const name = (i) => graph.nodes[i]?.name ?? String(i);
  const nodeAt = (point) => Math.min(Math.floor(point.x), Math.max(graph.nodes.length - 1, 0));
  return chart(`memory of ${memory.name}`, 250, () => ({
    type: "line",
    data: {datasets: [
      {data: points, stepped: "before", borderColor: colour("accent"), backgroundColor: colour("accent-soft"), borderWidth: 1.5, pointRadius: 0, pointHitRadius: 6, fill: true},
      {data: [{x: chosen + 0.5, y: aliveAt(memory)[chosen]}], pointRadius: 5, pointHoverRadius: 6, borderColor: colour("bad"), backgroundColor: colour("bad"), showLine: false},
    ]},
    options: {
      parsing: false,
      scales: {x: {type: "linear", min: 0, max: Math.max(graph.nodes.length, 1), title: {text: "node"}, ticks: {precision: 0, maxTicksLimit: 10}},
        y: {beginAtZero: true, title: {text: "alive"}, ticks: {callback: (v) => roundBytes(v)}}},
      interaction: {mode: "nearest", axis: "x", intersect: false},
      onClick: (event, items) => { if (items.length) setTimeout(act, 0, nodeAt(items[0].element.$context.raw)); },  // not now: it ends this chart
      plugins: {tooltip: {callbacks: {title: (items) => `${nodeAt(items[0].raw)}: ${name(nodeAt(items[0].raw))}`, label: (item) => bytes(item.raw.y)}}},
    },
  }));
}

function ownersTable(memory, graph, at) {
  const maker = new Map();
  graph.nodes.forEach((node) => (node.outputs ?? []).forEach((v) => maker.has(v) || maker.set(v, node)));
  const rows = memory.buffers.filter((b) => b.first <= at && at <= b.last && b.bytes > 0).map((b) => ({...b, value: graph.values[b.value], node: maker.get(b.value)}));
  const all = sum(rows, (r) => r.bytes);
  return new Table({label: "tensors that are alive", rows, sortBy: 3, columns: [
    {title: "Tensor", of: (r) => r.value.name, width: 10, wide: true},
    {title: "Type", of: (r) => r.value.type, text: (r) => typeText(r.value.type), mono: true, width: 10.5},
    {title: "Made by", of: (r) => (r.node ? r.node.op : "input"), text: (r) => (r.node ? shortOp(r.node.op) : "input"), mono: true, width: 8.5},
    {title: "Size", of: (r) => r.bytes, text: (r) => bytes(r.bytes), number: true, width: 6.5},
    {title: "Share", of: (r) => r.bytes, text: (r) => percent(r.bytes / all), cell: (r) => shareBar(r.bytes / all), number: true, width: 8},
    {title: "From", about: "the node that writes it first", of: (r) => r.first, number: true, width: 4.5},
    {title: "To", about: "the node that reads it last", of: (r) => r.last, number: true, width: 4.5},
    {title: "Module", of: (r) => r.node?.module ?? "", mono: true, width: 11},
    {title: "Line", of: (r) => r.node?.place ?? "", text: (r) => shortPlace(r.node?.place), full: (r) => r.node?.place ?? "", mono: true, width: 10},
  ]}).element;
}

function memoryPanel(memory) {
  const graph = report.graphs[memory.graph], place = make("div");
  let drawnChart = null;
  const show = (at) => {
    forget(drawnChart);
    const now = aliveAt(memory)[at] ?? 0;
    drawnChart = memoryChart(memory, graph, at, show);
    place.replaceChildren(drawnChart.element,
      make("h3", null, at === memory.peak ? "Alive at the peak" : "Alive", make("span", {class: "muted"}, ` ${bytes(now)} at node ${at}, ${graph.nodes[at]?.name ?? ""}`),
        at === memory.peak ? null : [" · ", make("button", {type: "button", class: "link", onclick: () => show(memory.peak)}, "to the peak")]),
      ownersTable(memory, graph, at));
  };
  show(memory.peak);
  return make("div", null, make("p", {class: "lead"}, `The peak is ${bytes(memory.peak_bytes)}${memory.arena_bytes > memory.peak_bytes ? `; with the gaps that addresses leave, ${bytes(memory.arena_bytes)}` : ""}. `,
    make("span", {class: "muted"}, `${memory.how.charAt(0).toUpperCase()}${memory.how.slice(1)}. Click into the chart to see what is alive there.`)), place);
}

// What Vela says: SRAM in use while each layer runs.
function velaPanel(estimate, delegate) {
  const layers = estimate.layers.filter((l) => l.staging_bytes > 0);
  const rows = thinned(layers.map((l) => ({label: l.node || l.name, value: l.staging_bytes, about: [l.operation, l.module, shortPlace(l.place)].filter(Boolean).join(" · ")})), MOST_UPRIGHT);
  const largest = layers.reduce((m, l) => (l.staging_bytes > (m?.staging_bytes ?? 0) ? l : m), null);
  return make("div", null, make("p", {class: "lead"}, `SRAM ${bytes(estimate.sram_bytes)}, flash ${bytes(estimate.flash_bytes)}${estimate.dram_bytes ? `, DRAM ${bytes(estimate.dram_bytes)}` : ""} (${estimate.memory_mode}). `,
    largest ? `Most is in use at ${largest.node || largest.name} (${[largest.operation, largest.module, shortPlace(largest.place)].filter(Boolean).join(", ")}): ${bytes(largest.staging_bytes)}.` : ""),
    rows.length ? bars("SRAM in use, by layer", rows, {unit: "", format: bytes, tick: roundBytes, upright: true}).element : null,
    new Table({label: "SRAM by layer", rows: layers, sortBy: 3, columns: [
      {title: "Layer", of: (l) => l.node || l.name, width: 12, wide: true},
      {title: "Operation", of: (l) => l.operation, mono: true, width: 11},
      {title: "Module", of: (l) => l.module, mono: true, width: 14},
      {title: "SRAM in use", of: (l) => l.staging_bytes, text: (l) => bytes(l.staging_bytes), number: true, width: 9},
      {title: "Line", of: (l) => l.place, text: (l) => shortPlace(l.place), full: (l) => l.place, mono: true, width: 10},
    ]}).element);
}

function showMemory(body) {
  const several = estimates.length > 1;
  const panels = [
    ...estimates.map((e, i) => [`NPU, as Vela plans it${several ? ` (delegate ${i})` : ""}`, () => velaPanel(e, i)]),
    ...report.memory.filter((m) => m.buffers.length).map((m) => [m.name, () => memoryPanel(m)]),
  ];
  if (!panels.length) return append(body, [emptyState("The file does not say what memory its tensors take.")]);
  const best = estimates.length ? 0 : report.memory.filter((m) => m.buffers.length).reduce((b, m, i, all) => (m.peak_bytes > all[b].peak_bytes ? i : b), 0);
  const place = make("div");
  const show = (i) => place.replaceChildren(panels[i][1]());
  if (panels.length > 1) {
    const chooser = selection("Memory of", panels.map((p) => p[0]), show);
    chooser.querySelector("select").value = String(best);
    append(body, [make("div", {class: "tools"}, chooser)]);
  }
  append(body, [place]);
  show(best);
}

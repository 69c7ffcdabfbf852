// SPDX-License-Identifier: Apache-2.0
// The parts that are text and tables: overview, placement, messages, manifest.

function card(title, value, about) {
  return make("div", {class: "card"}, make("div", {class: "title"}, title), make("div", {class: "value"}, value),
    about ? make("div", {class: "about", title: about}, about) : null);
}

function cards() {
  const list = [];
  const nodes = placedNodes.filter((n) => n.delegate !== undefined && !isConversion(n));
  if (nodes.length) {
    const taken = nodes.filter((n) => !isOutside(n)).length;
    const delegates = new Set(nodes.filter((n) => !isOutside(n)).map((n) => n.delegate)).size;
    list.push(card("Delegated", percent(taken / nodes.length), `${count(taken)} of ${plural(nodes.length, "node")}, ${plural(delegates, "delegate")}`));
  } else {
    const delegates = report.graphs.filter((g) => g.kind === "delegate").length;
    if (report.format.endsWith("pte")) list.push(card("Delegates", count(delegates), [...new Set(report.graphs.filter((g) => g.id).map((g) => g.id))].join(", ")));
  }
  if (estimates.length) {
    const all = sum(estimates, (e) => e.cycles);
    const rate = 1 / sum(estimates, (e) => 1 / e.inferences_per_second);
    list.push(card("Cycles", cycles(all), `Vela's estimate for ${estimates[0].accelerator.replaceAll("_", " ")}`));
    list.push(card("Inferences per second", digits(rate), "Vela's estimate"));
    list.push(card("SRAM", bytes(Math.max(...estimates.map((e) => e.sram_bytes))), estimates[0].memory_mode));
    const flash = sum(estimates, (e) => e.flash_bytes), dram = sum(estimates, (e) => e.dram_bytes);
    if (flash || dram) list.push(card(flash ? "Flash" : "DRAM", bytes(flash || dram), "weights and commands"));
  }
  const run = report.profile?.run_seconds;
  if (run?.length) {
    const sorted = [...run].sort((a, b) => a - b);
    list.push(card("Measured", seconds(sorted[sorted.length >> 1]), `${run.length > 1 ? "median of " : ""}${plural(run.length, "run")}, ${report.profile.device}`));
  }
  const peak = report.memory.reduce((best, m) => (m.peak_bytes > (best?.peak_bytes ?? -1) ? m : best), null);
  if (peak && !estimates.length) list.push(card("Most memory", bytes(peak.peak_bytes), peak.name));
  if (report.bytes) list.push(card("Program", bytes(report.bytes), report.format === "artifact" ? ".pte" : `.${report.format}`));
  const outputs = report.comparison?.outputs;
  if (outputs?.length) {
    const worst = outputs.reduce((w, o) => ((o.accumulated.snr_db ?? 1e9) < (w.accumulated.snr_db ?? 1e9) ? o : w));
    list.push(card("Accuracy", worst.accumulated.exact ? "exact" : decibels(worst.accumulated.snr_db), `signal to noise of ${worst.name}, ${report.comparison.scheme}`));
  }
  return list;
}

// Operators that stay outside, with the reason once for all that have it.
function outsideGroups() {
  const groups = new Map();
  for (const node of placedNodes.filter(isOutside)) {
    const key = `${node.op}\n${node.reason}`;
    if (!groups.has(key)) groups.set(key, {op: node.op, reason: node.reason, code: node.code, nodes: []});
    groups.get(key).nodes.push(node);
  }
  return [...groups.values()].sort((a, b) => b.nodes.length - a.nodes.length);
}

function showOverview(body) {
  document.getElementById("name").textContent = report.name;
  document.getElementById("about").textContent = [report.target && `for ${report.target}`, report.tosa,
    `tosaic ${report.tosaic}`].filter(Boolean).join(" · ");
  append(document.getElementById("cards"), cards());
  const groups = outsideGroups();
  if (!groups.length) return;
  append(body, [make("h3", null, "What runs on the host"), new Table({label: "what runs on the host", sortBy: 0, rows: groups, columns: [
    {title: "Nodes", of: (g) => g.nodes.length, number: true, width: 6},
    {title: "Operator", of: (g) => shortOp(g.op), full: (g) => g.op, mono: true, width: 12},
    {title: "Why", of: (g) => g.reason, wide: true, width: 24},
    {title: "Line", of: (g) => g.nodes[0].place, text: (g) => shortPlace(g.nodes[0].place), full: (g) => [...new Set(g.nodes.map((n) => n.place))].join(", "), mono: true, width: 12},
  ]}).element]);
}

// A name that leads to its node in the graph.
function nodeLink(row) {
  if (!row.graph) return row.name || row.op;
  const index = row.index ?? row.graph.nodes.findIndex((n) => n.name === row.name);
  return make("button", {type: "button", class: "link", onclick: () => openNode(row.graph, index)}, row.name || shortOp(row.op));
}

const wherePlaced = (node) => (node.delegate === undefined ? "" : node.delegate < 0 ? "host" : `delegate ${node.delegate}`);
function placeCell(node) {
  if (node.delegate === undefined) return "";
  return make("span", {class: `where ${node.delegate < 0 ? "outside" : "inside"}`}, wherePlaced(node));
}

function showPlacement(body) {
  const calls = report.graphs.filter((g) => g.kind === "instructions");
  let rows = placedNodes;
  if (!rows.length) {
    rows = calls.flatMap((g) => g.nodes.map((node) => ({...node, graph: g})));
    if (rows.length) append(body, [emptyState("A compiled file does not say why. ", code("tosaic compile ... --report net.json"), " writes that down, and ",
      code("tosaic report net.pte --manifest net.json"), " shows it here. These are the instructions of the file.")]);
  }
  if (!rows.length) return append(body, [emptyState("This file is one graph, which nobody has divided.")]);
  const shown = numbered(rows);
  const outside = shown.filter(isOutside).length, conversions = shown.filter(isConversion).length;
  const placed = shown.filter((r) => r.delegate !== undefined).length, inBodies = shown.length - placed;
  const bodies = inBodies ? ` ${plural(inBodies, "node")} in bodies of control flow ${inBodies === 1 ? "is" : "are"} placed by themselves.` : "";
  append(body, [make("p", {class: "lead"}, !outside ? `All ${plural(placed, "node")} run in delegates.`
    : `${count(outside)} of ${plural(placed, "node")} run on the host${conversions === outside ? ", all of them conversions where a delegate begins or ends"
      : conversions ? `, ${count(conversions)} of them conversions where a delegate begins or ends` : ""}.${outside < placed ? " The others run in delegates." : ""}`, bodies)]);
  append(body, [new Table({label: "nodes", rows: shown, filters: [["all", "All", null], ["inside", "Delegated", (r) => !isOutside(r)], ["outside", "Host", isOutside]], columns: [
    {title: "#", of: (r) => r.number, number: true, width: 4.5},
    {title: "Node", of: (r) => r.name, cell: nodeLink, full: (r) => r.name, width: 11},
    {title: "Operator", of: (r) => shortOp(r.op), full: (r) => r.op, mono: true, width: 11},
    {title: "Runs in", of: wherePlaced, cell: placeCell, width: 7.5},
    {title: "Why not in a delegate", of: (r) => r.reason ?? "", full: (r) => [r.reason, r.code, r.help].filter(Boolean).join("\n"), wide: true, width: 20},
    {title: "Module", of: (r) => r.module ?? "", mono: true, width: 12},
    {title: "Line", of: (r) => r.place ?? "", text: (r) => shortPlace(r.place), full: (r) => [r.place, r.source].filter(Boolean).join("\n"), mono: true, width: 10},
  ]}).element]);
  const exported = report.manifest?.exported ?? [];
  if (!exported.length) return;
  append(body, [make("details", {class: "more"}, make("summary", null, `As the program was exported: ${plural(exported.length, "node")}`),
    new Table({label: "exported nodes", rows: exported, filters: [["all", "All", null], ["not", "Not taken", (r) => !r.taken]], columns: [
      {title: "Node", of: (r) => r.name, width: 11},
      {title: "Operator", of: (r) => shortOp(r.op), full: (r) => r.op, mono: true, width: 11},
      {title: "Taken", of: (r) => (r.taken ? 1 : 0), text: (r) => (r.taken ? (r.pieces ? "yes" : "nothing left") : "no"), width: 7},
      {title: "Calls", about: "that it became", of: (r) => r.pieces, number: true, width: 5},
      {title: "Why not", of: (r) => r.reason ?? "", wide: true, width: 20},
      {title: "Module", of: (r) => r.module, mono: true, width: 12},
      {title: "Line", of: (r) => r.place, text: (r) => shortPlace(r.place), full: (r) => r.place, mono: true, width: 10},
    ]}).element)]);
}

// Rows with their numbers, and those of their nodes in the graph.
function numbered(rows) {
  const seen = new Map();
  return rows.map((row, i) => {
    const index = seen.get(row.graph) ?? 0;
    seen.set(row.graph, index + 1);
    return {...row, number: i, index};
  });
}

function showMessages(body) {
  if (!report.messages.length) return append(body, [emptyState("No notes, no warnings.")]);
  const order = ["error", "warning", "note"];
  const list = [...report.messages].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  append(body, list.slice(0, 200).map((m) => make("article", {class: `message ${order.includes(m.severity) ? m.severity : "note"}`},
    make("div", {class: "head"}, make("b", null, m.severity), code(m.code), m.file ? make("span", {class: "mono muted"}, m.line ? `${m.file}:${m.line}` : m.file) : null),
    make("p", null, m.message), m.text ? make("pre", null, m.text) : null, m.context ? make("p", {class: "muted"}, `in ${m.context}`) : null,
    m.notes.map((n) => make("p", {class: "muted"}, n)), m.help ? make("p", null, make("b", null, "What to do: "), m.help) : null)));
  if (list.length > 200) append(body, [emptyState(`${count(list.length - 200)} more are in the data (tosaic report --json).`)]);
}

// ---- any object as text: names and values, lists of objects as tables.
const LEFT_OUT = new Set(["estimates", "nodes", "exported", "listing", "printed", "stages"]);
const words = (name) => name.replaceAll("_", " ");
function valueText(name, value) {
  if (isNumber(value) && /bytes$/.test(name)) return `${bytes(value)}${value >= 10000 ? ` (${grouped.format(value)} B)` : ""}`;
  if (isNumber(value) && /seconds$/.test(name)) return seconds(value);
  if (isNumber(value)) return Number.isInteger(value) ? count(value) : digits(value);
  if (Array.isArray(value)) return value.join(", ");
  return value === null ? "-" : String(value);
}

function described(object) {
  const list = make("dl"), below = [];
  for (const [name, value] of Object.entries(object)) {
    if (LEFT_OUT.has(name)) continue;
    const isList = Array.isArray(value) && value.some((item) => item && typeof item === "object");
    if (isList) {
      below.push(make("h4", null, `${words(name)}`));
      if (value.every((item) => Object.values(item).every((v) => v === null || typeof v !== "object"))) {
        const names = [...new Set(value.flatMap((item) => Object.keys(item)))];
        below.push(new Table({label: words(name), rows: value, columns: names.map((n, i) => ({title: words(n), of: (r) => r[n],
          text: (r) => valueText(n, r[n]), number: value.every((r) => isNumber(r[n])), width: 11, wide: i === names.length - 1}))}).element);
      } else {
        value.forEach((item) => below.push(make("div", {class: "nested"}, described(item))));
      }
    } else if (value && typeof value === "object" && !Array.isArray(value)) {
      append(list, [make("dt", null, words(name)), make("dd", null, Object.values(value).every((v) => v === null || typeof v !== "object" || Array.isArray(v))
        ? Object.entries(value).map(([n, v]) => make("span", {class: "pair"}, make("span", {class: "muted"}, `${words(n)} `), make("span", {class: "mono"}, valueText(n, v))))
        : described(value))]);
    } else {
      append(list, [make("dt", null, words(name)), make("dd", {class: "mono"}, valueText(name, value))]);
    }
  }
  return make("div", null, list, below);
}

function showManifest(body) {
  if (report.manifest) {
    append(body, [described(report.manifest)]);
    const stages = Object.entries(report.manifest.stages ?? {});
    if (stages.length) append(body, [make("h4", null, "how long compiling took"),
      bars("seconds of the compiler's stages", stages.map(([label, value]) => ({label, value: value * 1e3})), {unit: "ms", format: digits}).element]);
    return;
  }
  append(body, [emptyState("What was compiled, with which options and by which versions: ", code("tosaic compile ... --report net.json"), ", then ",
    code("tosaic report net.pte --manifest net.json"), ". What the file itself says:")]);
  if (report.inspection) append(body, [described(report.inspection)]);
}

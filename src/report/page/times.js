// SPDX-License-Identifier: Apache-2.0
// Where cycles or time go: an estimate, a measurement, or both, by layer, module, operator or source line.
const SOURCES = [
  npuLayers.length && {name: "estimate", title: "Vela's estimate", unit: "cycles", format: cycles,
    list: npuLayers.map((l) => ({name: l.node || l.name, op: l.operation, module: l.module, place: l.place, value: l.cycles, layer: l}))},
  timedOperations.length && {name: "measured", title: `Measured on ${report.profile.device}`, unit: "ms", format: digits,
    list: timedOperations.map((o) => ({name: delegateNodes.get(o.value)?.exported?.join(" ") || o.value || o.operation, op: o.operation, module: o.module, place: o.place, value: o.seconds * 1e3, operation: o}))},
].filter(Boolean);

const GROUPS = {
  layer: ["Layer", null],
  block: ["Module", (r) => blockOf(r.module) || "(no module)"],
  op: ["Operator", (r) => shortOp(r.op)],
  place: ["Source line", (r) => shortPlace(r.place) || "(not known)"],
};
const MOST_BARS = 20, MOST_UPRIGHT = 400;

function groupedRows(list, by) {
  const key = GROUPS[by][1];
  if (!key) return list.map((r) => ({label: r.name, value: r.value, about: [r.op, r.module, shortPlace(r.place)].filter(Boolean).join(" · ")}));
  const groups = new Map();
  for (const r of list) {
    const name = key(r);
    if (!groups.has(name)) groups.set(name, {label: name, value: 0, n: 0});
    const group = groups.get(name);
    group.value += r.value;
    group.n += 1;
  }
  return [...groups.values()].map((g) => ({...g, about: plural(g.n, "layer")}));
}

// Neighbours added up, so that bars stay wider than a pixel.
function thinned(rows, most) {
  if (rows.length <= most) return rows;
  const size = Math.ceil(rows.length / most), to = [];
  for (let i = 0; i < rows.length; i += size) {
    const part = rows.slice(i, i + size);
    to.push({label: part[0].label, value: sum(part, (r) => r.value), about: `${plural(part.length, "layer")}, to ${part.at(-1).label}`});
  }
  return to;
}

function timeChart(source, by, order) {
  const rows = groupedRows(source.list, by), all = sum(rows, (r) => r.value);
  if (order === "order") return {made: bars(`${source.title} in order`, thinned(rows, MOST_UPRIGHT), {...source, upright: true})};
  const sorted = [...rows].sort((a, b) => b.value - a.value), shown = sorted.slice(0, MOST_BARS);
  const rest = sorted.slice(MOST_BARS);
  const share = (r) => ({...r, about: `${percent(r.value / all)} of all${r.about ? `\n${r.about}` : ""}`});
  const others = rest.length ? `The other ${count(rest.length)} take ${source.format(sum(rest, (r) => r.value))} ${source.unit}, ${percent(sum(rest, (r) => r.value) / all)}.` : "";
  return {made: bars(`${source.title}, the largest`, shown.map(share), source), others};
}

function showTime(body) {
  if (!SOURCES.length) {
    return append(body, [emptyState("No cycles and no times. ",
      "For Ethos-U the report of the ", code(".pt2"), " has Vela's estimate: ", code("tosaic report net.pt2 --target ethos-u55-128 -o net.html"), ". ",
      "For measured times run ", code("tosaic run net.pte --profile --json > times.json"), " and give ", code("--profile times.json"), ".")]);
  }
  const state = {by: "layer", order: "largest"};
  const place = make("div");
  let charts = [];
  const draw = () => {
    charts.forEach(forget);
    charts = [];
    place.replaceChildren(...SOURCES.flatMap((source) => {
      const {made: one, others} = timeChart(source, state.by, state.order);
      charts.push(one);
      const all = sum(source.list, (r) => r.value);
      return [make("h3", null, source.title, make("span", {class: "muted"}, ` ${source.format(all)} ${source.unit} in ${plural(source.list.length, "layer")}`)), one.element,
        ...(others ? [make("p", {class: "muted"}, others)] : [])];
    }));
  };
  append(body, [make("div", {class: "tools"},
    choice("Grouped by", Object.entries(GROUPS).map(([key, [text]]) => [key, text]), "layer", (value) => { state.by = value; draw(); }),
    choice("Order", [["largest", "Largest"], ["order", "In order"]], "largest", (value) => { state.order = value; draw(); })), place]);
  draw();
  for (const source of SOURCES) append(body, [timeTable(source)]);
}

function timeTable(source) {
  const all = sum(source.list, (r) => r.value);
  const npu = source.name === "estimate";
  return make("details", {class: "more", open: SOURCES.length === 1}, make("summary", null, `${source.title}: table`), new Table({
    label: `${source.title}`, rows: source.list, sortBy: 3, columns: [
      {title: "Layer", of: (r) => r.name, width: 11},
      {title: "Operation", of: (r) => r.op, mono: true, width: 9.5},
      {title: "Module", of: (r) => r.module, mono: true, wide: true, width: 11},
      {title: npu ? "Cycles" : "Time", of: (r) => r.value, text: (r) => (npu ? count(r.value) : seconds(r.value / 1e3)), number: true, width: 6.5},
      {title: "Share", of: (r) => r.value, cell: (r) => shareBar(r.value / all), text: (r) => percent(r.value / all), number: true, width: 8},
      ...(npu ? [{title: "MACs", of: (r) => r.layer.macs, text: (r) => cycles(r.layer.macs), number: true, width: 5.5},
        {title: "MAC use", about: "multipliers that are used, on average", of: (r) => r.layer.utilisation_percent, text: (r) => `${digits(r.layer.utilisation_percent)} %`, number: true, width: 5.5}] : []),
      {title: "Line", of: (r) => r.place, text: (r) => shortPlace(r.place), full: (r) => r.place, mono: true, width: 10},
    ]}).element);
}

function shareBar(share) {
  return make("span", {class: "share"}, make("span", {class: "track"}, make("span", {class: "fill", style: `width:${Math.round(share * 1000) / 10}%`})), make("span", null, percent(share)));
}

// SPDX-License-Identifier: Apache-2.0
// What integers stand for which real numbers, and what they cost.
const scaleText = (v) => (isNumber(v) ? Number(v.toPrecision(3)).toString() : "");

function quantisedRows() {
  const rows = [];
  for (const graph of programGraphs) {
    const maker = new Map(), reader = new Map();
    graph.nodes.forEach((node, index) => {
      (node.outputs ?? []).forEach((v) => maker.set(v, [node, index]));
      (node.inputs ?? []).forEach((v) => reader.has(v) || reader.set(v, [node, index]));
    });
    graph.values.forEach((value, v) => {
      if (value.scale === undefined) return;
      const [node, index] = maker.get(v) ?? reader.get(v) ?? [null, -1];
      const layer = value.constant ? undefined : layerOf.get(value.name) ?? (node && costOf(graph, node).layer);
      rows.push({value, node, index, graph, name: value.name, layer, kind: value.constant ? "weight" : maker.has(v) ? "result" : "input"});
    });
  }
  return rows;
}

function comparedTable() {
  const own = (l) => (l.own ? l.own.snr_db ?? (l.own.exact ? Infinity : null) : null);
  const accumulated = (l) => l.accumulated.snr_db ?? (l.accumulated.exact ? Infinity : null);
  const text = (v) => (v === Infinity ? "exact" : decibels(v));
  return new Table({label: "accuracy of layers", rows: comparedLayers, sortBy: 3, descending: false, columns: [
    {title: "Layer", of: (l) => l.value, width: 10},
    {title: "Module", of: (l) => l.module, mono: true, width: 11},
    {title: "Type", of: (l) => l.type, mono: true, width: 4},
    {title: "Own", about: "signal to noise of the call alone, on the float program's operands", of: own, text: (l) => (l.own ? text(own(l)) : "-"), number: true, width: 6},
    {title: "Up to here", about: "signal to noise of all that was computed up to here", of: accumulated, text: (l) => text(accumulated(l)), number: true, width: 7},
    {title: "Cut off", about: "share of elements that the type's ends cut off", of: (l) => l.saturated, text: (l) => percent(l.saturated), number: true, width: 5},
    {title: "Range used", about: "share of the type's range that the values reach", of: (l) => l.range_used, text: (l) => percent(l.range_used), number: true, width: 6.5},
    {title: "Why, and what helps", of: (l) => l.reasons.map((r) => r.sentence).join("; "), full: (l) => l.reasons.map((r) => `${r.sentence}\n${r.remedy}`).join("\n"), wide: true, width: 14},
    {title: "Line", of: (l) => l.place, text: (l) => shortPlace(l.place), full: (l) => l.place, mono: true, width: 9},
  ]}).element;
}

function showQuantisation(body) {
  if (report.comparison) {
    const floats = comparedLayers.filter((l) => isNumber(l.own?.snr_db)).map((l) => ({label: l.value, value: l.own.snr_db, about: [l.module, shortPlace(l.place)].filter(Boolean).join(" · ")}));
    append(body, [make("h3", null, "Accuracy", make("span", {class: "muted"}, ` of ${report.comparison.scheme} against floats, ${plural(report.comparison.samples, "sample")}`))]);
    const worst = [...floats].sort((a, b) => a.value - b.value).slice(0, 12);
    if (worst.length) append(body, [make("p", {class: "lead muted"}, "The layers that lose most by themselves; less is worse."),
      bars("signal to noise, the worst layers", worst, {unit: "dB", format: digits}).element]);
    append(body, [comparedTable()]);
  }
  const rows = quantisedRows();
  if (!rows.length) {
    if (!report.comparison) append(body, [emptyState(programGraphs.length ? "Nothing is quantised: the program stays in floats."
      : "A compiled file has integers and does not say what they stand for. The report of the .pt2 does, and "), programGraphs.length ? null : emptyState(code("tosaic compare ... --json > layers.json"), " with ", code("--compare layers.json"), " shows what they cost.")]);
    return;
  }
  append(body, [make("h3", null, "Scales and ranges"), new Table({label: "quantised values", rows, filters: [["all", "All", null], ["results", "Activations", (r) => r.kind !== "weight"], ["weights", "Weights", (r) => r.kind === "weight"]], columns: [
    {title: "Value", of: (r) => r.name, cell: (r) => (r.node && r.kind === "result" ? make("button", {type: "button", class: "link", onclick: () => openNode(r.graph, r.index)}, r.name) : r.name), width: 9},
    {title: "Is", of: (r) => r.kind, width: 4.5},
    {title: "Type", of: (r) => r.value.type, text: (r) => typeText(r.value.type), mono: true, width: 10},
    {title: "Scale", of: (r) => r.value.scale, text: (r) => (r.value.channels ? `${scaleText(r.value.scale)} … ${scaleText(r.value.largest_scale)}` : scaleText(r.value.scale)), number: true, width: 10},
    {title: "Zero", about: "zero point", of: (r) => r.value.zero_point, number: true, width: 4.5},
    {title: "Lowest", about: "the real number of the lowest integer", of: (r) => r.value.range?.[0], text: (r) => scaleText(r.value.range?.[0]), number: true, width: 5},
    {title: "Highest", of: (r) => r.value.range?.[1], text: (r) => scaleText(r.value.range?.[1]), number: true, width: 5},
    {title: "Channels", about: "with scales of their own", of: (r) => r.value.channels ?? null, number: true, width: 6},
    ...(report.comparison ? [{title: "Own SNR", of: (r) => r.layer?.own?.snr_db ?? null, text: (r) => decibels(r.layer?.own?.snr_db), number: true, width: 6}] : []),
    {title: "Module", of: (r) => r.node?.module ?? "", mono: true, wide: true, width: 9},
    {title: "Line", of: (r) => r.node?.place ?? "", text: (r) => shortPlace(r.node?.place), full: (r) => r.node?.place ?? "", mono: true, width: 9},
  ]}).element]);
}

// SPDX-License-Identifier: Apache-2.0
// The graph: a tree of modules at the left, the open level, and what is known of the chosen node.
let openNode = () => {};  // (graph, index of a node): opens its level and chooses it

const textWidth = (text, monospaced) => text.length * (monospaced ? 7.3 : 7) + 26;

class GraphView {
  constructor(body) {
    this.trees = new Map();
    this.zoom = 1;
    this.crumbs = make("nav", {class: "crumbs", "aria-label": "Where in the graph"});
    this.canvas = make("div", {class: "canvas", tabindex: "0", role: "region", "aria-label": "Open level of the graph"});
    this.side = make("aside", {class: "side", "aria-label": "Chosen node"});
    this.tree = make("div", {class: "tree", role: "region", "aria-label": "Modules", tabindex: "0"});
    this.results = make("div", {class: "results"});
    const search = make("input", {type: "search", placeholder: "Find a node, module or line", "aria-label": "Find in the graph",
      oninput: later(80, () => this.find(search.value.trim().toLowerCase()))});
    const names = report.graphs.map((g) => this.title(g));
    this.chooser = selection("Graph", names, (i) => this.open(report.graphs[i]));
    const zoom = (by) => () => { this.zoom = by ? Math.min(2, Math.max(0.2, this.zoom * by)) : this.fitting(); this.scale(); };
    const zooms = make("div", {class: "zooms"}, [["−", 1 / 1.25, "Smaller"], ["+", 1.25, "Larger"], ["Fit", 0, "Fit to the window"]].map(([text, by, about]) =>
      make("button", {type: "button", title: about, "aria-label": about, onclick: zoom(by)}, text)));
    append(body, [make("div", {class: "tools"}, names.length > 1 ? this.chooser : null, search, zooms), this.results, this.legend(),
      make("div", {class: "graph"}, this.tree, make("div", {class: "level"}, this.crumbs, this.canvas), this.side)]);
    this.drag();
    const first = report.graphs.reduce((b, g) => (this.weight(g) > this.weight(b) ? g : b));
    this.open(first);
  }

  // The graph of the program says most; of a compiled file the largest of its delegates.
  weight(graph) { return (graph.kind === "program" ? 1e9 : graph.kind === "delegate" ? 1e3 : 0) + graph.nodes.length; }
  title(graph) {
    if (graph.kind === "delegate") return `${graph.name} (${graph.id}, ${plural(graph.nodes.length, "operator")})`;
    if (graph.kind === "instructions") return `${graph.name}: instructions of the .pte (${count(graph.nodes.length)})`;
    return `${graph.name} (${plural(graph.nodes.length, "node")})`;
  }

  legend() {
    return make("p", {class: "legend"}, make("span", {class: "key inside"}, "in a delegate"), make("span", {class: "key outside"}, "on the host"),
      make("span", {class: "key group"}, "module: opens"));
  }

  open(graph, group = null, node = -1) {
    const known = this.graph === graph;
    this.graph = graph;
    this.chooser.querySelector("select").value = String(report.graphs.indexOf(graph));
    if (!this.trees.has(graph)) this.trees.set(graph, treeOf(graph));
    this.root = this.trees.get(graph);
    if (!known) {
      this.branches = new Map();
      this.tree.replaceChildren(this.branch(this.root));
      this.branches.get(this.root).open();
    }
    let shown = group ?? this.root;
    while (!group && shown.items.length === 1 && shown.items[0].items) shown = shown.items[0];  // the first that has something to choose
    this.show(shown, node);
  }

  openAt(graph, index) {
    if (!this.trees.has(graph)) this.trees.set(graph, treeOf(graph));
    this.open(graph, groupWith(this.trees.get(graph), index), index);
  }

  // ---- the tree: a level of it is made when it is opened
  branch(group) {
    const list = make("ul"), inner = group.items.filter((i) => i.items);
    const button = make("button", {type: "button", class: "link", onclick: () => this.show(group)}, group.label || "(whole graph)");
    const line = [button, make("span", {class: "muted count"}, count(group.size)), this.outsideIn(group) ? make("span", {class: "dot", title: "with nodes on the host"}) : null];
    const branch = {button, element: make("div", {class: "leaf"}, line), open() {}};
    this.branches.set(group, branch);
    if (!inner.length) return branch.element;
    const fill = () => { if (!list.children.length) append(list, inner.map((i) => make("li", null, this.branch(i)))); };
    branch.element = make("details", {ontoggle: fill}, make("summary", null, line), list);
    branch.open = () => {
      fill();
      branch.element.open = true;
    };
    return branch.element;
  }

  // The branch of the level that is shown is seen, and marked.
  mark(path) {
    for (const group of path.slice(0, -1)) this.branches.get(group)?.open();
    const here = this.branches.get(path.at(-1));
    this.marked?.removeAttribute("aria-current");
    here?.button.setAttribute("aria-current", "true");
    this.marked = here?.button;
    if (here) this.tree.scrollTop = here.button.offsetTop - this.tree.clientHeight / 2;
  }

  outsideIn(group) { return group.nodes.some((n) => this.graph.nodes[n].delegate < 0); }

  // ---- the level
  show(group, node = -1) {
    this.group = group;
    const path = [];
    for (let g = group; g; g = g.parent) path.unshift(g);
    this.crumbs.replaceChildren(...path.map((g, i) => (i === path.length - 1 ? make("span", {"aria-current": "location"}, g.label)
      : make("button", {type: "button", class: "link", onclick: () => this.show(g)}, g.label))));
    this.mark(path);
    this.draw(node);
    if (node >= 0) this.choose(node); else this.describeGroup(group);
  }

  costOfAll(nodes) {
    if (!anyCost) return {};
    const all = nodes.map((n) => costOf(this.graph, this.graph.nodes[n]));
    return {cycles: sum(all, (c) => c.cycles), seconds: sum(all, (c) => c.seconds)};
  }

  box(item) {
    const node = item.node === undefined ? null : this.graph.nodes[item.node];
    const first = node ? shortOp(node.op) : clipped(item.label, 34);
    const costs = node ? costOf(this.graph, node) : {...this.costOfAll(item.nodes)};
    const cost = costs.cycles ? `${cycles(costs.cycles)} cycles` : costs.seconds ? seconds(costs.seconds) : "";
    const second = clipped(node ? node.name : [item.type, plural(item.size, "node")].filter(Boolean).join(", "), 30);
    const width = Math.max(96, textWidth(clipped(first, 34), true), textWidth(second), cost ? textWidth(cost) : 0);
    return {item, node, first: clipped(first, 34), second, cost, width, height: cost ? 62 : 46,
      inside: node ? (node.delegate ?? (this.graph.kind === "delegate" ? 0 : -1)) >= 0 : !this.outsideIn(item)};
  }

  draw(chosen) {
    const {edges, stubs} = levelOf(this.graph, this.group);
    const layout = new dagre.graphlib.Graph({multigraph: false});
    layout.setGraph({rankdir: "TB", nodesep: 18, ranksep: 34, edgesep: 12, marginx: 16, marginy: 16});
    layout.setDefaultEdgeLabel(() => ({}));
    this.boxes = this.group.items.map((item) => this.box(item));
    this.boxes.forEach((box, i) => layout.setNode(`i${i}`, {width: box.width, height: box.height}));
    for (const [key, s] of stubs) layout.setNode(key, {width: textWidth(clipped(s.text, 26)), height: 26});
    const name = (end) => (typeof end === "number" ? `i${end}` : end);
    const typeOf = (e) => (e.value < 0 ? "" : typeText(this.graph.values[e.value].type) + (e.more ? `, +${e.more}` : ""));
    const few = edges.length <= 60;
    for (const e of edges) {
      const label = few ? clipped(typeOf(e), 28) : "";
      layout.setEdge(name(e.from), name(e.to), label ? {width: label.length * 5.6, height: 14, labelpos: "c", label} : {});
    }
    dagre.layout(layout);
    const size = layout.graph();
    this.size = {width: Math.max(size.width || 0, 120), height: Math.max(size.height || 0, 80)};
    this.svg = makeSvg("svg", {viewBox: `0 0 ${this.size.width} ${this.size.height}`, role: "group", "aria-label": "nodes and edges"});
    this.svg.append(makeSvg("defs", {}, makeSvg("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"}, makeSvg("path", {d: "M0 0 8 4 0 8z", class: "arrow"}))));
    for (const e of edges) this.svg.append(this.edge(e, layout.edge(name(e.from), name(e.to)), typeOf(e)));
    for (const [key, s] of stubs) this.svg.append(this.stub(s, layout.node(key)));
    this.boxes.forEach((box, i) => this.svg.append(this.node(box, layout.node(`i${i}`))));
    this.canvas.replaceChildren(this.svg);
    this.zoom = Math.min(1, Math.max(0.6, (this.canvas.clientWidth - 4) / this.size.width));
    this.scale();
    const at = this.boxes.findIndex((b) => b.item.node === chosen);
    const to = at >= 0 ? layout.node(`i${at}`) : null;
    this.canvas.scrollTop = to ? to.y * this.zoom - this.canvas.clientHeight / 2 : 0;
    this.canvas.scrollLeft = (to ? to.x : this.size.width / 2) * this.zoom - this.canvas.clientWidth / 2;
  }

  fitting() { return Math.min((this.canvas.clientWidth - 4) / this.size.width, (this.canvas.clientHeight - 4) / this.size.height, 1.2); }
  scale() {
    this.svg.setAttribute("width", this.size.width * this.zoom);
    this.svg.setAttribute("height", this.size.height * this.zoom);
  }

  edge(e, at, type) {
    const p = at.points, group = makeSvg("g", {class: "edge"});
    let d = `M${p[0].x} ${p[0].y}`;
    for (let i = 1; i < p.length - 1; ++i) {
      const end = i === p.length - 2 ? p[i + 1] : {x: (p[i].x + p[i + 1].x) / 2, y: (p[i].y + p[i + 1].y) / 2};
      d += `Q${p[i].x} ${p[i].y} ${end.x} ${end.y}`;
    }
    if (p.length === 2) d += `L${p[1].x} ${p[1].y}`;
    group.append(makeSvg("path", {d, "marker-end": "url(#arrow)"}, makeSvg("title", {}, type)));
    if (at.label) group.append(makeSvg("text", {x: at.x, y: at.y + 4, "text-anchor": "middle"}, at.label));
    return group;
  }

  // What Enter and a click do is the same.
  pressable(element, label, act) {
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", "button");
    element.setAttribute("aria-label", label);
    element.addEventListener("click", act);
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    });
    return element;
  }

  stub(s, at) {
    const element = makeSvg("g", {class: `stub${s.isEnd ? "" : " leads"}`, transform: `translate(${at.x - at.width / 2} ${at.y - at.height / 2})`},
      makeSvg("rect", {width: at.width, height: at.height, rx: 13}), makeSvg("text", {x: at.width / 2, y: 17, "text-anchor": "middle"}, clipped(s.text, 26)), makeSvg("title", {}, s.text));
    return s.isEnd ? element : this.pressable(element, `${s.into ? "from" : "to"} ${s.text}`, () => this.openAt(this.graph, s.node));
  }

  node(box, at) {
    const {item, node} = box, left = at.x - box.width / 2, top = at.y - box.height / 2;
    const element = makeSvg("g", {class: `node ${node ? "leaf" : "group"} ${box.inside ? "inside" : "outside"}`, transform: `translate(${left} ${top})`});
    if (!node) element.append(makeSvg("rect", {class: "behind", x: 4, y: 4, width: box.width, height: box.height, rx: 7}));
    element.append(makeSvg("rect", {class: "box", width: box.width, height: box.height, rx: 7}), makeSvg("path", {class: "stripe", d: `M7 0H5Q0 0 0 7V${box.height - 7}Q0 ${box.height} 5 ${box.height}H7z`}),
      makeSvg("text", {class: "first", x: 15, y: 20}, box.first), makeSvg("text", {class: "second", x: 15, y: 36}, box.second));
    if (box.cost) element.append(makeSvg("text", {class: "second", x: 15, y: 53}, box.cost));
    element.append(makeSvg("title", {}, node ? `${node.op} ${node.name}` : item.path || item.label));
    if (node) element.dataset.node = item.node;
    const act = node ? () => this.choose(item.node) : () => this.show(item);
    return this.pressable(element, node ? `${shortOp(node.op)} ${node.name}` : `open ${item.label}, ${plural(item.size, "node")}`, act);
  }

  // ---- what is chosen
  choose(index) {
    const node = this.graph.nodes[index];
    for (const other of this.svg.querySelectorAll(".node")) other.classList.toggle("chosen", other.dataset.node === String(index));
    const cost = costOf(this.graph, node), values = this.graph.values;
    const rows = [];
    const fact = (name, value) => { if (value !== undefined && value !== null && value !== "") rows.push(make("dt", null, name), make("dd", null, value)); };
    const mono = (text) => (text ? make("span", {class: "mono"}, text) : "");
    fact("Operator", mono(node.op));
    fact("Module", node.module ? [mono(node.module), node.module_type ? ` (${node.module_type})` : ""] : "");
    fact("Line", node.place ? mono(node.place) : "");
    if (node.source) rows.push(make("dd", {class: "source"}, make("pre", null, node.source)));
    fact("Runs in", node.delegate === undefined ? "" : placeCell(node));
    fact("Why", node.reason ? [node.reason, " ", code(node.code)] : "");
    fact("What to do", node.help);
    fact("Cycles", cost.cycles ? `${count(cost.cycles)} (Vela's estimate)` : "");
    fact("Time", cost.seconds ? seconds(cost.seconds) : "");
    if (cost.layer) {
      fact("Own SNR", cost.layer.own ? (cost.layer.own.exact ? "exact" : decibels(cost.layer.own.snr_db)) : "");
      fact("SNR up to here", cost.layer.accumulated.exact ? "exact" : decibels(cost.layer.accumulated.snr_db));
    }
    fact("Exported", (node.exported ?? []).length && node.exported.join() !== node.name ? mono(node.exported.join(", ")) : "");
    const list = (title, ids) => (ids?.length ? [make("h4", null, title), make("ul", {class: "values"}, ids.slice(0, 40).map((v) => this.valueLine(values[v], v)))] : []);
    const inner = node.delegate >= 0 && this.graph.kind !== "delegate" ? report.graphs.find((g) => g.kind === "delegate" && g.delegate === node.delegate && g.nodes.length) : null;
    this.side.replaceChildren(make("h3", null, node.name || shortOp(node.op)), make("dl", null, rows), ...list("Inputs", node.inputs), ...list("Results", node.outputs),
      ...(node.text ? [make("h4", null, this.graph.sequence ? "As text" : "Attributes"), make("pre", {class: "text"}, node.text.length > 2000 ? `${node.text.slice(0, 2000)}…` : node.text)] : []),
      ...(inner ? [make("button", {type: "button", onclick: () => this.open(inner)}, `Open delegate ${node.delegate}`)] : []));
  }

  valueLine(value, v) {
    const producer = links(this.graph).producer[v];
    const name = producer >= 0 ? make("button", {type: "button", class: "link", onclick: () => this.openAt(this.graph, producer)}, value.name) : value.name;
    const about = [typeText(value.type), value.scale !== undefined ? `scale ${scaleText(value.scale)}${value.channels ? " …" : ""}, zero ${value.zero_point}` : "", value.constant ? "constant" : "", value.bytes ? bytes(value.bytes) : ""];
    return make("li", null, name, make("div", {class: "muted mono"}, about.filter(Boolean).join(" · ")));
  }

  describeGroup(group) {
    const nodes = group.nodes.map((n) => this.graph.nodes[n]), rows = [];
    const fact = (name, value) => { if (value) rows.push(make("dt", null, name), make("dd", null, value)); };
    const all = this.costOfAll(group.nodes);
    fact("Nodes", count(nodes.length));
    fact("Type", group.type);
    fact("On the host", nodes.some((n) => n.delegate < 0) ? count(nodes.filter((n) => n.delegate < 0).length) : "");
    fact("Cycles", all.cycles ? cycles(all.cycles) : "");
    fact("Time", all.seconds ? seconds(all.seconds) : "");
    const ops = new Map();
    for (const n of nodes) addTo(ops, shortOp(n.op), 1);
    const most = [...ops].sort((a, b) => b[1] - a[1]).slice(0, 12);
    this.side.replaceChildren(make("h3", null, group.label), make("dl", null, rows), make("h4", null, "Operators"),
      make("ul", {class: "values"}, most.map(([op, n]) => make("li", null, make("span", {class: "mono"}, op), make("span", {class: "muted count"}, count(n))))),
      make("p", {class: "muted"}, "Choose a node to see its types, its line and where it runs."));
  }

  find(text) {
    if (!text) return this.results.replaceChildren();
    const hits = [];
    for (const graph of report.graphs) {
      for (let i = 0; i < graph.nodes.length && hits.length < 41; ++i) {
        const n = graph.nodes[i];
        if (`${n.name} ${n.op} ${n.module ?? ""} ${n.place ?? ""}`.toLowerCase().includes(text)) hits.push([graph, i, n]);
      }
    }
    this.results.replaceChildren(hits.length ? make("ul", null, hits.slice(0, 40).map(([graph, i, n]) => make("li", null,
      make("button", {type: "button", class: "link", onclick: () => this.openAt(graph, i)}, n.name || shortOp(n.op)),
      make("span", {class: "muted"}, ` ${[shortOp(n.op), n.module, shortPlace(n.place), report.graphs.length > 1 ? graph.name : ""].filter(Boolean).join(" · ")}`))),
      hits.length > 40 ? make("li", {class: "muted"}, "and more") : null) : emptyState("Nothing is found."));
  }

  drag() {
    let from = null;
    this.canvas.addEventListener("pointerdown", (e) => { if (e.pointerType === "mouse" && !e.target.closest(".node, .leads")) from = {x: e.clientX + this.canvas.scrollLeft, y: e.clientY + this.canvas.scrollTop}; });
    window.addEventListener("pointerup", () => { from = null; });
    window.addEventListener("pointermove", (e) => {
      if (!from) return;
      this.canvas.scrollLeft = from.x - e.clientX;
      this.canvas.scrollTop = from.y - e.clientY;
    });
    this.canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey) return;
      e.preventDefault();
      this.zoom = Math.min(2, Math.max(0.2, this.zoom * (e.deltaY < 0 ? 1.1 : 1 / 1.1)));
      this.scale();
    }, {passive: false});
  }
}

function showGraph(body) {
  if (!report.graphs.some((g) => g.nodes.length)) return append(body, [emptyState("The file says nothing of a graph.")]);
  const view = new GraphView(body);
  openNode = (graph, index) => {
    document.getElementById("graph").scrollIntoView();
    view.openAt(graph, index);
  };
}

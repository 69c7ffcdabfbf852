// SPDX-License-Identifier: Apache-2.0
// Chart.js in the page's colours. A chart is drawn anew when these change.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const drawn = new Set();

function chart(label, height, configure) {
  const canvas = make("canvas", {role: "img", "aria-label": label});
  const element = make("div", {class: "chart", style: `height:${height}px`}, canvas);
  const one = {element, drawn: null, draw() {
    this.drawn?.destroy();
    const configuration = configure();
    const axis = {grid: {color: colour("line"), borderColor: colour("line")}, ticks: {color: colour("muted")}};
    const scales = configuration.options.scales;
    for (const name of Object.keys(scales)) {
      scales[name] = {...axis, ...scales[name], grid: {...axis.grid, ...scales[name].grid},
        ticks: {...axis.ticks, ...scales[name].ticks}};
      if (scales[name].title) scales[name].title = {display: true, color: colour("muted"), ...scales[name].title};
    }
    configuration.options = {animation: false, maintainAspectRatio: false, responsive: true, ...configuration.options};
    configuration.options.plugins = {legend: {display: false}, ...configuration.options.plugins};
    this.drawn = new Chart(canvas, configuration);
  }};
  drawn.add(one);
  requestAnimationFrame(() => one.draw());
  return one;
}

function forget(one) {
  if (!one) return;
  one.drawn?.destroy();
  drawn.delete(one);
}

function redrawCharts() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  for (const one of drawn) if (one.element.isConnected) one.draw();
}

const clipped = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// The largest, one bar under the other; or all, side by side in their order. `bars`: {label, value, about, colour}.
function bars(label, list, {unit, format, tick = format, upright = false}) {
  const paint = () => list.map((b) => colour(b.colour ?? "accent"));
  const values = list.map((b) => b.value);
  const height = upright ? 260 : 26 * Math.max(list.length, 2) + 54;
  const narrow = () => window.innerWidth < 600;
  return chart(label, height, () => ({
    type: "bar",
    data: {labels: list.map((b) => b.label), datasets: [{data: values, backgroundColor: paint(), borderRadius: upright ? 0 : 3,
      barPercentage: upright ? 1 : 0.8, categoryPercentage: upright ? 0.94 : 0.9}]},
    options: {
      indexAxis: upright ? "x" : "y",
      scales: upright
        ? {x: {grid: {display: false}, ticks: {autoSkip: true, maxRotation: 0, maxTicksLimit: narrow() ? 3 : 10,
             callback(value) { return clipped(this.getLabelForValue(value), 14); }}},
           y: {...(unit ? {title: {text: unit}} : {}), ticks: {callback: (v) => tick(v)}, beginAtZero: true}}
        : {x: {title: {text: unit}, ticks: {callback: (v) => tick(v), maxTicksLimit: narrow() ? 4 : 9, maxRotation: 0}, beginAtZero: true},
           y: {grid: {display: false}, ticks: {autoSkip: false, color: colour("text"),
             callback(value) { return clipped(this.getLabelForValue(value), narrow() ? 16 : 38); }}}},
      plugins: {tooltip: {callbacks: {label: (item) => `${format(item.raw)} ${unit}`.trim(),
        afterLabel: (item) => list[item.dataIndex].about ?? ""}}},
    },
  }));
}

// SPDX-License-Identifier: Apache-2.0
// Each part is drawn when it comes near what is seen; the overview and the graph at once.
const PARTS = {overview: showOverview, graph: showGraph, time: showTime, memory: showMemory, placement: showPlacement,
  quantisation: showQuantisation, messages: showMessages, manifest: showManifest};
const waiting = new Set(Object.keys(PARTS));

function showPart(name) {
  if (!waiting.delete(name)) return;
  const body = document.querySelector(`#${name} > .body`);
  body.parentElement.classList.remove("waiting");
  try {
    PARTS[name](body);
  } catch (problem) {  // the other parts are worth seeing all the same
    console.error(problem);
    append(body, [emptyState(`This part cannot be shown: ${problem.message}`)]);
  }
}

const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) {
    near.unobserve(entry.target);
    showPart(entry.target.id);
  }
}, {rootMargin: "300px"});

const theme = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  redrawCharts();
});
dark.addEventListener("change", redrawCharts);

redrawCharts();
openNode = (graph, index) => {  // from a table, before the graph was drawn, which puts its own in this place
  showPart("graph");
  openNode(graph, index);
};
showPart("overview");
for (const name of waiting) {
  const part = document.getElementById(name);
  part.classList.add("waiting");
  near.observe(part);
}
const warnings = report.messages.filter((m) => m.severity !== "note").length;
if (warnings) document.querySelector('nav a[href="#messages"]').append(make("span", {class: "badge"}, count(warnings)));
// A link into the page asks for a part that may still be empty: all before it are drawn first, so that it stays in place.
document.querySelector(".top nav").addEventListener("click", (event) => {
  const wanted = event.target.closest("a")?.hash.slice(1);
  for (const name of Object.keys(PARTS)) {
    showPart(name);
    if (name === wanted) break;
  }
});
document.documentElement.dataset.ready = String(Math.round(performance.now()));  // milliseconds, for tests

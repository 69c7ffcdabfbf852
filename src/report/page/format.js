// SPDX-License-Identifier: Apache-2.0
// The data, elements made of it, and numbers for people. What comes from files becomes text, never markup.
const report = JSON.parse(document.getElementById("data").textContent);

// make("td", {class: "number", title: "..."}, "text", element, ...): attributes whose value is null are left out, those
// that begin with "on" are listeners.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

const SVG = "http://www.w3.org/2000/svg";
function makeSvg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  append(element, children);
  return element;
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const grouped = new Intl.NumberFormat("en", {maximumFractionDigits: 0});

// 3 digits: 0.0123, 1.23, 12.3, 123; from 1,000 on whole.
function digits(value) {
  if (!isNumber(value)) return "";
  if (value === 0) return "0";
  if (Math.abs(value) >= 999.5) return grouped.format(value);
  return String(Number(value.toPrecision(3)));
}
const count = (value) => (isNumber(value) ? grouped.format(value) : "");

// As the tool writes sizes: "13.9 MB".
function bytes(value) {
  if (!isNumber(value)) return "";
  if (value < 10000) return `${grouped.format(value)} B`;
  if (value < 1e6) return `${(value / 1e3).toFixed(1)} kB`;
  if (value < 1e9) return `${(value / 1e6).toFixed(1)} MB`;
  return `${(value / 1e9).toFixed(2)} GB`;
}

// For axes: "800 kB".
const roundBytes = (value) => bytes(value).replace(/\.0+ /, " ");

function seconds(value) {
  if (!isNumber(value)) return "";
  if (value < 1e-3) return `${digits(value * 1e6)} µs`;
  if (value < 1) return `${digits(value * 1e3)} ms`;
  return `${digits(value)} s`;
}

// "4.21 M cycles"
function cycles(value) {
  if (!isNumber(value)) return "";
  if (value >= 1e6) return `${digits(value / 1e6)} M`;
  if (value >= 1e4) return `${digits(value / 1e3)} k`;
  return count(value);
}

function percent(share) {
  if (!isNumber(share)) return "";
  return `${share > 0 && share < 0.1 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;
}

const decibels = (value) => (isNumber(value) ? `${value.toFixed(1)} dB` : "");
const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

// "conv2d" of "aten.conv2d.default", "tosa.conv2d", "aten::conv2d.out".
function shortOp(op) {
  const name = op.replace(/^(aten|tosa|quantized_decomposed|prims)(\.|::)/, "");
  return name.replace(/\.(default|out|Tensor|Scalar|int|dim)$/, "");
}
// "model.py:6" of "/a/b/model.py:6".
const shortPlace = (place) => (place ?? "").replace(/^.*[/\\]/, "");
// "1 x 8 x 8, i8" is easier to read than "1x8x8xi8".
function typeText(type) {
  const at = (type ?? "").lastIndexOf("x");
  if (at < 0 || /[<(]/.test(type)) return type ?? "";
  return `${type.slice(0, at).replaceAll("x", "×")} ${type.slice(at + 1)}`;
}

// Waits until nothing more was asked for a moment.
function later(milliseconds, action) {
  let timer = 0;
  return (...words) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...words), milliseconds);
  };
}

const sum = (list, of) => list.reduce((all, item) => all + (of(item) || 0), 0);

function emptyState(...children) {
  return make("p", {class: "empty"}, ...children);
}
const code = (text) => make("code", null, text);

// Buttons of which one is chosen. `choices`: [value, text].
function choice(label, choices, chosen, act) {
  const buttons = choices.map(([value, text]) => make("button", {
    type: "button", "aria-pressed": String(value === chosen),
    onclick: (event) => {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      act(value);
    },
  }, text));
  return make("div", {class: "choice", role: "group", "aria-label": label}, buttons);
}

function selection(label, choices, act) {
  const select = make("select", {"aria-label": label, onchange: () => act(Number(select.value))},
    choices.map((text, i) => make("option", {value: i}, text)));
  return make("label", {class: "select"}, make("span", null, label), select);
}

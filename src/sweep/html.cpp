// SPDX-License-Identifier: Apache-2.0
// A sweep as one page without a network: a table that sorts and filters.
#include <fmt/format.h>

#include "base/html_text.h"
#include "base/printable.h"
#include "sweep/columns.h"

namespace tosaic {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; padding: 1.5rem; max-width: 90rem; }
h1 { font-size: 1.3rem; margin: 0 0 .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap; }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid #4a90d9; }
th[aria-sort=ascending] button::after { content: " \2191"; }
th[aria-sort=descending] button::after { content: " \2193"; }
.number { text-align: right; }
.best { background: #3fa34d2b; }
.problem { white-space: normal; min-width: 18rem; color: #b3541e; }
input { font: inherit; padding: .3rem .6rem; margin: .5rem 0 1rem; width: 20rem; max-width: 100%; box-sizing: border-box; }
)";

constexpr std::string_view script = R"(
const body = document.querySelector('tbody');
const rows = [...body.rows];
document.querySelectorAll('th button').forEach((button, column) => button.addEventListener('click', () => {
  const head = button.parentElement;
  const down = head.getAttribute('aria-sort') === 'ascending';
  document.querySelectorAll('th').forEach(other => other.removeAttribute('aria-sort'));
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const numbers = head.classList.contains('number');
  const key = row => row.cells[column].dataset.value;
  rows.sort((a, b) => {
    const x = key(a), y = key(b);
    if ((x === '') !== (y === '')) return x === '' ? 1 : -1;
    const order = numbers ? parseFloat(x) - parseFloat(y) : x.localeCompare(y);
    return down ? -order : order;
  });
  body.append(...rows);
}));
document.querySelector('input').addEventListener('input', event => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const row of rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
});
)";

// What a browser compares: "inf" is Infinity to it.
std::string sortable(std::string value) {
  if (value == "inf") return "Infinity";
  return value;
}

}  // namespace

std::string sweep_html(const std::string& model, const std::vector<SweepRow>& rows) {
  const auto columns = sweeps::columns_of(rows);
  std::string head, body;
  for (const sweeps::Column* column : columns)
    head += fmt::format("<th{}><button>{}</button></th>", column->number ? " class=\"number\"" : "",
                        html_text(column->title));
  for (const SweepRow& row : rows) {
    body += row.best ? "<tr class=\"best\">" : "<tr>";
    for (const sweeps::Column* column : columns)
      body += fmt::format("<td{} data-value=\"{}\">{}</td>",
                          column->number             ? " class=\"number\""
                          : column->key == "problem" ? " class=\"problem\""
                                                     : "",
                          html_text(sortable(column->exact(row))), html_text(column->shown(row)));
    body += "</tr>\n";
  }
  const std::string name = html_text(printable(model));
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}: sweep</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>{1}</style></head><body>\n"
      "<h1>{0}: {2} programs</h1>\n<p>Rows on green are on the Pareto front: no other is as good in size of the NPU, "
      "speed, SRAM and accuracy. Cycles and memory of an Ethos-U are Vela's estimates.</p>\n"
      "<input type=\"search\" placeholder=\"filter: u55 int8\" aria-label=\"filter\">\n"
      "<div class=\"wide\"><table><thead><tr>{3}</tr></thead><tbody>\n{4}</tbody></table></div>\n"
      "<script>{5}</script></body></html>\n",
      name, style, rows.size(), head, body, script);
}

}  // namespace tosaic

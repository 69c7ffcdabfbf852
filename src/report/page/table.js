// SPDX-License-Identifier: Apache-2.0
// A table that can be sorted and searched. Only the rows that are seen are in the document, however many there are.
//
// A column: title, of(row) -> text or number by which it is sorted, text(row) if it is shown in another way, cell(row) ->
// an element instead, number: true where digits stand under one another, width in rem, wide: takes what is left.
const ROW_PIXELS = 32;
const ROWS_SHOWN = 14;  // of a table that scrolls
const FEW_ROWS = 6;     // are not searched

class Table {
  constructor({label, columns, rows, sortBy = -1, descending = true, filters = null}) {
    Object.assign(this, {label, columns, rows, sortBy, descending});
    this.words = "";
    this.keep = filters ? filters[0][2] : null;
    this.body = make("tbody");
    this.told = make("span", {class: "told", role: "status"});
    this.heads = columns.map((column, i) => this.head(column, i));
    const widths = columns.map((c) => make("col", c.wide ? null : {style: `width:${c.width ?? 7}rem`}));
    const least = sum(columns, (c) => c.width ?? (c.wide ? 12 : 7));
    this.table = make("table", {"aria-label": label, style: `min-width:${least}rem`},
      make("colgroup", null, widths), make("thead", null, make("tr", null, this.heads)), this.body);
    this.scroller = make("div", {class: "scroller", tabindex: "0", role: "region", "aria-label": label,
      onscroll: () => this.draw()}, this.table);
    const search = make("input", {type: "search", placeholder: "Search", "aria-label": `Search in ${label}`,
      oninput: later(60, () => { this.words = search.value.trim().toLowerCase(); this.find(); })});
    const kinds = filters && choice(`Rows of ${label}`, filters.map(([value, text]) => [value, text]), filters[0][0],
      (value) => { this.keep = filters.find((f) => f[0] === value)[2]; this.find(); });
    this.element = make("div", {class: "table"}, make("div", {class: "tools"}, rows.length > FEW_ROWS ? search : null, kinds, this.told), this.scroller);
    this.find();
  }

  head(column, i) {
    const button = make("button", {type: "button", onclick: () => {
      this.descending = this.sortBy === i ? !this.descending : Boolean(column.number);
      this.sortBy = i;
      this.find();
    }}, column.title);
    return make("th", {scope: "col", class: column.number ? "number" : null, title: column.about ?? null}, button);
  }

  text(row, column) {
    const value = column.text ? column.text(row) : column.of(row);
    return value === null || value === undefined ? "" : String(value);
  }

  find() {
    this.searched ??= new Map();
    const fits = (row) => {
      if (this.keep && !this.keep(row)) return false;
      if (!this.words) return true;
      let text = this.searched.get(row);
      if (text === undefined) {
        text = this.columns.map((c) => `${this.text(row, c)} ${c.of(row) ?? ""} ${c.full ? c.full(row) : ""}`).join(" ").toLowerCase();
        this.searched.set(row, text);
      }
      return text.includes(this.words);
    };
    this.found = this.rows.filter(fits);
    const column = this.columns[this.sortBy];
    if (column) {
      const sign = this.descending ? -1 : 1;
      const isEmpty = (v) => v === null || v === undefined || v === "";
      this.found.sort((a, b) => {  // what is empty comes last, either way
        const x = column.of(a), y = column.of(b);
        if (isEmpty(x) || isEmpty(y)) return Number(isEmpty(x)) - Number(isEmpty(y));
        if (typeof x === "number" && typeof y === "number") return sign * (x - y);
        return sign * String(x).localeCompare(String(y), "en", {numeric: true});
      });
    }
    this.heads.forEach((th, i) => th.setAttribute("aria-sort",
      i !== this.sortBy ? "none" : this.descending ? "descending" : "ascending"));
    if (this.rows.length > FEW_ROWS || this.keep) this.told.textContent = this.found.length === this.rows.length ? plural(this.rows.length, "row")
      : `${count(this.found.length)} of ${plural(this.rows.length, "row")}`;
    this.scroller.style.height = this.found.length > ROWS_SHOWN ? `${(ROWS_SHOWN + 1) * ROW_PIXELS + 18}px` : "";
    this.scroller.scrollTop = 0;
    this.first = -1;
    this.draw();
  }

  draw() {
    const most = ROWS_SHOWN + 24;
    const at = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_PIXELS) - 12);
    const first = Math.min(at - (at % 6), Math.max(0, this.found.length - most));
    if (first === this.first) return;
    this.first = first;
    const shown = this.found.slice(first, first + most);
    const space = (rows) => make("tr", {class: "space", "aria-hidden": "true", style: `height:${rows * ROW_PIXELS}px`},
      make("td", {colspan: this.columns.length}));
    this.body.replaceChildren(space(first), ...shown.map((row) => this.row(row)),
      space(Math.max(0, this.found.length - first - shown.length)));
    if (!this.found.length) this.body.replaceChildren(make("tr", null,
      make("td", {colspan: this.columns.length, class: "none"}, this.rows.length ? "Nothing is found." : "There are none.")));
  }

  row(row) {
    return make("tr", null, this.columns.map((column) => {
      const text = this.text(row, column);
      const shown = column.cell ? column.cell(row) : text;
      return make("td", {class: [column.number ? "number" : "", column.mono ? "mono" : ""].join(" ").trim() || null,
        title: column.full ? column.full(row) : text.length > 12 ? text : null}, shown);
    }));
  }
}

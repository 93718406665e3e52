// SPDX-License-Identifier: Apache-2.0
// A table that sorts, filters and turns pages, for two rows as for 3,400. A number stands in <data> with its
// full value; an absent one says why and is never 0.
import { copy, csv, h, type Child, type CsvRow } from "./dom";
import { finite, number, plain, quantity, unitFor, withUnit, type Maybe } from "./format";
import { markWords } from "./figure";
import type { Mark, Report } from "./model";

/** The beginning of a reason: a cell is no place for a driver's whole message, which stands under "Sensors that delivered nothing". */
const brief = (reason: string): string =>
  reason.length <= 64 ? reason : `${reason.slice(0, reason.slice(0, 60).lastIndexOf(" "))} …`;

type Value = number | string | null | undefined;

export interface Column<Row> {
  key: string;
  label: string;
  unit?: string;
  /** What is sorted and exported. */
  value: (row: Row) => Value;
  /** What is shown, where it is not the value itself. */
  show?: (row: Row) => Child;
  /** Why there is no value. */
  absent?: (row: Row) => string;
  numeric?: boolean;
  /** Numbers of a column of integers are shown without decimals; `table` finds out. */
  integers?: boolean;
  /** False: text of this column keeps to one line. */
  wrap?: boolean;
}

/** A column of one quantity, in the one unit that suits all its values. */
export function quantityColumn<Row>(
  key: string,
  rows: Row[],
  value: (row: Row) => Maybe,
  absent?: (row: Row) => string,
  label = quantity(key).label,
): Column<Row> {
  const unit = unitFor(key, rows.map(value));
  return {
    key,
    label,
    unit: unit.name,
    value,
    absent,
    numeric: true,
    show: (row) => {
      const v = value(row);
      return finite(v) ? h("data", { value: v }, number(v / unit.scale)) : null;
    },
  };
}

export interface TableSpec<Row> {
  id: string;
  title: string;
  note?: Child[];
  marks?: Mark[];
  columns: Column<Row>[];
  rows: Row[];
  pageSize?: number;
}

/** Names do not break; long text gets room. */
const textClass = (text: string) => (!text.includes(" ") ? "nowrap" : text.length > 24 ? "long" : undefined);

function cell<Row>(column: Column<Row>, row: Row): HTMLElement {
  const value = column.value(row);
  const content = column.show?.(row);
  if (content !== null && content !== undefined && content !== false) {
    return h("td", { class: column.numeric ? "numeric" : undefined }, content);
  }
  if (
    value === null ||
    value === undefined ||
    value === "" ||
    (typeof value === "number" && !Number.isFinite(value))
  ) {
    const reason = column.absent?.(row);
    return reason === undefined
      ? h("td", { class: column.numeric ? "numeric" : undefined }, "–")
      : h(
          "td",
          { class: column.numeric ? "absent numeric" : "absent", title: reason },
          `not measured: ${brief(reason)}`,
        );
  }
  return h(
    "td",
    { class: column.numeric ? "numeric" : column.wrap === false ? "nowrap" : textClass(String(value)) },
    typeof value === "number" ? h("data", { value }, column.integers ? plain(value) : number(value)) : value,
  );
}

function compare(a: Value, b: Value): number {
  const absent = (v: Value) => v === null || v === undefined || (typeof v === "number" && Number.isNaN(v));
  if (absent(a) || absent(b)) return Number(absent(a)) - Number(absent(b));
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

export function table<Row>(report: Report, spec: TableSpec<Row>): HTMLElement {
  for (const column of spec.columns) {
    const present = spec.rows.map(column.value).filter(finite);
    column.integers = present.every(Number.isInteger);
  }
  const pageSize = spec.pageSize ?? 25;
  const paged = spec.rows.length > pageSize;
  let rows = spec.rows;
  let page = 0;
  let sorted: { column: Column<Row>; descending: boolean } | null = null;
  const body = h("tbody", null);
  const position = h("span", { "aria-live": "polite" });

  const headers = spec.columns.map((column) => {
    const header = h(
      "th",
      { scope: "col", class: column.numeric ? "numeric" : undefined },
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            sorted = { column, descending: sorted?.column === column && !sorted.descending };
            for (const other of headers) other.removeAttribute("aria-sort");
            header.setAttribute("aria-sort", sorted.descending ? "descending" : "ascending");
            update();
          },
        },
        column.label,
        column.unit ? h("span", { class: "unit" }, ` ${column.unit}`) : null,
      ),
    );
    return header;
  });

  const filter = h("input", {
    type: "search",
    placeholder: "Filter rows",
    "aria-label": `Filter rows of: ${spec.title}`,
  });
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows = spec.rows.filter((row) => {
      const text = spec.columns
        .map((column) => String(column.value(row) ?? ""))
        .join(" ")
        .toLowerCase();
      return words.every((word) => text.includes(word));
    });
    page = 0;
    update();
  });
  const turn = (step: number) => () => {
    page += step;
    update();
  };
  const previous = h("button", { type: "button", onclick: turn(-1) }, "Previous");
  const next = h("button", { type: "button", onclick: turn(1) }, "Next");

  function update(): void {
    const order = sorted;
    const shown = order
      ? [...rows].sort((a, b) => {
          const [x, y] = [order.column.value(a), order.column.value(b)];
          return order.descending && x !== null && y !== null ? -compare(x, y) : compare(x, y);
        })
      : rows;
    const pages = Math.max(1, Math.ceil(shown.length / pageSize));
    page = Math.min(Math.max(page, 0), pages - 1);
    const slice = shown.slice(page * pageSize, (page + 1) * pageSize);
    body.replaceChildren(
      ...slice.map((row) => h("tr", null, ...spec.columns.map((column) => cell(column, row)))),
    );
    position.textContent =
      shown.length === 0
        ? "no rows"
        : `${page * pageSize + 1}–${page * pageSize + slice.length} of ${shown.length.toLocaleString("en-US")}`;
    previous.disabled = page === 0;
    next.disabled = page === pages - 1;
  }
  update();

  const rowsForCsv = (): CsvRow[] =>
    spec.rows.map((row) => Object.fromEntries(spec.columns.map((column) => [column.key, column.value(row)])));
  const copyButton = h(
    "button",
    { type: "button", onclick: () => void copy(copyButton, csv(rowsForCsv()), `${spec.id}.csv`) },
    "Copy as CSV",
  );
  const title = `${spec.id}-title`;
  return h(
    "div",
    { class: "table", id: spec.id, "data-rows": spec.rows.length },
    h(
      "p",
      { class: "caption", id: title },
      h("span", { class: "number" }, `Table ${report.nextTable()}`),
      ...markWords(spec.marks ?? []),
      h("strong", null, `${spec.title}.`),
      " ",
      ...(spec.note ?? []),
    ),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": title },
      h("table", { "aria-labelledby": title }, h("thead", null, h("tr", null, ...headers)), body),
    ),
    h(
      "div",
      { class: "tools" },
      copyButton,
      paged ? h("span", { class: "pager" }, filter, previous, position, next) : null,
    ),
  );
}

/** Columns for records whose keys this page does not know: one per scalar, intervals as "low to high". */
export function columnsOf(
  rows: Record<string, unknown>[],
  skip: string[] = [],
): Column<Record<string, unknown>>[] {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => !skip.includes(key));
  const text = (value: unknown): Value => {
    if (typeof value === "number" || typeof value === "string" || value === null || value === undefined)
      return value as Value;
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (Array.isArray(value))
      return value
        .map((item) => (finite(item) ? number(item) : String(text(item) ?? "–")))
        .join(value.every(finite) && value.length === 2 ? " to " : ", ");
    return Object.entries(value as object)
      .map(
        ([key, item]) => `${quantity(key).label} ${finite(item) ? number(item) : String(text(item) ?? "–")}`,
      )
      .join(", ");
  };
  return keys.map((key) => {
    const { label, unit } = quantity(key);
    const numeric = rows.every((row) => row[key] === null || row[key] === undefined || finite(row[key]));
    return { key, label: withUnit(label, unit), value: (row) => text(row[key]), numeric };
  });
}

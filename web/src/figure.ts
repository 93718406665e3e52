// SPDX-License-Identifier: Apache-2.0
// A figure: drawn for the page's width and colours, and saved in the colours of paper at the width of a
// column, with the words "simulated" and "estimated" inside the picture, where no caption can lose them.
import * as Plot from "@observablehq/plot";
import { copy, csv, download, h, type Child, type CsvRow } from "./dom";
import type { Mark, Report } from "./model";
import { current, light, onChange, type Theme } from "./theme";

export interface FigureSpec {
  id: string;
  title: string;
  caption: Child[];
  marks: Mark[];
  rows: CsvRow[];
  wide?: boolean;
  draw: (theme: Theme, width: number) => Plot.PlotOptions;
}

const savedWidth = 560;
const fontFamily = '"Inter Variable", "Helvetica Neue", Arial, sans-serif';

function draw(spec: FigureSpec, theme: Theme, width: number): SVGSVGElement {
  const options = spec.draw(theme, width);
  const words = spec.marks.filter((mark) => mark !== "preliminary");
  const tag =
    words.length === 0
      ? []
      : [
          Plot.text([words.join(", ").toUpperCase()], {
            frameAnchor: "top-right",
            dx: (options.marginRight ?? 20) - 4,
            dy: -(options.marginTop ?? 20) + 8,
            fill: theme.muted,
            fontSize: 9,
            fontWeight: 600,
            textAnchor: "end",
          }),
        ];
  const svg = Plot.plot({
    width,
    height: Math.round(Math.min(Math.max(width * 0.62, 260), 420)),
    marginTop: 34,
    marginBottom: 44,
    ...options,
    ariaLabel: spec.title,
    style: { fontFamily, fontSize: "12px", background: "transparent", color: theme.ink, overflow: "visible" },
    marks: [...(options.marks ?? []), ...tag],
  }) as SVGSVGElement;
  svg.setAttribute("role", "img");
  return svg;
}

function save(spec: FigureSpec): void {
  const svg = draw(spec, light, savedWidth);
  svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  svg.insertAdjacentElement(
    "afterbegin",
    Object.assign(document.createElementNS("http://www.w3.org/2000/svg", "title"), {
      textContent: spec.title,
    }),
  );
  download(`${spec.id}.svg`, "image/svg+xml", `<?xml version="1.0" encoding="UTF-8"?>\n${svg.outerHTML}\n`);
}

export const markWords = (marks: Mark[]): Child[] =>
  marks.map((mark) => h("span", { class: `mark mark-${mark}` }, mark));

export function figure(report: Report, spec: FigureSpec): HTMLElement {
  const canvas = h("div", { class: "canvas" });
  const copyButton = h(
    "button",
    { type: "button", onclick: () => void copy(copyButton, csv(spec.rows), `${spec.id}.csv`) },
    "Copy data as CSV",
  );
  const element = h(
    "figure",
    { id: spec.id, class: spec.wide ? "wide" : undefined, "data-points": spec.rows.length },
    canvas,
    h(
      "figcaption",
      null,
      h("span", { class: "number" }, `Figure ${report.nextFigure()}`),
      ...markWords(spec.marks),
      h("strong", null, `${spec.title}.`),
      " ",
      ...spec.caption,
    ),
    h(
      "div",
      { class: "tools" },
      h("button", { type: "button", onclick: () => save(spec) }, "Save SVG"),
      copyButton,
    ),
  );
  let width = 0;
  const redraw = () => width > 0 && canvas.replaceChildren(draw(spec, current(), width));
  new ResizeObserver(() => {
    const now = Math.floor(canvas.clientWidth);
    if (now !== width) {
      width = now;
      redraw();
    }
  }).observe(canvas);
  onChange(redraw);
  return element;
}

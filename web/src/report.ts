// SPDX-License-Identifier: Apache-2.0
// The report's page: reads the document that stands in it and lays it out.
import "./fonts.css";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { h, type Child } from "./dom";
import { makeReport, type Model, type Report } from "./model";
import { machines, methods, reproduce, warnings } from "./sections/closing";
import { configurations } from "./sections/configurations";
import { energy } from "./sections/energy";
import { further } from "./sections/further";
import { measured } from "./sections/measured";
import { runs } from "./sections/runs";
import { scaling } from "./sections/scaling";
import { banners, keyNumbers, paragraph, title } from "./sections/summary";
import { tradeOff } from "./sections/tradeoff";
import { choose } from "./theme";

interface Section {
  id: string;
  heading: string;
  content: Child[];
}

function section({ id, heading, content }: Section): HTMLElement {
  return h(
    "section",
    { id, "aria-labelledby": `${id}-heading` },
    h("h2", { id: `${id}-heading` }, heading),
    ...content,
  );
}

function themeSwitch(): HTMLElement {
  const names = ["auto", "light", "dark"] as const;
  return h(
    "fieldset",
    { class: "theme" },
    h("legend", null, "Colours"),
    ...names.map((name) =>
      h(
        "label",
        null,
        h("input", {
          type: "radio",
          name: "theme",
          value: name,
          checked: name === "auto",
          onchange: () => choose(name),
        }),
        h("span", null, name),
      ),
    ),
  );
}

/** In the order of the page, because figures and tables number themselves as they are made. */
const outline: { id: string; heading: string; make: (report: Report) => Child[] }[] = [
  { id: "measured", heading: "What was measured, and what was not", make: measured },
  { id: "configurations", heading: "Configurations", make: configurations },
  { id: "scaling", heading: "Scaling", make: scaling },
  { id: "energy", heading: "Energy", make: energy },
  { id: "trade-off", heading: "Time against energy", make: tradeOff },
  { id: "further", heading: "Further analysis", make: further },
  { id: "runs", heading: "Runs", make: runs },
  { id: "warnings", heading: "Warnings", make: warnings },
  { id: "methods", heading: "Methods and limits", make: methods },
  { id: "machines", heading: "Machines and software", make: machines },
  { id: "reproduce", heading: "Reproduce and cite", make: reproduce },
];

function page(report: Report): Node[] {
  const list = outline
    .map(({ make, ...rest }) => ({ ...rest, content: make(report) }))
    .filter(({ content }) => content.length > 0);
  document.title = `${title(report)} · Joulemark report`;
  return [
    h(
      "nav",
      { class: "contents", "aria-label": "Contents" },
      h("p", null, "Contents"),
      h("ol", null, ...list.map(({ id, heading }) => h("li", null, h("a", { href: `#${id}` }, heading)))),
      themeSwitch(),
    ),
    h(
      "main",
      { id: "report" },
      h(
        "header",
        null,
        h("p", { class: "kicker" }, "Joulemark report"),
        h("h1", null, title(report)),
        ...banners(report),
        paragraph(report),
        keyNumbers(report),
      ),
      ...list.map(section),
    ),
  ];
}

const model = JSON.parse(document.getElementById("joulemark-model")?.textContent ?? "null") as Model | null;
const root = document.getElementById("page")!;
root.replaceChildren(
  ...(model ? page(makeReport(model)) : [h("p", null, "This page holds no report: its data is missing.")]),
);

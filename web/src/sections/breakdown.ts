// SPDX-License-Identifier: Apache-2.0
// One energy taken apart: by component, and by the method that found it.
import * as Plot from "@observablehq/plot";
import { h } from "../dom";
import { figure } from "../figure";
import { count, finite, listed, number, plain, quantity, unitFor, withUnit, type Maybe } from "../format";
import { setupLabel } from "../laws";
import { absence, runMarks, union, valueOf, type Report, type Run } from "../model";
import { table, type Column } from "../table";

export const absent = (what: string): HTMLElement =>
  h("p", { class: "absent-note" }, `Not shown: ${what} was not measured.`);

interface Part {
  index: number;
  component: string;
  label: string;
  energy: number;
  n: number;
}

const componentOrder = ["gpu", "cpu", "dram", "node"];

export function byComponent(report: Report): HTMLElement[] {
  const parts = report.setups.flatMap((setup, index): Part[] => {
    const measured = setup.runs.filter((run) => Object.values(run.energy_by_component_j ?? {}).some(finite));
    const keys = [...new Set(measured.flatMap((run) => Object.keys(run.energy_by_component_j ?? {})))];
    return keys.flatMap((component) => {
      const values = measured.map((run) => run.energy_by_component_j?.[component]).filter(finite);
      return values.length === 0
        ? []
        : [
            {
              index,
              component,
              label: setupLabel(report, setup.factors),
              energy: values.reduce((a, b) => a + b, 0) / values.length,
              n: values.length,
            },
          ];
    });
  });
  if (parts.length === 0) return [absent("the energy of any component")];
  const components = [...new Set(parts.map((part) => part.component))].sort(
    (a, b) => componentOrder.indexOf(a) - componentOrder.indexOf(b),
  );
  const shown = [...new Set(parts.map((part) => part.index))].slice(0, 24);
  const data = parts.filter((part) => shown.includes(part.index));
  const unit = unitFor(
    "energy_j",
    data.map((part) => part.energy),
  );
  const longest = Math.max(...data.map((part) => part.label.length));
  const hidden = new Set(parts.map((part) => part.index)).size - shown.length;
  return [
    figure(report, {
      id: "figure-components",
      title: "Energy of a run, by component",
      wide: true,
      marks: union(shown.map((i) => report.setups[i].marks)),
      caption: [
        `Means over the runs of each configuration. Measured: ${listed(components.map((c) => quantity(c).label))}. A wall-power reading contains the components and is never added to them. `,
        hidden > 0
          ? `The first ${shown.length} configurations; the data of all are in the table of runs. `
          : "",
        "What is missing here was not measured; it is not zero.",
      ],
      rows: data.map((part) => ({
        configuration: part.label,
        component: part.component,
        energy_j: part.energy,
        n: part.n,
      })),
      draw: (theme, width) => {
        const inline = width > 640;
        const stacked = data.filter((part) => part.component !== "node");
        const wall = data.filter((part) => part.component === "node");
        const y = (part: { index: number }) => shown.indexOf(part.index);
        return {
          height: 64 + shown.length * (inline ? 24 : 38),
          marginLeft: inline ? Math.min(Math.max(longest * 6.6, 80), 300) : 12,
          marginRight: 24,
          marginTop: 44,
          x: {
            label: withUnit("Energy", unit.name),
            labelAnchor: "center",
            labelArrow: "none",
            labelOffset: 38,
            tickFormat: plain,
            ticks: 6,
          },
          y: {
            type: "band",
            label: null,
            axis: null,
            padding: inline ? 0.28 : 0.55,
            domain: shown.map((_, i) => i),
          },
          color: { domain: components, range: components.map((_, i) => theme.series[i]) },
          marks: [
            Plot.gridX({ stroke: theme.grid, strokeOpacity: 1, ticks: 6 }),
            Plot.barX(
              stacked,
              Plot.stackX({
                x: (part: Part) => part.energy / unit.scale,
                y,
                fill: "component",
                order: components,
                title: (part: Part) =>
                  `${part.label}\n${quantity(part.component).label}: ${number(part.energy / unit.scale)} ${unit.name}`,
                tip: { fill: theme.paper, stroke: theme.grid },
              }),
            ),
            Plot.tickX(wall, { x: (part) => part.energy / unit.scale, y, stroke: theme.ink, strokeWidth: 2 }),
            Plot.text(
              shown,
              inline
                ? {
                    y: (_, i) => i,
                    text: (i) => setupLabel(report, report.setups[i].factors),
                    frameAnchor: "left",
                    textAnchor: "end",
                    dx: -8,
                    fill: theme.ink,
                  }
                : {
                    y: (_, i) => i,
                    text: (i) => setupLabel(report, report.setups[i].factors),
                    frameAnchor: "left",
                    textAnchor: "start",
                    dy: -15,
                    fill: theme.ink,
                  },
            ),
            ...components.map((component, i) =>
              Plot.text([quantity(component).label], {
                frameAnchor: "top-left",
                dx: i * 72,
                dy: -24,
                fill: component === "node" ? theme.ink : theme.series[i],
                fontWeight: 600,
                textAnchor: "start",
              }),
            ),
          ],
        };
      },
    }),
  ];
}

interface Disagreement {
  run: Run;
  counter: number | null;
  integrated: number | null;
  protocol: number | null;
  largest: number | null;
}

const disagreementLimit = 0.03;

export function disagreements(runs: Run[]): Disagreement[] {
  return runs.map((run) => {
    const [counter, integrated, protocol] = [
      "energy_counter_j",
      "energy_integrated_j",
      "energy_protocol_j",
    ].map((key) => valueOf(run, key));
    const present = [counter, integrated, protocol].filter(finite);
    const largest =
      present.length > 1 ? (Math.max(...present) - Math.min(...present)) / Math.max(...present) : null;
    return { run, counter, integrated, protocol, largest };
  });
}

export function byMethod(report: Report): HTMLElement[] {
  const rows = disagreements(report.runs);
  const measured = rows.filter(
    (row) => row.counter !== null || row.integrated !== null || row.protocol !== null,
  );
  if (measured.length === 0) return [absent("energy by any method")];
  const flagged = measured.filter((row) => row.largest !== null && row.largest > disagreementLimit);
  const comparable = measured.filter((row) => row.largest !== null);
  const all: Maybe[] = measured.flatMap((row) => [row.counter, row.integrated, row.protocol]);
  const unit = unitFor("energy_j", all);
  const column = (
    key: string,
    label: string,
    value: (row: Disagreement) => number | null,
  ): Column<Disagreement> => ({
    key,
    label,
    unit: unit.name,
    value,
    numeric: true,
    absent: (row) => absence(row.run, key),
    show: (row) => {
      const v = value(row);
      return v === null ? null : h("data", { value: v }, number(v / unit.scale));
    },
  });
  return [
    h(
      "p",
      null,
      "Three estimates of one energy over one window: the difference of the device's counter; the trapezoid of its sampled power; and wall time × plain mean of the power samples, which is the recipe of the published protocol. ",
      comparable.length === 0
        ? "No run has more than one of them, so they cannot be compared. "
        : flagged.length === 0
          ? `In all ${count(comparable.length, "run")} with more than one they agree within 3 %.`
          : h(
              "strong",
              null,
              `In ${plain(flagged.length)} of ${count(comparable.length, "run")} with more than one they disagree by more than 3 %.`,
            ),
    ),
    table(report, {
      id: "methods-table",
      title: "Counter, integral and protocol energy of each run",
      rows: measured,
      marks: union(report.runs.map(runMarks)),
      pageSize: 12,
      columns: [
        { key: "run", label: "Run", value: (row) => row.run.run },
        column("energy_counter_j", "Counter", (row) => row.counter),
        column("energy_integrated_j", "Integral", (row) => row.integrated),
        column("energy_protocol_j", "Protocol", (row) => row.protocol),
        {
          key: "disagreement_pct",
          label: "Largest disagreement",
          unit: "%",
          numeric: true,
          value: (row) => (row.largest === null ? null : row.largest * 100),
          show: (row) =>
            row.largest === null
              ? null
              : h(
                  "span",
                  { class: row.largest > disagreementLimit ? "flag" : undefined },
                  h("data", { value: row.largest * 100 }, number(row.largest * 100, 3)),
                  row.largest > disagreementLimit ? " over 3 %" : "",
                ),
        },
      ],
    }),
  ];
}

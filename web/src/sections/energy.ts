// SPDX-License-Identifier: Apache-2.0
// Energy: per GPU hour, per sample, by component, by method, and against time.
import * as Plot from "@observablehq/plot";
import { h, type Child } from "../dom";
import { figure } from "../figure";
import { count, finite, interval, listed, logTicks, number, plain, quantity, unitFor, withUnit, type Maybe } from "../format";
import { groupLabel, setupLabel } from "../laws";
import { absence, matches, runMarks, summaryOf, union, valueOf, type Estimate, type Report, type Run, type Slope } from "../model";
import { table, type Column } from "../table";
import { symbols, type Theme } from "../theme";

function perGpuHour(report: Report): HTMLElement[] {
  const points = report.runs.map((run) => ({ run, x: valueOf(run, "gpu_hours"), y: valueOf(run, "energy_j") }))
    .filter((p): p is { run: Run; x: number; y: number } => p.x !== null && p.y !== null && p.x > 0);
  const slopes = report.model.analysis.energy_per_gpu_hour ?? [];
  const identity = h("p", null, "Energy per GPU hour is, by identity, ",
    h("strong", null, "the mean total power per GPU"), ": 0.25 kWh per GPU hour is 250 W. That energy grows in proportion to GPU hours is no finding. The finding is how constant the ratio is.");
  if (points.length === 0) return [identity, absent("energy and GPU hours of the same run")];

  const pooled = slopes.find((slope) => slope.pooled) ?? (slopes.length === 1 ? slopes[0] : undefined);
  const series = slopes.filter((slope) => slope !== pooled);
  const seriesOf = (run: Run) => series.findIndex((slope) => matches(slope.group, run.factors));
  const unit = unitFor("energy_j", points.map((p) => p.y));
  const hours = unitFor("x_s", points.map((p) => p.x * 3600));
  const xUnit = hours.name === "h" ? { name: "GPU h", scale: 1 } : { name: `GPU ${hours.name}`, scale: hours.scale / 3600 };
  const data = points.map((p) => ({ x: p.x / xUnit.scale, y: p.y / unit.scale, series: seriesOf(p.run), run: p.run.run }));
  const largest = Math.max(...data.map((p) => p.x));
  const smallest = Math.min(...data.map((p) => p.x));
  const intercept = (slope: Slope) => (finite(slope.intercept_kwh) ? slope.intercept_kwh : (slope.intercept_kwh as Estimate | null | undefined)?.value ?? 0);
  const logarithmic = largest / smallest > 8 && Math.max(...data.map((p) => p.y)) / Math.min(...data.map((p) => p.y)) > 4;
  const steps = Array.from({ length: 41 }, (_, i) => smallest * (largest / smallest) ** (i / 40));
  const line = pooled && finite(pooled.slope_kwh?.value)
    ? steps.map((x) => ({ x, y: ((Number(intercept(pooled)) + pooled.slope_kwh!.value! * x * xUnit.scale) * 3.6e6) / unit.scale })).filter((p) => p.y > 0) : [];
  const colour = (theme: Theme, i: number) => (i < 0 || i > 5 ? theme.series[0] : theme.series[i]);
  const scatter = figure(report, {
    id: "figure-energy-gpu-hours",
    title: "Energy against GPU hours",
    marks: union(report.runs.map(runMarks)),
    caption: [
      "One ring per run. ",
      pooled && finite(pooled.slope_kwh?.value) ? `Least squares with intercept, pooled: ${number(pooled.slope_kwh!.value)} kWh per GPU hour (95 % interval ${interval(pooled.slope_kwh!.ci95)}), R² ${number(pooled.r2)}, n = ${plain(pooled.n)}. ` : "No line was fitted. ",
      logarithmic ? "Both axes logarithmic." : "",
    ],
    rows: data.map((p) => ({ run: p.run, gpu_hours: p.x * xUnit.scale, energy_j: p.y * unit.scale })),
    draw: (theme) => ({
      marginLeft: 58, marginRight: 24,
      x: { type: logarithmic ? "log" : "linear", label: withUnit("GPU hours", xUnit.name), labelAnchor: "center", labelArrow: "none", labelOffset: 38, inset: 10, tickFormat: plain, ticks: logarithmic ? logTicks(data.map((p) => p.x)).ticks : 6 },
      y: { type: logarithmic ? "log" : "linear", label: withUnit("Energy of the run", unit.name), labelArrow: "none", nice: !logarithmic, ticks: logarithmic ? logTicks(data.map((p) => p.y)).ticks : 5, zero: !logarithmic, tickFormat: plain },
      marks: [
        Plot.gridY({ stroke: theme.grid, strokeOpacity: 1, ticks: 5 }),
        Plot.line(line, { x: "x", y: "y", stroke: theme.ink, strokeWidth: 1.25 }),
        Plot.dot(data, { x: "x", y: "y", r: 3, stroke: (p) => colour(theme, p.series), symbol: (p) => symbols[Math.max(0, p.series) % symbols.length], strokeOpacity: 0.8, title: (p) => `${p.run}\n${number(p.x)} ${xUnit.name}, ${number(p.y)} ${unit.name}`, tip: { fill: theme.paper, stroke: theme.grid } }),
        line.length > 0 ? Plot.text([line[Math.floor(line.length * 0.55)]], { x: "x", y: "y", text: () => `${number(pooled!.slope_kwh!.value)} kWh per GPU h`, textAnchor: "end", dx: -8, dy: -10, fill: theme.ink, fontWeight: 500, stroke: theme.paper, strokeWidth: 4 }) : null,
      ].filter((mark) => mark !== null),
    }),
  });

  const ratios = points.map((p) => p.y / 3.6e6 / p.x);
  const mean = ratios.reduce((a, b) => a + b, 0) / ratios.length;
  const spread = `Over the ${count(points.length, "run")} with both, the ratio lies between ${number(Math.min(...ratios))} and ${number(Math.max(...ratios))} kWh per GPU hour (mean ${number(mean)}).`;
  const columns: Column<Slope>[] = [
    { key: "group", label: "Series", value: (slope) => (slope.pooled ? "pooled" : groupLabel(slope.group, Object.keys(report.constant)) || "all") },
    { key: "slope_kwh", label: "Slope", unit: "kWh/GPU h", value: (slope) => slope.slope_kwh?.value, numeric: true },
    { key: "ci95", label: "95 % interval", value: (slope) => interval(slope.slope_kwh?.ci95), numeric: true },
    { key: "intercept_kwh", label: "Intercept", unit: "kWh", value: (slope) => Number(intercept(slope)), numeric: true },
    { key: "r2", label: "R²", value: (slope) => slope.r2, numeric: true },
    { key: "n", label: "n", value: (slope) => slope.n, show: (slope) => plain(slope.n), numeric: true },
  ];
  const slopeTable = slopes.length > 0
    ? table(report, { id: "gpu-hour-table", title: "Energy per GPU hour, ordinary least squares with intercept", rows: slopes, columns, marks: union(report.runs.map(runMarks)) }) : null;
  return [identity, h("p", null, spread), h("div", { class: "figures" }, scatter, constancy(report)), ...(slopeTable ? [slopeTable] : [])];
}

/** The ratio itself over the number of GPUs, or over configurations where GPUs do not vary. */
function constancy(report: Report): HTMLElement {
  const data = report.setups.flatMap((setup, i) => {
    const { mean, ci95 } = summaryOf(setup.configuration, "energy_per_gpu_hour_kwh");
    return finite(mean) ? [{ x: finite(setup.factors.gpus) ? setup.factors.gpus : i + 1, y: mean * 1000, low: ci95?.[0] ?? null, high: ci95?.[1] ?? null, label: setupLabel(report, setup.factors), preliminary: setup.preliminary }] : [];
  });
  const overGpus = report.varied.includes("gpus");
  const points = overGpus ? data : data.map((p, i) => ({ ...p, x: i + 1 }));
  return figure(report, {
    id: "figure-gpu-hour-constancy",
    title: overGpus ? "Mean total power per GPU against GPUs" : "Mean total power per GPU, by configuration",
    marks: union(report.setups.map((setup) => setup.marks)),
    caption: ["The same ratio as power: energy per GPU hour in Wh per GPU hour is watts per GPU. One mark per configuration, with its 95 % interval; hollow marks are single runs. A flat cloud is a constant ratio."],
    rows: points.map((p) => ({ configuration: p.label, x: p.x, power_per_gpu_w: p.y })),
    draw: (theme) => ({
      marginLeft: 58, marginRight: 24,
      x: overGpus ? { type: "log", base: 2, label: "GPUs", labelAnchor: "center", labelArrow: "none", labelOffset: 38, ticks: [...new Set(points.map((p) => p.x))].slice(0, 12), tickFormat: plain, inset: 14 }
        : { label: "Configuration, in the order of the table", labelAnchor: "center", labelArrow: "none", labelOffset: 38, ticks: Math.min(points.length, 10), tickFormat: plain, inset: 14 },
      y: { label: "Power per GPU (W)", labelArrow: "none", zero: true, nice: true, ticks: 5, tickFormat: plain },
      marks: [
        Plot.gridY({ stroke: theme.grid, strokeOpacity: 1, ticks: 5 }),
        Plot.ruleX(points.filter((p) => finite(p.low) && finite(p.high)), { x: "x", y1: (p) => p.low * 1000, y2: (p) => p.high * 1000, stroke: theme.series[0], strokeWidth: 1.5 }),
        Plot.dot(points, { x: "x", y: "y", r: 3.5, stroke: theme.series[0], fill: (p) => (p.preliminary ? theme.paper : theme.series[0]), title: (p) => `${p.label}\n${number(p.y)} W per GPU`, tip: { fill: theme.paper, stroke: theme.grid } }),
      ],
    }),
  });
}

const absent = (what: string): HTMLElement => h("p", { class: "absent-note" }, `Not shown: ${what} was not measured.`);

interface Part {
  index: number;
  component: string;
  label: string;
  energy: number;
  n: number;
}

const componentOrder = ["gpu", "cpu", "dram", "node"];

function byComponent(report: Report): HTMLElement[] {
  const parts = report.setups.flatMap((setup, index): Part[] => {
    const measured = setup.runs.filter((run) => Object.values(run.energy_by_component_j ?? {}).some(finite));
    const keys = [...new Set(measured.flatMap((run) => Object.keys(run.energy_by_component_j ?? {})))];
    return keys.flatMap((component) => {
      const values = measured.map((run) => run.energy_by_component_j?.[component]).filter(finite);
      return values.length === 0 ? [] : [{ index, component, label: setupLabel(report, setup.factors), energy: values.reduce((a, b) => a + b, 0) / values.length, n: values.length }];
    });
  });
  if (parts.length === 0) return [absent("the energy of any component")];
  const components = [...new Set(parts.map((part) => part.component))].sort((a, b) => componentOrder.indexOf(a) - componentOrder.indexOf(b));
  const shown = [...new Set(parts.map((part) => part.index))].slice(0, 24);
  const data = parts.filter((part) => shown.includes(part.index));
  const unit = unitFor("energy_j", data.map((part) => part.energy));
  const longest = Math.max(...data.map((part) => part.label.length));
  const hidden = new Set(parts.map((part) => part.index)).size - shown.length;
  return [figure(report, {
    id: "figure-components",
    title: "Energy of a run, by component",
    wide: true,
    marks: union(shown.map((i) => report.setups[i].marks)),
    caption: [
      `Means over the runs of each configuration. Measured: ${listed(components.map((c) => quantity(c).label))}. A wall-power reading contains the components and is never added to them. `,
      hidden > 0 ? `The first ${shown.length} configurations; the data of all are in the table of runs. ` : "",
      "What is missing here was not measured; it is not zero.",
    ],
    rows: data.map((part) => ({ configuration: part.label, component: part.component, energy_j: part.energy, n: part.n })),
    draw: (theme, width) => {
      const inline = width > 640;
      const stacked = data.filter((part) => part.component !== "node");
      const wall = data.filter((part) => part.component === "node");
      const y = (part: { index: number }) => shown.indexOf(part.index);
      return {
        height: 64 + shown.length * (inline ? 24 : 38),
        marginLeft: inline ? Math.min(Math.max(longest * 6.6, 80), 300) : 12, marginRight: 24, marginTop: 44,
        x: { label: withUnit("Energy", unit.name), labelAnchor: "center", labelArrow: "none", labelOffset: 38, tickFormat: plain, ticks: 6 },
        y: { type: "band", label: null, axis: null, padding: inline ? 0.28 : 0.55, domain: shown.map((_, i) => i) },
        color: { domain: components, range: components.map((_, i) => theme.series[i]) },
        marks: [
          Plot.gridX({ stroke: theme.grid, strokeOpacity: 1, ticks: 6 }),
          Plot.barX(stacked, Plot.stackX({ x: (part: Part) => part.energy / unit.scale, y, fill: "component", order: components, title: (part: Part) => `${part.label}\n${quantity(part.component).label}: ${number(part.energy / unit.scale)} ${unit.name}`, tip: { fill: theme.paper, stroke: theme.grid } })),
          Plot.tickX(wall, { x: (part) => part.energy / unit.scale, y, stroke: theme.ink, strokeWidth: 2 }),
          Plot.text(shown, inline
            ? { y: (_, i) => i, text: (i) => setupLabel(report, report.setups[i].factors), frameAnchor: "left", textAnchor: "end", dx: -8, fill: theme.ink }
            : { y: (_, i) => i, text: (i) => setupLabel(report, report.setups[i].factors), frameAnchor: "left", textAnchor: "start", dy: -15, fill: theme.ink }),
          ...components.map((component, i) => Plot.text([quantity(component).label], { frameAnchor: "top-left", dx: i * 72, dy: -24, fill: component === "node" ? theme.ink : theme.series[i], fontWeight: 600, textAnchor: "start" })),
        ],
      };
    },
  })];
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
    const [counter, integrated, protocol] = ["energy_counter_j", "energy_integrated_j", "energy_protocol_j"].map((key) => valueOf(run, key));
    const present = [counter, integrated, protocol].filter(finite);
    const largest = present.length > 1 ? (Math.max(...present) - Math.min(...present)) / Math.max(...present) : null;
    return { run, counter, integrated, protocol, largest };
  });
}

function byMethod(report: Report): HTMLElement[] {
  const rows = disagreements(report.runs);
  const measured = rows.filter((row) => row.counter !== null || row.integrated !== null || row.protocol !== null);
  if (measured.length === 0) return [absent("energy by any method")];
  const flagged = measured.filter((row) => row.largest !== null && row.largest > disagreementLimit);
  const comparable = measured.filter((row) => row.largest !== null);
  const all: Maybe[] = measured.flatMap((row) => [row.counter, row.integrated, row.protocol]);
  const unit = unitFor("energy_j", all);
  const column = (key: string, label: string, value: (row: Disagreement) => number | null): Column<Disagreement> => ({
    key, label, unit: unit.name, value, numeric: true, absent: (row) => absence(row.run, key),
    show: (row) => { const v = value(row); return v === null ? null : h("data", { value: v }, number(v / unit.scale)); },
  });
  return [
    h("p", null, "Three estimates of one energy over one window: the difference of the device's counter; the trapezoid of its sampled power; and wall time × plain mean of the power samples, which is the recipe of the published protocol. ",
      comparable.length === 0 ? "No run has more than one of them, so they cannot be compared. "
        : flagged.length === 0 ? `In all ${count(comparable.length, "run")} with more than one they agree within 3 %.`
          : h("strong", null, `In ${plain(flagged.length)} of ${count(comparable.length, "run")} with more than one they disagree by more than 3 %.`)),
    table(report, {
      id: "methods-table", title: "Counter, integral and protocol energy of each run", rows: measured, marks: union(report.runs.map(runMarks)), pageSize: 12,
      columns: [
        { key: "run", label: "Run", value: (row) => row.run.run },
        column("energy_counter_j", "Counter", (row) => row.counter),
        column("energy_integrated_j", "Integral", (row) => row.integrated),
        column("energy_protocol_j", "Protocol", (row) => row.protocol),
        { key: "disagreement_pct", label: "Largest disagreement", unit: "%", numeric: true, value: (row) => (row.largest === null ? null : row.largest * 100),
          show: (row) => row.largest === null ? null : h("span", { class: row.largest > disagreementLimit ? "flag" : undefined }, h("data", { value: row.largest * 100 }, number(row.largest * 100, 3)), row.largest > disagreementLimit ? " over 3 %" : "") },
      ],
    }),
  ];
}

function perSample(report: Report): HTMLElement[] {
  const slopes = report.model.analysis.energy_per_sample ?? [];
  if (slopes.length === 0) return [];
  return [table(report, {
    id: "sample-table", title: "Energy per sample of the data set, whole run", rows: slopes, marks: union(report.runs.map(runMarks)),
    note: ["Per sample of the data set over all epochs; divide by the epochs for the energy of one processed sample."],
    columns: [
      { key: "group", label: "Series", value: (slope) => (slope.pooled ? "pooled" : groupLabel(slope.group, Object.keys(report.constant)) || "all") },
      { key: "slope_wh", label: "Slope", unit: "Wh/sample", value: (slope) => slope.slope_wh?.value, numeric: true },
      { key: "ci95", label: "95 % interval", value: (slope) => interval(slope.slope_wh?.ci95), numeric: true },
      { key: "r2", label: "R²", value: (slope) => slope.r2, numeric: true },
      { key: "n", label: "n", value: (slope) => slope.n, show: (slope) => plain(slope.n), numeric: true },
    ],
  })];
}

export function energy(report: Report): Child[] {
  return [
    h("h3", null, "Per GPU hour"), ...perGpuHour(report), ...perSample(report),
    h("h3", null, "By component"), ...byComponent(report),
    h("h3", null, "By method"), ...byMethod(report),
  ];
}


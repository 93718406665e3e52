// SPDX-License-Identifier: Apache-2.0
// Energy per GPU hour and per sample; breakdown.ts takes it apart.
import * as Plot from "@observablehq/plot";
import { h, type Child } from "../dom";
import { figure } from "../figure";
import { count, finite, interval, logTicks, number, plain, unitFor, withUnit } from "../format";
import { groupLabel, setupLabel } from "../laws";
import {
  matches,
  runMarks,
  summaryOf,
  union,
  valueOf,
  type Estimate,
  type Report,
  type Run,
  type Slope,
} from "../model";
import { table, type Column } from "../table";
import { absent, byComponent, byMethod } from "./breakdown";
import { symbols, type Theme } from "../theme";

/** One series alone is the pooled line: it is shown once. */
function severalOrPooled(slopes: Slope[] = []): Slope[] {
  const series = slopes.filter((slope) => !slope.pooled);
  return series.length === 1 ? slopes.filter((slope) => slope.pooled || slopes.length === 1) : slopes;
}

function perGpuHour(report: Report): HTMLElement[] {
  const points = report.runs
    .map((run) => ({ run, x: valueOf(run, "gpu_hours"), y: valueOf(run, "energy_j") }))
    .filter((p): p is { run: Run; x: number; y: number } => p.x !== null && p.y !== null && p.x > 0);
  const slopes = severalOrPooled(report.model.analysis.energy_per_gpu_hour);
  const identity = h(
    "p",
    null,
    "Energy per GPU hour is, by identity, ",
    h("strong", null, "the mean total power per GPU"),
    ": 0.25 kWh per GPU hour is 250 W. That energy grows in proportion to GPU hours is no finding. The finding is how constant the ratio is.",
  );
  if (points.length === 0) return [identity, absent("energy and GPU hours of the same run")];

  const pooled = slopes.find((slope) => slope.pooled) ?? (slopes.length === 1 ? slopes[0] : undefined);
  const series = slopes.filter((slope) => slope !== pooled);
  const seriesOf = (run: Run) => series.findIndex((slope) => matches(slope.group, run.factors));
  const unit = unitFor(
    "energy_j",
    points.map((p) => p.y),
  );
  const hours = unitFor(
    "x_s",
    points.map((p) => p.x * 3600),
  );
  const xUnit =
    hours.name === "h"
      ? { name: "GPU h", scale: 1 }
      : { name: `GPU ${hours.name}`, scale: hours.scale / 3600 };
  const data = points.map((p) => ({
    x: p.x / xUnit.scale,
    y: p.y / unit.scale,
    series: seriesOf(p.run),
    run: p.run.run,
  }));
  const largest = Math.max(...data.map((p) => p.x));
  const smallest = Math.min(...data.map((p) => p.x));
  const intercept = (slope: Slope) =>
    finite(slope.intercept_kwh)
      ? slope.intercept_kwh
      : ((slope.intercept_kwh as Estimate | null | undefined)?.value ?? 0);
  const logarithmic =
    largest / smallest > 8 && Math.max(...data.map((p) => p.y)) / Math.min(...data.map((p) => p.y)) > 4;
  const steps = Array.from({ length: 41 }, (_, i) => smallest * (largest / smallest) ** (i / 40));
  const line =
    pooled && finite(pooled.slope_kwh?.value)
      ? steps
          .map((x) => ({
            x,
            y:
              ((Number(intercept(pooled)) + pooled.slope_kwh!.value! * x * xUnit.scale) * 3.6e6) / unit.scale,
          }))
          .filter((p) => p.y > 0)
      : [];
  const colour = (theme: Theme, i: number) => (i < 0 || i > 5 ? theme.series[0] : theme.series[i]);
  const scatter = figure(report, {
    id: "figure-energy-gpu-hours",
    title: "Energy against GPU hours",
    marks: union(report.runs.map(runMarks)),
    caption: [
      "One ring per run. ",
      pooled && finite(pooled.slope_kwh?.value)
        ? `Least squares with intercept, pooled: ${number(pooled.slope_kwh!.value)} kWh per GPU hour (95 % interval ${interval(pooled.slope_kwh!.ci95)}), R² ${number(pooled.r2)}, n = ${plain(pooled.n)}. `
        : "No line was fitted. ",
      logarithmic ? "Both axes logarithmic." : "",
    ],
    rows: data.map((p) => ({ run: p.run, gpu_hours: p.x * xUnit.scale, energy_j: p.y * unit.scale })),
    draw: (theme) => ({
      marginLeft: 58,
      marginRight: 24,
      x: {
        type: logarithmic ? "log" : "linear",
        label: withUnit("GPU hours", xUnit.name),
        labelAnchor: "center",
        labelArrow: "none",
        labelOffset: 38,
        inset: 10,
        tickFormat: plain,
        ticks: logarithmic ? logTicks(data.map((p) => p.x)).ticks : 6,
      },
      y: {
        type: logarithmic ? "log" : "linear",
        label: withUnit("Energy of the run", unit.name),
        labelArrow: "none",
        nice: !logarithmic,
        ticks: logarithmic ? logTicks(data.map((p) => p.y)).ticks : 5,
        zero: !logarithmic,
        tickFormat: plain,
      },
      marks: [
        Plot.gridY({ stroke: theme.grid, strokeOpacity: 1, ticks: 5 }),
        Plot.line(line, { x: "x", y: "y", stroke: theme.ink, strokeWidth: 1.25 }),
        Plot.dot(data, {
          x: "x",
          y: "y",
          r: 3,
          stroke: (p) => colour(theme, p.series),
          symbol: (p) => symbols[Math.max(0, p.series) % symbols.length],
          strokeOpacity: 0.8,
          title: (p) => `${p.run}\n${number(p.x)} ${xUnit.name}, ${number(p.y)} ${unit.name}`,
          tip: { fill: theme.paper, stroke: theme.grid },
        }),
        line.length > 0
          ? Plot.text([line[Math.floor(line.length * 0.55)]], {
              x: "x",
              y: "y",
              text: () => `${number(pooled!.slope_kwh!.value)} kWh per GPU h`,
              textAnchor: "end",
              dx: -8,
              dy: -10,
              fill: theme.ink,
              fontWeight: 500,
              stroke: theme.paper,
              strokeWidth: 4,
            })
          : null,
      ].filter((mark) => mark !== null),
    }),
  });

  const ratios = points.map((p) => p.y / 3.6e6 / p.x);
  const mean = ratios.reduce((a, b) => a + b, 0) / ratios.length;
  const spread = `Over the ${count(points.length, "run")} with both, the ratio lies between ${number(Math.min(...ratios))} and ${number(Math.max(...ratios))} kWh per GPU hour (mean ${number(mean)}).`;
  const columns: Column<Slope>[] = [
    {
      key: "group",
      label: "Series",
      value: (slope) =>
        slope.pooled ? "pooled" : groupLabel(slope.group, Object.keys(report.constant)) || "all",
    },
    {
      key: "slope_kwh",
      label: "Slope",
      unit: "kWh/GPU h",
      value: (slope) => slope.slope_kwh?.value,
      numeric: true,
    },
    { key: "ci95", label: "95 % interval", value: (slope) => interval(slope.slope_kwh?.ci95), numeric: true },
    {
      key: "intercept_kwh",
      label: "Intercept",
      unit: "kWh",
      value: (slope) => Number(intercept(slope)),
      numeric: true,
    },
    { key: "r2", label: "R²", value: (slope) => slope.r2, numeric: true },
    { key: "n", label: "n", value: (slope) => slope.n, show: (slope) => plain(slope.n), numeric: true },
  ];
  const slopeTable =
    slopes.length > 0
      ? table(report, {
          id: "gpu-hour-table",
          title: "Energy per GPU hour, ordinary least squares with intercept",
          rows: slopes,
          columns,
          marks: union(report.runs.map(runMarks)),
        })
      : null;
  return [
    identity,
    h("p", null, spread),
    h("div", { class: "figures" }, scatter, constancy(report)),
    ...(slopeTable ? [slopeTable] : []),
  ];
}

/** The ratio itself over the number of GPUs, or over configurations where GPUs do not vary. */
function constancy(report: Report): HTMLElement {
  const data = report.setups.flatMap((setup, i) => {
    const { mean, ci95 } = summaryOf(setup.configuration, "energy_per_gpu_hour_kwh");
    return finite(mean)
      ? [
          {
            x: finite(setup.factors.gpus) ? setup.factors.gpus : i + 1,
            y: mean * 1000,
            low: ci95?.[0] ?? null,
            high: ci95?.[1] ?? null,
            label: setupLabel(report, setup.factors),
            preliminary: setup.preliminary,
          },
        ]
      : [];
  });
  const overGpus = report.varied.includes("gpus");
  const points = overGpus ? data : data.map((p, i) => ({ ...p, x: i + 1 }));
  return figure(report, {
    id: "figure-gpu-hour-constancy",
    title: overGpus ? "Mean total power per GPU against GPUs" : "Mean total power per GPU, by configuration",
    marks: union(report.setups.map((setup) => setup.marks)),
    caption: [
      "The same ratio as power: energy per GPU hour in Wh per GPU hour is watts per GPU. One mark per configuration, with its 95 % interval; hollow marks are single runs. A flat cloud is a constant ratio.",
    ],
    rows: points.map((p) => ({ configuration: p.label, x: p.x, power_per_gpu_w: p.y })),
    draw: (theme) => ({
      marginLeft: 58,
      marginRight: 24,
      x: overGpus
        ? {
            type: "log",
            base: 2,
            label: "GPUs",
            labelAnchor: "center",
            labelArrow: "none",
            labelOffset: 38,
            ticks: [...new Set(points.map((p) => p.x))].slice(0, 12),
            tickFormat: plain,
            inset: 14,
          }
        : {
            label: "Configuration, in the order of the table",
            labelAnchor: "center",
            labelArrow: "none",
            labelOffset: 38,
            ticks: Math.min(points.length, 10),
            tickFormat: plain,
            inset: 14,
          },
      y: {
        label: "Power per GPU (W)",
        labelArrow: "none",
        zero: true,
        nice: true,
        ticks: 5,
        tickFormat: plain,
      },
      marks: [
        Plot.gridY({ stroke: theme.grid, strokeOpacity: 1, ticks: 5 }),
        Plot.ruleX(
          points.filter((p) => finite(p.low) && finite(p.high)),
          {
            x: "x",
            y1: (p) => p.low * 1000,
            y2: (p) => p.high * 1000,
            stroke: theme.series[0],
            strokeWidth: 1.5,
          },
        ),
        Plot.dot(points, {
          x: "x",
          y: "y",
          r: 3.5,
          stroke: theme.series[0],
          fill: (p) => (p.preliminary ? theme.paper : theme.series[0]),
          title: (p) => `${p.label}\n${number(p.y)} W per GPU`,
          tip: { fill: theme.paper, stroke: theme.grid },
        }),
      ],
    }),
  });
}

function perSample(report: Report): HTMLElement[] {
  const slopes = severalOrPooled(report.model.analysis.energy_per_sample);
  if (slopes.length === 0) return [];
  return [
    table(report, {
      id: "sample-table",
      title: "Energy per sample of the data set, whole run",
      rows: slopes,
      marks: union(report.runs.map(runMarks)),
      note: [
        "Per sample of the data set over all epochs; divide by the epochs for the energy of one processed sample.",
      ],
      columns: [
        {
          key: "group",
          label: "Series",
          value: (slope) =>
            slope.pooled ? "pooled" : groupLabel(slope.group, Object.keys(report.constant)) || "all",
        },
        {
          key: "slope_wh",
          label: "Slope",
          unit: "Wh/sample",
          value: (slope) => slope.slope_wh?.value,
          numeric: true,
        },
        {
          key: "ci95",
          label: "95 % interval",
          value: (slope) => interval(slope.slope_wh?.ci95),
          numeric: true,
        },
        { key: "r2", label: "R²", value: (slope) => slope.r2, numeric: true },
        { key: "n", label: "n", value: (slope) => slope.n, show: (slope) => plain(slope.n), numeric: true },
      ],
    }),
  ];
}

export function energy(report: Report): Child[] {
  return [
    h("h3", null, "Per GPU hour"),
    ...perGpuHour(report),
    ...perSample(report),
    h("h3", null, "By component"),
    ...byComponent(report),
    h("h3", null, "By method"),
    ...byMethod(report),
  ];
}

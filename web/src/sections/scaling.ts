// SPDX-License-Identifier: Apache-2.0
// How time and energy follow from one factor at a time: figures with their laws, and then the tables.
import * as Plot from "@observablehq/plot";
import { h, type Child, type CsvRow } from "../dom";
import { figure } from "../figure";
import {
  capital,
  count,
  finite,
  logTicks,
  lower,
  number,
  plain,
  quantity,
  unitFor,
  withUnit,
  type Maybe,
} from "../format";
import {
  curve,
  formula,
  formWords,
  hasLaw,
  lineLabel,
  lines,
  noLaw,
  responseSymbol,
  symbolOf,
  type Line,
} from "../laws";
import { summaryOf, union, valueOf, type Law, type Report } from "../model";
import { symbols, type Theme } from "../theme";
import { lawTable, speedUpTable } from "./scaling_tables";

const maxColoured = 6;
const responses = ["epoch_time_s", "epoch_energy_j", "energy_j"];

interface Point {
  line: number;
  x: number;
  y: number;
  low: number | null;
  high: number | null;
  n: number;
  preliminary: boolean;
}

function panel(report: Report, response: string, factor: string, group: Line[]): HTMLElement {
  const { label, unit: factorUnit } = quantity(factor);
  const setups = group.flatMap((line) => line.setups);
  // One unit for a response in all figures, so that they compare.
  const unit = unitFor(
    response,
    report.setups.map((setup) => summaryOf(setup.configuration, response).mean),
  );
  const scaled = (value: Maybe) => (finite(value) ? value / unit.scale : null);
  const shared = sharedFactors(group);
  const names = group.map((line) => lineLabel(line, shared));

  const means: Point[] = group.flatMap((line, i) =>
    line.setups.map((setup) => {
      const { mean, ci95 } = summaryOf(setup.configuration, response);
      return {
        line: i,
        x: Number(setup.factors[factor]),
        y: Number(mean) / unit.scale,
        low: scaled(ci95?.[0]),
        high: scaled(ci95?.[1]),
        n: setup.n,
        preliminary: setup.preliminary,
      };
    }),
  );
  const repeats = group.flatMap((line, i) =>
    line.setups.flatMap((setup) =>
      setup.runs
        .map((run) => ({
          line: i,
          x: Number(setup.factors[factor]),
          y: scaled(valueOf(run, response)),
          run: run.run,
        }))
        .filter((point) => point.y !== null),
    ),
  );
  const selected = group.map((line) => line.laws.filter(hasLaw).find((law) => law.selected) ?? null);
  const xs = [...new Set(means.map((point) => point.x))].sort((a, b) => a - b);
  const curves = group.flatMap((line, i) => {
    const own = line.setups.map((setup) => Number(setup.factors[factor]));
    const law = selected[i];
    return law
      ? curve(law, Math.min(...own), Math.max(...own)).map((point) => ({
          line: i,
          x: point.x,
          y: point.y / unit.scale,
          low: scaled(point.low),
          high: scaled(point.high),
        }))
      : [];
  });

  const ys = [...means, ...curves].map((point) => point.y).filter((y) => y > 0);
  const logX = factor === "gpus" || factor.endsWith("batch") || xs[xs.length - 1] / xs[0] > 8;
  const logY = ys.length > 0 && Math.max(...ys) / Math.min(...ys) > 3;
  const logScale = logTicks(logY ? [...ys, ...repeats.map((point) => Number(point.y))] : [1, 10]);
  const colour = (theme: Theme, i: number) => (i < maxColoured ? theme.series[i] : theme.muted);
  const many = group.length > 1;

  const draw = (theme: Theme, width: number): Plot.PlotOptions => ({
    marginLeft: 58,
    marginRight: many ? Math.min(150, width * 0.3) : 24,
    x: {
      type: logX ? "log" : "linear",
      label: withUnit(label, factorUnit),
      labelArrow: "none",
      labelAnchor: "center",
      labelOffset: 38,
      axis: xs.length <= 9 ? null : "bottom",
      tickFormat: plain,
      insetLeft: 14,
      insetRight: 22,
    },
    y: {
      type: logY ? "log" : "linear",
      label: withUnit(quantity(response).label, unit.name),
      labelArrow: "none",
      labelAnchor: "top",
      tickFormat: plain,
      ...(logY ? { domain: logScale.domain, ticks: logScale.ticks } : { nice: true, zero: true, ticks: 6 }),
    },
    marks: [
      Plot.gridY({ stroke: theme.grid, strokeOpacity: 1, ticks: logY ? logScale.ticks : 6 }),
      xs.length <= 9
        ? Plot.axisX(xs, {
            text: plain,
            label: withUnit(label, factorUnit),
            labelArrow: "none",
            labelAnchor: "center",
            labelOffset: 38,
            tickSize: 4,
          })
        : null,
      Plot.areaY(
        curves.filter((p) => p.low !== null && p.high !== null),
        {
          x: "x",
          y1: "low",
          y2: "high",
          z: "line",
          fill: (p) => colour(theme, p.line),
          fillOpacity: 0.14,
        },
      ),
      group.length > 0 && selected.some((law) => law === null)
        ? Plot.line(
            means.filter((p) => selected[p.line] === null),
            {
              x: "x",
              y: "y",
              z: "line",
              stroke: (p) => colour(theme, p.line),
              strokeDasharray: "2,4",
              strokeOpacity: 0.7,
            },
          )
        : null,
      Plot.line(curves, {
        x: "x",
        y: "y",
        z: "line",
        stroke: (p) => colour(theme, p.line),
        strokeWidth: 1.75,
      }),
      Plot.dot(repeats, {
        x: "x",
        y: "y",
        stroke: (p) => colour(theme, p.line),
        strokeOpacity: 0.75,
        r: 2,
        dx: 9,
        fill: "none",
        className: "repeat",
      }),
      Plot.ruleX(
        means.filter((p) => p.low !== null && p.high !== null),
        { x: "x", y1: "low", y2: "high", stroke: (p) => colour(theme, p.line), strokeWidth: 1.5 },
      ),
      Plot.dot(means, {
        x: "x",
        y: "y",
        r: 4,
        stroke: (p) => colour(theme, p.line),
        strokeWidth: 1.5,
        fill: (p) => (p.preliminary ? theme.paper : colour(theme, p.line)),
        symbol: (p) => symbols[Math.min(p.line, symbols.length - 1)],
        className: "mean",
        title: (p) =>
          `${label} ${plain(p.x)}${factorUnit ? ` ${factorUnit}` : ""}\n${quantity(response).label} ${number(p.y)} ${unit.name}` +
          (p.low !== null ? `\n95 % interval ${number(p.low)} to ${number(p.high)}` : "") +
          `\n${count(p.n, "run")}${p.preliminary ? ", preliminary" : ""}`,
        tip: { fill: theme.paper, stroke: theme.grid },
      }),
      many
        ? Plot.text(
            lastOfEach(means),
            apart({
              x: "x",
              y: "y",
              text: (p: Point) => names[p.line],
              fill: (p: Point) => colour(theme, p.line),
              textAnchor: "start",
              dx: 10,
              lineWidth: labelEms,
              fontWeight: 500,
            }, Math.max(...names.map((name) => name.length))),
          )
        : null,
      !many && selected[0] && curves.length > 0
        ? Plot.text([curves[Math.floor(curves.length * 0.5)]], {
            x: "x",
            y: "y",
            text: () =>
              selected[0]?.form === "power" ? exponent(selected[0]) : formWords(selected[0]!.form),
            fill: theme.series[0],
            textAnchor: slopeSign(curves) < 0 ? "start" : "end",
            dx: slopeSign(curves) < 0 ? 10 : -10,
            dy: -14,
            fontWeight: 500,
            stroke: theme.paper,
            strokeWidth: 4,
          })
        : null,
    ].filter((mark) => mark !== null),
  });

  const rows: CsvRow[] = [
    ...means.map((p) => ({
      kind: "mean",
      group: names[p.line],
      [factor]: p.x,
      [response]: p.y * unit.scale,
      ci95_low: p.low === null ? null : p.low * unit.scale,
      ci95_high: p.high === null ? null : p.high * unit.scale,
      n: p.n,
    })),
    ...repeats.map((p) => ({
      kind: "run",
      group: names[p.line],
      [factor]: p.x,
      [response]: Number(p.y) * unit.scale,
      run: p.run,
    })),
  ];
  return figure(report, {
    id: `figure-${response}-${factor}`,
    title: `${quantity(response).label} against ${lower(label)}`,
    marks: union(setups.map((setup) => setup.marks)),
    caption: caption(report, group, selected, factor, logX && logY),
    rows,
    draw,
  });
}

const labelEms = 11;

/** Labels at the ends of lines that would overlap are moved apart, in their order. */
function apart(options: Plot.TextOptions, longest: number): Plot.TextOptions {
  const gap = 13 * Math.max(1, Math.ceil(longest / (2 * labelEms)));
  return Plot.initializer(options, (data, facets, channels, scales) => {
    const scale = scales.y as unknown as (value: number) => number;
    const ys = Array.from(channels.y!.value as Iterable<number>, (value) => scale(value));
    const order = ys.map((_, i) => i).sort((a, b) => ys[a] - ys[b]);
    for (let i = 1; i < order.length; ++i) {
      ys[order[i]] = Math.max(ys[order[i]], ys[order[i - 1]] + gap);
    }
    // What was pushed below the frame moves back up, and takes its neighbours along.
    let lowest = Math.max(...(scales.y as unknown as { range: () => number[] }).range());
    for (const i of order.reverse()) {
      ys[i] = Math.min(ys[i], lowest);
      lowest = ys[i] - gap;
    }
    return { data, facets, channels: { y: { value: ys } } };
  }) as Plot.TextOptions;
}

const slopeSign = (points: { y: number }[]) => Math.sign(points[points.length - 1].y - points[0].y);

const exponent = (law: Law | null): string => {
  const b = law?.parameters?.b;
  return finite(b?.value) ? `exponent ${number(b.value)}` : "";
};

function lastOfEach(points: Point[]): Point[] {
  return [...new Map(points.map((point) => [point.line, point])).values()];
}

function sharedFactors(group: Line[]): string[] {
  const keys = [...new Set(group.flatMap((line) => Object.keys(line.group)))];
  return keys.filter((key) => new Set(group.map((line) => line.group[key])).size === 1);
}

function caption(
  report: Report,
  group: Line[],
  selected: (Law | null)[],
  factor: string,
  loglog: boolean,
): Child[] {
  const parts: Child[] = [
    "Filled marks: means with 95 % intervals; rings to their right: the runs; hollow marks: single runs, preliminary. ",
  ];
  if (loglog) parts.push("Both axes logarithmic: a power law is a straight line. ");
  const fixed =
    group.length === 1
      ? lineLabel(
          {
            ...group[0],
            group: Object.fromEntries(
              Object.entries(group[0].group).filter(([key]) => report.varied.includes(key)),
            ),
          },
          [],
        )
      : "";
  if (fixed) parts.push(`At ${fixed}. `);
  group.slice(0, 3).forEach((line, i) => {
    const law = selected[i];
    const prefix = group.length > 1 ? `${capital(lineLabel(line, sharedFactors(group)))}: ` : "";
    if (law) {
      const b = law.parameters?.b;
      const bounds =
        b?.ci95 && finite(b.ci95[0]) && finite(b.ci95[1]) && law.form?.startsWith("power")
          ? ` (exponent ${number(b.value)}, 95 % interval ${number(b.ci95[0])} to ${number(b.ci95[1])})`
          : "";
      parts.push(
        prefix || "Law: ",
        h("span", { class: "formula" }, ...formula(law)),
        `${bounds}, `,
        h("i", null, responseSymbol(law.response)),
        ` in ${quantity(law.response).unit || "its unit"}, `,
        h("i", null, symbolOf(factor)),
        ` = ${lower(quantity(factor).label)}, ${count(law.n_levels ?? line.setups.length, "level")}. `,
      );
    } else if (line.laws.length > 0) {
      parts.push(`${capital(prefix + noLaw(line.laws[0]))}. `);
    } else {
      parts.push(`${capital(`${prefix}no law fitted; the dotted line only joins the means`)}. `);
    }
  });
  if (group.length > 3) parts.push(`The laws of all ${group.length} groups are in the table of laws. `);
  return parts;
}

export function scaling(report: Report): HTMLElement[] {
  const factors = report.varied.filter((factor) =>
    report.setups.some((setup) => finite(setup.factors[factor])),
  );
  const laws = report.model.analysis.laws ?? [];
  const known = [...new Set([...responses, ...laws.map((law) => law.response)])];
  // One energy per figure pair: per epoch where the analysis has it.
  const shown = known.filter(
    (key) =>
      !(
        key === "energy_j" &&
        report.setups.some((setup) => finite(summaryOf(setup.configuration, "epoch_energy_j").mean))
      ),
  );
  const figures = factors.flatMap((factor) =>
    shown.flatMap((response) => {
      const group = lines(report, response, factor);
      return group.length > 0 ? [panel(report, response, factor, group)] : [];
    }),
  );
  return [
    figures.length > 0
      ? h("div", { class: "figures" }, ...figures)
      : h(
          "p",
          null,
          "No numeric factor has two levels with everything else equal: there is nothing to scale over.",
        ),
    ...(laws.length > 0 ? [lawTable(report, laws)] : []),
    ...[speedUpTable(report)].filter((element) => element !== null),
  ];
}

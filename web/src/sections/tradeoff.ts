// SPDX-License-Identifier: Apache-2.0
// Time against energy, and the configurations that no other beats in both.
import * as Plot from "@observablehq/plot";
import { h } from "../dom";
import { figure } from "../figure";
import { change, finite, logTicks, longer, number, plain, quantity, unitFor, withUnit } from "../format";
import { groupLabel, setupLabel } from "../laws";
import { keyOf, summaryOf, union, withoutKeys, type Ci95, type Report, type Setup } from "../model";

interface Cost {
  setup: Setup;
  time: number;
  energy: number;
  timeCi: Ci95 | undefined;
  energyCi: Ci95 | undefined;
  front: boolean;
}

/** Time and energy of every configuration of one workload; `front` marks those that no other beats in both. */
export function costs(setups: Setup[]): { rows: Cost[]; energyKey: string } {
  const energyKey = setups.some((setup) => finite(summaryOf(setup.configuration, "epoch_energy_j").mean))
    ? "epoch_energy_j"
    : "energy_j";
  const rows = setups.flatMap((setup): Cost[] => {
    const time = summaryOf(setup.configuration, "epoch_time_s");
    const energy = summaryOf(setup.configuration, energyKey);
    return finite(time.mean) && finite(energy.mean)
      ? [
          {
            setup,
            time: time.mean,
            energy: energy.mean,
            timeCi: time.ci95,
            energyCi: energy.ci95,
            front: false,
          },
        ]
      : [];
  });
  for (const row of rows) {
    row.front = !rows.some(
      (other) =>
        other.time <= row.time &&
        other.energy <= row.energy &&
        (other.time < row.time || other.energy < row.energy),
    );
  }
  return { rows, energyKey };
}

/** Configurations that compute the same thing: only these may be compared in time and energy. */
export function workloads(report: Report): { name: string; setups: Setup[] }[] {
  const same = ["workload", "hardware", "series", "samples", "epochs", "dataset_samples"];
  const byKey = new Map<string, Setup[]>();
  for (const setup of report.setups) {
    const key = keyOf(
      withoutKeys(
        setup.factors,
        Object.keys(setup.factors).filter((name) => !same.includes(name)),
      ),
    );
    byKey.set(key, [...(byKey.get(key) ?? []), setup]);
  }
  return [...byKey.values()].map((setups) => ({
    name: groupLabel(
      Object.fromEntries(
        Object.entries(setups[0].factors).filter(
          ([name]) => same.includes(name) && (report.varied.includes(name) || name === "workload"),
        ),
      ),
    ),
    setups,
  }));
}

/** The most frugal configuration against the fastest, as far as repeats tell their energies apart. */
export function frugality(report: Report, fastest: Cost, frugal: Cost): string {
  const [quick, saving] = [fastest, frugal].map((cost) => setupLabel(report, cost.setup.factors));
  const found = (report.model.analysis.trade_offs ?? []).find(
    (one) =>
      keyOf(one.fastest?.factors ?? {}) === keyOf(fastest.setup.factors) &&
      keyOf(one.frugal?.factors ?? {}) === keyOf(frugal.setup.factors),
  );
  const ci = found?.energy_ratio?.ci95;
  const energy = change(frugal.energy / fastest.energy);
  const between =
    ci && finite(ci[0]) && finite(ci[1]) ? `, 95 % interval ${change(ci[0])} to ${change(ci[1])}` : "";
  return found?.significant
    ? `Compared with the fastest configuration (${quick}), the most frugal (${saving}) used ${energy} energy${between}, and took ${longer(frugal.time / fastest.time)}. `
    : `The configuration of least mean energy (${saving}) is not told apart in energy from the fastest (${quick}): ${energy}${between || ", without repeats to hold it against"}. `;
}

/** Ticks of an axis: chosen by hand where it is logarithmic. */
const axis = (logarithmic: boolean, values: number[], ticks: number): { ticks: number | number[] } => ({
  ticks: logarithmic ? logTicks(values).ticks : ticks,
});

export function tradeOff(report: Report): HTMLElement[] {
  const figures = workloads(report)
    .slice(0, 8)
    .flatMap(({ name, setups }, index) => {
      const { rows, energyKey } = costs(setups);
      if (rows.length < 2) return [];
      const front = rows.filter((row) => row.front).sort((a, b) => a.time - b.time);
      const time = unitFor(
        "epoch_time_s",
        rows.map((row) => row.time),
      );
      const energy = unitFor(
        "energy_j",
        rows.map((row) => row.energy),
      );
      const log = (values: number[]) => Math.max(...values) / Math.min(...values) > 8;
      const [logX, logY] = [log(rows.map((row) => row.time)), log(rows.map((row) => row.energy))];
      const [fastest, frugal] = [front[0], front[front.length - 1]];
      const sentence =
        fastest === frugal
          ? `One configuration is both fastest and most frugal: ${setupLabel(report, fastest.setup.factors)}. `
          : frugality(report, fastest, frugal);
      return [
        figure(report, {
          id: `figure-trade-off-${index}`,
          wide: true,
          title: `Time against energy${name ? `, ${name}` : ""}`,
          marks: union(setups.map((setup) => setup.marks)),
          caption: [
            "Every mark is a configuration, with 95 % intervals; filled marks on the line are the Pareto front of the means: no other configuration is both faster and more frugal. ",
            sentence,
            "Neighbours whose intervals overlap are not shown to differ.",
          ],
          rows: rows.map((row) => ({
            configuration: setupLabel(report, row.setup.factors),
            epoch_time_s: row.time,
            [energyKey]: row.energy,
            pareto: row.front,
            n: row.setup.n,
          })),
          draw: (theme) => ({
            marginLeft: 58,
            marginRight: 40,
            x: {
              type: logX ? "log" : "linear",
              label: withUnit("Epoch time", time.name),
              labelAnchor: "center",
              labelArrow: "none",
              labelOffset: 38,
              inset: 12,
              nice: !logX,
              tickFormat: plain,
              ...axis(
                logX,
                rows.map((row) => row.time / time.scale),
                7,
              ),
            },
            y: {
              type: logY ? "log" : "linear",
              label: withUnit(quantity(energyKey).label, energy.name),
              labelArrow: "none",
              inset: 12,
              nice: !logY,
              tickFormat: plain,
              ...axis(
                logY,
                rows.map((row) => row.energy / energy.scale),
                6,
              ),
            },
            marks: [
              Plot.gridY({
                stroke: theme.grid,
                strokeOpacity: 1,
                ...axis(
                  logY,
                  rows.map((row) => row.energy / energy.scale),
                  6,
                ),
              }),
              Plot.line(front, {
                x: (row) => row.time / time.scale,
                y: (row) => row.energy / energy.scale,
                stroke: theme.series[1],
                strokeWidth: 1.5,
                curve: "step-after",
              }),
              Plot.ruleX(
                rows.filter((row) => row.energyCi && finite(row.energyCi[0]) && finite(row.energyCi[1])),
                {
                  x: (row) => row.time / time.scale,
                  y1: (row) => row.energyCi[0] / energy.scale,
                  y2: (row) => row.energyCi[1] / energy.scale,
                  stroke: theme.muted,
                },
              ),
              Plot.ruleY(
                rows.filter((row) => row.timeCi && finite(row.timeCi[0]) && finite(row.timeCi[1])),
                {
                  y: (row) => row.energy / energy.scale,
                  x1: (row) => row.timeCi[0] / time.scale,
                  x2: (row) => row.timeCi[1] / time.scale,
                  stroke: theme.muted,
                },
              ),
              Plot.dot(rows, {
                x: (row) => row.time / time.scale,
                y: (row) => row.energy / energy.scale,
                r: 4.5,
                stroke: (row) => (row.front ? theme.series[1] : theme.series[0]),
                strokeWidth: 1.5,
                fill: (row) => (row.front ? theme.series[1] : theme.paper),
                title: (row) =>
                  `${setupLabel(report, row.setup.factors)}\n${number(row.time / time.scale)} ${time.name}, ${number(row.energy / energy.scale)} ${energy.name}, n = ${row.setup.n}`,
                tip: { fill: theme.paper, stroke: theme.grid },
              }),
              ...[...new Set([fastest, frugal])].map((row) =>
                Plot.text([setupLabel(report, row.setup.factors)], {
                  x: row.time / time.scale,
                  y: row.energy / energy.scale,
                  dy: -13,
                  textAnchor: row === fastest ? "start" : "end",
                  fill: theme.ink,
                  fontWeight: 500,
                  stroke: theme.paper,
                  strokeWidth: 4,
                }),
              ),
            ],
          }),
        }),
      ];
    });
  return figures.length > 0
    ? figures
    : [
        h(
          "p",
          { class: "absent-note" },
          "Not shown: fewer than two configurations of one workload have both an epoch time and an energy.",
        ),
      ];
}

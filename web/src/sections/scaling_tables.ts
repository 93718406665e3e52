// SPDX-License-Identifier: Apache-2.0
// The numbers behind the figures of scaling: every law with its rivals, and speed-up over GPUs.
import { h } from "../dom";
import { capital, interval, number, plain, quantity, type Maybe } from "../format";
import { formWords, groupLabel, hasLaw, noLaw } from "../laws";
import type { Law, Report } from "../model";
import { quantityColumn, table, type Column } from "../table";

export function lawTable(report: Report, laws: Law[]): HTMLElement {
  const columns: Column<Law>[] = [
    { key: "response", label: "Response", value: (law) => quantity(law.response).label, wrap: false },
    { key: "factor", label: "Over", value: (law) => quantity(law.factor).label, wrap: false },
    {
      key: "group",
      label: "At",
      value: (law) =>
        [law.scaling ? `${law.scaling} scaling` : "", groupLabel(law.group, Object.keys(report.constant))]
          .filter(Boolean)
          .join(", ") || "all",
    },
    {
      key: "form",
      label: "Form",
      value: (law) =>
        !hasLaw(law)
          ? noLaw(law)
          : `${formWords(law.form)}${law.formula ? `, ${law.formula}` : ""}${law.selected ? " (selected)" : ""}`,
      show: (law) =>
        law.selected
          ? h("strong", null, formWords(law.form), law.formula ? `, ${law.formula}` : "", " (selected)")
          : null,
    },
    {
      key: "parameters",
      label: "Parameters, 95 % interval",
      value: (law) =>
        Object.entries(law.parameters ?? {})
          .map(([name, p]) => `${name} = ${number(p?.value)} [${interval(p?.ci95)}]`)
          .join("; ") || null,
      show: (law) =>
        Object.entries(law.parameters ?? {}).map(([name, p]) =>
          h(
            "div",
            { class: "nowrap" },
            h("i", null, name),
            " = ",
            h("data", { value: p?.value ?? "" }, number(p?.value)),
            h("span", { class: "muted" }, ` [${interval(p?.ci95)}]`),
          ),
        ),
    },
    {
      key: "n_levels",
      label: "Levels",
      value: (law) => law.n_levels,
      show: (law) => plain(law.n_levels),
      numeric: true,
    },
    { key: "r2", label: "R²", value: (law) => law.r2, numeric: true },
    { key: "aicc", label: "AICc", value: (law) => law.aicc, numeric: true },
    { key: "loo_rmse", label: "Leave-one-out error", value: (law) => law.loo_rmse, numeric: true },
  ];
  return table(report, {
    id: "laws-table",
    title: "Laws and their rivals",
    rows: laws,
    columns,
    marks: report.marks.filter((mark) => mark !== "preliminary"),
    note: [
      "Selected by the corrected Akaike criterion and the leave-one-out error, never by R² alone; none is selected where the best does not fit the means, and no curve is drawn. Below three levels there is a table and no law.",
    ],
  });
}

interface SpeedUp {
  at: string;
  gpus: number;
  time: number;
  speedUp: number;
  efficiency: number;
  energyRatio: Maybe;
  baseline: number;
  preliminary: boolean;
}

export function speedUpTable(report: Report): HTMLElement | null {
  const series = report.model.analysis.scaling ?? [];
  const rows = series.flatMap(({ scaling: kind, group, baseline, rows: own = [] }): SpeedUp[] =>
    own.map((row) => ({
      at:
        [kind ? `${kind} scaling` : "", groupLabel(group, Object.keys(report.constant))]
          .filter(Boolean)
          .join(", ") || "all",
      gpus: row.gpus,
      time: row.epoch_time_s,
      speedUp: row.speed_up,
      efficiency: row.efficiency,
      energyRatio: row.energy_ratio,
      baseline: baseline?.gpus ?? own[0].gpus,
      preliminary: row.preliminary ?? false,
    })),
  );
  if (rows.length === 0) return null;
  const columns: Column<SpeedUp>[] = [
    ...(series.length > 1 ? [{ key: "series", label: "Series", value: (row: SpeedUp) => row.at }] : []),
    {
      key: "gpus",
      label: "GPUs",
      value: (row) => row.gpus,
      numeric: true,
      show: (row) => [
        h("data", { value: row.gpus }, plain(row.gpus)),
        row.preliminary ? h("span", { class: "mark mark-preliminary" }, "preliminary") : null,
      ],
    },
    quantityColumn("epoch_time_s", rows, (row) => row.time),
    {
      key: "speed_up",
      label: "Speed-up",
      value: (row) => row.speedUp,
      show: (row) => h("data", { value: row.speedUp }, number(row.speedUp, 3)),
      numeric: true,
    },
    {
      key: "efficiency_pct",
      label: "Efficiency",
      unit: "%",
      value: (row) => row.efficiency * 100,
      show: (row) => h("data", { value: row.efficiency * 100 }, number(row.efficiency * 100, 3)),
      numeric: true,
    },
    {
      key: "energy_ratio",
      label: "Energy, relative",
      value: (row) => row.energyRatio,
      absent: () => "no energy",
      numeric: true,
    },
    {
      key: "baseline_gpus",
      label: "Against",
      value: (row) => `${plain(row.baseline)} ${row.baseline === 1 ? "GPU" : "GPUs"}`,
    },
  ];
  return table(report, {
    id: "scaling-table",
    title: "Speed-up and efficiency",
    rows,
    columns,
    marks: report.marks,
    note: [
      series.length === 1 ? `${capital(rows[0].at)}. ` : "",
      "Against the fewest GPUs of the same series; the data set is fixed. Efficiency is speed-up over the ratio of GPUs. Strong scaling keeps the global batch, weak scaling the local batch.",
    ],
  });
}

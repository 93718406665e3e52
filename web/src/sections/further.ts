// SPDX-License-Identifier: Apache-2.0
// What the analysis found beyond laws: caps and clocks of least energy, regressions, batch knees, crossovers
// of hardware, sensitivity to what was not measured, published numbers.
import { h, type Child } from "../dom";
import { finite, interval, listed, lower, number, plain, quantity, withUnit } from "../format";
import { formWords, groupLabel } from "../laws";
import type { Factors, LeastEnergy, Published, Regression, Report, Sensitivity, Unknown } from "../model";
import { columnsOf, quantityColumn, table, type Column } from "../table";

const at = (report: Report, group: Factors | undefined) =>
  groupLabel(group, Object.keys(report.constant)) || "all";

function leastEnergy(report: Report, rows: LeastEnergy[]): HTMLElement {
  const unit = (row: LeastEnergy) => quantity(row.factor ?? "").unit;
  const columns: Column<LeastEnergy>[] = [
    { key: "factor", label: "Setting", value: (row) => quantity(row.factor ?? "").label, wrap: false },
    { key: "group", label: "At", value: (row) => at(report, row.group) },
    {
      key: "measured",
      label: "Measured least at",
      value: (row) => row.measured?.level,
      numeric: true,
      show: (row) =>
        finite(row.measured?.level)
          ? h("data", { value: row.measured.level }, `${plain(row.measured.level)} ${unit(row)}`)
          : null,
    },
    quantityColumn("epoch_energy_j", rows, (row) => row.measured?.epoch_energy_j?.mean),
    {
      key: "value",
      label: "Fitted least at",
      value: (row) => row.value,
      numeric: true,
      show: (row) =>
        finite(row.value) ? h("data", { value: row.value }, `${number(row.value)} ${unit(row)}`) : null,
    },
    {
      key: "ci95",
      label: "95 % interval",
      value: (row) => row.ci95?.join(" to "),
      numeric: true,
      show: (row) => (row.ci95 ? interval(row.ci95) : null),
    },
    {
      ...quantityColumn("epoch_energy_j", rows, (row) => row.epoch_energy_j),
      key: "fitted_epoch_energy_j",
      label: "Fitted energy",
    },
    {
      key: "departure",
      label: "Fit is off by up to",
      unit: "%",
      value: (row) => (finite(row.departure) ? 100 * Math.abs(row.departure) : null),
      show: (row) => (finite(row.departure) ? (100 * Math.abs(row.departure)).toFixed(1) : null),
      numeric: true,
    },
    {
      key: "interior",
      label: "Where",
      value: (row) =>
        row.reason
          ? `no fitted least: ${row.reason}`
          : row.interior ? "between the levels" : "at the edge of the levels: the least may lie beyond",
    },
    {
      key: "forms",
      label: "From the laws of time, power",
      value: (row) =>
        row.time_form || row.power_form ? `${formWords(row.time_form)}; ${formWords(row.power_form)}` : null,
    },
  ];
  return table(report, {
    id: "least-energy-table",
    title: "Setting of least energy per epoch",
    rows,
    columns,
    marks: report.marks,
  });
}

function regression(report: Report, index: number, entry: Regression): HTMLElement {
  const terms = entry.terms ?? [];
  const reasons = new Map<string, string[]>();
  for (const { terms: names = [], reason = "" } of entry.refused ?? []) {
    reasons.set(reason, [...(reasons.get(reason) ?? []), names.join(" and ")]);
  }
  const response = String(entry.response ?? "");
  const columns: Column<(typeof terms)[number]>[] = [
    { key: "name", label: "Term", value: (term) => term.name?.replaceAll(" x ", " × "), wrap: false },
    { key: "value", label: "Value", value: (term) => term.value, numeric: true },
    {
      key: "ci95",
      label: "95 % interval",
      value: (term) => term.ci95?.join(" to "),
      numeric: true,
      show: (term) => (term.ci95 ? interval(term.ci95) : null),
    },
    { key: "vif", label: "Variance inflation", value: (term) => term.vif, numeric: true },
  ];
  return table(report, {
    id: `regression-${index}`,
    title: `Regression of ${response.startsWith("log ") || response.startsWith("log_") ? "the logarithm of " : ""}${lower(quantity(response.replace(/^log[ _]/, "")).label)}`,
    rows: terms,
    columns,
    marks: report.marks,
    note: [
      at(report, entry.group) === "all" ? "" : `At ${at(report, entry.group)}. `,
      `R² ${number(entry.r2)}, n = ${plain(entry.n)}. `,
      ...[...reasons].map(
        ([reason, names]) =>
          `Refused: ${listed(names)} (${reason.replace(/^it follows/, names.length > 1 ? "each follows" : "it follows")}). `,
      ),
      ...(entry.notes ?? []).map((note) => `${note}. `),
    ],
  });
}

function sensitivityTables(report: Report, rows: Sensitivity[]): HTMLElement[] {
  const ends = (row: Sensitivity, i: 0 | 1) => row.energy_band_j?.[i];
  const columns: Column<Sensitivity>[] = [
    {
      key: "component",
      label: "Not measured",
      value: (row) => quantity(row.component ?? "").label,
      wrap: false,
    },
    { key: "low", label: "Low", value: (row) => row.low, numeric: true },
    { key: "high", label: "High", value: (row) => row.high, numeric: true },
    { key: "unit", label: "Unit", value: (row) => row.unit },
    quantityColumn("energy_low_j", rows, (row) => ends(row, 0), undefined, "Energy at least"),
    quantityColumn("energy_high_j", rows, (row) => ends(row, 1), undefined, "Energy at most"),
    {
      key: "conclusions",
      label: "Conclusions that survive",
      value: (row) => {
        const all = row.conclusions ?? [];
        return all.length === 0 ? null : `${all.filter((c) => c.survives).length} of ${all.length}`;
      },
    },
    { key: "source", label: "Source of the range", value: (row) => row.source },
  ];
  const conclusions = rows.flatMap((row) =>
    (row.conclusions ?? []).map((c) => ({ component: quantity(row.component ?? "").label, ...c })),
  );
  return [
    table(report, {
      id: "sensitivity-table",
      title: "What the unmeasured parts could change",
      rows,
      columns,
      marks: report.marks,
      note: [
        "Each part's range added to the measured energy of all runs; a conclusion survives when it holds over the whole range.",
      ],
    }),
    ...(conclusions.length === 0
      ? []
      : [
          table(report, {
            id: "conclusions-table",
            title: "Conclusions under the unmeasured",
            rows: conclusions,
            pageSize: 6,
            marks: report.marks,
            columns: [
              { key: "component", label: "Not measured", value: (row) => row.component, wrap: false },
              {
                key: "survives",
                label: "Survives",
                value: (row) => (row.survives ? "yes" : "no"),
                show: (row) => (row.survives ? null : h("span", { class: "flag" }, "no")),
              },
              { key: "text", label: "Conclusion", value: (row) => row.text },
            ],
          }),
        ]),
  ];
}

function knees(report: Report, rows: Unknown[]): HTMLElement {
  return table(report, {
    id: "knees-table",
    title: "Large-batch knee",
    rows,
    marks: report.marks,
    note: ["The global batch beyond which the quality worsens significantly, over repeats."],
    columns: [
      { key: "group", label: "At", value: (row) => at(report, row.group as Factors) },
      { key: "quality", label: "Quality", value: (row) => row.quality as string, wrap: false },
      { key: "direction", label: "Better", value: (row) => row.direction as string },
      { key: "knee", label: "Knee", value: (row) => (finite(row.knee) ? plain(row.knee) : "none found") },
      { key: "reason", label: "Why", value: (row) => row.reason as string },
    ],
  });
}

function publishedTable(report: Report, rows: Published[]): HTMLElement {
  const columns: Column<Published>[] = [
    {
      key: "configuration",
      label: "Configuration",
      value: (row) => groupLabel(row.factors, Object.keys(report.constant)) || "all",
    },
    {
      key: "metric",
      label: "Quantity",
      value: (row) => withUnit(quantity(row.metric ?? "").label, quantity(row.metric ?? "").unit),
    },
    { key: "value", label: "Here", value: (row) => row.value?.mean, numeric: true },
    {
      key: "ci95",
      label: "95 % interval",
      value: (row) => row.value?.ci95?.join(" to "),
      numeric: true,
      show: (row) => (row.value?.ci95 ? interval(row.value.ci95) : null),
    },
    {
      key: "published",
      label: "Published",
      value: (row) => row.published?.join(" to "),
      numeric: true,
      show: (row) => (row.published ? interval(row.published) : null),
    },
    { key: "source", label: "Source", value: (row) => row.source },
    {
      key: "components",
      label: "Components there",
      value: (row) => (Array.isArray(row.components) ? row.components.join(" + ") : row.components),
    },
    {
      key: "comparable",
      label: "Comparable",
      value: (row) => (row.comparable ? "yes" : `no: ${row.reason ?? ""}`),
    },
    { key: "note", label: "Note", value: (row) => row.note },
  ];
  return table(report, {
    id: "published-table",
    title: "Published numbers beside these",
    rows,
    columns,
    marks: report.marks,
    note: [
      "Where workload and metric match. Energies over different components are not comparable, and the table says so.",
    ],
  });
}

export function further(report: Report): Child[] {
  const {
    regressions = [],
    sensitivity = [],
    published = [],
    least_energy = [],
    batch_knees = [],
    hardware = [],
  } = report.model.analysis;
  return [
    ...(least_energy.length > 0 ? [leastEnergy(report, least_energy)] : []),
    ...regressions.map((entry, i) => regression(report, i, entry)),
    ...(batch_knees.length > 0 ? [knees(report, batch_knees)] : []),
    ...(hardware.length > 0
      ? [
          table(report, {
            id: "hardware-table",
            title: "Hardware compared over equal components",
            rows: hardware,
            columns: columnsOf(hardware),
            marks: report.marks,
          }),
        ]
      : []),
    ...(sensitivity.length > 0 ? sensitivityTables(report, sensitivity) : []),
    ...(published.length > 0 ? [publishedTable(report, published)] : []),
  ];
}

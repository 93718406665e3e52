// SPDX-License-Identifier: Apache-2.0
// What was measured, by what, and what was not.
import { h, type Child } from "../dom";
import { count, finite, listed, number, plain, quantity } from "../format";
import { provenanceEntries, type Machine, type Report, type Source, type Unknown } from "../model";
import { columnsOf, table, type Column } from "../table";
import { lacking, measuredComponents } from "./summary";

interface Row {
  machine: Machine;
  source: Source;
}

const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const period = (value: unknown): string | null => (finite(value) ? `${number(value * 1000, 3)} ms` : null);

function sourceTable(report: Report): HTMLElement | null {
  // Sources of a kind on many devices are one row: 64 GPUs read one way need one line.
  const byKind = new Map<string, { row: Row; devices: string[] }>();
  for (const machine of report.model.environment?.machines ?? []) {
    for (const source of machine.sources ?? []) {
      const key = JSON.stringify([machine.hosts, source.source, source.metrics, source.method, source.scope, source.native_period_s, source.period_s]);
      const entry = byKind.get(key) ?? { row: { machine, source }, devices: [] };
      if (source.device) entry.devices.push(source.device);
      byKind.set(key, entry);
    }
  }
  const rows = [...byKind.values()];
  if (rows.length === 0) return null;
  type Entry = (typeof rows)[number];
  const columns: Column<Entry>[] = [
    { key: "source", label: "Source", value: ({ row }) => row.source.source },
    { key: "devices", label: "Devices", value: ({ devices }) => (devices.length > 3 ? `${devices[0]} … ${devices[devices.length - 1]}` : devices.join(", ")) },
    { key: "metrics", label: "Quantities", value: ({ row }) => listed((row.source.metrics ?? []).map((metric) => quantity(metric).label.toLowerCase())) },
    { key: "method", label: "Method", value: ({ row }) => row.source.method },
    { key: "scope", label: "Scope", value: ({ row }) => row.source.scope },
    { key: "resolution", label: "Sensor refreshes every", value: ({ row }) => period(row.source.native_period_s), absent: () => "not known" },
    { key: "period", label: "Asked every", value: ({ row }) => period(row.source.period_s) },
    { key: "achieved_hz", label: "Achieved rate", unit: "Hz", value: ({ row }) => (row.source.achieved_hz as number | undefined) ?? null, numeric: true },
    { key: "accuracy", label: "Sensor's stated accuracy", value: ({ row }) => (finite(row.source.accuracy_pct) ? `± ${plain(row.source.accuracy_pct)} %${text(row.source.accuracy_note) ? `, ${text(row.source.accuracy_note)}` : ""}` : text(row.source.accuracy_note)) ?? "not stated" },
    { key: "origin", label: "Read from", value: ({ row }) => text(row.source.origin) },
  ];
  for (const column of columns) if (column.key === "resolution") delete column.absent;
  return table(report, {
    id: "sources-table", title: "Provenance of the samples", rows, columns, marks: report.marks.filter((mark) => mark === "simulated" || mark === "estimated"),
    note: ["Method, scope and rate of every sensor in use. A sensor's accuracy is what its vendor states; the error bounds in this report come from resolution and gaps, and do not contain it."],
  });
}

function energyProvenance(report: Report): HTMLElement | null {
  const kinds = new Map<string, { entry: Unknown; quantity: string; runs: number }>();
  for (const run of report.runs) {
    const seen = new Set<string>();
    for (const { path, entry } of provenanceEntries(run.provenance)) {
      const shown = { quantity: path.map((part) => quantity(part).label).join(", ") || "all", method: entry.method, scope: entry.scope, source: entry.source, simulated: entry.simulated };
      const key = JSON.stringify(shown);
      if (seen.has(key)) continue;
      seen.add(key);
      const kind = kinds.get(key) ?? { entry, quantity: shown.quantity, runs: 0 };
      kind.runs += 1;
      kinds.set(key, kind);
    }
  }
  const rows = [...kinds.values()].map(({ entry, quantity: what, runs }) => ({ quantity: what, runs, ...entry }));
  return rows.length === 0 ? null : table(report, { id: "provenance-table", title: "Provenance of the results", rows, columns: columnsOf(rows), note: ["How the numbers of the runs came about; equal lines are one, with the number of runs."] });
}

export function measured(report: Report): Child[] {
  const machines = report.model.environment?.machines ?? [];
  const has = measuredComponents(report);
  const missing = [...new Map(machines.flatMap((machine) => (machine.unavailable ?? []).map((entry) => [JSON.stringify([entry.name, entry.reason]), entry] as const))).values()];
  const coverage = report.model.analysis.coverage ?? [];
  const omitted = report.model.generated?.omitted ?? [];
  const parts: (HTMLElement | null)[] = [
    h("div", { class: "two" },
      h("div", null, h("h3", null, "Measured"), has.length === 0 ? h("p", null, "No energy. Times are measured by the meter's clock.")
        : h("ul", null, ...has.map((component) => h("li", null, h("strong", null, quantity(component).label), ` in ${count(report.runs.filter((run) => finite(run.energy_by_component_j?.[component])).length, "run")} of ${report.runs.length}`)))),
      h("div", null, h("h3", null, "Not measured"), h("ul", null, ...lacking(report).map((part) => {
        const because = missing.find((entry) => `${entry.name ?? ""} ${entry.scope ?? ""}`.toLowerCase().includes(part.toLowerCase()))?.reason;
        return h("li", null, h("strong", null, part), because ? `: ${because}` : "");
      }))),
    ),
    missing.length === 0 ? null : table(report, { id: "unavailable-table", title: "Sensors that delivered nothing", rows: missing, columns: [
      { key: "name", label: "Sensor", value: (entry) => entry.name }, { key: "quantity", label: "Quantity", value: (entry) => entry.quantity },
      { key: "scope", label: "Scope", value: (entry) => entry.scope }, { key: "reason", label: "Reason", value: (entry) => entry.reason }, { key: "remedy", label: "Remedy", value: (entry) => entry.remedy },
    ] }),
    sourceTable(report),
    energyProvenance(report),
    coverage.length === 0 ? h("p", { class: "absent-note" }, "The analysis gives no coverage: how much of each window the samples cover is not known.")
      : table(report, { id: "coverage-table", title: "Coverage", rows: coverage, columns: columnsOf(coverage), pageSize: 12, note: ["The share of each window that lies inside the sampled, gap-free part of the power series, and the hosts that delivered."] }),
    omitted.length === 0 ? null : h("ul", null, ...omitted.map((entry) => h("li", null, h("strong", null, "Left out of this file: "), entry.what, ": ", entry.reason))),
  ];
  return parts.filter((part) => part !== null);
}

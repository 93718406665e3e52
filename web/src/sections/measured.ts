// SPDX-License-Identifier: Apache-2.0
// What was measured, by what, and what was not.
import { h, type Child } from "../dom";
import { count, finite, number, plain, quantity } from "../format";
import type { ComponentProvenance, Missing, Report } from "../model";
import { columnsOf, table, type Column } from "../table";
import { lacking, measuredComponents } from "./summary";

const period = (value: unknown): string | null => (finite(value) ? `${number(value * 1000, 3)} ms` : null);

/** One line per way in which a component was measured, over all runs that share it. */
function componentTable(report: Report): HTMLElement | null {
  const kinds = new Map<string, { component: string; entries: ComponentProvenance[] }>();
  for (const run of report.runs) {
    for (const [component, entry] of Object.entries(run.provenance?.components ?? {})) {
      const key = JSON.stringify([
        component,
        entry.source_methods,
        entry.scope,
        entry.sources,
        entry.resolution_s,
        entry.sensor_accuracy_pct,
      ]);
      const kind = kinds.get(key) ?? { component, entries: [] };
      kind.entries.push(entry);
      kinds.set(key, kind);
    }
  }
  const rows = [...kinds.values()];
  if (rows.length === 0) return null;
  type Kind = (typeof rows)[number];
  const range = (
    kind: Kind,
    key: "achieved_hz" | "coverage_pct" | "bound_j" | "requested_hz",
    scale = 1,
  ): string | null => {
    const values = kind.entries
      .map((entry) => entry[key])
      .filter(finite)
      .map((value) => value * scale);
    const [low, high] = [number(Math.min(...values), 3), number(Math.max(...values), 3)];
    return values.length === 0 ? null : low === high ? low : `${low} to ${high}`;
  };
  const words = (list: string[] | undefined) => (list ?? []).join(", ");
  const columns: Column<Kind>[] = [
    { key: "component", label: "Component", value: ({ component }) => quantity(component).label },
    { key: "runs", label: "Runs", value: ({ entries }) => entries.length, numeric: true },
    { key: "method", label: "Method", value: ({ entries }) => words(entries[0].source_methods) },
    { key: "scope", label: "Scope", value: ({ entries }) => words(entries[0].scope) },
    { key: "sources", label: "Sources", value: ({ entries }) => words(entries[0].sources) },
    {
      key: "resolution",
      label: "Sensor refresh",
      value: ({ entries }) => period(entries[0].resolution_s) ?? "not known",
    },
    {
      key: "requested_hz",
      label: "Rate asked",
      unit: "Hz",
      value: (kind) => range(kind, "requested_hz"),
      numeric: true,
    },
    {
      key: "achieved_hz",
      label: "Rate achieved",
      unit: "Hz",
      value: (kind) => range(kind, "achieved_hz"),
      numeric: true,
    },
    {
      key: "coverage_pct",
      label: "Coverage",
      unit: "%",
      value: (kind) => range(kind, "coverage_pct"),
      numeric: true,
    },
    {
      key: "bound_j",
      label: "Error bound of a run",
      unit: "J",
      value: (kind) => range(kind, "bound_j"),
      numeric: true,
    },
    {
      key: "accuracy",
      label: "Sensor's stated accuracy",
      value: ({ entries }) =>
        [
          finite(entries[0].sensor_accuracy_pct) ? `± ${plain(entries[0].sensor_accuracy_pct)} %` : "",
          words(entries[0].accuracy_notes),
        ]
          .filter(Boolean)
          .join(", ") || "not stated",
    },
  ];
  return table(report, {
    id: "provenance-table",
    title: "Provenance",
    rows,
    columns,
    marks: report.marks.filter((mark) => mark === "simulated" || mark === "estimated"),
    note: [
      "How each component was measured, over all runs that share the way; ranges go from the lowest to the highest run. The bound comes from resolution and gaps. The sensor's own accuracy is what its vendor states; it is kept apart and in no bound.",
    ],
  });
}

/** Rows that differ in the device's number only become one: 64 GPUs lack a sensor for the same reason. */
function alikeTogether(missing: Missing[]): Missing[] {
  const groups = new Map<string, Missing[]>();
  for (const entry of missing) {
    const kind = JSON.stringify([
      entry.name?.replace(/\d+/g, "#"),
      entry.quantity,
      entry.scope,
      entry.reason,
    ]);
    groups.set(kind, [...(groups.get(kind) ?? []), entry]);
  }
  return [...groups.values()].map((entries) => {
    const first = entries[0] as Missing;
    const names = new Set(entries.map((entry) => entry.name));
    return names.size === 1 ? first : { ...first, name: `${first.name} and ${names.size - 1} like it` };
  });
}

/** Without a component: what other tools' tables gave, or nothing but times. */
function nothingMetered(report: Report): HTMLElement {
  const imported = report.runs.filter((run) => run.provenance?.imported);
  if (imported.length === 0) return h("p", null, "No energy. Times are measured by the meter's clock.");
  const energies = imported.filter((run) => finite(run.energy_j)).length;
  const sources = [...new Set(imported.map((run) => run.provenance?.energy_j?.text).filter(Boolean))];
  return h(
    "p",
    null,
    `Nothing by this meter: ${count(imported.length, "run")} of ${report.runs.length} ${imported.length === 1 ? "was" : "were"} imported, ${energies === 0 ? "none" : energies} with energy. Times and energies are as given (energy: ${sources.slice(0, 4).join("; ")}).`,
  );
}

export function measured(report: Report): Child[] {
  const machines = report.model.environment?.machines ?? [];
  const has = measuredComponents(report);
  const missing = [
    ...new Map(
      [...machines, ...report.runs.map((run) => run.provenance ?? {})].flatMap((record) =>
        (record.unavailable ?? []).map(
          (entry) => [JSON.stringify([entry.name, entry.reason]), entry] as const,
        ),
      ),
    ).values(),
  ];
  const coverage = report.model.analysis.coverage ?? [];
  const omitted = report.model.generated?.omitted ?? [];
  const parts: (HTMLElement | null)[] = [
    h(
      "div",
      { class: "two" },
      h(
        "div",
        null,
        h("h3", null, "Measured"),
        has.length === 0
          ? nothingMetered(report)
          : h(
              "ul",
              null,
              ...has.map((component) =>
                h(
                  "li",
                  null,
                  h("strong", null, quantity(component).label),
                  ` in ${count(report.runs.filter((run) => finite(run.energy_by_component_j?.[component])).length, "run")} of ${report.runs.length}`,
                ),
              ),
            ),
      ),
      h(
        "div",
        null,
        h("h3", null, "Not measured"),
        h(
          "ul",
          null,
          ...lacking(report).map((part) => {
            const because = missing.find(
              (entry) =>
                /energy|power/.test(entry.quantity ?? "") &&
                `${entry.name ?? ""} ${entry.scope ?? ""}`.toLowerCase().includes(part.toLowerCase()),
            )?.reason;
            return h("li", null, h("strong", null, part), because ? `: ${because}` : "");
          }),
        ),
      ),
    ),
    missing.length === 0
      ? null
      : table(report, {
          id: "unavailable-table",
          title: "Sensors that delivered nothing",
          rows: alikeTogether(missing),
          columns: [
            { key: "name", label: "Sensor", value: (entry) => entry.name },
            { key: "quantity", label: "Quantity", value: (entry) => entry.quantity },
            { key: "scope", label: "Scope", value: (entry) => entry.scope },
            { key: "reason", label: "Reason", value: (entry) => entry.reason },
            { key: "remedy", label: "Remedy", value: (entry) => entry.remedy },
          ],
        }),
    componentTable(report),
    coverage.length === 0
      ? h(
          "p",
          { class: "absent-note" },
          "The analysis gives no coverage: how much of each window the samples cover is not known.",
        )
      : table(report, {
          id: "coverage-table",
          title: "Coverage",
          rows: [...coverage].sort((a, b) => Number(a.covered_pct ?? 101) - Number(b.covered_pct ?? 101)),
          columns: columnsOf(
            coverage.map(({ run, host, component, device, ...rest }) => ({
              run,
              host,
              component,
              device,
              ...rest,
            })),
          ),
          pageSize: 8,
          note: [
            "The share of each run that lies inside the sampled, gap-free part of its power series; the least covered first.",
          ],
        }),
    omitted.length === 0
      ? null
      : h(
          "ul",
          null,
          ...omitted.map((entry) =>
            h("li", null, h("strong", null, "Left out of this file: "), entry.what, ": ", entry.reason),
          ),
        ),
  ];
  return parts.filter((part) => part !== null);
}

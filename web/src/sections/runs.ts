// SPDX-License-Identifier: Apache-2.0
// The runs one by one: a table of all, and of the chosen one its regions and traces.
import { h, type Child } from "../dom";
import { count, finite, number, plain, quantity } from "../format";
import { groupLabel } from "../laws";
import { absence, runMarks, union, valueOf, type Region, type Report, type Run } from "../model";
import { quantityColumn, table, type Column } from "../table";
import { traceView } from "../traces";

const runQuantities = [
  "epoch_time_s",
  "energy_j",
  "gpu_hours",
  "mean_power_w",
  "samples_per_s",
  "joule_per_sample",
  "gpu_memory_util_pct",
  "gpu_busy_pct",
  "sm_util_pct",
];
const regionQuantities = [
  "energy_j",
  "energy_bound_j",
  "energy_counter_j",
  "energy_integrated_j",
  "mean_power_w",
  "gpu_busy_pct",
  "sm_util_pct",
  "gpu_memory_util_pct",
  "joule_per_sample",
];

function runTable(report: Report, open: (run: string) => void): HTMLElement {
  const rows = report.runs;
  const shown = runQuantities.filter(
    (key) => key === "energy_j" || rows.some((run) => valueOf(run, key) !== null),
  );
  const columns: Column<Run>[] = [
    {
      key: "run",
      label: "Run",
      value: (run) => run.run,
      show: (run) => [
        h(
          "button",
          {
            type: "button",
            class: "link",
            title: "Show its regions and traces",
            onclick: () => open(run.run),
          },
          run.run,
        ),
      ],
    },
    {
      key: "status",
      label: "Status",
      value: (run) => run.status,
      show: (run) => (run.status && run.status !== "ok" ? h("span", { class: "flag" }, run.status) : null),
    },
    ...report.varied.map(
      (key): Column<Run> => ({
        key,
        label: quantity(key).label,
        unit: quantity(key).unit,
        value: (run) => run.factors?.[key],
        numeric: rows.every((run) => typeof run.factors?.[key] !== "string"),
        show: (run) => (finite(run.factors?.[key]) ? plain(run.factors?.[key]) : null),
      }),
    ),
    ...shown.map((key) =>
      quantityColumn(
        key,
        rows,
        (run) => valueOf(run, key),
        (run) => absence(run, key),
      ),
    ),
    ...(rows.some((run) => finite(run.quality?.value))
      ? [
          {
            key: "quality",
            label: "Quality",
            numeric: true,
            value: (run: Run) => run.quality?.value,
            show: (run: Run) =>
              finite(run.quality?.value)
                ? `${run.quality?.name ?? ""} ${number(run.quality?.value)} (${run.quality?.direction ?? "direction unknown"} is better)`
                : null,
          },
        ]
      : []),
  ];
  return table(report, {
    id: "runs-table",
    title: "Runs",
    rows,
    columns,
    marks: union(rows.map(runMarks)),
    note: [count(rows.length, "run"), ". Choose one to see its regions and traces."],
    pageSize: 15,
  });
}

function regionTable(report: Report, run: Run, regions: Region[]): HTMLElement {
  const shown = regionQuantities.filter(
    (key) => regions.some((region) => valueOf(region, key) !== null) || key === "energy_j",
  );
  const duration = (region: Region) =>
    finite(region.start_ns) && finite(region.end_ns) ? (region.end_ns - region.start_ns) * 1e-9 : null;
  const method = (region: Region) => {
    const text = (region.provenance as { method?: string } | undefined)?.method;
    return text || null;
  };
  const columns: Column<Region>[] = [
    { key: "name", label: "Region", value: (region) => `${region.name ?? ""} ${region.index ?? ""}`.trim() },
    ...((run.hosts?.length ?? 0) > 1
      ? [{ key: "host", label: "Host", value: (region: Region) => region.host }]
      : []),
    quantityColumn("duration_s", regions, duration),
    {
      key: "samples",
      label: "Samples",
      value: (region) => valueOf(region, "samples"),
      numeric: true,
      show: (region) => (finite(region.samples) ? plain(region.samples) : null),
    },
    ...shown.map((key) =>
      quantityColumn(
        key,
        regions,
        (region) => valueOf(region, key),
        (region) => absence(region, key),
        {
          energy_j: "Energy",
          energy_bound_j: "Error bound ±",
          energy_counter_j: "Counter",
          energy_integrated_j: "Integral",
        }[key] ?? quantity(key).label,
      ),
    ),
    ...(regions.some(method) ? [{ key: "method", label: "Method", value: method }] : []),
  ];
  return table(report, {
    id: "regions-table",
    title: `Regions of ${run.run}`,
    rows: regions,
    columns,
    marks: runMarks(run),
    pageSize: 20,
    note: [
      "The energy is the best estimate of one region; its bound comes from the sensor's resolution and from gaps, not from the sensor's accuracy.",
    ],
  });
}

export function runs(report: Report): Child[] {
  if (report.runs.length === 0) return [h("p", { class: "absent-note" }, "There are no runs.")];
  const regions = new Map<string, Region[]>();
  for (const region of report.model.analysis.regions ?? [])
    regions.set(region.run, [...(regions.get(region.run) ?? []), region]);
  const traced = new Set(report.model.traces.map((index) => index.run));
  const detail = h("div", { id: "run-detail" });
  const choice = h(
    "select",
    { id: "run-choice" },
    ...report.runs.map((run, i) =>
      h("option", { value: i }, run.run, run.status && run.status !== "ok" ? ` (${run.status})` : ""),
    ),
  );
  const show = (index: number) => {
    const run = report.runs[index];
    choice.value = String(index);
    const own = [...(regions.get(run.run) ?? [])].sort(
      (a, b) => Number(a.start_ns) - Number(b.start_ns) || Number(b.end_ns) - Number(a.end_ns),
    );
    const trace = report.model.traces.find((entry) => entry.run === run.run);
    // The detail is one table and one view that change places: their numbers do not count up.
    const local: Report = { ...report, nextTable: () => detailTable };
    detail.replaceChildren(
      h(
        "p",
        { class: "muted" },
        groupLabel(run.factors) || "No factors",
        run.status ? `; status: ${run.status}` : "",
        ".",
      ),
      own.length > 0
        ? regionTable(local, run, own)
        : h("p", { class: "absent-note" }, "This run marked no regions, or they are not in this report."),
      trace
        ? traceView(trace, own, runMarks(run))
        : h(
            "p",
            { class: "absent-note" },
            traced.size > 0
              ? "The traces of this run are not in this report; they are in the results directory."
              : "This report holds no traces.",
          ),
    );
  };
  choice.addEventListener("change", () => show(Number(choice.value)));
  const list = runTable(report, (name) => {
    show(report.runs.findIndex((run) => run.run === name));
    document.getElementById("one-run")?.scrollIntoView();
    choice.focus({ preventScroll: true });
  });
  const detailTable = report.nextTable();
  const first = report.runs.findIndex((run) => traced.has(run.run));
  show(Math.max(first, 0));
  return [
    list,
    h("h3", { id: "one-run" }, "One run"),
    h("p", { class: "controls" }, h("label", { for: "run-choice" }, "Run "), choice),
    detail,
  ];
}

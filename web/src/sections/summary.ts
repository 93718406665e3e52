// SPDX-License-Identifier: Apache-2.0
// The report in one paragraph and four numbers, in words computed from the data.
import { h, type Child } from "../dom";
import { amount, count, finite, interval, listed, lower, number, plain, quantity } from "../format";
import { formula, formWords, hasLaw } from "../laws";
import { absence, keyOf, runMarks, summaryOf, valueOf, type Law, type Report, type Run } from "../model";
import { costs, frugality, workloads } from "./tradeoff";

const total = (runs: Run[], key: string): { sum: number; n: number } => {
  const values = runs.map((run) => valueOf(run, key)).filter(finite);
  return { sum: values.reduce((a, b) => a + b, 0), n: values.length };
};

/** Energy per GPU hour over all runs that have both, and its range. */
function perGpuHour(runs: Run[]): { kwh: number; low: number; high: number } | null {
  const both = runs
    .map((run) => ({
      kwh: Number(valueOf(run, "energy_j") ?? NaN) / 3.6e6,
      hours: Number(valueOf(run, "gpu_hours") ?? NaN),
    }))
    .filter(({ kwh, hours }) => finite(kwh) && hours > 0);
  const ratios = both.map(({ kwh, hours }) => kwh / hours);
  const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);
  return both.length === 0
    ? null
    : {
        kwh: sum(both.map((p) => p.kwh)) / sum(both.map((p) => p.hours)),
        low: Math.min(...ratios),
        high: Math.max(...ratios),
      };
}

export function title(report: Report): string {
  const { study, generated } = report.model;
  const name = study?.study ?? study?.name;
  return typeof name === "string" && name !== ""
    ? name
    : (generated?.source ?? "").replace(/\/+$/, "").split("/").pop() || "Measured training runs";
}

export function measuredComponents(report: Report): string[] {
  return [
    ...new Set(
      report.runs.flatMap((run) =>
        Object.entries(run.energy_by_component_j ?? {})
          .filter(([, value]) => finite(value))
          .map(([key]) => key),
      ),
    ),
  ];
}

/** What no run's energy contains, as the analysis lists it. */
export function lacking(report: Report): string[] {
  const lists = report.runs
    .map((run) => run.provenance?.energy_j?.lacks)
    .filter((list) => list !== undefined);
  const everywhere = [...new Set(lists.flat())].filter((part) => lists.every((list) => list.includes(part)));
  return everywhere.map((part) => lower(quantity(part).label));
}

function who(report: Report): string {
  const workloadNames = [
    ...new Set(
      report.setups
        .map((setup) => setup.factors.workload)
        .filter((name) => typeof name === "string" && name !== "simulated"),
    ),
  ] as string[];
  const devices = [
    ...new Set(
      (report.model.environment?.machines ?? []).flatMap((machine) =>
        (machine.devices ?? [])
          .filter((device) => device.component === "gpu")
          .map((device) => String(device.name)),
      ),
    ),
  ];
  const gpus = report.setups.map((setup) => setup.factors.gpus).filter(finite);
  const range =
    gpus.length === 0
      ? ""
      : Math.min(...gpus) === Math.max(...gpus)
        ? `${plain(gpus[0])} `
        : `${plain(Math.min(...gpus))} to ${plain(Math.max(...gpus))} `;
  const on =
    devices.length > 0
      ? ` on ${range}${listed(devices)}${range && gpus.some((n) => n > 1) ? " GPUs" : ""}`
      : range
        ? ` on ${range}${gpus.some((n) => n > 1) ? "GPUs" : "GPU"}`
        : "";
  return `${workloadNames.length > 0 ? ` of ${listed(workloadNames.slice(0, 6))}${workloadNames.length > 6 ? " and others" : ""}` : ""}${on}`;
}

/** The law of epoch time, where every series over one factor has one of the same form. */
function lawSentence(report: Report): Child[] {
  const laws = (report.model.analysis.laws ?? []).filter((law) => law.response === "epoch_time_s");
  for (const factor of new Set(laws.map((law) => law.factor))) {
    const series = new Map<string, Law | null>();
    for (const law of laws.filter((one) => one.factor === factor)) {
      const key = (law.scaling ?? "") + keyOf(law.group ?? {});
      series.set(key, law.selected && hasLaw(law) ? law : (series.get(key) ?? null));
    }
    const chosen = [...series.values()];
    const [first] = chosen;
    if (!first || chosen.some((law) => law?.form !== first.form)) continue;
    const over = lower(quantity(factor).label);
    const what = quantity(first.response).label.toLowerCase();
    if (chosen.length > 1) {
      return [
        `Over ${over}, ${what} is best described by one form in all ${chosen.length} series: ${formWords(first.form)}${first.formula ? `, ${first.formula}` : ""} with x = ${over}. `,
      ];
    }
    const b = first.parameters?.b;
    return [
      `Over ${count(first.n_levels ?? 0, "level")} of ${over}, ${what} is best described by this form: ${formWords(first.form)}, `,
      h("span", { class: "formula" }, ...formula(first)),
      first.form === "power" && finite(b?.value)
        ? [", exponent ", h("strong", null, number(b.value)), ` (95 % interval ${interval(b.ci95)})`]
        : "",
      ". ",
    ];
  }
  return [];
}

export function paragraph(report: Report): HTMLElement {
  const { runs, setups } = report;
  if (runs.length === 0)
    return h("p", { class: "lead" }, "The results directory holds no runs: there is nothing to report.");
  const parts: Child[] = [];
  const simulated = runs.filter((run) => runMarks(run).includes("simulated")).length;
  const kind = simulated === runs.length ? "simulated run" : "run";
  parts.push(
    `${count(runs.length, kind)}${who(report)} ${runs.length === 1 ? "makes" : "make"} up ${count(setups.length, "configuration")}`,
  );
  const trouble = runs.filter((run) => run.status !== undefined && run.status !== "ok");
  parts.push(
    trouble.length > 0
      ? `; ${listed([...new Set(trouble.map((run) => run.status!))].map((status) => `${trouble.filter((run) => run.status === status).length} ${status}`))}. `
      : ". ",
  );

  const energy = total(runs, "energy_j");
  const hours = total(runs, "gpu_hours");
  const components = measuredComponents(report);
  const lacks = lacking(report);
  if (energy.n === 0) {
    parts.push(h("strong", null, "Energy was not measured"), ` (${absence(runs[0], "energy_j")}). `);
  } else {
    parts.push(
      "They used ",
      h("strong", null, amount("energy_j", energy.sum)),
      hours.n > 0 ? ` over ${number(hours.sum)} GPU hours` : "",
      ` (${components.length > 0 ? listed(components.map((c) => quantity(c).label)) : "components not recorded"}${lacks.length > 0 ? `; not measured: ${listed(lacks, "or")}` : ""}`,
      energy.n < runs.length
        ? `; ${count(runs.length - energy.n, "run")} without energy are not in the sum`
        : "",
      "). ",
    );
  }
  parts.push(...lawSentence(report));
  const ratio = perGpuHour(runs);
  if (ratio) {
    parts.push(
      "The mean total power per GPU was ",
      h("strong", null, `${number(ratio.kwh * 1000, 3)} W`),
      `, which is the same as ${number(ratio.kwh)} kWh per GPU hour; over the runs it lay between ${number(ratio.low * 1000, 3)} and ${number(ratio.high * 1000, 3)} W. `,
    );
  }
  const groups = workloads(report);
  if (groups.length === 1) {
    const front = costs(groups[0].setups)
      .rows.filter((row) => row.front)
      .sort((a, b) => a.time - b.time);
    if (front.length > 1) {
      const [fastest, frugal] = [front[0], front[front.length - 1]];
      parts.push(frugality(report, fastest, frugal));
    }
  }
  return h("p", { class: "lead" }, ...parts);
}

export function keyNumbers(report: Report): HTMLElement {
  const { runs } = report;
  const energy = total(runs, "energy_j");
  const hours = total(runs, "gpu_hours");
  const ratio = perGpuHour(report.runs);
  const times = report.setups
    .map((setup) => summaryOf(setup.configuration, "epoch_time_s").mean)
    .filter(finite);
  const item = (label: string, value: string, note: string) =>
    h(
      "div",
      null,
      h("dt", null, label),
      h(
        "dd",
        null,
        h("span", { class: value === "not measured" ? "none" : "value" }, value),
        h("span", { class: "note" }, note),
      ),
    );
  const reason = report.runs[0] ? absence(report.runs[0], "energy_j") : "no runs";
  return h(
    "dl",
    { class: "key-numbers" },
    item(
      runs.every((run) => runMarks(run).includes("imported")) ? "Energy, imported" : "Energy measured",
      energy.n > 0 ? amount("energy_j", energy.sum) : "not measured",
      energy.n > 0 ? `in ${count(energy.n, "run")}` : reason,
    ),
    item(
      "GPU hours",
      hours.n > 0 ? number(hours.sum) : "not measured",
      hours.n > 0 ? `in ${count(hours.n, "run")}` : "no GPU in these runs",
    ),
    item(
      "Energy per GPU hour",
      ratio ? `${number(ratio.kwh)} kWh` : "not measured",
      ratio ? `${number(ratio.kwh * 1000, 3)} W per GPU on average` : "needs energy and GPU hours",
    ),
    item(
      "Fastest epoch",
      times.length > 0 ? amount("epoch_time_s", Math.min(...times)) : "not measured",
      times.length > 1
        ? `slowest ${amount("epoch_time_s", Math.max(...times))}`
        : times.length === 1
          ? "one configuration"
          : "no epoch was marked",
    ),
  );
}

export function banners(report: Report): HTMLElement[] {
  const { runs, marks } = report;
  const having = (mark: string) => runs.filter((run) => runMarks(run).includes(mark as never)).length;
  const share = (n: number) =>
    n === runs.length ? "All" : `${n.toLocaleString("en-US")} of ${runs.length.toLocaleString("en-US")}`;
  const banner = (mark: string, text: string) =>
    h("p", { class: `banner banner-${mark}`, role: "note" }, h("strong", null, mark), " ", text);
  return [
    ...(marks.includes("simulated")
      ? [
          banner(
            "simulated",
            `${share(having("simulated"))} runs were made on simulated devices. Their numbers test the method; they say nothing about real hardware.`,
          ),
        ]
      : []),
    ...(marks.includes("estimated")
      ? [
          banner(
            "estimated",
            `${share(having("estimated"))} runs hold energy that was estimated from utilisation and rated power, not measured.`,
          ),
        ]
      : []),
    ...(marks.includes("imported")
      ? [
          banner(
            "imported",
            `${share(having("imported"))} runs were imported from other tools; how they were measured is only known as far as the source says.`,
          ),
        ]
      : []),
    ...(marks.includes("preliminary")
      ? [
          banner(
            "preliminary",
            `${count(report.setups.filter((setup) => setup.preliminary).length, "configuration")} of ${report.setups.length.toLocaleString("en-US")} ran only once. Single runs carry no interval and are never called significant.`,
          ),
        ]
      : []),
  ];
}

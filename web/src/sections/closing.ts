// SPDX-License-Identifier: Apache-2.0
// Warnings, methods and limits, machines, and how to reproduce and cite.
import { copy, h, type Child } from "../dom";
import { count, finite, plain, quantity } from "../format";
import type { Machine, Report, Unknown } from "../model";
import { table } from "../table";
import { title } from "./summary";

export function warnings(report: Report): Child[] {
  const list = report.model.analysis.warnings ?? [];
  if (list.length === 0) return [h("p", null, "The analysis has no warnings.")];
  const byText = new Map<string, { code: string; text: string; times: number }>();
  for (const { code = "", text = "" } of list) {
    const key = `${code}\n${text}`;
    const entry = byText.get(key) ?? { code, text, times: 0 };
    entry.times += 1;
    byText.set(key, entry);
  }
  const rows = [...byText.values()];
  if (rows.length > 12) {
    return [
      table(report, {
        id: "warnings-table",
        title: "Warnings",
        rows,
        pageSize: 12,
        columns: [
          { key: "code", label: "Code", value: (row) => row.code },
          { key: "text", label: "Warning", value: (row) => row.text },
          {
            key: "times",
            label: "Times",
            value: (row) => row.times,
            show: (row) => plain(row.times),
            numeric: true,
          },
        ],
      }),
    ];
  }
  return [
    h(
      "ul",
      { class: "warnings" },
      ...rows.map((row) =>
        h("li", null, row.text, row.times > 1 ? ` (${row.times} times)` : "", " ", h("code", null, row.code)),
      ),
    ),
  ];
}

export function methods(): Child[] {
  const entry = (term: string, ...text: Child[]) => [h("dt", null, term), h("dd", null, ...text)];
  return [
    h(
      "dl",
      { class: "terms" },
      ...entry(
        "Energy",
        "The difference of the device's energy counter where there is one, else the trapezoid of sampled power. Both are kept and shown. A failed reading is a gap; energy over a gap is bounded and the bound is shown. A region shorter than a few refreshes of its sensor has its energy attributed from all regions of its kind.",
      ),
      ...entry(
        "Totals",
        "A total names what it contains and what it lacks. Energies over different components are not compared.",
      ),
      ...entry(
        "Epoch time",
        "Wall time of one full epoch, warm-up epochs excluded. Training speed, the protocol's metric, is the run's wall time over its epochs, warm-up included.",
      ),
      ...entry(
        "Intervals",
        "95 % intervals of means are t-based over the runs of a configuration. A single run has none and is preliminary. Repeats with one training seed show hardware noise only.",
      ),
      ...entry(
        "Laws",
        "Fitted to the means of configurations by least squares of logarithms. Two-parameter forms need three levels, three-parameter forms six. A law describes the levels it was fitted to; nothing here extrapolates.",
      ),
      ...entry(
        "Energy per GPU hour",
        "By identity the mean total power per GPU. A whole node is billed to the GPUs in use on it, so runs on part of a node read higher.",
      ),
      ...entry(
        "Limits",
        "Sensors of recent accelerators look at power for a part of the time only; their stated accuracy applies to steady load. The shape of a power profile alone proves no efficiency. Differences between configurations whose intervals overlap are not established.",
      ),
    ),
  ];
}

function machine(entry: Machine, index: number): HTMLElement {
  const hosts = entry.hosts ?? [];
  const devices = new Map<string, number>();
  for (const device of entry.devices ?? []) {
    const memory = finite(device.memory_bytes)
      ? `, ${plain(Math.round(device.memory_bytes / 2 ** 30))} GiB`
      : "";
    const limit = finite(device.power_limit_w) ? `, limit ${plain(device.power_limit_w)} W` : "";
    const name = `${String(device.name ?? device.device)}${memory}${limit}`;
    devices.set(name, (devices.get(name) ?? 0) + 1);
  }
  const pairs = (object: Unknown | undefined) =>
    Object.entries(object ?? {})
      .filter(([, value]) => value !== null && value !== "")
      .flatMap(([key, value]) => [
        h("dt", null, quantity(key).label),
        h(
          "dd",
          null,
          key === "memory_bytes" && finite(value)
            ? `${plain(Math.round(value / 2 ** 30))} GiB`
            : typeof value === "object"
              ? JSON.stringify(value)
              : plain(value),
        ),
      ]);
  return h(
    "section",
    { class: "machine", "aria-label": `Machine ${index + 1}` },
    h(
      "h3",
      null,
      hosts.length === 0
        ? "Machine"
        : hosts.length <= 4
          ? hosts.join(", ")
          : `${hosts[0]} … ${hosts[hosts.length - 1]} (${count(hosts.length, "host")})`,
      entry.simulated ? h("span", { class: "mark mark-simulated" }, "simulated") : null,
    ),
    h(
      "dl",
      { class: "pairs" },
      ...(devices.size > 0
        ? [
            h("dt", null, "Devices"),
            h("dd", null, ...[...devices].map(([name, n]) => h("div", null, n > 1 ? `${n} × ` : "", name))),
          ]
        : []),
      ...pairs(entry.hardware),
      ...pairs(entry.software),
    ),
  );
}

export function machines(report: Report): Child[] {
  const list = report.model.environment?.machines ?? [];
  return list.length === 0
    ? [h("p", { class: "absent-note" }, "The runs do not say on which machine they were made.")]
    : [h("div", { class: "machines" }, ...list.slice(0, 40).map(machine))];
}

export function reproduce(report: Report): Child[] {
  const { generated, study } = report.model;
  const version = generated?.version ?? "unknown version";
  const citation = `${title(report)}. Joulemark report, version ${version}${generated?.at ? `, ${generated.at.slice(0, 10)}` : ""}.`;
  const block = (id: string, text: string) => {
    const button = h(
      "button",
      { type: "button", onclick: () => void copy(button, text, `${id}.txt`) },
      "Copy",
    );
    return h(
      "div",
      { class: "code" },
      h("pre", { id, tabindex: 0, "aria-label": id }, h("code", null, text)),
      button,
    );
  };
  return [
    h(
      "p",
      null,
      `Made with Joulemark ${version}${generated?.at ? ` on ${generated.at}` : ""}. The document behind every number stands in this file as JSON, in the element `,
      h("code", null, "joulemark-model"),
      ".",
    ),
    h("h3", null, "Make this report again"),
    block("command", generated?.command ?? "joulemark report DIR"),
    ...(study
      ? [
          h("h3", null, "Study"),
          h(
            "details",
            null,
            h("summary", null, "The study as it was run"),
            h(
              "pre",
              { tabindex: 0, "aria-label": "The study" },
              h("code", null, JSON.stringify(study, null, 2).slice(0, 20_000)),
            ),
          ),
        ]
      : []),
    h("h3", null, "Cite"),
    block("citation", citation),
    h(
      "p",
      null,
      "Figures are saved as SVG with the words that qualify them inside the picture. State with every number what was measured and what was not.",
    ),
  ];
}

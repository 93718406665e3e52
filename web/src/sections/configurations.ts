// SPDX-License-Identifier: Apache-2.0
import { h } from "../dom";
import { finite, interval, plain, rough, quantity, unitFor } from "../format";
import { groupLabel } from "../laws";
import { absence, summaryOf, union, type Report, type Setup } from "../model";
import { quantityColumn, table, type Column } from "../table";

/** The configurations as measured: mean, sd, 95 % interval and n of each quantity that any of them has. */
export function configurations(report: Report): HTMLElement[] {
  if (report.setups.length === 0) return [h("p", { class: "absent-note" }, "There are no configurations.")];
  const keys = [
    "epoch_time_s",
    "training_speed_s",
    "epoch_energy_j",
    "energy_j",
    "energy_per_gpu_hour_kwh",
    "mean_power_w",
    "samples_per_s",
    "joule_per_sample",
  ];
  const present = keys.filter(
    (key) =>
      ["epoch_time_s", "energy_j"].includes(key) ||
      report.setups.some((setup) => finite(summaryOf(setup.configuration, key).mean)),
  );
  const why = (key: string) => (setup: Setup) => (setup.runs[0] ? absence(setup.runs[0], key) : "no runs");
  const columns: Column<Setup>[] = [
    ...report.varied.map(
      (key): Column<Setup> => ({
        key,
        label: quantity(key).label,
        unit: quantity(key).unit,
        value: (setup) => setup.factors[key],
        numeric: report.setups.every((setup) => typeof setup.factors[key] !== "string"),
        show: (setup) =>
          finite(setup.factors[key])
            ? h("data", { value: setup.factors[key] as number }, plain(setup.factors[key]))
            : null,
      }),
    ),
    {
      key: "n",
      label: "n",
      value: (setup) => setup.n,
      numeric: true,
      show: (setup) => [
        h("data", { value: setup.n }, plain(setup.n)),
        setup.preliminary ? h("span", { class: "mark mark-preliminary" }, "preliminary") : null,
      ],
    },
    ...present.flatMap((key): Column<Setup>[] => {
      const at = (setup: Setup) => summaryOf(setup.configuration, key);
      const mean = quantityColumn(key, report.setups, (setup) => at(setup).mean, why(key));
      const unit = unitFor(
        key,
        report.setups.map((setup) => at(setup).mean),
      );
      return [
        mean,
        {
          key: `${key}_sd`,
          label: "sd",
          value: (setup) => at(setup).sd,
          numeric: true,
          show: (setup) =>
            finite(at(setup).sd)
              ? h("data", { value: at(setup).sd as number }, rough(at(setup).sd! / unit.scale))
              : null,
        },
        {
          key: `${key}_ci95`,
          label: "95 % interval",
          value: (setup) => (at(setup).ci95 ? at(setup).ci95!.join(" to ") : null),
          numeric: true,
          show: (setup) =>
            at(setup).ci95 ? h("span", { class: "nowrap" }, interval(at(setup).ci95, unit.scale)) : null,
        },
      ];
    }),
  ];
  return [
    table(report, {
      id: "configurations-table",
      title: "Configurations",
      rows: report.setups,
      columns,
      marks: union(report.setups.map((setup) => setup.marks)),
      note: [
        "n runs each; sd is the sample standard deviation, the interval that of the mean. ",
        Object.keys(report.constant).length > 0 ? `The same in all: ${groupLabel(report.constant)}.` : "",
      ],
    }),
  ];
}

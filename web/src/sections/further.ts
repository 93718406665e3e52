// SPDX-License-Identifier: Apache-2.0
// What the analysis found beyond laws: regressions, sensitivity, published numbers.
import { h, type Child } from "../dom";
import { listed, number, plain, quantity, type Maybe } from "../format";
import type { Report } from "../model";
import { columnsOf, table } from "../table";

export function further(report: Report): Child[] {
  const { regressions = [], sensitivity = [], published = [] } = report.model.analysis;
  const parts: Child[] = [];
  for (const regression of regressions) {
    const terms = (regression.terms ?? []) as Record<string, unknown>[];
    const refused = (regression.refused ?? []) as Record<string, unknown>[];
    parts.push(
      table(report, {
        id: `regression-${parts.length}`,
        title: `Regression of ${quantity(String(regression.response)).label.toLowerCase()}`,
        rows: terms,
        columns: columnsOf(terms),
        note: [
          `R² ${number(regression.r2 as Maybe)}, n = ${plain(regression.n)}. `,
          ...refused.map(
            (r) =>
              `Refused to separate ${listed((r.terms as string[] | undefined) ?? [])}: ${String(r.reason)}. `,
          ),
        ],
        marks: report.marks,
      }),
    );
  }
  if (sensitivity.length > 0) {
    parts.push(
      table(report, {
        id: "sensitivity-table",
        title: "What the unmeasured parts could change",
        rows: sensitivity,
        columns: columnsOf(sensitivity, ["conclusions"]),
        marks: report.marks,
      }),
    );
    const conclusions = sensitivity.flatMap(
      (entry) => (entry.conclusions as { text: string; survives: boolean }[] | undefined) ?? [],
    );
    if (conclusions.length > 0)
      parts.push(
        h(
          "ul",
          null,
          ...conclusions.map((c) =>
            h("li", null, c.text, c.survives ? " survives." : h("strong", null, " does not survive.")),
          ),
        ),
      );
  }
  if (published.length > 0) {
    parts.push(
      table(report, {
        id: "published-table",
        title: "Published numbers",
        rows: published,
        columns: columnsOf(published),
        note: ["Shown where workload, metric and measured components match."],
      }),
    );
  }
  return parts;
}

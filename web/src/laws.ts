// SPDX-License-Identifier: Apache-2.0
// Laws as the analysis fitted them: their curves, their formulas in words, and the groups they belong to.
import { h, type Child } from "./dom";
import { finite, lower, number, plain, quantity } from "./format";
import {
  matches,
  withoutKeys,
  keyOf,
  summaryOf,
  type Factors,
  type Law,
  type Report,
  type Setup,
} from "./model";

type Parameters = Record<string, number>;

/** The forms by their ids, as src/stats/law.h defines them; x is the factor. */
const forms: Record<
  string,
  { words: string; curve: (p: Parameters, x: number) => number; text: (p: Parameters, x: Child) => Child[] }
> = {
  power: {
    words: "power law",
    curve: ({ a, b }, x) => a * x ** b,
    text: ({ a, b }, x) => [number(a), " ", x, raised(b)],
  },
  power_floor: {
    words: "power law above a floor",
    curve: ({ a, b, c }, x) => a * x ** b + c,
    text: ({ a, b, c }, x) => [number(a), " ", x, raised(b), plus(c)],
  },
  amdahl: {
    words: "Amdahl's law",
    curve: ({ a, b }, x) => a + b / x,
    text: ({ a, b }, x) => [number(a), plus(b), " / ", x],
  },
  exponential: {
    words: "exponential",
    curve: ({ a, b }, x) => a * Math.exp(b * x),
    text: ({ a, b }, x) => [number(a), ` exp(${number(b)} `, x, ")"],
  },
  linear: {
    words: "straight line",
    curve: ({ a, b }, x) => a + b * x,
    text: ({ a, b }, x) => [number(a), plus(b), " ", x],
  },
  saturating: {
    words: "exponential approach to a limit",
    curve: ({ a, k, c }, x) => c + a * Math.exp(-x / k),
    text: ({ a, k, c }, x) => [number(c), plus(a), " exp(−", x, ` / ${number(k)})`],
  },
};

const raised = (exponent: number) => h("sup", null, exponent.toFixed(3).replace("-", "−"));
const plus = (value: number) => ` ${value < 0 ? "−" : "+"} ${number(Math.abs(value))}`;

export const symbolOf = (factor: string): string =>
  ({ gpus: "N", power_cap_w: "P", sm_clock_mhz: "f", local_batch: "B", global_batch: "B" })[factor] ?? "x";

export const responseSymbol = (response: string): string =>
  response === "epoch_time_s" ? "T" : response.includes("energy") ? "E" : quantity(response).label;

/** The name of a law's form in words. */
export const formWords = (id: string | null | undefined): string =>
  forms[id ?? ""]?.words ?? (id ?? "").replaceAll("_", " ");

const values = (law: Law): Parameters | null => {
  const entries = Object.entries(law.parameters ?? {}).map(
    ([name, estimate]) => [name, estimate?.value] as const,
  );
  return entries.length > 0 && entries.every(([, value]) => finite(value))
    ? Object.fromEntries(entries as [string, number][])
    : null;
};

export const hasLaw = (law: Law): boolean => Boolean(law.form) && law.form !== "none" && values(law) !== null;

export function noLaw(law: Law): string {
  const why = law.reason || (law.n_levels === undefined ? "not fitted" : `${law.n_levels} levels`);
  return why.startsWith("no ") ? why : `no law: ${why}`;
}

export function formula(law: Law): Child[] {
  const p = values(law);
  const x = h("i", null, symbolOf(law.factor));
  if (!p || !law.form) return [noLaw(law)];
  const own = forms[law.form];
  return own
    ? [h("i", null, responseSymbol(law.response)), " = ", ...own.text(p, x)]
    : [formWords(law.form)];
}

export interface CurvePoint {
  x: number;
  y: number;
  low: number | null;
  high: number | null;
}

/** The law from its lowest to its highest level; with its confidence band where the analysis gives one. */
export function curve(law: Law, low: number, high: number): CurvePoint[] {
  if (law.curve) {
    return law.curve.map(({ x, y, ci95 }) => ({ x, y, low: ci95?.[0] ?? null, high: ci95?.[1] ?? null }));
  }
  const p = values(law);
  const form = law.form ? forms[law.form] : undefined;
  if (!p || !form || !(low > 0) || !(high > low)) return [];
  const steps = 80;
  return Array.from({ length: steps + 1 }, (_, i) => {
    const x = low * (high / low) ** (i / steps);
    return { x, y: form.curve(p, x), low: null, high: null };
  }).filter(({ y }) => Number.isFinite(y));
}

/** A group of factors in words: "resnet50, 4 GPUs, power cap 250 W". */
export function groupLabel(group: Factors | undefined, skip: string[] = []): string {
  return Object.entries(group ?? {})
    .filter(([key]) => !skip.includes(key))
    .map(([key, value]) => {
      if (!finite(value)) return String(value);
      const { label, unit } = quantity(key);
      if (key === "gpus") return `${plain(value)} ${value === 1 ? "GPU" : "GPUs"}`;
      return `${lower(label)} ${plain(value)}${unit ? ` ${unit}` : ""}`;
    })
    .join(", ");
}

/** A line among others of its figure: what sets it apart. */
export const lineLabel = (line: Line, skip: string[]): string =>
  [line.scaling ? `${line.scaling} scaling` : "", groupLabel(line.group, skip)].filter(Boolean).join(", ");

/** A label that tells configurations apart: the varied factors only. */
export const setupLabel = (report: Report, factors: Factors): string =>
  groupLabel(
    Object.fromEntries(report.varied.filter((key) => key in factors).map((key) => [key, factors[key]])),
  ) ||
  groupLabel(factors) ||
  "the only configuration";

/** Configurations that differ in one factor only, and the laws fitted to them. */
export interface Line {
  group: Factors;
  scaling: string;
  setups: Setup[];
  laws: Law[];
}

export function lines(report: Report, response: string, factor: string): Line[] {
  const laws = (report.model.analysis.laws ?? []).filter(
    (law) => law.response === response && law.factor === factor,
  );
  const usable = report.setups.filter(
    (setup) => finite(setup.factors[factor]) && finite(summaryOf(setup.configuration, response).mean),
  );
  const grouped = new Map<string, Line>();
  const add = (group: Factors, scaling: string, members: Setup[]) => {
    const ordered = members.sort((a, b) => Number(a.factors[factor]) - Number(b.factors[factor]));
    if (new Set(ordered.map((setup) => setup.factors[factor])).size > 1) {
      const own = laws.filter(
        (law) => keyOf(law.group ?? {}) === keyOf(group) && (law.scaling ?? "") === scaling,
      );
      grouped.set(scaling + keyOf(group), { group, scaling, setups: ordered, laws: own });
    }
  };
  for (const law of laws)
    add(
      law.group ?? {},
      law.scaling ?? "",
      usable.filter((setup) => matches(law.group, setup.factors)),
    );
  if (grouped.size > 0) return [...grouped.values()];
  // Without laws: everything else equal. A batch size that follows from the number of GPUs is no factor of its own.
  const follows = factor === "gpus" ? ["global_batch", "local_batch"] : [""];
  for (const linked of follows) {
    const byKey = new Map<string, Setup[]>();
    for (const setup of usable) {
      const key = keyOf(withoutKeys(setup.factors, [factor, linked]));
      byKey.set(key, [...(byKey.get(key) ?? []), setup]);
    }
    for (const members of byKey.values()) add(withoutKeys(members[0].factors, [factor, linked]), "", members);
    if (grouped.size > 0) break;
  }
  return [...grouped.values()];
}

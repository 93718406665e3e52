// SPDX-License-Identifier: Apache-2.0
// The report's document, as src/report/html.cpp writes it. `analysis` is what `joulemark analyze --json`
// prints; any value may be absent or null: not measured. Keys that this page does not know are welcome.
import { finite, type Maybe } from "./format";

export type Factors = Record<string, number | string | null>;
export type Ci95 = [number | null, number | null] | null;
export type Unknown = Record<string, unknown>;

export interface Estimate {
  value?: Maybe;
  ci95?: Ci95;
}
export interface Summary {
  mean?: Maybe;
  sd?: Maybe;
  ci95?: Ci95;
  n?: number;
}
export interface Quality {
  name?: string;
  value?: Maybe;
  direction?: string;
}
export interface Run extends Unknown {
  run: string;
  status?: string;
  factors?: Factors;
  hosts?: string[];
  energy_j?: Maybe;
  energy_by_component_j?: Record<string, Maybe>;
  energy_by_node_j?: Record<string, Maybe>;
  gpu_hours?: Maybe;
  epoch_time_s?: Maybe;
  quality?: Quality | null;
  provenance?: Provenance;
  simulated?: boolean;
  estimated?: boolean;
}
/** Where a run's numbers come from. */
export interface Provenance extends Unknown {
  energy_j?: { method?: string; contains?: string[]; lacks?: string[]; text?: string; bound_j?: Maybe };
  components?: Record<string, ComponentProvenance>;
  unavailable?: Missing[];
  imported?: boolean;
  given?: { file?: string; n?: number };
}
export interface ComponentProvenance {
  devices?: number;
  source_methods?: string[];
  scope?: string[];
  sources?: string[];
  origin?: string[];
  accuracy_notes?: string[];
  resolution_s?: Maybe;
  requested_hz?: Maybe;
  achieved_hz?: Maybe;
  sensor_accuracy_pct?: Maybe;
  bound_j?: Maybe;
  coverage_pct?: Maybe;
}
/** A quantity that was not measured, and why. */
export interface Missing {
  name?: string;
  quantity?: string;
  scope?: string;
  reason?: string;
  remedy?: string;
}
export interface Configuration extends Unknown {
  factors?: Factors;
  n?: number;
  preliminary?: boolean;
  runs?: string[];
}
export interface Law extends Unknown {
  response: string;
  factor: string;
  group?: Factors;
  form?: string | null;
  parameters?: Record<string, Estimate>;
  n_levels?: number;
  r2?: Maybe;
  aicc?: Maybe;
  loo_rmse?: Maybe;
  formula?: string;
  selected?: boolean;
  /** Why it was selected, or why there is none. */
  reason?: string;
  /** Over GPUs: "strong" (global batch fixed) or "weak" (local batch fixed). */
  scaling?: string;
  curve?: { x: number; y: number; ci95?: Ci95 }[];
}
export interface Scaling {
  scaling?: string;
  group?: Factors;
  baseline?: { gpus?: number };
  rows?: {
    gpus: number;
    epoch_time_s: number;
    speed_up: number;
    efficiency: number;
    epoch_energy_j?: Maybe;
    energy_ratio?: Maybe;
    preliminary?: boolean;
  }[];
}
export interface Slope extends Unknown {
  group?: Factors;
  pooled?: boolean;
  slope_kwh?: Estimate;
  slope_wh?: Estimate;
  intercept_kwh?: Maybe | Estimate;
  r2?: Maybe;
  n?: number;
}
export interface LeastEnergy {
  factor?: string;
  group?: Factors;
  value?: Maybe;
  ci95?: Ci95;
  epoch_energy_j?: Maybe;
  /** False: the least lies at the lowest or highest level. */
  interior?: boolean;
  time_form?: string | null;
  power_form?: string | null;
  /** The level whose measured mean is least. */
  measured?: { level?: number; epoch_energy_j?: Summary };
  /** The largest of the fitted energy from a measured mean, relative. */
  departure?: Maybe;
  /** Why nothing was fitted. */
  reason?: string;
}
/** The most frugal configuration of a workload against its fastest. */
export interface TradeOff {
  fastest?: { factors?: Factors };
  frugal?: { factors?: Factors };
  time_ratio?: Estimate;
  energy_ratio?: Estimate;
  /** Repeats tell their energies apart. */
  significant?: boolean;
}
export interface Regression {
  response?: string;
  group?: Factors;
  terms?: { name?: string; value?: Maybe; ci95?: Ci95; vif?: Maybe }[];
  refused?: { terms?: string[]; reason?: string }[];
  notes?: string[];
  r2?: Maybe;
  n?: number;
}
/** A part that was not measured, as a range, and what the range does to the energy and the conclusions. */
export interface Sensitivity {
  component?: string;
  low?: Maybe;
  high?: Maybe;
  unit?: string;
  source?: string;
  energy_band_j?: [Maybe, Maybe];
  conclusions?: { text: string; survives: boolean }[];
}
export interface Published {
  factors?: Factors;
  metric?: string;
  value?: Summary | null;
  published?: Ci95;
  source?: string;
  components?: string | string[];
  note?: string;
  comparable?: boolean;
  reason?: string;
}
export interface Region extends Unknown {
  run: string;
  host?: string;
  name?: string;
  index?: number;
  start_ns?: number;
  end_ns?: number;
}
export interface Analysis extends Unknown {
  runs?: Run[];
  configurations?: Configuration[];
  laws?: Law[];
  scaling?: Scaling[];
  energy_per_gpu_hour?: Slope[];
  energy_per_sample?: Slope[];
  least_energy?: LeastEnergy[];
  trade_offs?: TradeOff[];
  regressions?: Regression[];
  batch_knees?: Unknown[];
  hardware?: Unknown[];
  sensitivity?: Sensitivity[];
  regions?: Region[];
  coverage?: Unknown[];
  published?: Published[];
  warnings?: { code?: string; text?: string; run?: string }[];
}
export interface TraceIndex {
  run: string;
  block: string;
  series: { host: string; device: string; metric: string }[];
}
export interface Source extends Unknown {
  source?: string;
  device?: string;
  metrics?: string[];
  method?: string;
  scope?: string;
}
export interface Machine extends Unknown {
  hosts?: string[];
  simulated?: boolean;
  hardware?: Unknown;
  software?: Unknown;
  devices?: Unknown[];
  sources?: Source[];
  unavailable?: Missing[];
}
export interface Model {
  analysis: Analysis;
  traces: TraceIndex[];
  study: (Unknown & { study?: string; name?: string }) | null;
  environment: { machines?: Machine[] } | null;
  generated: {
    version?: string;
    at?: string;
    command?: string;
    source?: string;
    omitted?: { what: string; reason: string }[];
  } | null;
}

/** A configuration with its runs and the words that must stand wherever it is shown. */
export interface Setup {
  factors: Factors;
  configuration: Configuration;
  runs: Run[];
  n: number;
  preliminary: boolean;
  marks: Mark[];
}
export type Mark = "simulated" | "estimated" | "imported" | "preliminary";

/** The document with the few things every section asks for. */
export interface Report {
  model: Model;
  runs: Run[];
  setups: Setup[];
  /** Factors with more than one level, in the order of the document. */
  varied: string[];
  /** Factors with one level. */
  constant: Factors;
  marks: Mark[];
  nextFigure: () => number;
  nextTable: () => number;
}

const order: Mark[] = ["simulated", "estimated", "imported", "preliminary"];

export const runMarks = (run: Run): Mark[] => [
  ...(run.simulated ? (["simulated"] as const) : []),
  ...(run.estimated ? (["estimated"] as const) : []),
  ...(run.provenance?.imported ? (["imported"] as const) : []),
];

export const union = (marks: Mark[][]): Mark[] => {
  const all = new Set(marks.flat());
  return order.filter((mark) => all.has(mark));
};

/** Whether `factors` agrees with every entry of `group`. */
export const matches = (group: Factors | undefined, factors: Factors | undefined): boolean =>
  Object.entries(group ?? {}).every(([key, value]) => factors?.[key] === value);

export const withoutKeys = (factors: Factors, keys: string[]): Factors =>
  Object.fromEntries(Object.entries(factors).filter(([key]) => !keys.includes(key)));

export const keyOf = (factors: Factors): string =>
  JSON.stringify(Object.entries(factors).sort(([a], [b]) => (a < b ? -1 : 1)));

export const summaryOf = (configuration: Configuration, response: string): Summary =>
  (configuration[response] as Summary | null | undefined) ?? {};

export const valueOf = (record: Unknown, key: string): number | null => {
  const value = record[key];
  return finite(value) ? value : null;
};

/** Why a run or region has no value for a quantity. */
export function absence(record: Unknown, key: string): string {
  if (/^(epoch_time|training_speed)/.test(key)) return "no epoch was marked";
  if (/^samples_per/.test(key)) return "no samples were told";
  if (!/(_j|_w|_kwh|_sample|_token)$/.test(key)) return "no sensor delivered it";
  const provenance = record.provenance as Provenance | undefined;
  const reasons = (provenance?.unavailable ?? []).filter(
    ({ quantity }) => quantity === "energy" || quantity === "power",
  );
  const text = [...new Set(reasons.map(({ reason }) => reason).filter(Boolean))].slice(0, 2).join("; ");
  return text || provenance?.energy_j?.text || "no sensor delivered it";
}

export function makeReport(model: Model): Report {
  const analysis = model.analysis ?? {};
  const runs = analysis.runs ?? [];
  const byName = new Map(runs.map((run) => [run.run, run]));
  const byFactors = new Map<string, Run[]>();
  for (const run of runs) {
    const key = keyOf(run.factors ?? {});
    byFactors.set(key, [...(byFactors.get(key) ?? []), run]);
  }
  const setups = (analysis.configurations ?? []).map((configuration): Setup => {
    const factors = configuration.factors ?? {};
    const own =
      configuration.runs?.flatMap((name) => byName.get(name) ?? []) ?? byFactors.get(keyOf(factors)) ?? [];
    const n = configuration.n ?? own.length;
    const preliminary = configuration.preliminary ?? n < 2;
    const marks = union([...own.map(runMarks), preliminary ? ["preliminary"] : []]);
    return { factors, configuration, runs: own, n, preliminary, marks };
  });
  const all = setups.length > 0 ? setups.map((setup) => setup.factors) : runs.map((run) => run.factors ?? {});
  // A value that one configuration has and another lacks is a difference: absent is a level too.
  const levels = new Map<string, Set<unknown>>(
    [...new Set(all.flatMap((factors) => Object.keys(factors)))].map((key) => [
      key,
      new Set(all.map((factors) => factors[key])),
    ]),
  );
  // A batch that follows from the number of GPUs is no factor of its own.
  const follows =
    levels.get("local_batch")?.size === 1
      ? "global_batch"
      : levels.get("global_batch")?.size === 1
        ? "local_batch"
        : "";
  const varied = [...levels]
    .filter(([key, values]) => values.size > 1 && key !== follows)
    .map(([key]) => key);
  const constant = Object.fromEntries(
    [...levels]
      .filter(([, values]) => values.size === 1)
      .map(([key, values]) => [key, [...values][0] as string | number | null]),
  );
  let figures = 0;
  let tables = 0;
  return {
    model: { ...model, traces: model.traces ?? [] },
    runs,
    setups,
    varied,
    constant,
    marks: union([...runs.map(runMarks), ...setups.map((setup) => setup.marks)]),
    nextFigure: () => ++figures,
    nextTable: () => ++tables,
  };
}

// SPDX-License-Identifier: Apache-2.0
// Numbers and units as people read them. One column or axis has one unit, chosen from all its values.

export type Maybe = number | null | undefined;

export const finite = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value);

/** Four significant digits, three below 1; an exponent only for extraordinary magnitudes; the integer part is never rounded. */
export function number(value: Maybe, digits = 4): string {
  if (!finite(value)) return "–";
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-3 || magnitude >= 1e7)) {
    const [mantissa, exponent] = value.toExponential(digits - 2).split("e");
    return `${minus(mantissa)}e${minus(String(Number(exponent)))}`;
  }
  const leading = magnitude === 0 ? 0 : Math.floor(Math.log10(magnitude));
  const decimals = leading < 0 ? digits - 2 - leading : Math.max(0, digits - 1 - leading);
  return minus(
    value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }),
  );
}

/** As few digits as tell levels apart: 64, 0.5, 1380. For factors and axis ticks. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return finite(value)
    ? minus(String(Number.isInteger(value) ? value : Number(value.toPrecision(6))))
    : String(value);
}

/** Two significant digits without an exponent: for standard deviations. */
export function rough(value: Maybe): string {
  if (!finite(value)) return "–";
  const decimals = value === 0 ? 0 : Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(Math.abs(value)))));
  return minus(
    value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }),
  );
}

const share = (ratio: number) =>
  (Math.abs(ratio - 1) * 100).toLocaleString("en-US", { maximumFractionDigits: 1, minimumFractionDigits: 1 });

/** "12.3 % less", "4.0 % more". */
export const change = (ratio: number): string => `${share(ratio)} % ${ratio < 1 ? "less" : "more"}`;

/** "4.0 % longer", "2.10 times as long". */
export const longer = (ratio: number): string =>
  ratio < 2 ? `${share(ratio)} % longer` : `${number(ratio, 3)} times as long`;

/** Ticks of a logarithmic axis, and its domain: 1, 2 and 5 of each decade, or decades alone. */
export function logTicks(values: number[]): { domain: [number, number]; ticks: number[] } {
  const [low, high] = [Math.min(...values) / 1.15, Math.max(...values) * 1.15];
  const mantissas = high / low > 2000 ? [1] : high / low > 12 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const ticks: number[] = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); ++decade) {
    for (const mantissa of mantissas) {
      const tick = Number((mantissa * 10 ** decade).toPrecision(3));
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return { domain: [low, high], ticks };
}

/** A label inside a sentence: "power cap", but "GPUs" and "SM clock". */
export const lower = (label: string): string =>
  /^[A-Z]{2}/.test(label) ? label : label.charAt(0).toLowerCase() + label.slice(1);

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

const minus = (text: string) => text.replace("-", "−");

export interface Unit {
  name: string;
  scale: number;
}

const ladders: Record<string, Unit[]> = {
  _j: [
    { name: "kWh", scale: 3.6e6 },
    { name: "Wh", scale: 3600 },
    { name: "J", scale: 1 },
    { name: "mJ", scale: 1e-3 },
  ],
  _s: [
    { name: "h", scale: 3600 },
    { name: "min", scale: 60 },
    { name: "s", scale: 1 },
    { name: "ms", scale: 1e-3 },
  ],
  _bytes: [
    { name: "GiB", scale: 2 ** 30 },
    { name: "MiB", scale: 2 ** 20 },
    { name: "B", scale: 1 },
  ],
};

interface Quantity {
  label: string;
  suffix: string;
  unit: string;
}

const labels: Record<string, string> = {
  epoch_time_s: "Epoch time",
  energy_j: "Energy of the run",
  epoch_energy_j: "Energy per epoch",
  training_speed_s: "Training speed",
  samples_per_s: "Throughput",
  joule_per_sample: "Energy per sample",
  joule_per_token: "Energy per token",
  gpu_hours: "GPU hours",
  mean_power_w: "Mean power",
  gpu_memory_util_pct: "GPU memory used",
  gpu_busy_pct: "GPU busy",
  sm_util_pct: "SM activity",
  energy_per_gpu_hour_kwh: "Energy per GPU hour",
  gpus: "GPUs",
  power_cap_w: "Power cap",
  sm_clock_mhz: "SM clock",
  local_batch: "Local batch",
  global_batch: "Global batch",
  workload: "Workload",
  hardware: "Hardware",
  gpus_per_node: "GPUs per node",
  wall_time_s: "Wall time",
  power_w: "Power",
  power_instant_w: "Power (instant)",
  power_average_w: "Power (averaged by the driver)",
  busy_pct: "Busy",
  memory_busy_pct: "Memory controller busy",
  memory_used_bytes: "Memory in use",
  temperature_c: "Temperature",
  gpu: "GPU",
  cpu: "CPU",
  dram: "DRAM",
  node: "Node (wall)",
  psu: "Power supply losses",
  power_per_gpu_w: "Power per GPU",
};

const units: Record<string, string> = {
  samples_per_s: "samples/s",
  joule_per_sample: "J/sample",
  joule_per_token: "J/token",
  gpu_hours: "GPU h",
  energy_per_gpu_hour_kwh: "kWh per GPU h",
};

/** Name, unit and unit suffix of a quantity, read from its key: `_s _w _j _kwh _wh _mhz _bytes _pct _c`. */
export function quantity(key: string): Quantity {
  const suffix = /(_s|_w|_j|_kwh|_wh|_mhz|_bytes|_pct|_c)$/.exec(key)?.[1] ?? "";
  const unit =
    units[key] ??
    { _s: "s", _w: "W", _j: "J", _kwh: "kWh", _wh: "Wh", _mhz: "MHz", _bytes: "B", _pct: "%", _c: "°C" }[
      suffix
    ] ??
    "";
  const words = key.slice(0, key.length - suffix.length).replaceAll("_", " ");
  return {
    label: labels[key] ?? words.charAt(0).toUpperCase() + words.slice(1),
    suffix: units[key] ? "" : suffix,
    unit,
  };
}

/** The unit in which `values` are short numbers. */
export function unitFor(key: string, values: Iterable<Maybe>): Unit {
  const { suffix, unit } = quantity(key);
  const ladder = ladders[suffix];
  if (!ladder) return { name: unit, scale: 1 };
  // By the middle of the range, so that neither end needs many digits.
  let [low, high] = [Infinity, 0];
  for (const value of values) {
    if (!finite(value) || value === 0) continue;
    low = Math.min(low, Math.abs(value));
    high = Math.max(high, Math.abs(value));
  }
  const largest = high === 0 ? 0 : Math.sqrt(low * high);
  // Minutes and hours only where they stay readable: an axis in seconds up to ten minutes.
  const threshold = suffix === "_s" ? 10 : 1;
  return (
    ladder.find((step) => largest >= step.scale * (step.scale > 1 ? threshold : 1)) ??
    ladder[suffix === "_bytes" ? 2 : largest === 0 ? 2 : 3]
  );
}

export function amount(key: string, value: Maybe): string {
  if (!finite(value)) return "–";
  const unit = unitFor(key, [value]);
  return `${number(value / unit.scale)} ${unit.name}`.trim();
}

export const withUnit = (label: string, unit: string): string => (unit ? `${label} (${unit})` : label);

export const count = (n: number, one: string, many = `${one}s`): string =>
  `${n.toLocaleString("en-US")} ${n === 1 ? one : many}`;

export function listed(words: string[], last = "and"): string {
  return words.length < 2
    ? (words[0] ?? "")
    : `${words.slice(0, -1).join(", ")} ${last} ${words[words.length - 1]}`;
}

/** The ends of an interval; an end that the data do not bound is infinite. */
export function interval(ci95: [Maybe, Maybe] | null | undefined, scale = 1): string {
  if (!ci95) return "–";
  const end = (value: Maybe, infinite: string) => (finite(value) ? number(value / scale) : infinite);
  return `${end(ci95[0], "−∞")} to ${end(ci95[1], "∞")}`;
}

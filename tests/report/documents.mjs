// SPDX-License-Identifier: Apache-2.0
// Documents for tests of the report: what `joulemark analyze --json` would print for a simulated study, and
// degenerate ones. Deterministic: a small congruential generator stands in for noise.

function noise(seed) {
  let state = seed;
  const uniform = () => (state = (state * 16807) % 2147483647) / 2147483647; // products stay below 2^53
  return () => uniform() + uniform() + uniform() - 1.5; // nearly normal, sd 0.5
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const t95 = { 2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776 };

function summary(values) {
  const present = values.filter((value) => Number.isFinite(value));
  if (present.length === 0) return { mean: null, sd: null, ci95: null };
  const m = mean(present);
  if (present.length < 2) return { mean: m, sd: null, ci95: null };
  const sd = Math.sqrt(present.reduce((sum, value) => sum + (value - m) ** 2, 0) / (present.length - 1));
  const half = (t95[present.length] * sd) / Math.sqrt(present.length);
  return { mean: m, sd, ci95: [m - half, m + half] };
}

const host = "sim-node-1";
const epochs = 3;

/** Epoch time follows N^-0.93; a cap under 150 W and a low clock cost time; power follows cap and clock. */
function truth({ gpus, power_cap_w: cap, sm_clock_mhz: clock }) {
  const speed = Math.min(1, (cap / 250) ** 0.35) * (0.25 + 0.75 * (clock / 1380));
  const epoch_time_s = 1180 / gpus ** 0.93 / speed;
  const gpu_w = Math.min(cap, 60 + 170 * (clock / 1380) ** 1.6);
  return { epoch_time_s, gpu_w };
}

function provenance(method, wobble) {
  const component = (scope, source, extra) => ({
    devices: 4,
    source_methods: [method],
    scope: [scope],
    sources: [source],
    origin: [source],
    accuracy_notes: [],
    requested_hz: 10,
    achieved_hz: 9.99 + 0.01 * wobble,
    coverage_pct: 99.8 + 0.1 * wobble,
    bound_j: 20 + wobble,
    ...extra,
  });
  return {
    energy_j: {
      window: "joulemark.command",
      contains: ["gpu", "cpu"],
      lacks: ["dram", "network", "psu", "cooling"],
      method: "counter",
      text: "GPU + CPU; not measured: DRAM, network, PSU, cooling",
      bound_j: 40,
    },
    components: {
      gpu: component("gpu board", "nvml.energy", { resolution_s: 0.1, sensor_accuracy_pct: 5 }),
      cpu: component("cpu package", "rapl", { resolution_s: 0.001 }),
    },
    epoch_time_s: { marked_by: "socket", epochs, epochs_after_warmup: epochs - 1 },
    unavailable: [missing[0]],
    simulated: method === "simulated",
    estimated: false,
    imported: false,
  };
}

const missing = [
  {
    name: "rapl dram",
    quantity: "energy",
    scope: "dram",
    reason: "this CPU exposes no DRAM domain",
    remedy: "",
  },
  {
    name: "ipmi",
    quantity: "power",
    scope: "node wall",
    reason: "/dev/ipmi0 does not exist",
    remedy: "load the modules ipmi_devintf and ipmi_si",
  },
];

function makeRun(factors, repeat, random, position) {
  const { epoch_time_s, gpu_w } = truth(factors);
  const time = epoch_time_s * (1 + 0.015 * random());
  const power = gpu_w * (1 + 0.01 * random());
  const wall = time * (epochs + 0.2);
  const gpu = power * factors.gpus * wall;
  const cpu = 95 * Math.ceil(factors.gpus / 4) * wall;
  const counter = gpu + cpu;
  const run = `frey-resnet50-${String(position).padStart(4, "0")}-r${repeat}`;
  return {
    run,
    status: "ok",
    factors,
    hosts: [host],
    simulated: true,
    training_speed_s: wall / epochs,
    epoch_time_s: time,
    samples_per_s: 128000 / time,
    energy_j: counter,
    epoch_energy_j: counter / (epochs + 0.2),
    energy_by_component_j: { gpu, cpu },
    energy_by_node_j: { [host]: counter },
    energy_counter_j: counter,
    energy_integrated_j: counter * (1 + 0.004 * random()),
    energy_protocol_j: counter * (1 + 0.012 * random() + (position % 17 === 0 ? 0.06 : 0)),
    joule_per_sample: counter / (128000 * epochs),
    gpu_hours: (factors.gpus * wall) / 3600,
    mean_power_w: counter / wall,
    gpu_memory_util_pct: 71.5,
    gpu_busy_pct: 96 + random(),
    sm_util_pct: null,
    quality: { name: "top1_error", value: 0.31 + 0.01 * random(), direction: "lower" },
    estimated: false,
    provenance: provenance("simulated", random()),
  };
}

function configuration(factors, runs) {
  const keys = [
    "epoch_time_s",
    "training_speed_s",
    "energy_j",
    "epoch_energy_j",
    "mean_power_w",
    "samples_per_s",
    "joule_per_sample",
  ];
  return {
    factors,
    n: runs.length,
    preliminary: runs.length < 2,
    runs: runs.map((run) => run.run),
    ...Object.fromEntries(keys.map((key) => [key, summary(runs.map((run) => run[key]))])),
    energy_per_gpu_hour_kwh: summary(runs.map((run) => run.energy_j / 3.6e6 / run.gpu_hours)),
  };
}

/** Least squares of y on x. */
function line(xs, ys) {
  const [mx, my] = [mean(xs), mean(ys)];
  const slope =
    xs.reduce((sum, x, i) => sum + (x - mx) * (ys[i] - my), 0) /
    xs.reduce((sum, x) => sum + (x - mx) ** 2, 0);
  return { slope, intercept: my - slope * mx };
}

function powerLaw(response, factor, group, configurations, selected = true) {
  const xs = configurations.map((c) => Math.log(c.factors[factor]));
  const ys = configurations.map((c) => Math.log(c[response].mean));
  const { slope, intercept } = line(xs, ys);
  const a = Math.exp(intercept);
  return {
    response,
    factor,
    group,
    form: "power",
    selected,
    n_levels: xs.length,
    r2: 0.9991,
    aicc: -41.2,
    loo_rmse: 0.021,
    parameters: {
      a: { value: a, ci95: [a * 0.97, a * 1.03] },
      b: { value: slope, ci95: [slope - 0.018, slope + 0.018] },
    },
  };
}

function scaling(configurations, group) {
  const [first] = configurations;
  return {
    scaling: "strong",
    group,
    baseline: { gpus: first.factors.gpus },
    rows: configurations.map((c) => {
      const speed_up = first.epoch_time_s.mean / c.epoch_time_s.mean;
      return {
        gpus: c.factors.gpus,
        epoch_time_s: c.epoch_time_s.mean,
        speed_up,
        efficiency: (speed_up * first.factors.gpus) / c.factors.gpus,
        epoch_energy_j: c.epoch_energy_j.mean,
        energy_ratio: c.epoch_energy_j.mean / first.epoch_energy_j.mean,
        preliminary: c.preliminary,
      };
    }),
  };
}

function regionsOf(run) {
  const regions = [{ name: "joulemark.command", index: 0, from: 0, to: run.epoch_time_s * (epochs + 0.2) }];
  for (let i = 0; i < epochs; ++i)
    regions.push({
      name: "epoch",
      index: i,
      from: run.epoch_time_s * (0.2 + i),
      to: run.epoch_time_s * (1.2 + i),
    });
  return regions.map(({ name, index, from, to }) => ({
    run: run.run,
    host,
    name,
    index,
    start_ns: 5e12 + from * 1e9,
    end_ns: 5e12 + to * 1e9,
    samples: name === "epoch" ? 128000 : null,
    energy_counter_j: run.mean_power_w * (to - from),
    energy_integrated_j: run.mean_power_w * (to - from) * 1.002,
    energy_j: run.mean_power_w * (to - from),
    energy_bound_j: 12,
    mean_power_w: run.mean_power_w,
    gpu_memory_util_pct: 71.5,
    gpu_busy_pct: 96,
    sm_util_pct: null,
    provenance: { method: "counter" },
  }));
}

function traces(run, devices) {
  const length = 600;
  const total = run.epoch_time_s * (epochs + 0.2);
  const random = noise(7);
  const series = [];
  for (let device = 0; device < devices; ++device) {
    for (const metric of ["power_w", "busy_pct", "memory_used_bytes", "sm_clock_mhz", "temperature_c"]) {
      const time_ns = [],
        minimum = [],
        average = [],
        maximum = [];
      for (let i = 0; i < length; ++i) {
        const t = (total * i) / length;
        const start = t < 0.2 * run.epoch_time_s;
        const dip = (t / run.epoch_time_s - 0.2) % 1 > 0.95;
        const level = {
          power_w: start || dip ? 70 : 205 + 6 * device,
          busy_pct: start || dip ? 12 : 97,
          memory_used_bytes: start ? 2e9 : 24e9,
          sm_clock_mhz: start ? 1200 : 1380,
          temperature_c: 45 + 20 * (1 - Math.exp(-t / 60)),
        }[metric];
        const value = i > 300 && i < 306 ? null : level * (1 + 0.02 * random());
        time_ns.push(5e12 + Math.round(t * 1e9));
        minimum.push(value === null ? null : value * 0.97);
        average.push(value);
        maximum.push(value === null ? null : value * 1.03);
      }
      series.push({
        run: run.run,
        host,
        device: `gpu${device}`,
        metric,
        time_ns,
        minimum,
        mean: average,
        maximum,
      });
    }
  }
  return series;
}

const machine = (simulated) => ({
  hosts: [host],
  simulated,
  hardware: { cpu_model: "Intel Xeon Gold 6248", cpus: 40, memory_bytes: 384 * 2 ** 30 },
  software: { kernel: "6.1.0", driver: "470.57.02", cuda: "11.4" },
  devices: [0, 1, 2, 3].map((i) => ({
    device: `gpu${i}`,
    component: "gpu",
    name: "Tesla V100-SXM2-32GB",
    memory_bytes: 32 * 2 ** 30,
    power_limit_w: 300,
    simulated,
  })),
  sources: [0, 1, 2, 3].flatMap((i) => [
    {
      source: "nvml",
      device: `gpu${i}`,
      metrics: ["power_w", "busy_pct", "memory_used_bytes", "sm_clock_mhz"],
      method: "simulated",
      scope: "gpu board",
      origin: "nvmlDeviceGetPowerUsage",
      period_s: 0.1,
      native_period_s: 0.02,
      accuracy_pct: 5,
      accuracy_note: "of the reading",
      achieved_hz: 9.998,
    },
    {
      source: "nvml.energy",
      device: `gpu${i}`,
      metrics: ["energy_j"],
      method: "simulated",
      scope: "gpu board",
      origin: "nvmlDeviceGetTotalEnergyConsumption",
      period_s: 1,
      native_period_s: 0.1,
      accuracy_pct: null,
      accuracy_note: "",
      achieved_hz: 1,
    },
  ]),
  unavailable: missing,
});

const generated = {
  version: "0.1.0",
  at: "2025-11-30T18:00:00Z",
  command: "joulemark report results -f report.html",
  source: "results",
  omitted: [],
};

function document(analysis, rest = {}) {
  const empty = {
    runs: [],
    configurations: [],
    laws: [],
    energy_per_gpu_hour: [],
    energy_per_sample: [],
    scaling: [],
    regressions: [],
    sensitivity: [],
    regions: [],
    coverage: [],
    warnings: [],
  };
  return {
    analysis: { ...empty, ...analysis },
    traces: [],
    study: null,
    environment: { machines: [] },
    generated,
    ...rest,
  };
}

/** One factor at a time from a baseline, as the V100 study: GPUs, caps, clocks; five repeats, one single run. */
export function study({ repeats = 5 } = {}) {
  const random = noise(42);
  const baseline = { workload: "resnet50", gpus: 4, power_cap_w: 250, sm_clock_mhz: 1380, local_batch: 128 };
  const levels = {
    gpus: [2, 4, 8, 16, 32, 64],
    power_cap_w: [100, 125, 150, 200, 250],
    sm_clock_mhz: [135, 435, 735, 1080, 1380],
  };
  const all = new Map();
  for (const [factor, values] of Object.entries(levels)) {
    for (const value of values) {
      const factors = { ...baseline, [factor]: value };
      all.set(JSON.stringify(factors), factors);
    }
  }
  let position = 0;
  const runs = [];
  const configurations = [...all.values()].map((factors) => {
    const own = Array.from({ length: factors.gpus === 64 ? 1 : repeats }, (_, repeat) =>
      makeRun(factors, repeat + 1, random, ++position),
    );
    runs.push(...own);
    return configuration(factors, own);
  });
  const along = (factor) =>
    configurations
      .filter((c) =>
        Object.entries(baseline).every(([key, value]) => key === factor || c.factors[key] === value),
      )
      .sort((a, b) => a.factors[factor] - b.factors[factor]);
  const group = (factor) => Object.fromEntries(Object.entries(baseline).filter(([key]) => key !== factor));
  const laws = [
    powerLaw("epoch_time_s", "gpus", group("gpus"), along("gpus")),
    {
      ...powerLaw("epoch_time_s", "gpus", group("gpus"), along("gpus"), false),
      form: "exponential",
      parameters: { a: { value: 520, ci95: [310, 880] }, b: { value: -0.03, ci95: [-0.06, null] } },
      r2: 0.71,
      aicc: 3.1,
      loo_rmse: 0.6,
    },
    powerLaw("epoch_time_s", "power_cap_w", group("power_cap_w"), along("power_cap_w")),
    powerLaw("epoch_energy_j", "gpus", group("gpus"), along("gpus")),
    {
      response: "epoch_time_s",
      factor: "sm_clock_mhz",
      group: group("sm_clock_mhz"),
      form: "saturating",
      selected: true,
      n_levels: 5,
      r2: 0.998,
      aicc: -22,
      loo_rmse: 0.03,
      parameters: {
        a: { value: 1500, ci95: [1300, 1800] },
        k: { value: 380, ci95: [330, 440] },
        c: { value: 300, ci95: [null, 320] },
      },
    },
    {
      response: "epoch_energy_j",
      factor: "sm_clock_mhz",
      group: group("sm_clock_mhz"),
      form: null,
      parameters: {},
      n_levels: 2,
      selected: false,
      reason: "no law: 2 levels",
    },
  ];
  const { slope, intercept } = line(
    runs.map((run) => run.gpu_hours),
    runs.map((run) => run.energy_j / 3.6e6),
  );
  return document(
    {
      runs,
      configurations,
      laws,
      scaling: [scaling(along("gpus"), group("gpus"))],
      energy_per_gpu_hour: [
        {
          group: {},
          pooled: true,
          slope_kwh: { value: slope, ci95: [slope * 0.98, slope * 1.02] },
          intercept_kwh: intercept,
          r2: 0.981,
          n: runs.length,
        },
      ],
      energy_per_sample: [
        {
          group: {},
          pooled: true,
          slope_wh: { value: 0.0123, ci95: [0.012, 0.0126] },
          r2: 0.99,
          n: runs.length,
        },
      ],
      sensitivity: [
        {
          component: "dram",
          low: 0.03,
          high: 0.08,
          energy_band_j: [1e7, 1.3e7],
          conclusions: [{ text: "150 W needs less energy than 250 W", survives: true }],
        },
      ],
      regions: runs.flatMap(regionsOf),
      coverage: runs.flatMap((run) =>
        ["gpu", "cpu"].map((component) => ({
          run: run.run,
          host,
          component,
          device: `${component}0`,
          covered_pct: 99.8,
        })),
      ),
      published: [
        {
          factors: { workload: "resnet50" },
          metric: "energy_per_gpu_hour_kwh",
          value: { mean: 0.25, sd: 0.01, ci95: [0.24, 0.26], n: 5 },
          source: "Huber et al. 2025",
          published: [0.27, 0.31],
          components: ["gpu", "cpu", "dram"],
          note: "A100",
          comparable: false,
          reason: "DRAM was not measured here",
        },
      ],
      least_energy: [
        {
          factor: "power_cap_w",
          group: group("power_cap_w"),
          value: 100,
          ci95: [100, 112],
          epoch_energy_j: 2.2e5,
          interior: false,
          time_form: "power",
          power_form: "linear",
          n_levels: 5,
        },
      ],
      regressions: [
        {
          response: "log epoch_time_s",
          group: {},
          n: 14,
          r2: 0.999,
          notes: [],
          terms: [{ name: "gpus", value: -0.93, ci95: [-0.95, -0.91], vif: 1.2 }],
          refused: [
            {
              terms: ["global_batch"],
              reason: "it follows from the other terms in this design: vary it on its own",
            },
          ],
        },
      ],
      warnings: [
        { code: "single_run", text: "1 configuration ran once; repeat it before comparing." },
        {
          code: "methods_disagree",
          text: "In some runs the protocol's energy differs from the counter's by more than 3 %.",
        },
      ],
    },
    {
      study: { study: "frey2022-resnet50", repeats, design: "one-factor", baseline },
      environment: { machines: [machine(true)] },
      traces: traces(runs[0], 4),
    },
  );
}

/** Nothing at all. */
export const empty = () => document({});

/** One run without any GPU and without energy; every value that can be absent is. */
export function noEnergy() {
  const run = {
    run: "plain-20251130T180000Z-1",
    status: "cut",
    factors: {},
    hosts: ["laptop"],
    training_speed_s: null,
    epoch_time_s: null,
    samples_per_s: null,
    energy_j: null,
    energy_by_component_j: {},
    energy_by_node_j: {},
    energy_counter_j: null,
    energy_integrated_j: null,
    energy_protocol_j: null,
    joule_per_sample: null,
    gpu_hours: null,
    mean_power_w: null,
    gpu_memory_util_pct: null,
    gpu_busy_pct: null,
    sm_util_pct: null,
    quality: null,
    provenance: {
      energy_j: {
        window: "joulemark.command",
        contains: [],
        lacks: ["gpu", "cpu", "dram", "network", "psu", "cooling"],
        text: "no energy sensor: `joulemark show DIR RUN` lists why (Not measured)",
      },
      components: {},
      unavailable: [
        {
          name: "rapl package-0",
          quantity: "energy",
          scope: "cpu package",
          reason: "the CPU's counters can be read by root only",
          remedy: "chmod a+r the file",
        },
      ],
    },
  };
  return document({
    runs: [run],
    configurations: [
      {
        factors: {},
        n: 1,
        preliminary: true,
        epoch_time_s: null,
        energy_j: { mean: null, sd: null, ci95: null },
      },
    ],
    warnings: [{ code: "run_cut", text: "The run was cut: its end is the last sample." }],
  });
}

/** Two levels, single runs on real devices, CPU energy estimated. */
export function estimated() {
  const document_ = study({ repeats: 1 });
  for (const run of document_.analysis.runs) {
    Object.assign(run, { simulated: false, estimated: true, provenance: provenance("counter", 0) });
    run.provenance.components.cpu.source_methods = ["estimated"];
  }
  return document_;
}

/** The study under names that would be markup if anything inserted them as such. */
export function hostile() {
  const document_ = study({ repeats: 2 });
  const name = `</script><img src=x onerror="document.title='broken'"><b>&amp;`;
  const original = document_.analysis.runs[0].run;
  for (const record of [...document_.analysis.runs, ...document_.analysis.regions, ...document_.traces])
    if (record.run === original) record.run = name;
  document_.analysis.runs[0].factors.workload = name;
  document_.analysis.warnings.push({ code: name, text: name });
  document_.study.study = name;
  document_.generated = { ...document_.generated, command: name };
  return document_;
}

/** As many runs as the published study made. */
export function large(count = 3400) {
  const random = noise(3);
  const runs = [];
  const configurations = [];
  for (let i = 0; runs.length < count; ++i) {
    const factors = {
      workload: ["resnet50", "bert", "schnet"][i % 3],
      gpus: 2 ** (1 + (Math.floor(i / 3) % 8)),
      power_cap_w: [100, 200, 250][Math.floor(i / 24) % 3],
      sm_clock_mhz: [135, 735, 1380][Math.floor(i / 72) % 3],
      local_batch: 2 ** (4 + Math.floor(i / 216)),
    };
    const own = Array.from({ length: Math.min(5, count - runs.length) }, (_, repeat) =>
      makeRun(factors, repeat + 1, random, runs.length + repeat),
    );
    runs.push(...own);
    configurations.push(configuration(factors, own));
  }
  return document(
    { runs, configurations, regions: runs.slice(0, 500).flatMap(regionsOf) },
    { environment: { machines: [machine(true)] } },
  );
}

export const documents = { study, empty, noEnergy, estimated, hostile, large };

// SPDX-License-Identifier: Apache-2.0
// Long traces of one run: a panel per metric, a line per device with its minimum and maximum, regions shaded.
import uPlot from "uplot";
import { copy, csv, h } from "./dom";
import { markWords } from "./figure";
import { number, quantity, unitFor, withUnit } from "./format";
import type { Mark, Region, TraceIndex } from "./model";
import { current, onChange, type Theme } from "./theme";

interface Trace {
  host: string;
  device: string;
  metric: string;
  start_ns: number;
  time_s: number[];
  minimum: (number | null)[];
  mean: (number | null)[];
  maximum: (number | null)[];
}

const preferred = [
  "power_instant_w",
  "power_w",
  "busy_pct",
  "sm_util_pct",
  "memory_used_bytes",
  "sm_clock_mhz",
  "temperature_c",
  "power_limit_w",
];
/** Shown before the reader chooses: the freshest power, utilisation, memory, clock. */
function atFirst(metrics: string[]): Set<string> {
  const power = metrics.find((metric) => metric.includes("power"));
  return new Set([power ?? "", "busy_pct", "memory_used_bytes", "sm_clock_mhz"]);
}
const mostKeys = 8;

async function unpack(index: TraceIndex): Promise<Trace[]> {
  const text = document.getElementById(index.block)?.textContent ?? "";
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const series = JSON.parse(await new Response(stream).text()) as Omit<Trace, "host" | "device" | "metric">[];
  return series.map((trace, i) => ({ ...index.series[i], ...trace }));
}

/** Series of one panel on a common time axis, as uPlot wants them: time, then minimum, mean, maximum of each. */
function aligned(traces: Trace[], zero: number, scale: number): uPlot.AlignedData {
  const tables = traces.map((trace) => {
    const offset = (trace.start_ns - zero) * 1e-9;
    const scaled = (values: (number | null)[]) =>
      values.map((value) => (value === null ? null : value / scale));
    return [
      trace.time_s.map((t) => t + offset),
      scaled(trace.minimum),
      scaled(trace.mean),
      scaled(trace.maximum),
    ] as uPlot.AlignedData;
  });
  return uPlot.join(tables);
}

/** Shades the regions behind a panel and writes their names where there is room. */
function shade(regions: Region[], zero: number, theme: Theme, labelled: boolean): (u: uPlot) => void {
  const names = [...new Set(regions.map((region) => region.name ?? ""))];
  return (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const region of regions) {
      const from = u.valToPos((Number(region.start_ns) - zero) * 1e-9, "x", true);
      const to = u.valToPos((Number(region.end_ns) - zero) * 1e-9, "x", true);
      ctx.fillStyle = theme.series[(names.indexOf(region.name ?? "") + 2) % theme.series.length];
      ctx.globalAlpha = (region.index ?? 0) % 2 === 0 ? 0.13 : 0.06;
      ctx.fillRect(from, bbox.top, to - from, bbox.height);
      const label = `${region.name ?? ""} ${region.index ?? ""}`.trim();
      ctx.font = `${11 * devicePixelRatio}px "Inter Variable", sans-serif`;
      if (labelled && to - from > ctx.measureText(label).width + 10) {
        ctx.globalAlpha = 1;
        ctx.fillStyle = theme.muted;
        ctx.textBaseline = "top";
        ctx.textAlign = "left";
        ctx.fillText(label, from + 5, bbox.top + 4);
      }
    }
    ctx.restore();
  };
}

function panel(
  metric: string,
  traces: Trace[],
  regions: Region[],
  zero: number,
  first: boolean,
  width: number,
): { plot: uPlot; element: HTMLElement } {
  const theme = current();
  const unit = unitFor(
    metric,
    traces.flatMap((trace) => trace.maximum),
  );
  const { label } = quantity(metric);
  const own = regions.filter((region) => !region.name?.startsWith("joulemark."));
  const series: uPlot.Series[] = [{ label: "Time" }];
  const bands: uPlot.Band[] = [];
  traces.forEach((trace, i) => {
    const colour = theme.series[i % theme.series.length];
    const edge: uPlot.Series = { show: true, width: 0, points: { show: false }, stroke: "transparent" };
    const base = series.length;
    series.push(
      { ...edge, label: `${trace.device} minimum` },
      { label: trace.device, stroke: colour, width: 1.4, points: { show: false } },
      { ...edge, label: `${trace.device} maximum` },
    );
    bands.push({ series: [base + 2, base], fill: colour + "2e" });
  });
  const axis: uPlot.Axis = {
    stroke: theme.muted,
    grid: { stroke: theme.grid, width: 1 },
    ticks: { stroke: theme.grid, width: 1, size: 4 },
    font: '11px "Inter Variable", sans-serif',
  };
  const host = h("div", { class: "trace-panel" });
  const values = h("p", { class: "trace-values", "aria-live": "off" });
  const legend = (u: uPlot) => {
    const at = u.cursor.idx;
    values.replaceChildren(
      h("strong", null, withUnit(label, unit.name)),
      at === null || at === undefined ? "" : ` at ${number(u.data[0][at])} s`,
      ...traces.slice(0, mostKeys).map((trace, i) => {
        const value = at === null || at === undefined ? null : u.data[2 + 3 * i][at];
        return h(
          "span",
          { class: "key", style: `--key: ${theme.series[i % theme.series.length]}` },
          trace.device,
          value === null || value === undefined ? "" : ` ${number(value, 3)}`,
        );
      }),
      traces.length > mostKeys ? ` and ${traces.length - mostKeys} more` : "",
    );
  };
  const plot = new uPlot(
    {
      width,
      height: first ? 190 : 150,
      series,
      bands,
      legend: { show: false },
      cursor: { sync: { key: "joulemark" }, points: { show: false }, drag: { x: true, y: false } },
      scales: {
        x: { time: false },
        y: {
          range: (_, low, high) => [Math.min(0, low), high > low ? high * (first ? 1.25 : 1.06) : high + 1],
        },
      },
      axes: [
        {
          ...axis,
          label: "Time (s)",
          labelSize: 18,
          labelFont: '11px "Inter Variable", sans-serif',
          size: 30,
        },
        { ...axis, size: 54 },
      ],
      hooks: { drawClear: [shade(own, zero, theme, first)], setCursor: [legend], ready: [legend] },
    },
    aligned(traces, zero, unit.scale),
    host,
  );
  return { plot, element: h("div", null, values, host) };
}

export function traceView(index: TraceIndex, regions: Region[], marks: Mark[]): HTMLElement {
  const hosts = [...new Set(index.series.map((series) => series.host))];
  const metrics = [...new Set(index.series.map((series) => series.metric))].sort((a, b) => rank(a) - rank(b));
  const body = h("div", { class: "traces" }, h("p", { class: "muted" }, "Unpacking…"));
  const host = h("select", { id: "trace-host" }, ...hosts.map((name) => h("option", { value: name }, name)));
  const first = atFirst(metrics);
  const boxes = metrics.map((metric) =>
    h("input", { type: "checkbox", value: metric, checked: first.has(metric), id: `trace-${metric}` }),
  );
  const copyButton = h("button", { type: "button" }, "Copy data as CSV");
  let plots: uPlot[] = [];
  let all: Trace[] = [];
  let width = 0;

  const update = () => {
    if (all.length === 0 || width === 0) return;
    for (const plot of plots) plot.destroy();
    const own = all.filter((trace) => trace.host === host.value && trace.time_s.length > 0);
    const ownRegions = regions.filter((region) => region.host === undefined || region.host === host.value);
    const zero = Math.min(...own.map((trace) => trace.start_ns));
    const panels = boxes
      .filter((box) => box.checked)
      .map((box) => own.filter((trace) => trace.metric === box.value))
      .filter((traces) => traces.length > 0)
      .map((traces, i) => panel(traces[0].metric, traces, ownRegions, zero, i === 0, width));
    plots = panels.map(({ plot }) => plot);
    body.replaceChildren(
      ...(panels.length > 0
        ? panels.map(({ element }) => element)
        : [h("p", { class: "absent-note" }, "No metric is chosen.")]),
    );
  };
  copyButton.addEventListener("click", () => {
    const rows = all.flatMap((trace) =>
      trace.time_s.map((t, i) => ({
        run: index.run,
        host: trace.host,
        device: trace.device,
        metric: trace.metric,
        time_ns: trace.start_ns + t * 1e9,
        minimum: trace.minimum[i],
        mean: trace.mean[i],
        maximum: trace.maximum[i],
      })),
    );
    void copy(copyButton, csv(rows), "traces.csv");
  });
  host.addEventListener("change", update);
  for (const box of boxes) box.addEventListener("change", update);
  onChange(update);
  new ResizeObserver(() => {
    const now = Math.floor(body.clientWidth);
    if (now !== width) {
      width = now;
      update();
    }
  }).observe(body);
  unpack(index).then(
    (traces) => {
      all = traces;
      update();
    },
    () =>
      body.replaceChildren(
        h(
          "p",
          { class: "absent-note" },
          "The traces could not be unpacked: this browser has no DecompressionStream, or the file was cut.",
        ),
      ),
  );

  return h(
    "section",
    { class: "trace-view", "aria-label": `Traces of ${index.run}` },
    h("h4", null, "Traces"),
    h(
      "p",
      { class: "caption" },
      ...markWords(marks),
      "Lines are means per bin, bands go from minimum to maximum, gaps are gaps. Shaded: regions. Drag to zoom, double-click to see all. Times of this host's own clock, from its first sample.",
    ),
    h(
      "div",
      { class: "controls" },
      hosts.length > 1 ? h("label", null, "Host ", host) : null,
      h(
        "fieldset",
        null,
        h("legend", null, "Metrics"),
        ...boxes.map((box, i) => h("label", null, box, ` ${quantity(metrics[i]).label}`)),
      ),
    ),
    body,
    h("div", { class: "tools" }, copyButton),
  );
}

const rank = (metric: string): number =>
  preferred.includes(metric) ? preferred.indexOf(metric) : preferred.length;

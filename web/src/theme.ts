// SPDX-License-Identifier: Apache-2.0
// Colours of figures. Series colours are told apart with the common kinds of colour blindness (after Okabe
// and Ito, darkened for small marks on white); symbols differ too, so that grey prints read as well.

export interface Theme {
  ink: string;
  muted: string;
  grid: string;
  paper: string;
  series: string[];
}

export const light: Theme = {
  ink: "#1c2127",
  muted: "#5a6470",
  grid: "#e4e7ea",
  paper: "#ffffff",
  series: ["#0067a8", "#c8500a", "#00805e", "#a8478c", "#9a6a00", "#2f8fc4", "#6b5bb5", "#5a6470"],
};

export const dark: Theme = {
  ink: "#e4e7eb",
  muted: "#9aa4b0",
  grid: "#2c333c",
  paper: "#14181d",
  series: ["#5fb2ee", "#f28c4c", "#3fc79a", "#e08cc4", "#e3b341", "#8fd0f5", "#a99bf0", "#9aa4b0"],
};

export const symbols = ["circle", "square", "triangle", "diamond", "star", "wye", "cross", "circle"] as const;

const scheme = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let printing = false;

export function current(): Theme {
  const chosen = document.documentElement.dataset.theme;
  return !printing && (chosen === "dark" || (chosen !== "light" && scheme.matches)) ? dark : light;
}

export function onChange(listener: () => void): void {
  listeners.add(listener);
}

function notify(): void {
  for (const listener of listeners) listener();
}

export function choose(theme: "auto" | "light" | "dark"): void {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  notify();
}

scheme.addEventListener("change", notify);
for (const [event, state] of [
  ["beforeprint", true],
  ["afterprint", false],
] as const) {
  window.addEventListener(event, () => {
    printing = state;
    notify();
  });
}

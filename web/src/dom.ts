// SPDX-License-Identifier: Apache-2.0

export type Child = Node | string | number | null | undefined | false | Child[];
type Attribute = string | number | boolean | undefined | ((event: Event) => void);

/** An element. Text becomes text nodes, never markup: whatever a run is called stays text. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> | null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") {
      element.addEventListener(name.replace(/^on/, ""), value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  append(element, children);
  return element;
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) {
      append(parent, child);
    } else if (child instanceof Node) {
      parent.appendChild(child);
    } else if (child !== null && child !== undefined && child !== false) {
      parent.appendChild(document.createTextNode(String(child)));
    }
  }
}

/** Puts `separator` between children, as Array.join does for text. */
export function joined(children: Child[], separator: string): Child[] {
  return children.flatMap((child, i) => (i === 0 ? [child] : [separator, child]));
}

export function download(name: string, type: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Copies text and tells so on the button; where the browser allows no clipboard, downloads it. */
export async function copy(button: HTMLElement, text: string, fallbackName: string): Promise<void> {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    download(fallbackName, "text/csv", text);
    button.textContent = "Saved";
  }
  setTimeout(() => (button.textContent = label), 1500);
}

export type CsvRow = Record<string, unknown>;

/** RFC 4180 with a header row; absent values are empty fields. */
export function csv(rows: CsvRow[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const field = (value: unknown) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows.map((row) => names.map((name) => row[name]))]
    .map((row) => row.map(field).join(",") + "\n")
    .join("");
}

// SPDX-License-Identifier: Apache-2.0
// Bundles scripts, styles and fonts into one page, dist/report.html, with a marker where the data goes.
// The page's content security policy allows its own script, by hash, and no request of any kind.
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const result = await build({
  entryPoints: ["src/report.ts"],
  bundle: true,
  minify: true,
  metafile: true,
  format: "iife",
  target: ["chrome100", "firefox113", "safari16.4"],
  loader: { ".woff2": "dataurl" },
  outdir: "dist",
  write: false,
  charset: "utf8",
});

/** The licence texts of the packages that the bundle contains. */
async function licences() {
  const folder = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//;
  const names = [
    ...new Set(
      Object.keys(result.metafile.inputs)
        .map((path) => folder.exec(path)?.[1])
        .filter(Boolean),
    ),
  ];
  const texts = names.sort().map(async (name) => {
    const path = `node_modules/${name}`;
    const { version, license } = JSON.parse(await readFile(`${path}/package.json`, "utf8"));
    const file = (await readdir(path)).find((entry) => /^licen[cs]e/i.test(entry));
    return `${name} ${version} (${license})\n\n${file ? (await readFile(`${path}/${file}`, "utf8")).trim() : ""}\n`;
  });
  return (await Promise.all(texts)).join("\n----\n\n");
}

const output = (suffix) => result.outputFiles.find((file) => file.path.endsWith(suffix)).text.trim();
const closed = (text) => text.replaceAll("</script", "<\\/script");
const script = closed(output(".js"));
const hash = createHash("sha256").update(script).digest("base64");
const parts = {
  policy: `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; font-src data:; img-src data: blob:`,
  style: output(".css"),
  licences: closed(await licences()),
  script,
};
const shell = await readFile("src/report.html", "utf8");
await mkdir("dist", { recursive: true });
await writeFile(
  "dist/report.html",
  shell.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]),
);

// SPDX-License-Identifier: Apache-2.0
// The report in a real browser, from file://: what it shows equals its document, it asks the network for
// nothing, and it stays whole with nothing, without energy, with hostile names and with 3,400 runs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { documents } from "./documents.mjs";

const { JOULEMARK_WRITE_REPORT, JOULEMARK_WEB_BUILD, JOULEMARK_CHROMIUM } = process.env;
const { chromium } = createRequire(join(JOULEMARK_WEB_BUILD, "package.json"))("playwright-core");

const folder = mkdtempSync(join(tmpdir(), "joulemark-report-"));
const profile = join(folder, "profile");
let browser;

before(async () => {
  browser = await chromium.launchPersistentContext(profile, {
    executablePath: JOULEMARK_CHROMIUM,
    headless: true,
    acceptDownloads: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The report of a document, opened; fails on any console error, page error or request at the end of `look`. */
async function open(document, look, { width = 1280, scheme = "light" } = {}) {
  const file = join(folder, "report.html");
  execFileSync(JOULEMARK_WRITE_REPORT, [file], { input: JSON.stringify(document) });
  const page = await browser.newPage();
  const troubles = [];
  const address = pathToFileURL(file).href;
  page.on(
    "console",
    (message) => ["error", "warning"].includes(message.type()) && troubles.push(message.text()),
  );
  page.on("pageerror", (error) => troubles.push(error.message));
  page.on("request", (request) => {
    if (request.url() !== address && !/^(data|blob):/.test(request.url()))
      troubles.push(`request of ${request.url()}`);
  });
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  try {
    await page.goto(address);
    await page.locator("main h1").waitFor();
    await look(page);
    assert.deepEqual(troubles, []);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    assert.ok(overflow <= 0, `the page scrolls sideways by ${overflow} px`);
  } finally {
    await page.close();
  }
}

/** The rows of a table: the value of <data> where there is one, else the text. */
const cells = (page, id) =>
  page
    .locator(`#${id} tbody tr`)
    .evaluateAll((rows) =>
      rows.map((row) =>
        [...row.cells].map((cell) =>
          cell.querySelector("data") ? Number(cell.querySelector("data").value) : cell.innerText,
        ),
      ),
    );

const saved = async (page, button) => {
  const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return readFileSync(await download.path(), "utf8");
};

test("the tables say what the document says", async () => {
  const document = documents.study();
  await open(document, async (page) => {
    assert.equal(await page.locator("h1").innerText(), "frey2022-resnet50");
    const rows = await cells(page, "configurations-table");
    const configurations = document.analysis.configurations;
    assert.equal(rows.length, configurations.length);
    rows.forEach((row, i) => {
      const { factors, n, epoch_time_s: time } = configurations[i];
      assert.deepEqual(row.slice(0, 3), [factors.gpus, factors.power_cap_w, factors.sm_clock_mhz]);
      assert.equal(row[3], n);
      assert.equal(row[4], time.mean);
      assert.equal(row[5], time.sd ?? "–");
    });
    const scaling = await cells(page, "scaling-table");
    document.analysis.scaling[0].rows.forEach((row, i) =>
      assert.deepEqual(scaling[i].slice(0, 3), [row.gpus, row.epoch_time_s, row.speed_up]),
    );
    const methods = await cells(page, "methods-table");
    methods.forEach((row, i) => assert.equal(row[1], document.analysis.runs[i].energy_counter_j));
    assert.equal(await page.locator("#laws-table tbody tr").count(), document.analysis.laws.length);
    assert.match(await page.locator("#laws-table").innerText(), /no law: 2 levels/);
  });
});

test("simulated and preliminary stand at every figure, and in every saved one", async () => {
  await open(documents.study(), async (page) => {
    assert.match(await page.locator(".banner-simulated").innerText(), /simulated/i);
    const figures = page.locator("figure");
    const count = await figures.count();
    assert.ok(count >= 9);
    for (let i = 0; i < count; ++i) {
      assert.match(await figures.nth(i).locator("figcaption").innerText(), /Simulated/i);
    }
    const svg = await saved(page, page.locator("#figure-epoch_time_s-gpus").getByText("Save SVG"));
    assert.match(svg, /^<\?xml.*\n<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
    assert.match(svg, />SIMULATED</);
    assert.match(svg, />Epoch time \(s\)</);
    assert.doesNotMatch(svg, /var\(--/);
  });
});

test("figures hold one mark per configuration and one per run", async () => {
  const document = documents.study();
  const over = document.analysis.configurations.filter(
    ({ factors }) => factors.power_cap_w === 250 && factors.sm_clock_mhz === 1380,
  );
  await open(document, async (page) => {
    const marks = (kind) => page.locator(`#figure-epoch_time_s-gpus .${kind} :is(circle, path)`).count();
    assert.equal(await marks("mean"), over.length);
    assert.equal(
      await marks("repeat"),
      over.reduce((sum, { n }) => sum + n, 0),
    );
    assert.equal(
      await page.locator("#figure-components rect").count(),
      document.analysis.configurations.length * 2,
    );
    const caption = await page.locator("#figure-epoch_time_s-gpus figcaption").innerText();
    assert.match(caption, /95 % interval/);
    assert.match(caption, /6 levels/);
    assert.match(
      await page.locator("#figure-epoch_energy_j-sm_clock_mhz figcaption").innerText(),
      /No law: 2 levels/,
    );
  });
});

test("traces unpack, and show the run that is chosen", async () => {
  const document = documents.study();
  await open(document, async (page) => {
    await page.locator(".trace-panel canvas").first().waitFor();
    assert.equal(await page.locator(".trace-panel").count(), 4);
    await page.getByLabel("Temperature", { exact: true }).check();
    assert.equal(await page.locator(".trace-panel").count(), 5);
    await page.locator("#run-choice").selectOption({ index: 1 });
    assert.match(await page.locator("#run-detail").innerText(), /traces of this run are not in this report/);
    assert.match(await page.locator("#regions-table").innerText(), new RegExp(document.analysis.runs[1].run));
  });
});

test("a name that would be markup is text", async () => {
  const document = documents.hostile();
  await open(document, async (page) => {
    assert.equal(await page.locator("h1").innerText(), document.study.study);
    assert.ok((await page.locator("#runs-table").innerText()).includes(document.analysis.runs[0].run));
    assert.equal(await page.locator("main img").count(), 0);
    assert.notEqual(await page.title(), "broken");
  });
});

test("energy that was not measured is absent with its reason, never 0", async () => {
  await open(documents.noEnergy(), async (page) => {
    const text = await page.locator("main").innerText();
    assert.match(text, /Energy was not measured/);
    assert.match(
      await page.locator("#runs-table").innerText(),
      /not measured: the CPU's counters can be read by root only/,
    );
    assert.match(await page.locator("#configurations-table").innerText(), /not measured: the CPU's counters/);
    assert.doesNotMatch(text, /\b0(\.0+)? (J|Wh|kWh|W)\b|NaN|undefined|Infinity|\[object/);
  });
});

const lead = (page) => page.locator("p.lead").innerText();

test("the head states a law only if all series have it, in words and with its formula", async () => {
  const document = documents.study();
  const laws = document.analysis.laws.filter((law) => law.response === "epoch_time_s" && law.factor === "gpus");
  assert.equal(laws.filter((law) => law.selected).length, 1);
  const other = structuredClone(laws.find((law) => law.selected));
  other.group = { ...other.group, power_cap_w: 200 };
  document.analysis.laws = [...laws, other];
  for (const law of document.analysis.laws) law.formula = "y = a x^b";
  await open(document, async (page) => {
    assert.match(await lead(page), /one form in all 2 series: power law, y = a x\^b/);
  });
  other.selected = false;
  other.reason = "no form fits: the best, y = a x^b, gives 4.3 % more than was measured at 8";
  await open(document, async (page) => {
    assert.doesNotMatch(await lead(page), /described/);
  });
});

test("frugality that repeats do not tell apart is not stated", async () => {
  const document = documents.study();
  const [one, two] = document.analysis.configurations;
  one.epoch_energy_j = { mean: 783e3, sd: 7.6e3, ci95: [764e3, 802e3] };
  two.epoch_energy_j = { mean: 768e3, sd: 4e3, ci95: [758e3, 778e3] };
  one.epoch_time_s.mean = 100;
  two.epoch_time_s.mean = 110;
  document.analysis.configurations = [one, two];
  const found = {
    group: {},
    fastest: { factors: one.factors },
    frugal: { factors: two.factors },
    time_ratio: { value: 1.1, ci95: null },
    energy_ratio: { value: 768 / 783, ci95: [0.957, 1.005] },
    significant: false,
  };
  document.analysis.trade_offs = [found];
  await open(document, async (page) => {
    assert.match(await lead(page), /is not told apart in energy from the fastest .*: 1\.9 % less, 95 % interval/);
  });
  Object.assign(found, { energy_ratio: { value: 768 / 783, ci95: [0.97, 0.99] }, significant: true });
  await open(document, async (page) => {
    assert.match(await lead(page), /used 1\.9 % less energy, 95 % interval 3\.0 % less to 1\.0 % less, and took/);
  });
});

test("a factor that one configuration lacks is a difference", async () => {
  const document = documents.study();
  document.analysis.configurations.forEach(({ factors }, i) => {
    if (i > 0) factors.accumulation = 2;
  });
  await open(document, async (page) => {
    const text = await page.locator("#configurations").innerText();
    assert.match(await page.locator("#configurations-table thead").innerText(), /Accumulation/i);
    assert.doesNotMatch(text.slice(text.indexOf("The same in all")), /accumulation/);
  });
});

test("imported energy is not called unmeasured", async () => {
  const document = documents.study();
  for (const run of document.analysis.runs) {
    run.simulated = false;
    run.energy_by_component_j = {};
    run.provenance = {
      imported: true,
      components: {},
      unavailable: [],
      energy_j: { contains: [], text: "imported from means.csv; its components are not known" },
    };
  }
  await open(document, async (page) => {
    const text = await page.locator("#measured").innerText();
    assert.doesNotMatch(text, /No energy|meter's clock/);
    assert.match(text, /imported from means\.csv; its components are not known/);
  });
});

test("a driver's whole message stands once, not in every cell", async () => {
  const document = documents.noEnergy();
  const message = `${"libnvidia-ml.so.1 cannot be opened as a shared object ".repeat(3)}end of message`;
  for (const run of document.analysis.runs) run.provenance.unavailable[0].reason = message;
  await open(document, async (page) => {
    assert.doesNotMatch(await page.locator("#runs-table").innerText(), /end of message/);
    assert.match(await page.locator("#unavailable-table").innerText(), /end of message/);
  });
});

test("labels at the ends of eight lines do not overlap", async () => {
  const document = documents.study();
  const template = document.analysis.configurations.filter(
    ({ factors }) => factors.power_cap_w === 250 && factors.sm_clock_mhz === 1380,
  );
  document.analysis.laws = [];
  document.analysis.scaling = [];
  document.analysis.configurations = Array.from({ length: 8 }, (_, i) =>
    template.map((one) => ({
      ...structuredClone(one),
      factors: { ...one.factors, power_cap_w: 100 + 20 * i },
      epoch_time_s: { mean: one.epoch_time_s.mean * (1 + 0.01 * i), sd: null, ci95: null },
    })),
  ).flat();
  await open(document, async (page) => {
    const boxes = await page
      .locator("#figure-epoch_time_s-gpus svg g[aria-label=text] text")
      .evaluateAll((labels) =>
        labels
          .map((label) => [label.textContent, label.getBoundingClientRect()])
          .filter(([text]) => /cap/.test(text))
          .map(([, { top, bottom }]) => [top, bottom])
          .sort((a, b) => a[0] - b[0]),
      );
    assert.equal(boxes.length, 8);
    boxes.slice(1).forEach(([top], i) => assert.ok(top >= boxes[i][1] - 4, `${top} under ${boxes[i][1]}`));
  });
});

for (const name of ["empty", "estimated", "noEnergy"]) {
  test(`the document "${name}" renders whole, wide and narrow`, async () => {
    for (const width of [1280, 390]) {
      await open(
        documents[name](),
        async (page) => {
          assert.doesNotMatch(await page.locator("main").innerText(), /NaN|undefined|Infinity|\[object/);
          assert.ok((await page.locator("main > section").count()) >= 9);
        },
        { width },
      );
    }
  });
}

test("estimated energy is called estimated", async () => {
  await open(documents.estimated(), async (page) => {
    assert.match(await page.locator(".banner-estimated").innerText(), /estimated/i);
    assert.match(await page.locator("#figure-components figcaption").innerText(), /estimated/i);
    assert.equal(await page.locator(".banner-simulated").count(), 0);
  });
});

test("3,400 runs turn pages, sort and filter", async () => {
  const document = documents.large();
  await open(document, async (page) => {
    const rows = page.locator("#runs-table tbody tr");
    assert.equal(await rows.count(), 15);
    assert.match(await page.locator("#runs-table").innerText(), /1–15 of 3,400/);
    await page.locator("#runs-table").getByRole("button", { name: "Next" }).click();
    assert.match(await page.locator("#runs-table").innerText(), /16–30 of 3,400/);
    await page
      .locator("#runs-table thead")
      .getByRole("button", { name: /Epoch time/ })
      .click();
    const times = (await cells(page, "runs-table")).map((row) =>
      row.find((value) => typeof value === "number"),
    );
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    );
    const chosen = document.analysis.runs[2345].run;
    await page.locator("#runs-table input[type=search]").fill(chosen);
    assert.equal(await rows.count(), 1);
    assert.equal(await rows.first().locator("td").first().innerText(), chosen);
  });
});

test("colours follow the system and the reader's choice; figures too", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const ink = (page) =>
    page
      .locator("#figure-epoch_time_s-gpus svg")
      .evaluate((svg) => svg.style.color || getComputedStyle(svg).color);
  await open(
    documents.study(),
    async (page) => {
      assert.equal(await background(page), "rgb(20, 24, 29)");
      assert.equal(await ink(page), "rgb(228, 231, 235)");
      await page.getByLabel("light").check();
      assert.equal(await background(page), "rgb(255, 255, 255)");
      assert.equal(await ink(page), "rgb(28, 33, 39)");
    },
    { scheme: "dark" },
  );
});

test("keyboard alone reaches the contents, tables and figures", async () => {
  await open(documents.study(), async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the report");
    const unnamed = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, [tabindex='0']")]
        .filter(
          (element) =>
            !(
              element.innerText ||
              element.getAttribute("aria-label") ||
              element.getAttribute("aria-labelledby") ||
              element.labels?.length
            ),
        )
        .map((element) => element.outerHTML),
    );
    assert.deepEqual(unnamed, []);
    const header = page.locator("#configurations-table thead button").first();
    await header.focus();
    await page.keyboard.press("Enter");
    assert.equal(
      await page.locator("#configurations-table th").first().getAttribute("aria-sort"),
      "ascending",
    );
  });
});

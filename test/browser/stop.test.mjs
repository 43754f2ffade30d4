// A large fleet is stopped and resumed, by an instance of the service that takes its time for it. REMIT_KEY is an API key, REMIT_AGENTS
// the number of agents, REMIT_REASON the reason by which the instance is slow.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { signIn } from "./chromium.mjs";
import { openAll, overflow } from "./pages.mjs";
import { eventually } from "./service.mjs";
import { axe, visitor } from "./visitor.mjs";

const all = Number(process.env.REMIT_AGENTS);
const shown = all.toLocaleString("en-US");
const slow = 120_000; // ms
const screenshots = process.env.REMIT_SCREENSHOTS;
if (screenshots) mkdirSync(screenshots, { recursive: true });

test("a stop shows how far it is, and then its end", async (t) => {
  const page = await visitor(t);
  page.setDefaultTimeout(60_000);
  await signIn(page, process.env.REMIT_KEY);
  await page.goto("/console/stop");
  await page.getByText(`0 of ${shown} live agents are suspended`).waitFor();
  await page.getByLabel("Reason").fill(process.env.REMIT_REASON);
  await page.getByLabel(/type stop/i).fill("stop");
  await page.getByRole("button", { name: "Stop all agents" }).click();

  await page.getByText("Suspending all agents since").waitFor();
  const seen = new Set();
  const end = page.getByRole("status").filter({ hasText: `All agents are suspended: ${shown} agents` });
  const look = async () => {
    const [value, text] = await page.evaluate(() => [document.querySelector("progress")?.value, document.querySelector("#suspended")?.textContent]);
    if (value === undefined) return;
    assert.equal(text, value.toLocaleString("en-US"));
    seen.add(value);
  };
  assert.equal(await page.getByRole("button", { name: /(stop|resume) all agents/i }).count(), 0, "while it runs there is a button for it, or for the way back");
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1440, 375]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await openAll(page);
      if (screenshots) await page.screenshot({ path: `${screenshots}/state-stop-under-way-${width}-${colorScheme}.png`, fullPage: true });
      assert.deepEqual(await overflow(page), []);
      assert.deepEqual(await axe(page), []);
      assert.ok(await page.getByText("Suspending all agents since").isVisible(), "it was over before it was looked at");
    }
  }
  await eventually("the end of the stop", async () => {
    await look().catch((e) => { if (!/navigation|context/i.test(e.message)) throw e; }); // the page shows the end by a reload
    return end.isVisible();
  }, slow);
  const values = [...seen];
  t.diagnostic(`suspended agents that were shown: ${values.join(" ")}`);
  assert.deepEqual(values, values.toSorted((a, b) => a - b), "the progress went back");
  assert.ok(values.filter((n) => n > 0 && n < all).length >= 2, "the progress bar did not move");
  await page.getByText(`${shown} of ${shown} live agents are suspended`).waitFor();
});

test("all are resumed", async (t) => {
  const page = await visitor(t);
  page.setDefaultTimeout(60_000);
  await signIn(page, process.env.REMIT_KEY);
  await page.goto("/console/stop");
  await page.getByLabel(/type resume/i).fill("resume");
  await page.getByRole("button", { name: "Resume all agents" }).click();
  await page.getByRole("status").filter({ hasText: `All agents are resumed: ${shown} agents` }).waitFor({ timeout: slow });
  await page.getByText(`0 of ${shown} live agents are suspended`).waitFor();
});

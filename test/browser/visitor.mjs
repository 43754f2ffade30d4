// A browser with one page, which fails its test when the page does what the console must never do.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after } from "node:test";
import { launch } from "./chromium.mjs";
import { origin } from "./service.mjs";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const browsers = new Map(); // by their further arguments
after(() => Promise.all([...browsers.values()].map(async (browser) => (await browser).close())));

const browserWith = (more) => {
  const key = more.join(" ");
  if (!browsers.has(key)) browsers.set(key, launch(more));
  return browsers.get(key);
};

// visitor opens a page in a fresh profile. After the test t it fails if the page asked another origin for anything, broke its
// content security policy, logged an error, threw, or opened a dialog of the browser.
//   options   of Playwright's contexts: viewport, colorScheme, reducedMotion, javaScriptEnabled …
//   args      of the browser, beside those it always has
//   expected  what the page may log, for a test that makes it do so
export async function visitor(t, { args = [], expected = /^$/, ...options } = {}) {
  const browser = await browserWith(args);
  const context = await browser.newContext({ baseURL: origin, viewport: { width: 1440, height: 900 }, ...options });
  const faults = [];
  await watch(context, faults);
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  t.after(async () => {
    await context.close();
    assert.deepEqual(faults.filter((fault) => !expected.test(fault)), [], "what the pages must not do");
  });
  return page;
}

async function watch(context, faults) {
  await context.route("**", (route) => {
    const url = new URL(route.request().url());
    if (url.origin === origin || url.protocol === "data:") return route.continue();
    faults.push(`a request to ${url.origin}`);
    return route.abort();
  });
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (e) => console.error("violates the policy:", e.violatedDirective, e.blockedURI));
  });
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !isRefusal(message.text())) faults.push(`logged: ${message.text()}`);
  });
  context.on("weberror", (e) => faults.push(`threw: ${e.error()}`));
  context.on("dialog", (dialog) => {
    faults.push(`opened a dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
}

// A refusal is a page with a status of 4xx, which the browser logs as an error.
const isRefusal = (text) => /^Failed to load resource: the server responded with a status of 4\d\d/.test(text);

// axe returns what axe-core finds on the page: WCAG 2.2 A and AA, and its best practices. It runs in a world of its own, so the
// page's policy stays as it is. The page's script must be enabled, or axe-core's timers never end.
export async function axe(page) {
  await page.waitForLoadState(); // a page that a click has led to may lack its style sheets until then
  const cdp = await page.context().newCDPSession(page);
  const { frameTree } = await cdp.send("Page.getFrameTree");
  const world = await cdp.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe" });
  const tags = JSON.stringify(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]);
  const find = `axe.run(document, { resultTypes: ["violations"], runOnly: ${tags} }).then(({ violations }) => violations.map(({ id, impact, nodes }) =>
    ({ id, impact, where: nodes.slice(0, 5).map((n) => n.target.join(" ") + ": " + n.failureSummary) })))`;
  const { result, exceptionDetails } = await cdp.send("Runtime.evaluate", {
    contextId: world.executionContextId, expression: `${axeSource};${find}`, awaitPromise: true, returnByValue: true,
  });
  await cdp.detach();
  assert.equal(exceptionDetails, undefined);
  return result.value;
}

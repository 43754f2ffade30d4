// Every page: nothing that axe-core finds, nothing wider than the window, readable without script, still for those who want
// no motion. REMIT_SCREENSHOTS is a directory for a picture of each.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { fixture } from "./fixture.mjs";
import { discover, fileName, openAll, overflow } from "./pages.mjs";
import { signIn } from "./chromium.mjs";
import { organization } from "./service.mjs";
import { axe, visitor } from "./visitor.mjs";

const { keys, near, parent, planner } = await fixture();
const screenshots = process.env.REMIT_SCREENSHOTS;
if (screenshots) mkdirSync(screenshots, { recursive: true });

// What has most on it, which may not be what a link leads to first.
const busy = [
  { name: "/console/sessions/ID (busy)", path: `/console/sessions/${near.id}` },
  { name: "/console/sessions/ID (tree)", path: `/console/sessions/${parent.id}` },
  { name: "/console/agents/ID (busy)", path: `/console/agents/${planner.id}` },
  { name: "/console/usage (by two groups)", path: "/console/usage?group_by=day,action_type" },
  { name: "/console/usage (by sessions)", path: "/console/usage?group_by=agent,session" },
];

const widths = { 375: 812, 768: 1024, 1440: 900 };
let pages;

test("links lead to every page", async (t) => {
  const page = await visitor(t);
  await page.goto("/console");
  const signedOut = [{ name: "/console (signed out)", path: "/console", out: true }];
  await signIn(page, keys.admin);
  pages = [...(await discover(page)), ...busy, ...signedOut];
  t.diagnostic(pages.map((p) => p.name).join(" "));
  for (const name of ["agents", "agents/ID", "sessions", "sessions/ID", "requests", "usage", "budget", "events", "webhooks", "webhooks/ID", "api-keys", "stop"]) {
    assert.ok(pages.some((p) => p.name.replace(/\?.*/, "") === `/console/${name}`), `no link leads to /console/${name}`);
  }
});

for (const colorScheme of ["light", "dark"]) {
  for (const [width, height] of Object.entries(widths)) {
    test(`every page fits into ${width} pixels and is accessible in ${colorScheme}`, async (t) => {
      const viewport = { width: Number(width), height };
      const [page, outside] = [await visitor(t, { viewport, colorScheme }), await visitor(t, { viewport, colorScheme })];
      await signIn(page, keys.admin);
      for (const { name, path, out } of pages) {
        const at = out ? outside : page;
        await t.test(name, async () => {
          await at.goto(path);
          if (screenshots) await at.screenshot({ path: `${screenshots}/${fileName(name)}-${width}-${colorScheme}.png`, fullPage: true });
          assert.ok(!(await at.content()).includes("rmk_"), "an API key is in the page");
          await openAll(at);
          assert.deepEqual(await overflow(at), [], "wider than the window");
          assert.deepEqual(await axe(at), []);
        });
      }
    });
  }
}

test("every page fits at 200 % and 400 % zoom", async (t) => {
  for (const viewport of [{ width: 640, height: 450 }, { width: 320, height: 256 }]) {
    const page = await visitor(t, { viewport, deviceScaleFactor: 1280 / viewport.width });
    await signIn(page, keys.admin);
    for (const { name, path, out } of pages) {
      if (out) continue;
      await page.goto(path);
      await openAll(page);
      assert.deepEqual(await overflow(page), [], `${name} at ${viewport.width} pixels`);
    }
  }
});

test("text twice as large fits", async (t) => {
  const page = await visitor(t, { viewport: { width: 1280, height: 900 }, args: ["--blink-settings=defaultFontSize=32,defaultFixedFontSize=26"] });
  await signIn(page, keys.admin);
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).fontSize), "32px");
  for (const { name, path, out } of pages) {
    if (out) continue;
    await page.goto(path);
    await openAll(page);
    assert.deepEqual(await overflow(page), [], name);
  }
});

test("every page fits between the widths, too", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.admin);
  for (const { name, path, out } of pages) {
    if (out) continue;
    await page.goto(path);
    await openAll(page);
    for (const width of [480, 600, 900, 1000, 1100, 1250]) {
      await page.setViewportSize({ width, height: 900 });
      assert.deepEqual(await overflow(page), [], `${name} at ${width} pixels`);
    }
  }
});

test("nothing moves for those who want no motion", async (t) => {
  const page = await visitor(t, { reducedMotion: "reduce" });
  await signIn(page, keys.admin);
  for (const { name, path } of pages) {
    await page.goto(path);
    const moving = await page.evaluate(() => [...document.querySelectorAll("*")].filter((element) => {
      const style = getComputedStyle(element);
      const seconds = (list) => Math.max(...list.split(",").map(parseFloat));
      return seconds(style.transitionDuration) > 0.01 || (style.animationName !== "none" && seconds(style.animationDuration) > 0.01) || style.scrollBehavior === "smooth";
    }).map((element) => `${element.localName}.${element.getAttribute("class")}`));
    assert.deepEqual(moving, [], name);
  }
});

test("every page reads the same without script", async (t) => {
  const [scripted, plain] = [await visitor(t), await visitor(t, { javaScriptEnabled: false })];
  await signIn(scripted, keys.viewer);
  await signIn(plain, keys.viewer);
  const words = async (page) => (await page.locator("main").innerText()).match(/\p{L}+/gu).length;
  for (const { name, path, out } of pages) {
    if (out) continue;
    await scripted.goto(path);
    await plain.goto(path);
    const [with_, without] = [await words(scripted), await words(plain)];
    assert.ok(without >= 0.8 * with_, `${name} has ${with_} words with script, and ${without} without`);
  }
});

test("times are in the viewer's zone, and in UTC when one points at them", async (t) => {
  const page = await visitor(t, { timezoneId: "Asia/Kolkata" });
  await signIn(page, keys.viewer);
  await page.goto(`/console/sessions/${near.id}`);
  const times = await page.locator("time").evaluateAll((all) => all.map((time) => ({ at: time.dateTime, shown: time.textContent, title: time.title })));
  assert.ok(times.length > 3, `${times.length} times`);
  for (const { at, shown, title } of times) {
    assert.equal(shown, new Date(Date.parse(at) + 5.5 * 3600_000).toISOString().slice(0, 16).replace("T", " "));
    assert.equal(title, `${at.replace("T", " ").replace("Z", "")} UTC`);
  }
});

test("what is empty says what to do next, with a command", async (t) => {
  const empty = await organization("nothing yet");
  const page = await visitor(t);
  await signIn(page, empty.viewer);
  for (const name of ["agents", "sessions", "requests", "usage", "budget", "events", "webhooks", "stop"]) {
    await page.goto(`/console/${name}`);
    assert.match(await page.locator("main pre code").first().innerText(), /^(remit|curl) /, name);
  }
});

// Every page: nothing that axe-core finds, nothing wider than the window, readable without script, still for those who want
// no motion. REMIT_SCREENSHOTS is a directory for a picture of each.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { fixture } from "./fixture.mjs";
import { discover, fileName, openAll, overflow } from "./pages.mjs";
import { signIn } from "./chromium.mjs";
import { keyboard } from "./hand.mjs";
import { organization, session } from "./service.mjs";
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
          assert.ok(!/rmk_|rmsk_/.test(await at.content()), "a key is in the page");
          await openAll(at);
          assert.deepEqual(await overflow(at), [], "wider than the window");
          assert.deepEqual(await axe(at), []);
        });
      }
    });
  }
}

test("at 375 pixels the head has two rows: who is signed in and the way out, then the pages, with the open one and the switch in sight", async (t) => {
  const page = await visitor(t, { viewport: { width: 375, height: 812 } });
  await signIn(page, (await organization("a name that is much too long for a narrow screen, and goes on")).admin);
  const links = await page.locator(".top nav a").evaluateAll((all) => all.map((a) => ({ path: a.pathname, name: a.textContent })));
  for (const { path, name } of links) {
    await page.goto(path);
    const at = (locator) => locator.evaluate((element) => element.getBoundingClientRect().toJSON());
    const [head, who, out] = [await at(page.locator(".top")), await at(page.locator(".brand")), await at(page.getByRole("button", { name: "Sign out" }))];
    const tops = await page.locator(".top nav a").evaluateAll((all) => all.map((a) => Math.round(a.getBoundingClientRect().top)));
    assert.equal(new Set(tops).size, 1, `${name}: the pages have rows at ${tops}`);
    assert.ok(who.top < out.bottom && out.top < who.bottom && who.right <= out.left && out.bottom <= tops[0], `${name}: who is signed in and the way out are no row`);
    assert.ok(head.height < 110, `${name}: the head is ${head.height} pixels high`);
    const [here, stop] = [await at(page.locator(".top [aria-current]")), await at(page.getByRole("link", { name: "Stop all" }))];
    assert.ok(here.left >= 0 && (name === "Stop all" || here.right <= stop.left), `${name}: its link is from ${here.left} to ${here.right}`);
    assert.ok(stop.right <= 375, `${name}: the switch ends at ${stop.right}`);
  }
  await page.goto("/console");
  for (const { name } of links) { // by keyboard each link comes into sight, not behind the switch
    await keyboard(page).reach(page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }));
    const inFront = await page.evaluate(() => {
      const box = document.activeElement.getBoundingClientRect();
      return [box.left + 2, box.right - 2].every((x) => document.activeElement.contains(document.elementFromPoint(x, box.top + box.height / 2)));
    });
    assert.ok(inFront, `${name} has the focus and is hidden`);
  }
});

test("at 375 pixels no figure is torn from its words", async (t) => {
  const page = await visitor(t, { viewport: { width: 375, height: 812 } });
  await signIn(page, keys.admin);
  const lines = (locator) => locator.evaluateAll((all) => all.map((element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.bottom / 12))).size;
  }));
  await page.goto("/console/stop");
  const bar = await page.locator("progress").boundingBox(), count = await page.locator("#suspended").boundingBox();
  assert.ok(count.y >= bar.y + bar.height && count.x === bar.x, "the count of the suspended is beside its bar");
  const unused = await session(keys, planner);
  await page.goto(`/console/sessions/${unused.id}`);
  assert.deepEqual(await lines(page.locator(".whole")), [1, 1, 1]);
});

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

// Live pages: many of them in one browser, ones that nobody sees, and the ways back when a connection ends.
import assert from "node:assert/strict";
import { test } from "node:test";
import { signIn } from "./chromium.mjs";
import { agent, charge, eventually, must, organization, session } from "./service.mjs";
import { visitor } from "./visitor.mjs";

const keys = await organization();
const planner = await agent(keys);
const isStream = (request) => request.url().includes("/console/events/live");
const state = (page) => page.locator("#live");
const isLive = async (page) => /^Live\b/.test(await state(page).innerText());

// streams counts the streams that a page has, and collects their addresses.
function streams(page) {
  const all = { open: 0, addresses: [] };
  page.on("request", (request) => {
    if (isStream(request)) {
      all.open++;
      all.addresses.push(new URL(request.url()));
    }
  });
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => { if (isStream(request)) all.open--; });
  return all;
}

// Playwright's pages believe that they are visible all the time. These believe what hide and show say.
async function visibility(page) {
  await page.addInitScript(() => {
    let hidden = false;
    Object.defineProperty(Document.prototype, "hidden", { get: () => hidden });
    Object.defineProperty(Document.prototype, "visibilityState", { get: () => (hidden ? "hidden" : "visible") });
    globalThis.setHidden = (value) => {
      hidden = value;
      document.dispatchEvent(new Event("visibilitychange"));
    };
  });
}
const hide = (page) => page.evaluate(() => globalThis.setHidden(true));
const show = (page) => page.evaluate(() => globalThis.setHidden(false));

test("a bar turns yellow and red where the command line's does, without a reload, and says its share", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.admin);
  const one = await session(keys, planner, { max_actions: 10, max_value_usd: 1 });
  await page.goto(`/console/sessions/${one.id}`);
  await state(page).getByText("Live", { exact: true }).waitFor();
  const bars = { actions: page.locator(`[data-live-bar="${one.id}.actions"]`), value: page.locator(`[data-live-bar="${one.id}.value"]`) };
  const shown = async (bar) => [await bar.locator("svg").getAttribute("class"), (await bar.locator(".share").innerText()).replace(/^\W+/, "")].join(" ");
  const spends = async (value, actions, wanted) => {
    await must("POST", `/v1/sessions/${one.id}/actions`, planner.token, { value_usd: value, count: actions });
    await eventually(wanted.join(" and "), async () => (await shown(bars.actions)) === wanted[0] && (await shown(bars.value)) === wanted[1]);
  };
  assert.equal(await shown(bars.value), "chart-usage 0 %");
  await spends(0.79, 7, ["chart-usage 70 %", "chart-usage 79 %"]);
  await spends(0.01, 1, ["chart-usage chart-near 80 %", "chart-usage chart-near 80 %"]);
  await spends(0.199999, 1, ["chart-usage chart-near 90 %", "chart-usage chart-near 99 %"]);
  await spends(0.000001, 1, ["chart-usage chart-full 100 %", "chart-usage chart-full 100 %"]);
  await must("PATCH", `/v1/sessions/${one.id}`, keys.admin, { add_actions: 10 });
  await eventually("more room", async () => (await shown(bars.actions)) === "chart-usage 50 %");
});

test("the bar of a session's time turns yellow and red by itself", async (t) => {
  const page = await visitor(t);
  await page.clock.install();
  await signIn(page, keys.admin);
  const { id } = await session(keys, planner, { expires_in_seconds: 1000 });
  await page.goto(`/console/sessions/${id}`);
  const bar = page.locator(`[data-time="${id}"]`);
  const level = async () => [await bar.locator("svg").getAttribute("class"), await bar.locator(".share").innerText()].join(" ");
  assert.match(await level(), /^chart-usage \d %$/);
  await page.clock.fastForward(810_000);
  await eventually("near", async () => /^chart-usage chart-near 8\d %$/.test(await level()));
  await page.clock.fastForward(200_000);
  await eventually("over", async () => (await level()) === "chart-usage chart-full over");
});

test("seven windows at once: each page opens, each change is made, and some are live", async (t) => {
  const first = await visitor(t);
  await signIn(first, keys.admin);
  await first.goto("/console/api-keys"); // a page that is not live
  const pages = [];
  for (let i = 0; i < 7; i++) {
    const { id } = await session(keys, planner);
    const page = await first.context().newPage();
    page.setDefaultTimeout(10_000);
    await page.goto(`/console/sessions/${id}`);
    pages.push(page);
  }
  const live = async () => (await Promise.all(pages.map(isLive))).filter(Boolean).length;
  await eventually("four pages are live", async () => (await live()) === 4);
  await pages[6].getByText("Not live: 4 other tabs are.").waitFor();
  for (const page of pages) {
    await page.getByRole("button", { name: "Suspend" }).click();
    await page.getByRole("status").filter({ hasText: "suspended" }).first().waitFor();
  }
  await eventually("four are live again", async () => (await live()) === 4);
  await Promise.all(pages.slice(0, 4).map((page) => page.close()));
  pages.splice(0, 4);
  await eventually("the others are live instead", async () => (await live()) === 3);
});

test("seven tabs: those that nobody sees hold no connection, and show what happened meanwhile when they are seen again", async (t) => {
  const first = await visitor(t);
  await visibility(first);
  await signIn(first, keys.admin);
  const tabs = [];
  for (let i = 0; i < 7; i++) {
    if (i > 0) await hide(tabs[i - 1].page);
    const { id } = await session(keys, planner);
    const page = await first.context().newPage();
    page.setDefaultTimeout(10_000);
    await visibility(page);
    const tab = { id, page, streams: streams(page) };
    tabs.push(tab);
    await page.goto(`/console/sessions/${id}`);
    await state(page).getByText("Live", { exact: true }).waitFor();
  }
  await eventually("only the last has a stream", () => tabs.map((tab) => tab.streams.open).join("") === "0000001");
  const { id, page } = tabs[0];
  const told = page.locator("[data-news] tbody tr").filter({ hasText: "session.suspended" });
  await charge(planner, { id }, 0.25);
  await must("POST", `/v1/sessions/${id}/suspend`, keys.admin, { reason: "unseen" });
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.equal(await told.count(), 0, "a page that nobody sees is live");
  await hide(tabs[6].page);
  await show(page);
  await told.filter({ hasText: "unseen" }).waitFor();
  await page.locator(`[data-live="${id}.state"]`).getByText("suspended").waitFor();
  await page.getByText("$0.25", { exact: true }).first().waitFor();
  await hide(page);
  await show(page);
  await eventually("it is live again", () => tabs[0].streams.open === 1);
  await must("POST", `/v1/sessions/${id}/resume`, keys.admin);
  await page.locator("[data-news] tbody tr").filter({ hasText: "session.resumed" }).waitFor();
  assert.equal(await told.count(), 1, "an event is shown twice");
});

for (const status of [429, 503]) {
  test(`an answer of ${status} ends nothing: the page connects again, ever more slowly, and misses nothing`, async (t) => {
    const page = await visitor(t, { expected: /the server responded with a status of 503/ });
    await signIn(page, keys.viewer);
    await page.goto("/console/api-keys"); // a page that is not live
    const { id } = await session(keys, planner);
    const { addresses } = streams(page);
    await page.addInitScript(() => {
      globalThis.refused = 0;
      globalThis.EventSource = class extends EventSource {
        constructor(url) {
          super(url);
          this.addEventListener("error", () => globalThis.refused++);
        }
      };
    });
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000); // else time goes on by itself, beside what the test lets pass
    let refused = true;
    await page.route("**/console/events/live*", (route) => (refused ? route.fulfill({ status, contentType: "text/html", body: "busy" }) : route.continue()));
    await page.goto(`/console/sessions/${id}`);
    await state(page).getByText("Not live: connecting again.").waitFor();
    await must("POST", `/v1/sessions/${id}/suspend`, keys.admin, { reason: "meanwhile" });
    for (const [attempt, pause] of [3, 6, 12, 24, 48, 60, 60].entries()) {
      await eventually(`attempt ${attempt + 1}`, async () => (await page.evaluate(() => globalThis.refused)) === attempt + 1);
      assert.equal(addresses.length, attempt + 1);
      await page.clock.runFor(1000 * pause - 100);
      assert.equal(addresses.length, attempt + 1, `it connects before ${pause} s are over`);
      if (attempt === 6) refused = false;
      await page.clock.runFor(200);
    }
    await state(page).getByText("Live", { exact: true }).waitFor();
    await page.clock.resume();
    await page.locator("[data-news] tbody tr").filter({ hasText: "meanwhile" }).waitFor();
  });
}

test("a page whose key ended while nobody saw it leads to the sign-in when it is seen", async (t) => {
  const page = await visitor(t);
  await visibility(page);
  const made = await must("POST", "/v1/api-keys", keys.admin, { name: "of one hour", role: "viewer" });
  await signIn(page, made.api_key);
  await page.goto(`/console/sessions/${(await session(keys, planner)).id}`);
  await state(page).getByText("Live", { exact: true }).waitFor();
  await hide(page);
  await must("DELETE", `/v1/api-keys/${made.id}`, keys.admin);
  await show(page);
  await page.getByLabel("API key").waitFor();
});

test("a session's time moves to its new end, and stands still at its end", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.viewer);
  const { id } = await session(keys, planner, { expires_in_seconds: 3600 });
  await page.goto(`/console/sessions/${id}`);
  const bar = page.getByRole("img", { name: /^Time/ });
  const name = () => bar.locator("title").textContent();
  assert.match(await name(), / left of 1 h/);
  const expires = page.locator(`[data-at="${id}.expires"] time`);
  const before = await expires.getAttribute("datetime");
  await must("PATCH", `/v1/sessions/${id}`, keys.admin, { expires_in_seconds: 7200 });
  await eventually("the bar has the later end", async () => / left of 2 h/.test(await name()));
  assert.equal(Date.parse(await expires.getAttribute("datetime")) > Date.parse(before) + 3_000_000, true, "the page writes the earlier end");
  await page.clock.install();
  await must("POST", `/v1/sessions/${id}/end`, keys.admin);
  await eventually("the bar is over", async () => (await name()) === "Time: over");
  await page.clock.runFor(20_000);
  assert.equal(await name(), "Time: over");
  assert.equal(await bar.locator(".chart-elapsed").getAttribute("width"), "100%");
  await page.getByText(/, ended \d{4}-/).waitFor();
});

test("the first event of a page without one is shown", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.viewer);
  const { id } = await session(keys, planner);
  const told = (what) => page.locator("[data-news] tbody tr").filter({ hasText: what }).waitFor();
  await page.goto(`/console/sessions/${id}`);
  await state(page).getByText("Live", { exact: true }).waitFor();
  for (const change of ["suspend", "resume"]) { // the console tells of it, and so has told of all before it
    await must("POST", `/v1/sessions/${id}/${change}`, keys.admin);
    await told(`session.${change === "resume" ? "resumed" : "suspended"}`);
  }
  // The page of a session whose events are too far back among those of its agent.
  await page.route("**/console/sessions/*", async (route) => {
    const answer = await route.fetch();
    const empty = '<table class="cards" role="table" data-news hidden>$1<tbody role="rowgroup"></tbody></table><div class="empty"><p>Nothing happened lately.</p></div>';
    return route.fulfill({ response: answer, body: (await answer.text()).replace(/<table class="cards" role="table" data-news>(.*?)<tbody.*?<\/table>/s, empty) });
  });
  await page.goto(`/console/sessions/${id}`);
  await page.getByText("Nothing happened lately.").waitFor();
  await state(page).getByText("Live", { exact: true }).waitFor();
  await must("POST", `/v1/sessions/${id}/suspend`, keys.admin, { reason: "the first" });
  await told("the first");
  assert.equal(await page.getByText("Nothing happened lately.").count(), 0);
  await page.unrouteAll({ behavior: "wait" }); // the page may be asking for itself once more, and a closed one has no answer to read
});

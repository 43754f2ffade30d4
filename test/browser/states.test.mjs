// Pages on occasions that no link leads to: errors, messages, empty lists, objects that are over, what a viewer sees. Nothing that
// axe-core finds, nothing wider than the window. REMIT_SCREENSHOTS is a directory for a picture of each.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { fixture } from "./fixture.mjs";
import { fileName, openAll, overflow } from "./pages.mjs";
import { signIn } from "./chromium.mjs";
import { keyboard } from "./hand.mjs";
import { organization } from "./service.mjs";
import { axe, visitor } from "./visitor.mjs";

const { keys, near, planner, idle, ended, paused, revoked, committed, hook } = await fixture();
const empty = await organization("nothing yet");
const screenshots = process.env.REMIT_SCREENSHOTS;
if (screenshots) mkdirSync(screenshots, { recursive: true });

// What pages look like on other occasions. who signs in, empty is an organization without anything; act is done on the page.
const other = "01a20000-0000-7000-8000-000000000000";
const sees = (who, name, path) => ({ name: `${name}, ${who}`, who, path: `/console${path}` });
const states = [
  ...["", "/agents", "/sessions", "/requests", "/usage", "/budget", "/events", "/webhooks", "/api-keys", "/stop"].map((path) => sees("empty", path.slice(1) || "overview", path)),
  ...Object.entries({ overview: "", agent: `/agents/${planner.id}`, session: `/sessions/${near.id}`, transaction: `/transactions/${committed.id}`,
    webhook: `/webhooks/${hook.id}`, stop: "/stop", requests: "/requests", usage: "/usage?group_by=agent" }).map(([name, path]) => sees("viewer", name, path)),
  ...Object.entries({ "suspended agent": `/agents/${idle.id}`, "revoked agent": `/agents/${revoked.id}`, "ended session": `/sessions/${ended.id}`,
    "suspended session": `/sessions/${paused.id}`, "committed transaction": `/transactions/${committed.id}`, "no such page": "/no-such-page",
    "no such agent": `/agents/${other}`, "no such session": `/sessions/${other}`, "no such transaction": `/transactions/${other}`,
    "no agent found": "/agents?q=nobody", "no session found": "/sessions?status=revoked", "no such event": "/events?type=none",
    "no id": "/webhooks/x", "no request found": "/requests?status=ended", "requests of no id": "/requests?agent=none",
    "a report that is refused": "/usage?from=2026-02-31&agent=none&group_by=hour", "a report of nothing": "/usage?from=2020-01-01&to=2020-01-31" }).map(([name, path]) => sees("admin", name, path)),
  { name: "a change that is refused", who: "admin", path: `/console/agents/${planner.id}`, act: (page) => send(page, "limits", { max_value_usd_per_day: "much" }) },
  { name: "a session that is refused", who: "admin", path: "/console/sessions", act: (page) => send(page, "sessions", { agent_id: "x", max_value_usd: "much", thresholds: "101", metadata: "[]" }) },
  { name: "a search that is refused", who: "viewer", path: "/console/sessions?agent=x" },
  { name: "a change that is done", who: "admin", path: `/console/webhooks/${hook.id}`, act: (page) => send(page, "test") },
  { name: "a secret that is shown once", who: "admin", path: `/console/webhooks/${hook.id}`, act: (page) => send(page, "rotate", { confirm: "rotate" }) },
  { name: "a form of another sign-in", who: "admin", path: "/console/budget", act: (page) => send(page, "budget", { csrf: "x".repeat(43), max_value_usd: "5" }) },
  { name: "a key that is not valid", who: "out", path: "/console", act: (page) => send(page, "console", { api_key: "no key" }) },
];

// send sends the page's form whose address ends like this.
async function send(page, address, fields = {}) {
  await openAll(page);
  const form = page.locator(`form[method=post][action$="/${address}"]`);
  for (const [name, value] of Object.entries(fields)) await form.locator(`[name="${name}"]`).evaluate((input, value) => { input.value = value; }, value);
  await form.getByRole("button").click();
  await page.getByRole("status").or(page.getByRole("alert")).and(page.locator(".flash")).waitFor();
  await page.waitForLoadState(); // with the stylesheet, without which lines do not wrap
}

for (const [width, height, colorScheme] of [[375, 812, "dark"], [1440, 900, "light"]]) {
  test(`every page is accessible on every occasion, at ${width} pixels in ${colorScheme}`, async (t) => {
    const visitors = {};
    for (const [who, key] of Object.entries({ admin: keys.admin, viewer: keys.viewer, empty: empty.admin, out: undefined })) {
      visitors[who] = await visitor(t, { viewport: { width, height }, colorScheme });
      if (key) await signIn(visitors[who], key);
    }
    for (const { name, who, path, act } of states) {
      await t.test(name, async () => {
        const page = visitors[who];
        await page.goto(path);
        await act?.(page);
        await openAll(page);
        if (screenshots) await page.screenshot({ path: `${screenshots}/${fileName(`state ${name}`)}-${width}-${colorScheme}.png`, fullPage: true });
        assert.deepEqual(await overflow(page), [], "wider than the window");
        assert.deepEqual(await axe(page), []);
      });
    }
  });
}

for (const javaScriptEnabled of [true, false]) {
  test(`a refused form stays, filled, with the field named and in focus, ${javaScriptEnabled ? "with" : "without"} JavaScript`, async (t) => {
    const page = await visitor(t, { javaScriptEnabled });
    await signIn(page, keys.operator);
    await page.goto(`/console/agents/${planner.id}`);
    const hand = keyboard(page);
    const form = page.locator('form[method=post][action="/console/sessions"]');
    const field = (name) => form.getByLabel(name);
    await hand.press(page.locator("summary").filter({ hasText: "Create a session" }));
    assert.equal(await field("Actions").getAttribute("placeholder"), "1000");
    await hand.fill(field("Actions"), "12");
    await hand.fill(field("Dollars").first(), "3.000001");
    await hand.press(page.locator("summary").filter({ hasText: "More limits" }));
    await hand.fill(field("Metadata"), '{"ticket": "<b>T-7"');
    await hand.press(form.getByRole("button", { name: "Create session" }));

    await page.getByRole("alert").filter({ hasText: "No session was created." }).waitFor();
    const wrong = await page.locator(":focus").evaluate((element) => ({
      name: element.name, invalid: element.ariaInvalid, value: element.value, seen: element.checkVisibility(),
      says: document.getElementById(element.getAttribute("aria-describedby")).textContent,
    }));
    assert.deepEqual({ ...wrong, says: "" }, { name: "metadata", invalid: "true", value: '{"ticket": "<b>T-7"', seen: true, says: "" });
    assert.match(wrong.says, /JSON object/);
    assert.deepEqual([await field("Actions").inputValue(), await field("Dollars").first().inputValue()], ["12", "3.000001"]);

    await page.keyboard.press("Control+A"); // the focus is where the correction goes
    await page.keyboard.type('{"ticket": "T-7"}');
    await hand.press(form.getByRole("button", { name: "Create session" }));
    await page.getByText("The session is created.").waitFor();
    assert.match(page.url(), /\/console\/sessions\/[0-9a-f-]{36}$/);
  });
}

test("reloading a refused form sends it no second time", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.admin);
  await page.goto("/console/budget");
  await send(page, "budget", { max_value_usd: "much" });
  assert.match(page.url(), /\/console\/budget$/);
  const sent = [];
  page.on("request", (request) => sent.push(request.method()));
  await page.reload();
  assert.ok(!sent.includes("POST"), `it sends ${sent}`);
  assert.equal(await page.getByRole("alert").count(), 0);
});

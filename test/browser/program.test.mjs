// Another program is at work, and pages show what it does without being loaded anew. REMIT_LONG asserts how soon.
import assert from "node:assert/strict";
import { test } from "node:test";
import { signIn } from "./chromium.mjs";
import { agent, charge, eventually, must, organization, session } from "./service.mjs";
import { axe, visitor } from "./visitor.mjs";

const feed = 2000, sums = 10_000; // milliseconds, for what events bring and for what is added up
const patience = 30_000;
const isLong = process.env.REMIT_LONG === "1";

// tabs opens pages as one viewer, each believing that it is seen.
async function tabs(t, key, paths) {
  const first = await visitor(t);
  await signIn(first, key);
  const pages = [];
  for (const path of paths) {
    const page = pages.length === 0 ? first : await first.context().newPage();
    page.setDefaultTimeout(patience);
    await page.goto(path);
    await page.locator("#live").getByText("Live", { exact: true }).waitFor();
    page.loads = 0;
    page.on("load", () => page.loads++);
    pages.push(page);
  }
  return pages;
}

// timed waits for all that a change brings, and reports when each came.
async function timed(t, change, brings) {
  const began = Date.now();
  await Promise.all(Object.entries(brings).map(async ([what, [bound, condition]]) => {
    await eventually(`${change}: ${what}`, condition, patience);
    const took = Date.now() - began;
    t.diagnostic(`${change}: ${what} after ${took} ms`);
    if (isLong) assert.ok(took <= bound, `${change}: ${what} after ${took} ms, want at most ${bound}`);
  }));
}

const tile = (page, name) => page.locator(".tile", { hasText: name }).locator("b").innerText();
const has = (page, selector, hasText) => async () => (await page.locator(selector, { hasText }).count()) > 0;

test("what another program does appears on the overview and on its pages", async (t) => {
  const keys = await organization();
  const planner = await agent(keys, "planner");
  const first = await session(keys, planner, { max_actions: 100, max_value_usd: 10 });
  const path = `/console/sessions/${first.id}`;
  const pages = await tabs(t, keys.operator, ["/console", path, "/console/sessions", `/console/agents/${planner.id}`]);
  const [overview, own, list, agentPage] = pages;
  await eventually("spending is added up", async () => (await tile(overview, "Spent today")) === "$0.00", patience);

  await agent(keys, "scout");
  await timed(t, "an agent", { "on the overview": [feed, async () => (await tile(overview, "Agents")) === "2"] });

  const second = await session(keys, planner, { max_actions: 10, max_value_usd: 1 });
  await timed(t, "a session", {
    "on the overview": [feed, async () => (await tile(overview, "Active sessions")) === "2"],
    "on the list": [feed, has(list, `tr[data-object="${second.id}"]`)],
    "on its agent's page": [feed, has(agentPage, `tr[data-object="${second.id}"]`)],
  });

  assert.equal((await charge(planner, first, 0.75, "web.search")).status, 200);
  await timed(t, "a charge", {
    "on its session's bar": [feed, has(own, `[data-live="${first.id}.value"]`, "$0.75")],
    "on the list": [feed, has(list, `[data-live="${first.id}.value"]`, "$0.75")],
    "in the session's usage by type": [sums, has(own, "section", /Usage[^]*web\.search/)],
    "in the session's committed value": [sums, has(own, "dd", "$0.75")],
    "in what was spent": [sums, async () => (await tile(overview, "Spent today")) === "$0.75"],
    "by agent": [sums, has(overview, "section", /Spent by agent[^]*planner/)],
    "by type": [sums, has(overview, "section", /Spent by action type[^]*web\.search/)],
    "on its agent's page": [sums, async () => (await tile(agentPage, "Spent today")) === "$0.75"],
  });
  await charge(planner, second, 0.05); // on the list, a session that came after the page
  await timed(t, "a charge of the new session", { "on the list": [feed, has(list, `[data-live="${second.id}.value"]`, "$0.05")] });

  await must("POST", "/v1/transactions", planner.token, { session_id: first.id, action_type: "refund", value_usd: 2, pre_state: {}, expires_in_seconds: 3600 });
  await timed(t, "a transaction", {
    "on its session": [feed, has(own, "tr", "refund")],
    "among what is held": [sums, async () => (await tile(overview, "Held")) === "$2.00"],
  });

  const child = await session(keys, planner, { parent_session_id: first.id, max_actions: 5, max_value_usd: 0.5 });
  await timed(t, "a child", { "in the tree": [feed, has(own, ".tree a", child.id.slice(-12))] });
  await charge(planner, child, 0.25);
  await timed(t, "a charge of the child", { "in the tree": [sums, has(own, ".tree li", "$0.25 of $0.50")] });

  await must("POST", `/v1/sessions/${first.id}/requests`, planner.token, { add_value_usd: 2, reason: "two more invoices" });
  await timed(t, "a request for more", {
    "on the overview": [feed, has(overview, "div.empty", "two more invoices")],
    "on its session": [feed, has(own, "div.empty", "two more invoices")],
  });
  assert.deepEqual(await axe(overview), []);
  assert.deepEqual(pages.map((page) => page.loads), [0, 0, 0, 0], "a page was loaded anew");

  await overview.getByRole("button", { name: "Approve" }).click(); // the form that came by itself works
  await overview.getByRole("status").filter({ hasText: "approved" }).waitFor();
  await timed(t, "its approval", {
    "on the session": [feed, has(own, "div.empty", "Granted")],
    "in the session's limit": [feed, has(own, `[data-live="${first.id}.max_value"]`, "$12.00")],
  });

  await must("POST", `/v1/agents/${planner.id}/suspend`, keys.admin, { reason: "it loops" });
  await timed(t, "a suspension", {
    "on the overview": [feed, has(overview, "li", "planner")],
    "on the agent's page": [feed, has(agentPage, "p", "it loops")],
  });
  await must("POST", `/v1/agents/${planner.id}/resume`, keys.admin);
  await timed(t, "its end", { "on the overview": [feed, async () => (await overview.getByRole("heading", { name: "Suspended agents" }).count()) === 0] });

  const { id } = await session(keys, planner, { expires_in_seconds: 1 });
  await eventually("the session is over", async () => (await must("GET", `/v1/sessions/${id}`, keys.admin)).status === "expired", patience);
  await timed(t, "an expiry", {
    "on the overview": [feed, async () => (await tile(overview, "Active sessions")) === "3"],
    "on the list": [feed, async () => (await list.locator(`tr[data-object="${id}"]`).count()) === 0],
    "on the agent's page": [feed, has(agentPage, `tr[data-object="${id}"]`, "expired")],
  });
});

test("a request for more that is decided elsewhere goes away, and nothing that somebody types is lost", async (t) => {
  const keys = await organization();
  const planner = await agent(keys, "planner");
  const { id } = await session(keys, planner);
  const ask = (reason) => must("POST", `/v1/sessions/${id}/requests`, planner.token, { add_value_usd: 2, reason });
  const [overview, own] = await tabs(t, keys.operator, ["/console", `/console/sessions/${id}`]);
  const box = (reason) => overview.locator("div.empty", { hasText: reason });
  const first = await ask("the first");
  const comment = box("the first").getByLabel("Comment").first();
  await comment.pressSequentially("looks r");
  const typing = () => comment.evaluate((field) => field === document.activeElement && field.value);

  await ask("the second");
  await box("the second").waitFor();
  assert.equal(await typing(), "looks r");
  await comment.pressSequentially("ight");
  await must("POST", `/v1/sessions/${id}/requests/${(await must("GET", `/v1/sessions/${id}/requests`, keys.admin)).find((r) => r.reason === "the second").id}/deny`, keys.admin, {});
  await box("the second").waitFor({ state: "detached" });
  await must("POST", `/v1/sessions/${id}/requests/${first.id}/deny`, keys.admin, {});
  await own.getByText("denied", { exact: true }).nth(1).waitFor();
  await ask("the third");
  await box("the third").waitFor();
  assert.equal(await typing(), "looks right", "a request that was decided elsewhere took what was typed");
  await comment.fill("");
  await overview.getByRole("link", { name: "Remit" }).focus();
  await box("the first").waitFor({ state: "detached" });

  const topUp = own.locator("details", { hasText: "Top up" });
  await topUp.locator("summary").click();
  await topUp.getByLabel("Dollars to add").fill("3.5");
  const button = topUp.getByRole("button");
  await button.focus();
  await must("POST", `/v1/sessions/${id}/suspend`, keys.admin, { reason: "a check" });
  await own.getByRole("button", { name: "Resume" }).waitFor();
  assert.equal(await topUp.getByLabel("Dollars to add").inputValue(), "3.5");
  assert.equal(await button.evaluate((node) => node === document.activeElement), true, "the focus moved");
  await button.click();
  await own.getByRole("status").filter({ hasText: "raised" }).waitFor();
});

test("a secret that is shown once stays on a page that changes", async (t) => {
  const keys = await organization();
  const [page] = await tabs(t, keys.admin, ["/console/agents"]);
  await page.getByLabel("Name", { exact: true }).fill("keeper");
  await page.getByRole("button", { name: "Create agent" }).click();
  const secret = page.getByLabel("Secret");
  const shown = await secret.inputValue();
  await page.locator("#live").getByText("Live", { exact: true }).waitFor();
  const { pathname } = new URL(page.url());
  await must("POST", `/v1${pathname.replace("/console", "")}/suspend`, keys.admin, { reason: "at once" });
  await page.getByText("at once").first().waitFor();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  assert.equal(await secret.inputValue(), shown);
  const isAbove = await page.evaluate(() => {
    const [message, first] = [document.querySelector("div.flash"), document.querySelector("main section, main dl, main .tiles")];
    return (message.compareDocumentPosition(first) & Node.DOCUMENT_POSITION_FOLLOWING) > 0;
  });
  assert.ok(isAbove, "the message stays above the page");
  assert.equal(await page.getByRole("button", { name: "Copy id" }).count(), 1, "the id can still be copied");
});

test("a refused form without a field at fault stays as it was sent, with its key", async (t) => {
  const keys = await organization();
  const agent = await must("POST", "/v1/agents", keys.admin, { name: "typist", scopes: [] });
  const made = await session(keys, agent);
  const [page] = await tabs(t, keys.admin, [`/console/sessions/${made.id}`]);
  await page.getByText("Top up", { exact: true }).first().click();
  await page.getByRole("button", { name: "Top up" }).click(); // with nothing to add
  await page.locator("div.flash.failed").waitFor();
  const form = page.locator("form[data-kept]");
  const key = await form.locator("[name=once]").inputValue();
  await page.locator("#live").getByText("Live", { exact: true }).waitFor();
  await must("POST", `/v1/sessions/${made.id}/suspend`, keys.admin, { reason: "at once" });
  await page.getByText("at once").first().waitFor();
  assert.equal(await form.locator("[name=once]").inputValue(), key);
});

test("the spending of an organization of 400 agents appears at the first look", async (t) => {
  const keys = await organization();
  const agents = [];
  for (let i = 0; i < 400; i += 20) {
    agents.push(...await Promise.all(Array.from({ length: 20 }, (_, k) => must("POST", "/v1/agents", keys.admin, { name: `agent ${i + k}`, scopes: [] }))));
  }
  for (let i = 0; i < 400; i += 20) {
    await Promise.all(agents.slice(i, i + 20).map(async (one) => {
      const made = await session(keys, one);
      await must("POST", `/v1/sessions/${made.id}/actions`, keys.admin, { value_usd: 0.01, action_type: "llm.call" });
    }));
  }
  const page = await visitor(t);
  await signIn(page, keys.viewer);
  await timed(t, "a first look", {
    "the sum": [feed, async () => (await tile(page, "Spent today")) === "$4.00"],
    "by agent": [feed, has(page, "section", "Spent by agent")],
  });
  assert.equal(await page.getByText("being added up").count(), 0);
});

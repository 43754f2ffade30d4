// What a person does with a fleet, start to end: with a mouse, and with a keyboard alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { keyboard, mouse } from "./hand.mjs";
import { charge, eventually, LoadTest, must, organization, session, tokenOf } from "./service.mjs";
import { visitor } from "./visitor.mjs";

const hands = process.env.REMIT_LONG ? { "a mouse": mouse, "a keyboard alone": keyboard } : { "a mouse": mouse };

for (const [name, hand] of Object.entries(hands)) {
  test(`with ${name}`, async (t) => {
    const keys = await organization();
    const page = await visitor(t);
    const person = new Person(page, hand(page));
    await t.test("signs in", () => person.signIn(keys));
    await t.test("creates an agent, and sees its secret once", () => person.createAgent());
    const watched = await session(keys, person.agent, { max_actions: 10_000, max_value_usd: 20_000 });
    const load = new LoadTest(person.agent, watched);
    t.after(() => load.stop());
    await t.test("watches a session's bars move while the load test charges it", () => person.watch(watched));
    await t.test("suspends the session, and the load test is refused", () => person.suspendSession(load));
    await t.test("resumes it, and the load test goes on", () => person.resumeSession(load));
    await t.test("rolls back a transaction", () => person.rollBack(keys, watched));
    await t.test("stops all, and the load test is refused", () => person.stopAll(keys, watched, load));
    await t.test("resumes all, and the load test goes on", () => person.resumeAll(watched, load));
    await t.test("sees exactly what the load test was charged", () => person.compare(keys, watched, load));
    await t.test("signs out", () => person.signOut());
  });
}

class Person {
  constructor(page, hand) {
    this.page = page;
    this.hand = hand;
  }

  button(name, within = this.page) { return within.getByRole("button", { name, exact: true }); }

  // goTo opens a page by the navigation.
  async goTo(name) {
    await this.hand.press(this.page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }));
    await this.page.getByRole("heading", { level: 1, name }).waitFor();
  }

  async signIn(keys) {
    await this.page.goto("/console");
    await this.hand.fill(this.page.getByLabel("API key"), keys.viewer.slice(0, -1) + (keys.viewer.endsWith("x") ? "y" : "x"));
    await this.hand.press(this.button("Sign in"));
    await this.page.getByRole("alert").waitFor();
    await this.hand.fill(this.page.getByLabel("API key"), keys.admin);
    await this.hand.press(this.button("Sign in"));
    await this.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    assert.ok(!this.page.url().includes("rmk_") && !(await this.page.content()).includes("rmk_"), "the key is in the page");
  }

  // createAgent keeps the agent in this.agent. Its secret works, and is on no later page.
  async createAgent() {
    await this.goTo("Agents");
    await this.hand.fill(this.page.getByLabel("Name", { exact: true }), "scout");
    await this.hand.fill(this.page.getByLabel("Scopes"), "tool:search transactions:rollback");
    await this.hand.press(this.button("Create agent"));
    const secret = await this.page.getByLabel(/secret/i).inputValue();
    const id = /agents\/([0-9a-f-]{36})/.exec(this.page.url())[1];
    this.agent = { id, secret, token: await tokenOf({ id, secret }) };
    await this.page.reload();
    assert.ok(!(await this.page.content()).includes(secret), "the secret is shown again");
  }

  bar(name) { return this.page.getByRole("img", { name }).first(); }

  // watch opens the session and waits until its bars have grown by themselves.
  async watch(session) {
    await this.page.goto(`/console/sessions/${session.id}`);
    for (const name of [/^Actions/, /^Value/]) {
      const used = this.bar(name).locator(".chart-used");
      const width = async () => (await used.boundingBox())?.width ?? 0;
      const before = await width();
      await eventually(`the bar ${name} grows`, async () => (await width()) >= before + 1, 20_000);
    }
  }

  async suspendSession(load) {
    await this.hand.fill(this.page.getByLabel("Reason"), "looks wrong");
    await this.hand.press(this.button("Suspend"));
    await this.page.getByText("looks wrong").first().waitFor();
    await load.refused();
  }

  async resumeSession(load) {
    await this.hand.press(this.button("Resume"));
    await load.charged();
  }

  async rollBack(keys, session) {
    const begun = await must("POST", "/v1/transactions", this.agent.token, { session_id: session.id, action_type: "refund", value_usd: 2, pre_state: { balance: "10.00 before" } });
    await this.page.goto(`/console/sessions/${session.id}`);
    const row = this.page.getByRole("row").filter({ hasText: "refund" });
    await this.open("Show", row);
    await this.page.getByText("10.00 before").waitFor();
    await this.open("Roll back", row);
    await this.hand.fill(row.getByLabel(/type roll back/i), "roll back");
    await this.hand.press(this.button("Roll back", row));
    await row.getByText("rolled_back").waitFor();
    assert.equal((await must("GET", `/v1/transactions/${begun.id}`, keys.admin)).status, "rolled_back");
  }

  async stopAll(keys, session, load) {
    await this.goTo("Stop all");
    await this.confirm("Stop all agents", /type stop/i, "stop");
    await this.page.getByRole("status").filter({ hasText: "1 agent" }).waitFor();
    assert.equal((await charge(this.agent, session)).body.code, "agent_suspended");
    assert.ok((await must("GET", `/v1/agents/${this.agent.id}`, keys.admin)).suspended_at);
    await load.refused();
  }

  async resumeAll(session, load) {
    await this.confirm("Resume all agents", /type resume/i, "resume");
    await this.page.getByRole("status").filter({ hasText: "1 agent" }).waitFor();
    assert.equal((await charge(this.agent, session)).status, 200);
    await load.charged();
  }

  // compare stops the load test, whose own totals must reconcile, and reads the session's page.
  async compare(keys, session, load) {
    const { code, report, progress } = await load.stop();
    assert.equal(code, 0, report + progress);
    for (const refusal of ["session_suspended", "agent_suspended"]) assert.match(report, new RegExp(`refused with 403 ${refusal} +[1-9]`));
    assert.match(report, /totals of 1 sessions reconcile/);
    const [, actions, value] = /acknowledged +[0-9]+ requests +([0-9]+) actions, ([0-9.]+) USD/.exec(report);
    const lines = await must("GET", `/v1/sessions/${session.id}/usage`, keys.admin);
    const own = lines.find((line) => line.action_type.startsWith("loadtest."));
    assert.deepEqual([own.action_count, own.value_usd], [Number(actions), Number(value)]);
    await this.page.goto(`/console/sessions/${session.id}`);
    const shown = (what) => this.page.locator(`b[data-live="${session.id}.${what}"]`).innerText();
    const stored = await must("GET", `/v1/sessions/${session.id}`, keys.admin);
    assert.equal((await shown("actions")).replaceAll(",", ""), String(stored.action_count));
    assert.equal(Number((await shown("value")).replace(/[$,]/g, "")), stored.value_used_usd);
    await this.page.getByText(own.action_type).first().waitFor();
  }

  // confirm types the word that a change wants, and presses its button.
  async confirm(button, label, word) {
    await this.hand.fill(this.page.getByLabel(label), word);
    await this.hand.press(this.button(button));
  }

  async signOut() {
    await this.hand.press(this.button("Sign out"));
    await this.page.getByLabel("API key").waitFor();
    await this.page.goto("/console/agents");
    await this.page.getByLabel("API key").waitFor();
  }

  // open opens what a summary hides.
  async open(name, within = this.page) {
    await this.hand.press(within.locator("summary").filter({ hasText: name }));
  }
}

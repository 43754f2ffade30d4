// A role decides what is shown and what is possible. The changes that admins have forms for are sent with others' cookies.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "./fixture.mjs";
import { discover } from "./pages.mjs";
import { must } from "./service.mjs";
import { signIn } from "./chromium.mjs";
import { visitor } from "./visitor.mjs";

const { keys, near, planner, idle } = await fixture();
const busy = [`/console/sessions/${near.id}`, `/console/agents/${planner.id}`, `/console/agents/${idle.id}`];
const changes = new Map(); // by the address they are sent to: the fields of their forms

// formsOf returns what the forms of all pages send, without the token that is the viewer's own.
async function formsOf(page) {
  const found = new Map();
  for (const path of [...(await discover(page)).map((found) => found.path), ...busy]) {
    await page.goto(path);
    const forms = await page.locator("form[method=post]").evaluateAll((all) => all.map((form) => ({
      action: form.action, fields: [...new FormData(form)].filter(([name]) => name !== "csrf"),
    })));
    for (const { action, fields } of forms) found.set(new URL(action).pathname, Object.fromEntries(fields));
  }
  found.delete("/console/sign-out");
  return found;
}

// state is what changes would change.
const state = async () => JSON.stringify(await Promise.all(["/v1/agents", "/v1/sessions", "/v1/transactions", "/v1/webhooks", "/v1/api-keys", "/v1/budget"]
  .map((path) => must("GET", path, keys.admin)).map(withoutUse)), null, 1);
const withoutUse = async (answer) => JSON.parse(JSON.stringify(await answer), (name, value) => (name === "last_used_at" ? undefined : value));

const withoutIDs = (path) => path.replace(/[0-9a-f-]{36}/g, "ID");
const tokenOf = (page) => page.locator("input[name=csrf]").first().inputValue();

// send sends a form as the browser's user, by a request that no page made.
const send = (page, path, fields, csrf) => page.request.post(path, { form: { ...fields, ...(csrf && { csrf }) }, maxRedirects: 0 });

test("admins have forms for what can be changed", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.admin);
  for (const [path, fields] of await formsOf(page)) changes.set(path, fields);
  t.diagnostic([...changes.keys()].join(" "));
  assert.ok(changes.size >= 20, `${changes.size} forms`);
});

test("a viewer sees no form, and no request with a viewer's cookie changes anything", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.viewer);
  assert.deepEqual([...(await formsOf(page)).keys()], []);
  await page.goto("/console");
  const [before, csrf] = [await state(), await tokenOf(page)];
  for (const [path, fields] of changes) {
    assert.equal((await send(page, path, fields, csrf)).status(), 403, path);
  }
  assert.equal(await state(), before);
});

test("without the token of the page an admin's cookie changes nothing", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.admin);
  const before = await state();
  for (const [path, fields] of changes) {
    assert.equal((await send(page, path, fields)).status(), 403, path);
    assert.equal((await send(page, path, fields, "x".repeat(43))).status(), 403, path);
  }
  assert.equal(await state(), before);
});

test("an operator has only the forms of operators, and the others are refused", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.operator);
  const own = await formsOf(page);
  await page.goto("/console");
  const [before, csrf] = [await state(), await tokenOf(page)];
  const ownKinds = new Set([...own.keys()].map(withoutIDs));
  const beyond = [...changes].filter(([path]) => !ownKinds.has(withoutIDs(path)));
  assert.ok(own.size > 0 && beyond.length > 0, `${own.size} forms, ${beyond.length} refused`);
  for (const [path, fields] of beyond) assert.equal((await send(page, path, fields, csrf)).status(), 403, path);
  assert.equal(await state(), before);
});

test("another site's page cannot send a form or show a page in a frame", async (t) => {
  const page = await visitor(t);
  await signIn(page, keys.admin);
  const csrf = await tokenOf(page);
  const [path, fields] = [...changes][0];
  for (const headers of [{ Origin: "https://evil.example" }, { "Sec-Fetch-Site": "cross-site" }, { "Sec-Fetch-Site": "same-site" }]) {
    const answer = await page.request.post(path, { form: { ...fields, csrf }, headers, maxRedirects: 0 });
    assert.equal(answer.status(), 403, JSON.stringify(headers));
  }
  const answer = await page.request.get("/console");
  assert.match(answer.headers()["content-security-policy"], /frame-ancestors 'none'/);
  for (const cookie of await page.context().cookies()) {
    assert.ok(cookie.httpOnly && cookie.sameSite === "Strict" && cookie.path === "/console", JSON.stringify(cookie));
    assert.ok(!cookie.value.includes(keys.admin.slice(4, 20)), "the cookie holds the key in the open");
  }
});

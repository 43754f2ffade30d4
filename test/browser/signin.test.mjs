// The way in and out, with a mouse and with a keyboard alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { keyboard, mouse } from "./hand.mjs";
import { must, organization } from "./service.mjs";
import { axe, visitor } from "./visitor.mjs";

const keys = await organization("acme & <b>sons</b>");

for (const [name, handOf] of Object.entries({ "a mouse": mouse, "a keyboard alone": keyboard })) {
  for (const javaScriptEnabled of [true, false]) {
    test(`signs in and out with ${name}, script ${javaScriptEnabled ? "on" : "off"}`, async (t) => {
      const page = await visitor(t, { javaScriptEnabled });
      const hand = handOf(page);
      const enter = async (key) => {
        await hand.fill(page.getByLabel("API key"), key);
        await hand.press(page.getByRole("button", { name: "Sign in" }));
      };
      await page.goto("/console/no-such-page");
      assert.ok(page.url().includes("/console"), page.url());
      await page.goto("/console");
      if (javaScriptEnabled) assert.deepEqual(await axe(page), []);
      await enter(keys.viewer.slice(0, -1) + (keys.viewer.endsWith("x") ? "y" : "x"));
      await page.getByRole("alert").filter({ hasText: "not signed in" }).waitFor();
      if (javaScriptEnabled) assert.deepEqual(await axe(page), []);
      await enter(keys.viewer);
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      await page.getByText("acme & <b>sons</b>").first().waitFor();
      for (const text of [page.url(), await page.content(), JSON.stringify(await page.context().cookies())]) {
        assert.ok(!text.includes("rmk_"), "an API key is in the open");
      }
      await hand.press(page.getByRole("button", { name: "Sign out" }));
      await page.getByLabel("API key").waitFor();
      await page.goBack();
      await page.goto("/console");
      await page.getByLabel("API key").waitFor();
    });
  }
}

test("the first Tab leads to the content", async (t) => {
  const page = await visitor(t);
  await page.goto("/console");
  await page.getByLabel("API key").fill(keys.admin);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.keyboard.press("Tab");
  const focused = page.locator(":focus");
  assert.match(await focused.innerText(), /skip/i);
  assert.ok((await focused.boundingBox()).x >= 0, "the link is not visible");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
});

test("a rotation of the key ends the sign-in", async (t) => {
  const page = await visitor(t);
  const made = await must("POST", "/v1/api-keys", keys.admin, { name: "of one day", role: "admin" });
  await page.goto("/console");
  await page.getByLabel("API key").fill(made.api_key);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.goto("/console/agents"); // which is not live: it does not lead to the sign-in by itself
  await must("POST", `/v1/api-keys/${made.id}/rotate`, keys.admin, { grace_seconds: 60 });
  await page.goto("/console");
  await page.getByLabel("API key").waitFor();
});

test("a page that is open leads to the sign-in once its key ends", async (t) => {
  const page = await visitor(t);
  const made = await must("POST", "/v1/api-keys", keys.admin, { name: "of one hour", role: "viewer" });
  await page.goto("/console/sessions");
  await page.getByLabel("API key").fill(made.api_key);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Sessions" }).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await must("DELETE", `/v1/api-keys/${made.id}`, keys.admin);
  await page.getByLabel("API key").waitFor({ timeout: 20_000 });
});

// The page Stop all while a suspension or resumption of all agents is under way. REMIT_CONTROL begins and ends one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { signIn } from "./chromium.mjs";
import { openAll, overflow } from "./pages.mjs";
import { agent, eventually, must } from "./service.mjs";
import { axe, visitor } from "./visitor.mjs";

const admin = process.env.REMIT_KEY;
const keys = { admin };
const agents = [await agent(keys, "planner"), await agent(keys, "researcher"), await agent(keys, "writer")];
const control = (what) => fetch(`${process.env.REMIT_CONTROL}/${what}`, { method: "POST" });
const told = (page, text) => page.getByRole("status").filter({ hasText: text });

for (const colorScheme of ["light", "dark"]) {
  for (const width of [375, 1440]) {
    test(`what is under way is accessible, and fits into ${width} pixels, in ${colorScheme}`, async (t) => {
      const page = await visitor(t, { colorScheme, viewport: { width, height: 900 } });
      await signIn(page, admin);
      for (const what of ["stop", "resume"]) {
        await control(what);
        await page.goto("/console/stop");
        await told(page, what === "stop" ? "Suspending all agents since" : "Resuming all agents since").waitFor();
        await openAll(page);
        assert.deepEqual(await axe(page), []);
        assert.deepEqual(await overflow(page), []);
        assert.equal(await page.locator("meta[http-equiv]").count(), 0);
        await control("end");
        await told(page, `All agents are ${what === "stop" ? "suspended" : "resumed"}: 3 agents`).waitFor();
      }
    });
  }
}

test("the page tells how far it is, and its end, without being loaded anew for each", async (t) => {
  const page = await visitor(t);
  await signIn(page, admin);
  await control("stop");
  await page.goto("/console/stop");
  let loads = 0;
  page.on("load", () => loads++);
  await told(page, "0 of 3 live agents are suspended.").waitFor();
  await must("POST", `/v1/agents/${agents[0].id}/suspend`, admin);
  await eventually("the count moves", async () => (await page.locator("#suspended").innerText()) === "1", 20_000);
  assert.equal(await page.locator("progress").evaluate((bar) => bar.value), 1);
  await told(page, "1 of 3 live agents are suspended.").waitFor({ timeout: 20_000 });
  assert.equal(loads, 0);
  await control("end");
  await told(page, "All agents are suspended: 3 agents").waitFor();
  await must("POST", `/v1/agents/${agents[0].id}/resume`, admin);
});

test("nothing that somebody types is lost", async (t) => {
  const page = await visitor(t);
  await signIn(page, admin);
  await control("resume");
  await page.goto("/console/stop");
  await page.getByLabel("Reason").fill("a leak");
  await page.getByLabel(/type stop/i).pressSequentially("sto");
  await told(page, "live agents are suspended.").waitFor();
  await control("end");
  await told(page, "All agents are resumed: 3 agents").getByRole("link", { name: "Reload the page" }).waitFor();
  assert.equal(await page.getByLabel("Reason").inputValue(), "a leak");
  assert.equal(await page.getByLabel(/type stop/i).inputValue(), "sto");
  assert.deepEqual(await axe(page), []);
  await page.getByRole("link", { name: "Reload the page" }).click();
  await page.getByRole("button", { name: "Resume all agents" }).waitFor();
});

test("without script a link shows how far it is", async (t) => {
  const page = await visitor(t, { javaScriptEnabled: false });
  await signIn(page, admin);
  await control("stop");
  await page.goto("/console/stop");
  await told(page, "Suspending all agents since").waitFor();
  await page.getByText("0 of 3 live agents are suspended.").waitFor();
  await control("end");
  await page.getByRole("link", { name: "Reload the page" }).click();
  await told(page, "All agents are suspended: 3 agents").waitFor();
});

test("a page whose key has ended leads to the sign-in", async (t) => {
  const page = await visitor(t);
  const made = await must("POST", "/v1/api-keys", admin, { name: "brief", role: "operator" });
  await signIn(page, made.api_key);
  await control("stop");
  await page.goto("/console/stop");
  await told(page, "Suspending all agents since").waitFor();
  await must("DELETE", `/v1/api-keys/${made.id}`, admin);
  await page.getByLabel("API key").waitFor();
  await control("end");
});

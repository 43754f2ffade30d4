// What is shown once is copied with a button: with a mouse, by keyboard, and where the browser does not let a page copy.
import assert from "node:assert/strict";
import { test } from "node:test";
import { signIn } from "./chromium.mjs";
import { keyboard, mouse } from "./hand.mjs";
import { overflow } from "./pages.mjs";
import { agent, must, organization } from "./service.mjs";
import { axe, visitor } from "./visitor.mjs";

const keys = await organization();
const hook = await must("POST", "/v1/webhooks", keys.admin, { url: "https://localhost/remit" });

// Each credential: the page that makes it, and how.
const credentials = {
  "a new agent's secret": { path: "/console/agents", open: "Create an agent", fill: { Name: "scout" }, button: "Create agent", label: "Secret" },
  "an API key": { path: "/console/api-keys", open: "Create an API key", fill: { Name: "one more" }, button: "Create API key", label: "API key" },
  "a webhook's secret": { path: "/console/webhooks", open: "Create a webhook", fill: { URL: "https://localhost/other" }, button: "Create webhook", label: "Secret" },
  "a webhook's next secret": { path: `/console/webhooks/${hook.id}`, open: "Rotate secret", fill: { "To confirm it, type rotate": "rotate" }, button: "Rotate secret", label: "Secret" },
};

async function make(page, { path, open, fill, button, label }) {
  await page.goto(path);
  const form = page.locator("details", { has: page.locator("summary", { hasText: open }) });
  if (!(await form.evaluate((details) => details.open))) await form.locator("summary").click();
  for (const [name, text] of Object.entries(fill)) await form.getByLabel(name, { exact: true }).fill(text);
  await form.getByRole("button", { name: button }).click();
  return page.getByLabel(label, { exact: true }).and(page.locator(".secret"));
}

const copyOf = (page) => page.getByRole("button", { name: "Copy", exact: true });
const said = (page, text) => page.getByRole("status").filter({ hasText: new RegExp(`^${text}`) }).waitFor();
const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

for (const [what, how] of Object.entries(credentials)) {
  test(`${what} is copied, with a mouse and a keyboard alone, and the page says so`, async (t) => {
    for (const hand of [mouse, keyboard]) {
      const page = await visitor(t, { viewport: { width: 375, height: 812 }, permissions: ["clipboard-read", "clipboard-write"] });
      await signIn(page, keys.admin);
      const secret = await (await make(page, how)).inputValue();
      await hand(page).press(copyOf(page));
      await said(page, "Copied");
      assert.equal(await clipboard(page), secret);
      assert.deepEqual(await axe(page), []);
      assert.deepEqual(await overflow(page), []);
    }
  });
}

test("an agent's id is copied", async (t) => {
  const page = await visitor(t, { permissions: ["clipboard-read", "clipboard-write"] });
  await signIn(page, keys.admin);
  const { id } = await agent(keys);
  await page.goto(`/console/agents/${id}`);
  await page.getByRole("button", { name: "Copy id" }).click();
  await said(page, "Copied");
  assert.equal(await clipboard(page), id);
});

for (const [why, spoil] of Object.entries({
  "has no clipboard for pages": () => Object.defineProperty(Navigator.prototype, "clipboard", { value: undefined }),
  "refuses the clipboard": () => { Clipboard.prototype.writeText = () => Promise.reject(new DOMException("no", "NotAllowedError")); },
})) {
  test(`a browser that ${why} has the text selected`, async (t) => {
    const page = await visitor(t);
    await page.addInitScript(spoil);
    await signIn(page, keys.admin);
    const field = await make(page, credentials["an API key"]);
    await copyOf(page).click();
    await said(page, "Selected");
    assert.equal(await field.evaluate((input) => input === document.activeElement && input.value.slice(input.selectionStart, input.selectionEnd)), await field.inputValue());
    await page.goto(`/console/webhooks/${hook.id}`);
    await page.getByRole("button", { name: "Copy id" }).click();
    await said(page, "Selected");
    assert.equal(await page.evaluate(() => getSelection().toString()), hook.id);
  });
}

test("without script there is no button that does nothing", async (t) => {
  const page = await visitor(t, { javaScriptEnabled: false });
  await signIn(page, keys.admin);
  await (await make(page, credentials["an API key"])).waitFor();
  assert.equal(await page.getByRole("button", { name: /^Copy/ }).count(), 0);
});

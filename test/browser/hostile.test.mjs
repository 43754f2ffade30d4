// Texts that strangers choose are only text, on every page, and no page grows wider by them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "./fixture.mjs";
import { discover, openAll, overflow } from "./pages.mjs";
import { signIn } from "./chromium.mjs";
import { eventually, must } from "./service.mjs";
import { visitor } from "./visitor.mjs";

// What strangers may choose in place of a plain text, of at most so many characters.
const hostile = {
  "a script": (plain) => `<script>globalThis.hacked = 1; alert(1)</script>${plain}`,
  "an image": (plain) => `"'><img src=x onerror="globalThis.hacked = 1; alert(1)"><svg onload=alert(1)>${plain}`,
  "template braces and entities": (plain) => `{{.}} \${alert(1)} &lt;b&gt; </textarea></title></style><!-- ${plain}`,
  "an address that is a script": () => "javascript:globalThis.hacked=1",
  "a formula": (plain) => `=HYPERLINK("https://evil.example","${plain}")`,
  "right to left": (plain) => `\u202egnp.${plain}\u2066\u200f שלום \u0627\u0644`,
  "combining marks": (plain) => plain + "Z\u0335\u0321\u0328".repeat(20),
  "one word, as long as may be": (plain, most) => plain + "W".repeat(most - plain.length),
  "right to left, as long as may be": (plain, most) => (plain + "\u202eשלום \u0627\u0644 ".repeat(most)).slice(0, Math.min(most, 5000)),
};

for (const [name, text] of Object.entries(hostile)) {
  test(`${name} is only text`, async (t) => {
    const { keys, near, planner, idle } = await fixture(text);
    const page = await visitor(t, { viewport: { width: 375, height: 812 } });
    await signIn(page, keys.admin);
    const pages = await discover(page);
    assert.ok(pages.length >= 14, `${pages.length} pages`);
    pages.push({ name: "the session", path: `/console/sessions/${near.id}` }, { name: "the agent", path: `/console/agents/${planner.id}` },
      { name: "the suspended agent", path: `/console/agents/${idle.id}` }, { name: "usage by names", path: "/console/usage?group_by=agent,action_type" },
      { name: "usage by day and type", path: "/console/usage?group_by=day,action_type" });
    for (const address of ["agents?q", "agents?state", "sessions?agent", "sessions?status", "events?type", "requests?agent", "requests?status",
      "usage?from", "usage?group_by", "usage?agent"]) {
      pages.push({ name: address, path: `/console/${address}=${encodeURIComponent(text("x", 150))}` });
    }
    for (const { name, path } of pages) {
      const response = await page.goto(path);
      assert.ok((await response.body()).length < 200_000, `${name} is large`);
      await isOnlyText(page, name);
    }
    await t.test("in a message", async () => {
      await page.goto("/console/agents");
      await openAll(page);
      await page.getByLabel("Name", { exact: true }).fill(text("another", 200));
      await page.getByRole("button", { name: "Create agent" }).click();
      await page.getByLabel(/secret/i).waitFor();
      await isOnlyText(page, "the agent that was created");
    });
    await t.test("in an event that comes while the page is open", async () => {
      await page.goto(`/console/sessions/${near.id}`);
      await page.getByText("Live", { exact: true }).waitFor();
      const rows = page.locator("[data-news] tbody tr");
      const before = await rows.count();
      await must("POST", `/v1/sessions/${near.id}/suspend`, keys.admin, { reason: text("later", 500) });
      await eventually("news", async () => (await rows.count()) > before);
      await isOnlyText(page, "the news of the session");
    });
  });
}

async function isOnlyText(page, name) {
  await openAll(page);
  for (const width of [1440, 768, 375]) {
    await page.setViewportSize({ width, height: 812 });
    assert.deepEqual(await overflow(page), [], `${name} at ${width} pixels`);
  }
  assert.deepEqual(await made(page), [], name);
}

// made returns what texts have become beyond text.
const made = (page) => page.evaluate(() => {
  const found = [];
  if (globalThis.hacked !== undefined) found.push("a script ran");
  for (const element of document.querySelectorAll("script, img, iframe, object, embed, base, meta[http-equiv], style")) {
    if (!(element.localName === "script" && element.src.startsWith(`${location.origin}/console/static/`))) found.push(element.outerHTML.slice(0, 200));
  }
  for (const element of document.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      const leads = ["href", "src", "action", "formaction", "srcdoc", "data"].includes(name);
      if (name.startsWith("on") || name === "style" || (leads && /^\s*(javascript|data):/i.test(value))) found.push(`${element.localName} ${name}=${value.slice(0, 100)}`);
    }
  }
  for (const link of document.querySelectorAll("a[href]")) {
    if (new URL(link.href).origin !== location.origin) found.push(`a link to ${link.href}`);
  }
  return found;
});

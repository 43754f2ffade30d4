// Texts that strangers choose are only text, on every page, and no page grows wider by them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "./fixture.mjs";
import { discover, openAll, overflow } from "./pages.mjs";
import { signIn } from "./chromium.mjs";
import { visitor } from "./visitor.mjs";

const hostile = {
  "a script": (plain) => `<script>globalThis.hacked = 1; alert(1)</script>${plain}`,
  "an image": (plain) => `"'><img src=x onerror="globalThis.hacked = 1; alert(1)"><svg onload=alert(1)>${plain}`,
  "template braces and entities": (plain) => `{{.}} \${alert(1)} &lt;b&gt; </textarea></title></style><!-- ${plain}`,
  "a formula": (plain) => `=HYPERLINK("https://evil.example","${plain}")`,
  "right to left": (plain) => `\u202egnp.${plain}\u2066\u200f שלום \u0627\u0644`,
  "one long word": (plain) => plain + "W".repeat(90),
  "combining marks": (plain) => plain + "Z\u0335\u0321\u0328".repeat(20),
};

for (const [name, text] of Object.entries(hostile)) {
  test(`${name} is only text`, async (t) => {
    const { keys, near, planner } = await fixture(text);
    const page = await visitor(t, { viewport: { width: 375, height: 812 } });
    await signIn(page, keys.admin);
    const pages = await discover(page);
    assert.ok(pages.length >= 5, `${pages.length} pages`);
    pages.push({ name: "the session", path: `/console/sessions/${near.id}` }, { name: "the agent", path: `/console/agents/${planner.id}` });
    for (const { name, path } of pages) {
      await page.goto(path);
      await openAll(page);
      assert.deepEqual(await overflow(page), [], name);
      assert.deepEqual(await made(page), [], name);
    }
  });
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
      if (name.startsWith("on") || name === "style" || /^\s*javascript:/i.test(value)) found.push(`${element.localName} ${name}=${value.slice(0, 100)}`);
    }
  }
  for (const link of document.querySelectorAll("a[href]")) {
    if (new URL(link.href).origin !== location.origin) found.push(`a link to ${link.href}`);
  }
  return found;
});

// The texts of pages that can be 10,000 characters long: metadata and what a transaction remembers.
test("10,000 characters fit", async (t) => {
  const long = "x".repeat(10_000);
  const { keys } = await fixture((plain) => (["growth", "T-7", "before", "booked"].includes(plain) ? long : plain));
  const page = await visitor(t, { viewport: { width: 375, height: 812 } });
  await signIn(page, keys.admin);
  for (const { name, path } of await discover(page)) {
    const response = await page.goto(path);
    assert.deepEqual(await overflow(page), [], name);
    assert.ok((await response.body()).length < 200_000, name);
  }
});

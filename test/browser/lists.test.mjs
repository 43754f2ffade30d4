// A person decides requests for more where all are listed, and exports what was used, by mouse and by keyboard.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fixture } from "./fixture.mjs";
import { keyboard, mouse } from "./hand.mjs";
import { signIn } from "./chromium.mjs";
import { call, charge, eventually, must } from "./service.mjs";
import { visitor } from "./visitor.mjs";

const { keys, near, planner } = await fixture();

for (const [name, hand] of Object.entries({ mouse, keyboard })) {
  test(`requests for more are approved and denied on their page, by ${name}`, async (t) => {
    const page = await visitor(t);
    const { press, fill, choose } = hand(page);
    for (const reason of ["three more invoices", "a second try"]) {
      await must("POST", `/v1/sessions/${near.id}/requests`, planner.token, { add_value_usd: 3, reason: `${reason}, ${name}` });
    }
    await signIn(page, keys.operator);
    await press(page.getByRole("navigation", { name: "Pages", exact: true }).getByRole("link", { name: /^Requests/ }));
    await page.getByRole("heading", { level: 1, name: "Requests" }).waitFor();
    const asked = (reason) => page.locator(".empty").filter({ hasText: `${reason}, ${name}` });
    await eventually("the requests are listed", async () => (await page.reload()) && (await asked("a second try").count()) === 1);

    await fill(asked("three more invoices").getByLabel("Dollars"), "1.50");
    await press(asked("three more invoices").getByRole("button", { name: "Approve" }));
    await page.getByRole("status").filter({ hasText: "The request is approved" }).waitFor();
    await fill(asked("a second try").getByLabel("Comment").last(), "not today");
    await press(asked("a second try").getByRole("button", { name: "Deny" }));
    await page.getByRole("status").filter({ hasText: "The request is denied" }).waitFor();
    assert.match(await asked("three more invoices").innerText(), /approved[^]*planner[^]*Granted: 0 actions, \$1\.50[^]*An API key decided it/);
    assert.match(await asked("a second try").innerText(), /denied[^]*Answer: not today/);

    await choose(page.getByLabel("Status"), "denied");
    await press(page.getByRole("button", { name: "Show" }));
    await asked("a second try").waitFor();
    assert.equal(await asked("three more invoices").count(), 0);
  });

  test(`usage is shown by agent and exported as the API has it, by ${name}`, async (t) => {
    const page = await visitor(t, { acceptDownloads: true });
    const { press, choose } = hand(page);
    await charge(planner, near, 0.01, "=1+1");
    await signIn(page, keys.viewer);
    await press(page.getByRole("navigation", { name: "Pages", exact: true }).getByRole("link", { name: "Usage" }));
    await choose(page.getByLabel(/^By/), "agent,action_type");
    await press(page.getByRole("button", { name: "Show" }));
    await page.getByRole("cell", { name: "=1+1" }).waitFor();
    const { body: lines } = await call("GET", "/v1/usage?group_by=agent,action_type", keys.viewer);
    const sum = lines.reduce((all, line) => all + Math.round(line.value_usd * 1e6), 0) / 1e6;
    assert.ok((await page.locator(".tile").first().innerText()).endsWith(`$${sum.toFixed(6).replace(/0{1,4}$/, "")}`), `${sum}`);

    for (const [format, says] of [["CSV", /^agent_id,action_type,action_count,value_usd\r\n[^]*,'=1\+1,/], ["JSON", /"action_type":"=1\+1"/]]) {
      const [file] = await Promise.all([page.waitForEvent("download"), press(page.getByRole("link", { name: `Export as ${format}` }))]);
      assert.match(file.suggestedFilename(), new RegExp(`^remit-usage-[-0-9]{21}-by-agent-action_type\\.${format.toLowerCase()}$`));
      assert.match(readFileSync(await file.path(), "utf8"), says);
    }
  });
}

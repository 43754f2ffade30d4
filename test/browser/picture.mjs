// Takes the picture of the README: node picture.mjs FILE, with REMIT_KEY, an API key of an organization that worked for a month.
import { agent, charge, must, origin, session } from "./service.mjs";
import { launch, signIn } from "./chromium.mjs";

const keys = { admin: process.env.REMIT_KEY };
await must("PUT", "/v1/budget", keys.admin, { max_value_usd: 400, period: "month" });
const refunds = await agent(keys, "refunds");
const working = await session(keys, refunds, { max_actions: 40, max_value_usd: 60 });
for (let i = 0; i < 6; i++) await charge(refunds, working, 0.9, "tool.search");
await must("POST", "/v1/transactions", refunds.token, { session_id: working.id, action_type: "refund", value_usd: 49.5, pre_state: { balance: "61.30" } });
await must("POST", `/v1/sessions/${working.id}/requests`, refunds.token, { add_value_usd: 30, reason: "two refunds of order 2041 are still to do" });

const browser = await launch();
const page = await (await browser.newContext({ baseURL: origin, viewport: { width: 1200, height: 1200 }, deviceScaleFactor: 0.8, colorScheme: "light" })).newPage();
await signIn(page, keys.admin);
await page.goto("/console/sessions"); // observes that old sessions have expired
do {
  await page.waitForTimeout(500);
  await page.goto("/console");
} while (await page.getByText(/being (read|added up)/).first().isVisible());
await page.getByText("Live", { exact: true }).waitFor();
await page.screenshot({ path: process.argv[2] });
await browser.close();

// Takes the picture of the README: node picture.mjs FILE, with REMIT_KEY, an API key.
import { origin } from "./service.mjs";
import { launch, signIn } from "./chromium.mjs";

const browser = await launch();
const page = await (await browser.newContext({ baseURL: origin, viewport: { width: 1200, height: 960 }, colorScheme: "light" })).newPage();
await signIn(page, process.env.REMIT_KEY);
await page.goto("/console/sessions"); // observes that old sessions have expired
do {
  await page.waitForTimeout(500);
  await page.goto("/console");
} while (await page.getByText(/being (read|added up)/).first().isVisible());
await page.screenshot({ path: process.argv[2] });
await browser.close();

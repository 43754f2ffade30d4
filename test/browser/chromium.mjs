// A browser, and the way into the console.
import { chromium } from "playwright-core";

// Debian's Chromium. Nothing in it may call home, and its sandbox needs privileges that tests do not have.
const executablePath = process.env.CHROMIUM;
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

// launch starts a browser, with more arguments if given.
export const launch = (more = []) => chromium.launch({ executablePath, args: [...args, ...more] });

// signIn opens the console and signs in.
export async function signIn(page, key) {
  await page.goto("/console");
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
}

// Opens a page as a viewer and measures its frames while its live updates come in. Prints JSON.
//   node frames.mjs PATH SECONDS   with REMIT_KEY, an API key
import { origin } from "./service.mjs";
import { launch } from "./chromium.mjs";

const [path, seconds] = [process.argv[2], Number(process.argv[3])];
const browser = await launch();
const page = await (await browser.newContext({ baseURL: origin, viewport: { width: 1440, height: 900 } })).newPage();
await page.goto(path); // leads to the sign-in, and that back
await page.getByLabel("API key").fill(process.env.REMIT_KEY);
await page.getByRole("button", { name: "Sign in" }).click();
await page.getByText("Live", { exact: true }).waitFor();
const measured = await page.evaluate((seconds) => new Promise((resolve) => {
  const frames = [], tasks = [];
  let updates = 0;
  new MutationObserver((changes) => { updates += changes.length; }).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  new PerformanceObserver((list) => tasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask" });
  const end = performance.now() + seconds * 1000;
  let last = performance.now();
  requestAnimationFrame(function frame(now) {
    frames.push(now - last);
    last = now;
    if (now < end) return requestAnimationFrame(frame);
    frames.sort((a, b) => a - b);
    const at = (part) => Math.round(frames[Math.floor(part * (frames.length - 1))]);
    resolve({ frames: frames.length, median_ms: at(0.5), p99_ms: at(0.99), longest_ms: at(1), long_tasks: tasks.length,
      longest_task_ms: Math.round(Math.max(0, ...tasks)), updates, nodes: document.querySelectorAll("*").length });
  });
}), seconds);
console.log(JSON.stringify(measured));
await browser.close();

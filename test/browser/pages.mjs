// Every page of the console, found by its links.
const mostPages = 80;

// discover returns the addresses of the pages that links lead to, one of each kind: ids differ, and values of the query. It
// starts where the browser is. Files are no pages.
export async function discover(page) {
  const found = new Map();
  const waiting = [new URL(page.url())];
  while (waiting.length > 0 && found.size < mostPages) {
    const url = waiting.shift();
    if (found.has(kind(url))) continue;
    found.set(kind(url), url.pathname + url.search);
    await page.goto(url.href);
    const links = await page.locator("a[href]").evaluateAll((all) => all.map((a) => a.href));
    for (const link of links.map((href) => new URL(href))) {
      if (link.origin === url.origin && /^\/console(\/|$)/.test(link.pathname) && !link.pathname.endsWith("/export") && !found.has(kind(link))) waiting.push(link);
    }
  }
  return [...found.entries()].map(([name, path]) => ({ name, path }));
}

// kind tells pages apart: /console/agents/ID?status.
function kind(url) {
  const path = url.pathname.replace(/\/[0-9a-f-]{36}(?=\/|$)|\/\d+(?=\/|$)/g, "/ID");
  const keys = [...url.searchParams.keys()].sort();
  return keys.length > 0 ? `${path}?${keys.join("&")}` : path;
}

// fileName is a kind of page as the name of a file.
export const fileName = (name) => name.replace(/^\/console\/?/, "").replace(/[^a-zA-Z0-9]+/g, "-").replace(/^-|-$/g, "") || "overview";

// openAll shows what is hidden until somebody asks for it, and waits for style sheets and what is being added up.
export async function openAll(page) {
  await page.waitForLoadState();
  await page.locator("[data-again]").waitFor({ state: "detached" });
  await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
}

// overflow returns what is wider than the window without its scroll bar, empty for nothing. What scrolls by itself may be wider.
export const overflow = (page) => page.evaluate(() => {
  const { scrollWidth, clientWidth } = document.scrollingElement;
  if (scrollWidth <= clientWidth) return [];
  const wide = [];
  for (const element of document.body.querySelectorAll("*")) {
    if (element.getBoundingClientRect().right > clientWidth + 1) wide.push(`${element.localName}.${element.getAttribute("class")} ends at ${Math.round(element.getBoundingClientRect().right)}`);
  }
  return [`${scrollWidth} of ${clientWidth} pixels`, ...wide.slice(0, 8)];
});

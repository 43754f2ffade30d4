// Takes the examples out of README.md for the tests: each block is a program, named after its heading.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const page = readFileSync(new URL("README.md", here), "utf8");
const to = new URL("test/readme/", here);
rmSync(to, { recursive: true, force: true });
mkdirSync(to, { recursive: true });
const sections = page.split(/^## /m).slice(1);
let examples = 0;
for (const section of sections) {
  const heading = section.slice(0, section.indexOf("\n")).toLowerCase().replaceAll(" ", "-");
  const code = /^```ts\n(.*?)^```$/ms.exec(section)?.[1];
  if (code !== undefined) {
    writeFileSync(new URL(`${heading}.ts`, to), code);
    examples++;
  }
}
if (examples === 0) {
  throw new Error("README.md has no example");
}
const table = /^```json\n(.*?)^```$/ms.exec(page)?.[1];
writeFileSync(new URL("prices.json", to), table);

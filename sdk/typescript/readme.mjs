// Takes the examples out of README.md for the tests: its first lines alone, and all of its blocks, which are one program.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const page = readFileSync(new URL("README.md", here), "utf8");
const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code);
if (blocks.length === 0) {
  throw new Error("README.md has no example");
}
mkdirSync(new URL("test/readme/", here), { recursive: true });
writeFileSync(new URL("test/readme/first.ts", here), blocks[0]);
writeFileSync(new URL("test/readme/whole.ts", here), blocks.join("\n"));

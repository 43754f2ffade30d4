// Runs the program in Node, Deno or Bun.
import { run } from "./program.mjs";

const { REMIT_ADDR: service, REMIT_FAKE_PROVIDER: provider, CLOSED: closed, REMIT_AGENT: agent, REMIT_SECRET: secret, REMIT_SESSION: session } = process.env;
console.log(JSON.stringify(await run({ service, provider, closed, agent, secret, session })));

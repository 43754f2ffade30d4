// Charges a lease of the session in REMIT_SESSION for some seconds, and prints how many charges it made in each:
//
//   node lease.mjs SDK WARMUP SECONDS      SDK is the path of the built index.js; WARMUP are seconds before, that do not count
import { setImmediate } from "node:timers/promises";

const turn = 1000; // charges between two looks at the clock and turns of the event loop

const [sdk, warmUp, seconds] = process.argv.slice(2);
const { Session } = await import(sdk);
const lease = await Session.fromEnv().lease();
const charge = { actionType: "llm.call", value: 1n };

async function chargesFor(milliseconds) {
  let charges = 0;
  const began = performance.now();
  for (let passed = 0; passed < milliseconds; passed = performance.now() - began) {
    for (let i = 0; i < turn; i++) {
      const waiting = lease.charge(charge);
      if (waiting !== undefined) await waiting;
    }
    charges += turn;
    await setImmediate();
  }
  return charges / ((performance.now() - began) / 1000);
}

await chargesFor(Number(warmUp) * 1000);
for (let i = 0; i < Number(seconds); i++) console.log(Math.round(await chargesFor(1000)));
await lease.close();

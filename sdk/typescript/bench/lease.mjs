// Prints how many leased charges one core makes in a second, against the service at REMIT_ADDR. Build the SDK first:
//   npm run build && REMIT_ADDR=http://127.0.0.1:8080 node bench/lease.mjs
import { Client, USD } from "@remit/sdk";

const seconds = 5; // for each way to charge
const batch = 1_000; // charges between two turns of the event loop
const charge = { actionType: "llm.call", value: USD / 100_000n };

const remit = Client.fromEnv();
const made = await remit.createOrganization({ name: "bench" });
const acme = remit.organization(made.apiKey);
const scout = await acme.createAgent({ name: "scout" });
const limits = { maxActions: 1_000_000_000, maxValue: 1_000_000_000n * USD, maxLeaseSeconds: 60 };
const budget = await acme.createSession({ agentId: scout.id, ...limits });
const session = remit.agent(scout.id, scout.secret).session(budget.id);

async function measure(name, work) {
  const [began, used] = [performance.now(), process.cpuUsage()];
  let charges = 0;
  for (; performance.now() - began < seconds * 1000; charges += batch) {
    await work();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { user, system } = process.cpuUsage(used);
  console.log(`${name}: ${Math.round(charges / ((user + system) / 1e6))} charges per second of one core`);
  return charges;
}

const lease = await session.lease();
let charges = await measure("await lease.charge(…)", async () => {
  for (let i = 0; i < batch; i++) await lease.charge(charge);
});
charges += await measure("awaits only a promise", async () => {
  for (let i = 0; i < batch; i++) {
    const wait = lease.charge(charge);
    if (wait !== undefined) await wait;
  }
});
await lease.close();

let leases = 0;
for await (const event of acme.events(scout.id, { wait: false })) leases += event.type === "lease.granted" ? 1 : 0;
const { actionCount, valueUsed } = await session.get();
if (actionCount !== charges || valueUsed !== BigInt(charges) * charge.value) {
  throw new Error(`${charges} charges, but the session shows ${actionCount} and ${valueUsed} micro-dollars`);
}
console.log(`${charges} charges with ${leases} leases in ${2 * seconds} seconds; the session shows exactly these`);

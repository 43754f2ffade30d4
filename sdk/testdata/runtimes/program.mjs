// Makes calls of a model with the SDK's tarball alone, in any runtime, and compares the books with the provider's ledger.
import { Client, LimitReached } from "@remit/sdk";
import { meteredFetch } from "@remit/sdk/fetch";
import { Prices } from "@remit/sdk/prices";

const prices = Prices.parse(`{"m": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "max_output_tokens": 200}}`);
const messages = [{ role: "user", content: "What is left? 🦉" }];

/** Returns what it did, as an object that is the same in all runtimes but for how a refused connection was settled. */
export async function run({ service, provider, closed, agent, secret, session: id }) {
  const session = new Client(service).agent(agent, secret).session(id);
  const metered = meteredFetch(session, prices, { models: new Proxy({}, { getOwnPropertyDescriptor: () => ({ value: "m", configurable: true }), get: () => "m" }) });
  const call = (model, fake, more = {}, signal = undefined, at = provider) => metered(`${at}/v1/chat/completions`, {
    method: "POST", signal, headers: { "X-Fake": fake, "X-Call": model, "Content-Type": "application/json" },
    body: JSON.stringify({ model, messages, max_tokens: 60, ...more }),
  });
  const used = async () => (await session.get()).valueUsed;
  const counted = async (model) => {
    for (;;) { // the provider counts after the last byte of an answer
      const record = (await (await fetch(`${provider}/ledger`)).json()).find((one) => one.model === model);
      if (record !== undefined) return prices.cost("m", { input: record.usage.input, output: record.usage.output });
      await pause();
    }
  };

  const whole = await (await call("whole", "seed=1")).json();
  check(whole.choices.length === 1 && (await used()) === (await counted("whole")), "a call costs what the provider counted");

  let before = await used();
  const text = await (await call("streamed", "seed=2,chunks=odd", { stream: true })).text();
  check(text.trimEnd().endsWith("data: [DONE]") && (await used()) - before === (await counted("streamed")), "a streamed call costs what the provider counted");

  for (const how of ["abort", "cancel"]) {
    before = await used();
    const controller = new AbortController();
    const reader = (await call(how, "seed=3,pace=50", { stream: true }, controller.signal)).body.getReader();
    await reader.read();
    const held = (await session.get()).valueHeld;
    const rest = how === "abort" ? (controller.abort(), reader.read()) : reader.cancel();
    check((await rest.then(() => "ended", () => "failed")) === (how === "abort" ? "failed" : "ended"), `${how} ends the stream`);
    while ((await session.get()).valueHeld !== 0n) await pause();
    const cost = (await used()) - before;
    check(cost >= (await counted(how)) && cost <= held, `a call that ends by ${how} costs what may have come so far`);
  }

  before = await used();
  check(await call("closed", "", {}, undefined, closed).then(() => false, () => true), "a closed port answers");
  const refused = (await used()) === before ? "rolled back" : "committed";

  const { actionCount } = await session.get();
  check(await call("dear", "", { n: 1_000_000 }).then(() => false, (error) => error instanceof LimitReached), "what does not fit is refused");
  const { actionCount: after, valueHeld } = await session.get();
  check(after === actionCount && valueHeld === 0n, "nothing of it is counted or held");
  return { actions: after, refused };
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

function check(holds, what) {
  if (!holds) throw new Error(`not so: ${what}`);
}

/** The service for tests of agents: it runs in memory, for as long as the test. Needs Node, or what is compatible with it. */
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { devNull, tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { Client, type Agent, type Organization, type Session, type SessionLimits } from "@remit/sdk";

/** Settings of startRemit. */
export interface StartOptions {
  /** The program `remit`; the default is REMIT_BINARY, or remit in the PATH. */
  readonly binary?: string;
  /** The limits of the session. */
  readonly limits?: SessionLimits;
  /** The scopes of the agent. */
  readonly scopes?: readonly string[];
}

/** A running service with an organization, an agent, and a session of it. */
export interface TestRemit extends AsyncDisposable {
  readonly url: string;
  readonly client: Client;
  readonly organization: Organization;
  readonly agent: Agent;
  readonly session: Session;
  /** Returns another session of a new agent. */
  newSession(limits?: SessionLimits, scopes?: readonly string[]): Promise<Session>;
  /** Stops the service. It stops by itself when this process ends, however that comes. */
  stop(): Promise<void>;
}

// The shell ends the service when its own standard input ends: when it is closed, or this process has ended, even if it was killed.
// Without redis-server in the PATH the service keeps everything in memory.
const guard = `
  service=$(command -v "$1") || { echo "$1 is not installed: set REMIT_BINARY, or binary" >&2; exit 127; }
  exec 3<&0
  PATH=/nonexistent "$service" serve </dev/null 3<&- & service=$!
  { while read -r _; do :; done; kill "$service"; } <&3 & reader=$!
  wait "$service"; code=$?
  kill "$reader" 2>/dev/null
  exit "$code"`;
const startTime = 20_000; // milliseconds

/** Starts the service in memory. When the promise is fulfilled it is ready, and has no organization but this one. */
export async function startRemit(options: StartOptions = {}): Promise<TestRemit> {
  const { REMIT_BINARY, PATH = "" } = process.env;
  const child = spawn("/bin/sh", ["-c", guard, "sh", options.binary ?? REMIT_BINARY ?? "remit"], {
    env: { // it writes nothing beside the tests
      PATH, TMPDIR: tmpdir(), REMIT_DATA_DIR: devNull, REMIT_LISTEN: "127.0.0.1:0", REMIT_LOG_FORMAT: "json", REMIT_CONSOLE: "off",
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const ended = once(child, "exit");
  const stop = async () => {
    child.ref();
    child.stdin.end();
    await ended;
  };
  try {
    return await newRemit(await listening(child), options, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function newRemit(url: string, { limits, scopes }: StartOptions, stop: () => Promise<void>): Promise<TestRemit> {
  const client = new Client(url);
  const { apiKey } = await client.createOrganization({ name: "test" });
  const organization = client.organization(apiKey!);
  const newAgent = async (scopes: readonly string[] = []) => {
    const { id, secret } = await organization.createAgent({ name: "test", scopes: [...scopes] });
    return client.agent(id, secret);
  };
  const sessionOf = async (agent: Agent, limits: SessionLimits = {}) => agent.session((await organization.createSession({ agentId: agent.id, ...limits })).id);
  const agent = await newAgent(scopes);
  return {
    url, client, organization, agent, session: await sessionOf(agent, limits), stop,
    newSession: async (limits, scopes) => sessionOf(await newAgent(scopes), limits),
    [Symbol.asyncDispose]: stop,
  };
}

// listening returns the URL that the service logs when it is ready, and lets the process end although the service runs.
async function listening(child: ChildProcessWithoutNullStreams): Promise<string> {
  const output: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`remit ${why}:\n${output.join("\n")}`));
    const timer = setTimeout(fail, startTime, "is not ready in time");
    child.once("close", () => {
      clearTimeout(timer);
      fail("ended");
    });
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        output.splice(0, output.length - 50);
        output.push(line);
        const [, at] = /"msg":"listening".*"url":"([^"]+)"/.exec(line) ?? [];
        if (at !== undefined) {
          clearTimeout(timer);
          resolve(at);
        }
      });
    }
  });
  for (const handle of [child, child.stdin, child.stdout, child.stderr] as { unref?: () => void }[]) {
    handle.unref?.();
  }
  return url;
}

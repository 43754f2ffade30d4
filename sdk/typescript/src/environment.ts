// The environment variables that all SDKs and the remit commands read.

import type { AgentSettings } from "./agentoptions.js";

/** Variables by name. */
export type Environment = { readonly [name: string]: string | undefined };

const defaultAddress = "http://127.0.0.1:8080";

/** Returns the environment variables, of which a browser has none. */
export function ownEnvironment(): Environment {
  return (globalThis as { process?: { env?: Environment } }).process?.env ?? {};
}

/** Returns the base URL of the service. */
export function address(from: Environment): string {
  const given = from["REMIT_ADDR"]?.trim() || defaultAddress;
  if (!given.includes("://")) {
    throw new TypeError("remit: REMIT_ADDR: the base URL needs http:// or https:// before the host");
  }
  return given;
}

// The variables of an agent's credential, of which one must be set, and the option that each is. The last two name files.
const credentials = [["REMIT_SECRET", "secret"], ["REMIT_KEY_FILE", "keyFile"], ["REMIT_ASSERTION_FILE", "assertionFile"]] as const;
const files: readonly string[] = ["REMIT_KEY_FILE", "REMIT_ASSERTION_FILE"];

/** An agent's id and options, and other variables that must be set. */
export interface AgentFromEnvironment {
  readonly id: string;
  readonly settings: AgentSettings;
  readonly others: readonly string[];
}

/** Returns the settings of an agent. */
export function agentFrom(from: Environment, ...others: string[]): AgentFromEnvironment {
  const set = credentials.filter(([name]) => (from[name]?.trim() ?? "") !== "");
  if (set.length > 1) {
    throw new TypeError(`remit: set only one of ${set.map(([name]) => name).join(", ")}`);
  }
  const [name, option] = set[0] ?? credentials[0];
  const [id, credential, ...rest] = required(from, "REMIT_AGENT", name, ...others) as [string, string, ...string[]];
  const resource = from["REMIT_RESOURCE"]?.trim() ?? "";
  const settings = {
    [option]: credential,
    ...(resource === "" ? {} : { resource: resource.split(/\s+/) }),
    ...boundBy(from["REMIT_DPOP"]?.trim() ?? ""),
  };
  return { id, settings, others: rest };
}

function boundBy(dpop: string): AgentSettings {
  if (dpop === "" || dpop === "0") {
    return {};
  }
  return dpop === "1" ? { dpop: true } : { dpopFile: dpop };
}

/**
 * Returns the values of variables that must be set. It refuses @FILE and -, with which the remit commands read a credential from
 * a file or from standard input: the SDK would send them as the credential itself.
 */
export function required(from: Environment, ...names: string[]): string[] {
  const values = names.map((name) => from[name]?.trim() ?? "");
  const missing = names.filter((_, i) => values[i] === "");
  if (missing.length > 0) {
    const instead = missing.includes("REMIT_SECRET") ? ` (or ${files.join(" or ")} instead of REMIT_SECRET)` : "";
    throw new TypeError(`remit: set ${missing.join(", ")}${instead}`);
  }
  const file = names.find((name, i) => !files.includes(name) && (values[i]!.startsWith("@") || values[i] === "-"));
  if (file !== undefined) {
    throw new TypeError(`remit: ${file} must be the text itself: the SDK reads no file`);
  }
  return values;
}

// The variables that the SDKs of all languages read, and the commands of remit too.

/** Variables by name. */
export type Environment = { readonly [name: string]: string | undefined };

const defaultAddress = "http://127.0.0.1:8080";

/** The own variables, where there is a process that has some; in a browser there are none. */
export function ownEnvironment(): Environment {
  return (globalThis as { process?: { env?: Environment } }).process?.env ?? {};
}

/** The base URL of the service. */
export function address(from: Environment): string {
  return from["REMIT_ADDR"]?.trim() || defaultAddress;
}

/**
 * The values of variables that must be set. The commands of remit read a credential from a file given as @FILE, or from
 * standard input given as -; sent as it stands, that would only be refused as a wrong credential.
 */
export function required(from: Environment, ...names: string[]): string[] {
  const values = names.map((name) => from[name]?.trim() ?? "");
  const missing = names.filter((_, i) => values[i] === "");
  if (missing.length > 0) {
    throw new TypeError(`remit: set ${missing.join(", ")}`);
  }
  const file = names.find((_, i) => values[i]!.startsWith("@") || values[i] === "-");
  if (file !== undefined) {
    throw new TypeError(`remit: ${file} must be the text itself: the SDK reads no file`);
  }
  return values;
}

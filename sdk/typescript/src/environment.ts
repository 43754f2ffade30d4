// The environment variables that all SDKs and the remit commands read.

/** Variables by name. */
export type Environment = { readonly [name: string]: string | undefined };

const defaultAddress = "http://127.0.0.1:8080";

/** Returns the environment variables, of which a browser has none. */
export function ownEnvironment(): Environment {
  return (globalThis as { process?: { env?: Environment } }).process?.env ?? {};
}

/** Returns the base URL of the service. */
export function address(from: Environment): string {
  return from["REMIT_ADDR"]?.trim() || defaultAddress;
}

/**
 * Returns the values of variables that must be set. It refuses @FILE and -, with which the remit commands read a credential from
 * a file or from standard input: the SDK would send them as the credential itself.
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

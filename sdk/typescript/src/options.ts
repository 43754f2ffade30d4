// Checks of options. Without them, JavaScript callers and values of type any could misspell a limit, and it would be ignored.

import type { EventType } from "./eventtypes.js";

/** The names of all members of a type. The compiler checks that none is missing. */
export type Names<T> = { readonly [K in keyof Required<T>]: true };

/** Returns the options. Throws TypeError for a name that is not in names. */
export function known<T extends object>(what: string, given: T, names: Names<T>): T {
  if (typeof given !== "object" || given === null) {
    throw new TypeError(`remit: ${what} must be an object, such as { ${Object.keys(names)[0]}: … }`);
  }
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(names, name)) {
      const meant = name.replace(/_usd$/, "").replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      const hint = Object.hasOwn(names, meant) ? `: it is ${meant}` : `; there are ${Object.keys(names).join(", ")}`;
      throw new TypeError(`remit: ${what} has no option ${name}${hint}`);
    }
  }
  return given;
}

/** Returns the list. Throws TypeError, with an example of an element, unless it is one. */
export function listOf<T>(name: string, given: readonly T[] | undefined, such: string): readonly T[] | undefined {
  if (given !== undefined && !Array.isArray(given)) {
    throw new TypeError(`remit: ${name} must be a list, such as ["${such}"]`);
  }
  return given;
}

/** Returns the scopes. Throws TypeError unless they are a list. */
export function scopesOf(given: readonly string[] | undefined): readonly string[] | undefined {
  return listOf("scopes", given, "read");
}

/** Returns the types of events. Throws TypeError unless they are a list. */
export function typesOf(given: readonly EventType[] | undefined): readonly EventType[] | undefined {
  return listOf("types", given, "session.ended");
}

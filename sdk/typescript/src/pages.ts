import type { Caller } from "./call.js";
import { array, Unreadable } from "./json.js";
import { withQuery } from "./paths.js";

// Elements per page: as many as fit into 1 MiB if each has its maximum size.
export const perPage = "100";
export const agentsPerPage = "40"; // they come with their metadata

/** Yields the elements of a list, newest first. It requests each page when the previous one is used up. */
export async function* list<T>(
  caller: Caller,
  path: string,
  parameters: Readonly<Record<string, string | undefined>>,
  element: (value: unknown) => T,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, undefined> {
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const present: string = cursor;
    const page: Page<T> = await caller.do(
      {
        method: "GET",
        path: withQuery(path, { limit: perPage, ...parameters, cursor: present }),
        semantics: "safe",
        read: (answer, headers) => pageFrom(answer, headers, element, present),
      },
      signal,
    );
    yield* page.elements;
    cursor = page.next;
  }
}

interface Page<T> {
  readonly elements: readonly T[];
  readonly next: string | undefined;
}

function pageFrom<T>(answer: unknown, headers: Headers, element: (value: unknown) => T, present: string): Page<T> {
  const next = nextPage(headers, "cursor");
  if (next !== undefined && next === present) {
    throw new Unreadable("the next page is the same page");
  }
  return { elements: array(answer, element), next };
}

/**
 * Returns a parameter of the link `<…>; rel="next"`. The SDK does not follow the link itself, because a credential must go only to
 * the base URL.
 */
export function nextPage(headers: Headers, parameter: string): string | undefined {
  const target = /<([^>]*)>[^<]*\brel="next"/.exec(headers.get("Link") ?? "")?.[1];
  const query = target?.split("?", 2)[1] ?? "";
  return new URLSearchParams(query).get(parameter) || undefined;
}

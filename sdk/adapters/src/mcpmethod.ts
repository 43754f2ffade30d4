// Reads which requests a handler of an MCP server is for.

type Members = { readonly [name: string]: unknown };

/**
 * Returns the method in a schema of requests, by its shape: it may come of another copy of the MCP SDK, and of zod 3 or 4.
 * Undefined: the schema does not say, or has more than one.
 */
export function methodOf(schema: unknown): string | undefined {
  const values = literalsOf(membersOf(shapeOf(schema))["method"]);
  return values.length === 1 && typeof values[0] === "string" ? values[0] : undefined;
}

function membersOf(value: unknown): Members {
  return (typeof value === "object" && value !== null) || typeof value === "function" ? (value as Members) : {};
}

// defOf returns what a schema is made of: zod 4 has it in _zod, zod 3 in _def.
function defOf(schema: unknown): Members {
  const { _zod, _def } = membersOf(schema);
  return membersOf(membersOf(_zod)["def"] ?? _def);
}

function shapeOf(schema: unknown): unknown {
  const shape = defOf(schema)["shape"]; // a function in zod 3
  return typeof shape === "function" ? (shape as () => unknown)() : shape;
}

function literalsOf(schema: unknown): readonly unknown[] {
  const { value, values } = defOf(schema);
  return Array.isArray(values) ? values : [value];
}

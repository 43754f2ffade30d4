/** Rounds up to whole seconds, which the service requires. A short time must not become 0, which means the default. */
export function seconds(given: number | undefined): number | undefined {
  return given === undefined ? undefined : Math.ceil(given);
}

/** Rounds up, for the service counts whole seconds: nothing short turns into 0, which would mean its default. */
export function seconds(given: number | undefined): number | undefined {
  return given === undefined ? undefined : Math.ceil(given);
}

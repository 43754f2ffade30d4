// What a test waits for.

/** Waits until the condition holds. */
export async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns > 2_000) {
      throw new Error(`never: ${condition}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Returns the error that rejects the promise. It must have the type. */
export async function failure<T extends Error>(promise: Promise<unknown>, type: new (...args: any[]) => T): Promise<T> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof type) {
      return error;
    }
    throw error;
  }
  throw new Error(`it did not fail with ${type.name}`);
}

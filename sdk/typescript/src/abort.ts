// Waits that end with a signal. The oldest supported Node has no AbortSignal.any.

/** The longest time of a timer in milliseconds, about 25 days. A longer one would fire at once. */
export const longestTimer = 2 ** 31 - 1;

/** The reason of a signal that this package aborted, not the caller. */
export class TimeIsUp extends Error {
  override name = "TimeoutError";
}

/** Runs the work with a signal that aborts with the given signal, or after the given milliseconds. */
export async function bounded<T>(
  signal: AbortSignal | undefined,
  milliseconds: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const end = () => controller.abort(signal?.reason);
  const late = () => controller.abort(new TimeIsUp(`no answer within ${milliseconds / 1000} s`));
  const timer = setTimeout(late, Math.min(milliseconds, longestTimer));
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted) {
    end();
  }
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

/** Returns the promise's result, or throws the signal's reason if it aborts first. The work behind the promise goes on. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) {
    return promise;
  }
  return new Promise<T>((resolve, reject) => {
    const end = () => reject(signal.reason);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) {
      end();
    }
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", end));
  });
}

/** Waits. It returns false if the signal aborts before the time is over. */
export async function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(true), milliseconds);
  });
  try {
    return await unlessAborted(over, signal);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}

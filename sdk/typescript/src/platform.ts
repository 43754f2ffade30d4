// What browsers, Deno, Bun and Node each have under another name.

// Names in variables, so that bundlers for browsers leave the imports alone. Only a program that uses a file, or runs on Node
// 18, ever comes to them.
const cryptoModule = "node:crypto";
const filesModule = "node:fs/promises";

interface Files {
  open(path: string): Promise<File>;
}

interface File {
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
  close(): Promise<void>;
}

/** Returns WebCrypto, which Node 18 keeps behind a flag. */
export async function webCrypto(): Promise<Crypto> {
  return globalThis.crypto ?? ((await import(/* @vite-ignore */ /* webpackIgnore: true */ cryptoModule)) as { webcrypto: Crypto }).webcrypto;
}

/** Returns the content of a file as text. Throws if it has more than `most` bytes, or cannot be read. */
export async function readFile(path: string, most: number): Promise<string> {
  const files = (await import(/* @vite-ignore */ /* webpackIgnore: true */ filesModule)) as Files;
  const file = await files.open(path);
  try {
    const bytes = new Uint8Array(most + 1);
    let length = 0;
    for (let more = 1; more > 0 && length < bytes.length; length += more) {
      more = (await file.read(bytes, length, bytes.length - length, length)).bytesRead;
    }
    if (length > most) {
      throw new RangeError(`it has more than ${most} bytes`);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length));
  } finally {
    await file.close();
  }
}

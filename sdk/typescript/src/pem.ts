// Keys in PEM. WebCrypto reads PKCS #8 and SPKI only, and has to be told which kind of key it gets.

import { fromBase64 } from "./base64.js";

/** A key as WebCrypto imports it. */
export interface Encoded {
  readonly format: "pkcs8" | "spki";
  readonly der: Uint8Array<ArrayBuffer>;
  readonly algorithm: AlgorithmIdentifier | RsaHashedImportParams | EcKeyImportParams;
}

const block = /-----BEGIN ([A-Z0-9 ]*(?:PRIVATE|PUBLIC) KEY)-----([^-]*)-----END \1-----/;

// Object identifiers in DER, in hexadecimal.
const ecPublicKey = "06072a8648ce3d0201"; // RFC 5480 §2.1.1
const rsaEncryption = "06092a864886f70d010101"; // RFC 8017 A.1
const kinds = [
  ["06082a8648ce3d030107", { name: "ECDSA", namedCurve: "P-256" }],
  ["06052b81040022", { name: "ECDSA", namedCurve: "P-384" }],
  ["06032b6570", { name: "Ed25519" }],
  [rsaEncryption, { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }],
] as const;

const longestHeader = 28; // bytes of PKCS #8 and SPKI that come before the key itself

/** Reports whether a text is meant as PEM. */
export function isPem(text: string): boolean {
  return text.includes("-----BEGIN ");
}

/** Reads the first key of a text. Throws an Error whose message does not quote it. */
export function fromPem(text: string): Encoded {
  const [, label, content] = block.exec(text) ?? [];
  if (label === undefined || content === undefined) {
    throw new Error("it has no key in PEM");
  }
  if (label.includes("ENCRYPTED") || content.includes("ENCRYPTED")) {
    throw new Error("the key is encrypted");
  }
  return encoded(label, fromBase64(content.replace(/\s/g, "")));
}

function encoded(label: string, der: Uint8Array<ArrayBuffer>): Encoded {
  switch (label) {
    case "PRIVATE KEY":
      return { format: "pkcs8", der, algorithm: kindIn(der.subarray(0, longestHeader))[1] };
    case "PUBLIC KEY":
      return { format: "spki", der, algorithm: kindIn(der.subarray(0, longestHeader))[1] };
    case "RSA PRIVATE KEY": // PKCS #1
      return { format: "pkcs8", der: wrapped(`${rsaEncryption}0500`, der), algorithm: kinds[3][1] };
    case "EC PRIVATE KEY": { // SEC 1
      const [curve, algorithm] = kindIn(der);
      return { format: "pkcs8", der: wrapped(ecPublicKey + curve, der), algorithm };
    }
    default:
      throw new Error(`a ${label} is not supported`);
  }
}

function kindIn(der: Uint8Array): (typeof kinds)[number] {
  const found = kinds.find(([identifier]) => hex(der).includes(identifier));
  if (found === undefined) {
    throw new Error("it is neither an RSA key, nor one on P-256, P-384 or Ed25519");
  }
  return found;
}

// wrapped returns a key as PKCS #8 (RFC 5958 §2): version 0, the algorithm, and the key in an octet string.
function wrapped(algorithm: string, key: Uint8Array): Uint8Array<ArrayBuffer> {
  return sequence(0x30, [0x02, 0x01, 0x00], sequence(0x30, bytes(algorithm)), sequence(0x04, key));
}

function sequence(tag: number, ...parts: Iterable<number>[]): Uint8Array<ArrayBuffer> {
  const content = parts.flatMap((part) => [...part]);
  return Uint8Array.from([tag, ...lengthOf(content.length), ...content]);
}

function lengthOf(length: number): number[] {
  if (length < 0x80) {
    return [length];
  }
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]; // a key is shorter than 64 KiB
}

const hex = (der: Uint8Array) => Array.from(der, (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (text: string) => (text.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16));

// Takes the chunk that tells the usage out of a stream of chat completions whose caller did not ask for it.

import { membersOf } from "./modelusage.js";

const [LF, CR, colon] = [10, 13, 58];
const mostBytes = 2 ** 20; // that are held back of an event; one that has more is no usage

/**
 * Passes server-sent events on, each when it has ended, and every byte as it came, but for the chunk without choices that has the
 * usage. Comments before an event, such as heartbeats, pass when their line has ended. The bytes may be cut anywhere, and lines end with LF, CR or CRLF.
 */
export class WithoutUsageChunk {
  #event: Uint8Array[] = []; // held back, in pieces
  #size = 0; // of them
  #passed: Uint8Array[] = [];
  #isEmpty = true; // the line so far
  #isComment = false; // the line, and nothing is held back before it
  #afterCR = false; // an LF is of the line before
  #isEnding = false; // a CR has ended the event, and an LF may still belong to it
  #isLong = false; // the event: it passes as it comes

  /** Takes the next bytes, and returns those that pass. */
  push(bytes: Uint8Array): Uint8Array {
    let start = 0;
    const endEvent = (next: number) => {
      this.#keep(bytes.subarray(start, next));
      this.#endEvent();
      start = next;
    };
    bytes.forEach((byte, i) => {
      if (this.#isEnding) {
        endEvent(byte === LF ? i + 1 : i);
        if (byte === LF) {
          return;
        }
      }
      if (this.#isEmpty && byte !== LF && byte !== CR) {
        this.#isComment = byte === colon && this.#size === 0 && start === i && !this.#isLong;
      }
      if (this.#isComment && this.#endsComment(byte)) {
        this.#keep(bytes.subarray(start, i + 1));
        this.#pass();
        [this.#isLong, start] = [false, i + 1];
      }
      if (this.#endsEvent(byte)) {
        this.#isEnding = byte === CR;
        if (byte === LF) {
          endEvent(i + 1);
        }
      }
    });
    this.#keep(bytes.subarray(start));
    return this.#take();
  }

  /** Returns what is held back, when no more bytes come. */
  end(): Uint8Array {
    this.#endEvent(); // servers may leave out the last empty line
    return this.#take();
  }

  // #endsComment reports whether a byte ends the line of a comment, or is the LF after the CR that did.
  #endsComment(byte: number): boolean {
    const isEnd = byte === LF || byte === CR;
    const ends = isEnd && (!this.#isEmpty || (byte === LF && this.#afterCR));
    this.#isComment = !isEnd || (byte === CR && ends);
    return ends;
  }

  // #endsEvent takes a byte, and reports whether it ends an empty line.
  #endsEvent(byte: number): boolean {
    const isRest = byte === LF && this.#afterCR;
    const isEnd = byte === LF || byte === CR;
    const ends = isEnd && !isRest && this.#isEmpty;
    this.#afterCR = byte === CR && !ends;
    this.#isEmpty = isEnd;
    return ends;
  }

  #keep(piece: Uint8Array): void {
    this.#event.push(piece);
    this.#size += piece.length;
    this.#isLong ||= this.#size > mostBytes;
    if (this.#isLong) {
      this.#pass();
    }
  }

  #endEvent(): void {
    const event = joined(this.#event);
    if (!this.#isLong && isUsageChunk(event)) {
      this.#event = [commentsOf(event)];
    }
    this.#pass();
    [this.#isEnding, this.#isLong] = [false, false];
  }

  #pass(): void {
    this.#passed.push(...this.#event);
    [this.#event, this.#size] = [[], 0];
  }

  #take(): Uint8Array {
    const passed = joined(this.#passed);
    this.#passed = [];
    return passed;
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let size = 0;
  for (const piece of pieces) {
    all.set(piece, size);
    size += piece.length;
  }
  return all;
}

const linesOf = (event: Uint8Array): readonly string[] => new TextDecoder().decode(event).match(/[^\r\n]*(?:\r\n|\r|\n|$)/g) ?? [];

function isUsageChunk(event: Uint8Array): boolean {
  const data = linesOf(event).filter((line) => line.startsWith("data:")).map((line) => line.slice("data:".length));
  try {
    const { choices, usage, error } = membersOf(JSON.parse(data.join("")));
    return Array.isArray(choices) && choices.length === 0 && membersOf(usage) === usage && (error ?? undefined) === undefined;
  } catch {
    return false;
  }
}

function commentsOf(event: Uint8Array): Uint8Array {
  return new TextEncoder().encode(linesOf(event).filter((line) => line.startsWith(":")).join(""));
}

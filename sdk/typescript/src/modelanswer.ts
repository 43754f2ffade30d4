// Follows the answer to a call of a model as it passes, up to its usage.

import type { Api } from "./modelrequest.js";
import { chatUsage, choicesHaveOutput, isEmpty, membersOf, messagesUsage, responsesUsage, type Members } from "./modelusage.js";
import type { TokenUsage } from "./prices.js";

const mostText = 64 * 2 ** 20; // characters that are kept, of a document or of an event; what has more passes unread

const usages = { chat: chatUsage, responses: responsesUsage, messages: messagesUsage };

/** The answer so far. */
export interface Answer {
  /** Takes the next bytes. */
  push(bytes: Uint8Array): void;
  /** Takes note that no more bytes come. */
  end(): void;
  /** Whether all of it that matters has come; its usage is final. */
  readonly isComplete: boolean;
  readonly usage: TokenUsage | undefined;
  /** The service tier that the answer says it had. */
  readonly serviceTier: unknown;
  /** The usage of input that the provider has reported so far. */
  readonly input: TokenUsage | undefined;
  /** How many tokens of output have come at most; undefined: they come all at once. */
  readonly mostOutput: number | undefined;
}

export function answerOf(api: Api, streamed: boolean): Answer {
  return streamed ? new Events(api) : new Document(api);
}

// Document is an answer that is one JSON object.
class Document implements Answer {
  readonly #api: Api;
  readonly #decoder = new TextDecoder();
  #text = "";
  isComplete = false;
  usage: TokenUsage | undefined;
  serviceTier: unknown;
  readonly input = undefined;
  readonly mostOutput = undefined;

  constructor(api: Api) {
    this.#api = api;
  }

  push(bytes: Uint8Array): void {
    if (this.#text.length <= mostText) {
      this.#text += this.#decoder.decode(bytes, { stream: true });
    }
  }

  end(): void {
    const answer = this.#text.length <= mostText ? parsed(this.#text + this.#decoder.decode()) : undefined;
    this.isComplete = answer !== undefined;
    this.usage = usages[this.#api](membersOf(answer)["usage"], hasOutput(this.#api, membersOf(answer)));
    this.serviceTier = tierIn(membersOf(answer));
  }
}

// Events is an answer of server-sent events. The bytes may be cut anywhere.
class Events implements Answer {
  readonly #api: Api;
  readonly #decoder = new TextDecoder();
  #rest: string[] = []; // of a line, in pieces: to join them at each would take quadratic time
  #data: string[] = []; // of an event
  #kept = 0; // characters of the event so far
  #isEmpty = true; // the line
  #afterCR = false; // the last character was CR: an LF after it ends no second line
  #told: Members = {}; // the last usage
  #isFinal = false; // Anthropic's first usage knows nothing of the output
  #hasOutput = false;
  isComplete = false;
  input: TokenUsage | undefined;
  serviceTier: unknown;
  mostOutput = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  get usage(): TokenUsage | undefined {
    return this.#isFinal ? usages[this.#api](this.#told, this.#hasOutput) : undefined;
  }

  push(bytes: Uint8Array): void {
    this.mostOutput += bytes.length;
    this.#take(this.#decoder.decode(bytes, { stream: true }));
  }

  end(): void {
    this.#take(`${this.#decoder.decode()}\n\n`); // servers may leave out the last empty line
  }

  #take(text: string): void {
    const lines = (this.#afterCR && text.startsWith("\n") ? text.slice(1) : text).split(/\r\n|\n|\r/);
    this.#afterCR = text === "" ? this.#afterCR : text.endsWith("\r");
    for (const [i, piece] of lines.entries()) {
      if (i > 0) {
        this.#endLine();
      }
      this.#kept += piece.length;
      this.#isEmpty &&= piece === "";
      if (this.#kept <= mostText) {
        this.#rest.push(piece);
      }
    }
  }

  #endLine(): void {
    const line = this.#rest.join("");
    this.#rest = [];
    if (line.startsWith("data:")) {
      this.#data.push(line.slice("data:".length).trimStart());
    } else if (this.#isEmpty) {
      if (this.#kept <= mostText) {
        this.#dispatch(this.#data.join("\n"));
      }
      this.#data = [];
      this.#kept = 0;
    }
    this.#isEmpty = true;
  }

  #dispatch(data: string): void {
    if (data === "[DONE]") {
      this.isComplete = true;
      return;
    }
    const event = membersOf(parsed(data));
    this.serviceTier = [event, event["response"], event["message"]].map((said) => tierIn(membersOf(said))).find((tier) => tier !== undefined) ?? this.serviceTier;
    if (this.#api === "chat") {
      this.#hasOutput ||= choicesHaveOutput(event["choices"], "delta");
      this.#tell(event["usage"]);
    } else if (this.#api === "responses") {
      this.#response(event);
    } else {
      this.#message(event);
    }
  }

  #response({ type, response }: Members): void {
    const { usage, output } = membersOf(response);
    this.#hasOutput ||= (typeof type === "string" && type.endsWith(".delta")) || !isEmpty(output);
    this.#tell(usage);
    // A response that has failed may still report its usage.
    this.isComplete ||= type === "response.completed" || type === "response.incomplete" || (type === "response.failed" && membersOf(usage) === usage);
  }

  #message({ type, message, usage, delta }: Members): void {
    if (type === "message_start") {
      this.#tell(membersOf(message)["usage"], false);
      this.input = messagesUsage({ ...this.#told, output_tokens: 0 }, false);
    } else if (type === "content_block_start" || type === "content_block_delta") {
      this.#hasOutput = true;
    } else if (type === "message_delta") {
      this.#tell(usage);
    }
    this.isComplete ||= type === "message_stop" || (type === "message_delta" && typeof membersOf(delta)["stop_reason"] === "string");
  }

  #tell(usage: unknown, isFinal = true): void {
    this.#isFinal ||= isFinal && membersOf(usage) === usage;
    const told = Object.entries(membersOf(usage)).filter(([, value]) => value !== null);
    this.#told = { ...this.#told, ...Object.fromEntries(told) };
  }
}

// hasOutput reports whether an answer that is not streamed has output.
function hasOutput(api: Api, { choices, output, content }: Members): boolean {
  return api === "chat" ? choicesHaveOutput(choices, "message") : !isEmpty(api === "responses" ? output : content);
}

// tierIn reads the service tier: OpenAI's is a member of the answer, Anthropic's one of its usage.
function tierIn(answer: Members): unknown {
  return answer["service_tier"] ?? membersOf(answer["usage"])["service_tier"] ?? undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

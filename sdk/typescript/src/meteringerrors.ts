/** The answer does not say, or not credibly, how many tokens the call used. The hold was committed. */
export class UsageMissing extends Error {
  override name = "UsageMissing";
  readonly model: string;
  constructor(model: string, why = "the answer has no usable usage, so its hold was charged") {
    super(`remit: call of ${JSON.stringify(model)}: ${why}; let the provider report usage`);
    this.model = model;
  }
}

/** Nothing bounds what the call can cost. Nothing was held or sent. */
export class UnboundedCall extends Error {
  override name = "UnboundedCall";
  constructor(call: string, why: string) {
    super(`remit: ${call}: ${why}`);
  }
}

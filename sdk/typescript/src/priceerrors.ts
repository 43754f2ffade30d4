/** The prices lack the model. Nothing was held or sent. */
export class UnknownModel extends Error {
  override name = "UnknownModel";
  readonly model: string;
  constructor(model: string) {
    super(`remit: no prices for model ${JSON.stringify(model)}: add an entry of this name, or map the model to an entry`);
    this.model = model;
  }
}

/** The text is no table of prices. */
export class InvalidPrices extends Error {
  override name = "InvalidPrices";
  /** The model whose entry is wrong; undefined: the table as a whole is. */
  readonly model: string | undefined;
  /** The member of the entry that is wrong; undefined: the entry as a whole is. */
  readonly member: string | undefined;
  constructor(reason: string, model?: string, member?: string) {
    const entry = model === undefined ? "" : `${JSON.stringify(model)}: `;
    super(`remit: prices: ${entry}${member === undefined ? "" : `${member}: `}${reason}; correct the table`);
    this.model = model;
    this.member = member;
  }
}

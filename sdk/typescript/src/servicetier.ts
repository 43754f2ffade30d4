// The service tiers of providers: the same tokens cost more of them where they come sooner, and less where they come later.

/** A tier for which a model has prices. */
export type ServiceTier = "standard" | "flex" | "priority";

const all: readonly ServiceTier[] = ["standard", "flex", "priority"];

/** Returns the tiers that a request can get, by its service_tier. Others than these count as auto: the provider decides. */
export function tiersOfRequest(tier: unknown): readonly ServiceTier[] {
  switch (tier) {
    case "default":
    case "standard_only":
      return ["standard"];
    case "flex":
    case "priority":
      return ["standard", tier];
    default:
      return all;
  }
}

/** Returns the tier that an answer says it had; "any": it does not say. Undefined: one for which there are no prices. */
export function tierOfAnswer(tier: unknown): ServiceTier | "any" | undefined {
  switch (tier) {
    case undefined:
    case null:
    case "auto":
      return "any";
    case "default":
    case "standard":
    case "standard_only":
      return "standard";
    default:
      return all.find((known) => known === tier);
  }
}

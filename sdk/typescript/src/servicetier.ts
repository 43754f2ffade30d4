// The service tiers of providers: the same tokens cost more of them where they come sooner, and less where they come later.

/** A tier that can have prices of its own. */
export type ServiceTier = "standard" | "flex" | "priority";

export const serviceTiers: readonly ServiceTier[] = ["standard", "flex", "priority"];

/**
 * Returns the tiers that a request with this service_tier can get. The provider decides on auto, on none and on other values, by its
 * project's settings and its capacity.
 */
export function requested(tier: unknown): readonly ServiceTier[] {
  switch (tier) {
    case "default":
    case "standard_only":
      return ["standard"];
    case "flex":
    case "priority":
      return ["standard", tier];
    default:
      return serviceTiers;
  }
}

/**
 * Returns the tiers in which a call can have been served: the one that its answer says, or, if that is none of them, those that the
 * request can get.
 */
export function served(answered: unknown, asked: unknown): readonly ServiceTier[] {
  switch (answered) {
    case "default":
    case "standard":
      return ["standard"];
    case "flex":
    case "priority":
      return [answered];
    default:
      return requested(asked);
  }
}

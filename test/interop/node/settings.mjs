// Settings from the Go test that runs these scripts.
export const issuer = new URL(process.env.REMIT_ADDR);
export const clientId = process.env.CLIENT_ID;
export const clientSecret = process.env.CLIENT_SECRET;
export const organization = process.env.ORGANIZATION_ID;
export const apiKey = process.env.API_KEY;
export const algorithm = process.env.ALGORITHM;
// The agent holds these scopes, in this order.
export const scopes = "read write";

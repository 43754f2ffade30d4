// Paths of one object. They escape the id, so it cannot lead to another path.
export const sessionPath = (id: string) => `/v1/sessions/${segment(id)}`;
export const requestsPath = (session: string) => `${sessionPath(session)}/requests`;
export const requestPath = (session: string, id: string) => `${requestsPath(session)}/${segment(id)}`;
export const leasePath = (id: string) => `/v1/leases/${segment(id)}`;
export const organizationPath = (id: string) => `/v1/organizations/${segment(id)}`;
export const agentPath = (id: string) => `/v1/agents/${segment(id)}`;
export const familyPath = (agent: string, id: string) => `${agentPath(agent)}/families/${segment(id)}`;
export const apiKeysPath = "/v1/api-keys";
export const apiKeyPath = (id: string) => `${apiKeysPath}/${segment(id)}`;
export const sessionKeysPath = (session: string) => `${sessionPath(session)}/keys`;
export const sessionKeyPath = (session: string, id: string) => `${sessionKeysPath(session)}/${segment(id)}`;
export const webhooksPath = "/v1/webhooks";
export const webhookPath = (id: string) => `${webhooksPath}/${segment(id)}`;
export const deliveriesPath = (webhook: string) => `${webhookPath(webhook)}/deliveries`;
export const deliveryPath = (webhook: string, id: string) => `${deliveriesPath(webhook)}/${segment(id)}`;
export const trustedIssuersPath = "/v1/trusted-issuers";
export const trustedIssuerPath = (id: string) => `${trustedIssuersPath}/${segment(id)}`;
export const transactionPath = (id: string) => `/v1/transactions/${segment(id)}`;

// URL parsers resolve "." and ".." even if they are encoded, so segment refuses them.
function segment(id: string): string {
  if (id === "" || id === "." || id === "..") {
    throw new TypeError(`remit: ${JSON.stringify(id)} is not an id`);
  }
  return encodeURIComponent(id);
}

/** Returns the path with the parameters that are neither undefined nor empty. */
export function withQuery(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "") {
      query.set(name, value);
    }
  }
  const text = query.toString(); // the oldest supported Node has no URLSearchParams.size
  return text === "" ? path : `${path}?${text}`;
}

// Paths of one object. No id, however strange, leads elsewhere.
export const sessionPath = (id: string) => `/v1/sessions/${segment(id)}`;
export const organizationPath = (id: string) => `/v1/organizations/${segment(id)}`;
export const agentPath = (id: string) => `/v1/agents/${segment(id)}`;
export const familyPath = (agent: string, id: string) => `${agentPath(agent)}/families/${segment(id)}`;
export const transactionPath = (id: string) => `/v1/transactions/${segment(id)}`;

// A URL takes the dots of "." and ".." for directions, encoded or not.
function segment(id: string): string {
  if (id === "" || id === "." || id === "..") {
    throw new TypeError(`remit: ${JSON.stringify(id)} is not an id`);
  }
  return encodeURIComponent(id);
}

/** The path with the parameters that are there. */
export function withQuery(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "") {
      query.set(name, value);
    }
  }
  const text = query.toString(); // its size is younger than the oldest Node that this has to run on
  return text === "" ? path : `${path}?${text}`;
}

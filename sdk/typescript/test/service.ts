// The service that the tests run against, and their organization there.
export { failure, until } from "./outcome.js";
import { Client, type Agent, type Organization, type Session, type SessionLimits } from "@remit/sdk";

const url = process.env["REMIT_ADDR"];
if (url === undefined) {
  throw new Error("REMIT_ADDR must say where the service is");
}
export const serviceURL: string = url;
export const remit = new Client(serviceURL);

const made = await remit.createOrganization({ name: "acme" });
export const organizationId = made.id;
export const apiKey = made.apiKey!.reveal();
export const acme: Organization = remit.organization(apiKey);

/** Returns an agent whose calls go through the client `through`, and its secret. */
export async function newAgent(scopes: string[], through: Client = remit): Promise<{ agent: Agent; secret: string }> {
  const scout = await acme.createAgent({ name: "scout", scopes });
  return { agent: through.agent(scout.id, scout.secret), secret: scout.secret.reveal() };
}

/** Returns a session of a new agent with this scope, whose calls go through the client `through`. */
export async function newSession(limits: SessionLimits = {}, scopes = ["admin"], through = remit): Promise<Session> {
  const { agent } = await newAgent(scopes, through);
  return sessionOf(agent, limits);
}

export async function sessionOf(agent: Agent, limits: SessionLimits = {}): Promise<Session> {
  const made = await acme.createSession({ agentId: agent.id, ...limits });
  return agent.session(made.id);
}

/** Returns all elements of a list. */
export async function collect<T>(list: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const element of list) {
    all.push(element);
  }
  return all;
}

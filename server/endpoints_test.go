package server_test

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/server"
)

// endpoint is one of the service's, with a request that it would carry out for the right caller.
type endpoint struct {
	method, path string
	body         any
}

// Two operations take both credentials and are apart from endpointsOfBoth: without a parent_session_id a session is created by
// API key alone, and an agent needs a scope to roll back.
const createSession, rollback = "createSession", "rollbackTransaction"

// endpointsOfOrganizations returns the endpoints that an API key alone opens.
func endpointsOfOrganizations(w tenant, session string) []endpoint {
	return w.endpoints(session, session, func(o server.Operation) bool { return o.ByKey && !o.ByToken || o.ID == createSession })
}

// endpointsOfAgents returns the endpoints that an access token alone opens, without those of proxies and revocation, which need
// more than an id.
func endpointsOfAgents(w tenant, session, transaction string) []endpoint {
	return w.endpoints(session, transaction, func(o server.Operation) bool {
		return o.ByToken && !o.ByKey && !o.ForProxies && o.ID != "revokeToken"
	})
}

// endpointsOfBoth returns the endpoints that an API key and any access token open.
func endpointsOfBoth(w tenant, session, transaction string) []endpoint {
	return w.endpoints(session, transaction, func(o server.Operation) bool {
		return o.ByToken && o.ByKey && o.ID != createSession && o.ID != rollback
	})
}

// rollbackOf is the endpoint that an API key opens, and an access token if it holds the scope.
func rollbackOf(transaction string) endpoint {
	return endpoint{"POST", "/v1/transactions/" + transaction + "/rollback", nil}
}

// endpoints returns the chosen operations of openapi.json, by each of their paths. It fills in the ids that a tenant has. Others
// are the session's, so that nothing has them.
func (w tenant) endpoints(session, transaction string, chosen func(server.Operation) bool) (all []endpoint) {
	objects := map[string]string{
		"OrganizationId": w.org, "ApiKeyId": w.org, // the only admin's: see useEachEndpoint
		"AgentId": w.agent.id, "FamilyId": uuid.NewString(), "TransactionId": transaction, "LeaseId": transaction,
	}
	for _, o := range server.Operations() {
		if !chosen(o) {
			continue
		}
		for _, path := range o.Paths {
			for name, object := range o.Objects {
				id, found := objects[object]
				if !found {
					id = session
				}
				path = strings.ReplaceAll(path, "{"+name+"}", id)
			}
			all = append(all, endpoint{o.Method, path, w.bodyOf(o, session)})
		}
	}
	return all
}

// bodyOf returns the operation's example with the tenant's own agent and session, or nil where no body is required.
func (w tenant) bodyOf(o server.Operation, session string) any {
	switch {
	case o.ID == "settleLease": // the example settles more than the leases of the tests hold
		return fields{"action_count": 0, "value_used_usd": 0}
	case o.ID == "listTransactions": // a GET with a body does what it does without one
		return fields{}
	case o.Body == nil:
		return nil
	}
	return fields(owned(o.Body, map[string]string{"agent_id": w.agent.id, "session_id": session}).(object))
}

// owned returns a copy of what an example holds, with these values at their members.
func owned(value any, own map[string]string) any {
	switch value := value.(type) {
	case object:
		copied := object{}
		for name, member := range value {
			if id, found := own[name]; found {
				member = id
			}
			copied[name] = owned(member, own)
		}
		return copied
	case []any:
		copied := slices.Clone(value)
		for i := range copied {
			copied[i] = owned(copied[i], own)
		}
		return copied
	}
	return value
}

// newKeyOf returns a well-formed API key that names the organization but is not its key.
func newKeyOf(organization uuid.UUID) string { return token.NewAPIKey(organization) }

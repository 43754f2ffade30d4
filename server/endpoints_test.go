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

// endpoints returns the chosen operations of openapi.json, by each of their paths.
func (w tenant) endpoints(session, transaction string, chosen func(server.Operation) bool) (all []endpoint) {
	for _, o := range server.Operations() {
		if !chosen(o) {
			continue
		}
		var body any
		if o.NeedsBody && o.Body != nil || o.ID == "listTransactions" { // a GET with a body does what it does without one
			body = w.bodyOf(o, session)
		}
		for _, path := range pathsOf(o, func(_, object string) string { return w.idOf(object, session, transaction) }) {
			all = append(all, endpoint{o.Method, path, body})
		}
	}
	return all
}

// pathsOf returns the operation's paths with an id for each parameter, which has this name and is an object of this kind.
func pathsOf(o server.Operation, id func(name, object string) string) (paths []string) {
	for _, path := range o.Paths {
		for name, object := range o.Objects {
			path = strings.ReplaceAll(path, "{"+name+"}", id(name, object))
		}
		paths = append(paths, path)
	}
	return paths
}

// idOf returns the id of the tenant's object of this kind, by its name in openapi.json. A tenant without objects has no lease, webhook,
// request and so on: those get an id of another kind, so that nothing has it.
func (w tenant) idOf(object, session, transaction string) string {
	if id := w.objects[object]; id != "" {
		return id
	}
	switch object {
	case "OrganizationId", "ApiKeyId": // the only admin's
		return w.org
	case "AgentId":
		return w.agent.id
	case "FamilyId":
		return uuid.NewString()
	case "TransactionId", "LeaseId":
		return transaction
	}
	return session
}

// bodyOf returns the operation's example with the tenant's own agent and session.
func (w tenant) bodyOf(o server.Operation, session string) fields {
	if o.ID == "settleLease" { // the example settles more than the leases of the tests hold
		return fields{"action_count": 0, "value_used_usd": 0}
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

// credentialOf returns the key if it opens the operation, else the token if that does, else nothing.
func credentialOf(o server.Operation, key, access option) option {
	switch {
	case o.ByKey:
		return key
	case o.ByToken:
		return access
	}
	return anonymous
}

// newKeyOf returns a well-formed API key that names the organization but is not its key.
func newKeyOf(organization uuid.UUID) string { return token.NewAPIKey(organization) }

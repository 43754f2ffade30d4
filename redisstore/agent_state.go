package redisstore

import (
	"strings"

	"github.com/google/uuid"
)

// The fields of an agent by their index in the replies of block/agent_state.lua.
const (
	agentOrganization = iota
	agentName
	agentScopes
	agentDescription
	agentMetadata
	agentCreated
	agentRevoked
	agentSuspended
	agentSuspensionReason
)

// agentFields are the fields of an agent's hash in this order.
var agentFields = []string{
	agentOrganization: "organization", agentName: "name", agentScopes: "scopes", agentDescription: "description",
	agentMetadata: "metadata", agentCreated: "created", agentRevoked: "revoked", agentSuspended: "suspended",
	agentSuspensionReason: "suspension_reason",
}

// readAgent reads an agent of the organization from its agentFields.
func readAgent(organization, id uuid.UUID, r *reply) (Agent, error) {
	a := Agent{
		ID: id, Organization: organization, Name: r.Text(agentName), Scopes: strings.Fields(r.Text(agentScopes)),
		Description: r.Optional(agentDescription), Metadata: r.Optional(agentMetadata),
		Created: r.Time(agentCreated), Revoked: r.TimeOrZero(agentRevoked),
		Suspended: r.TimeOrZero(agentSuspended), SuspensionReason: r.Optional(agentSuspensionReason),
	}
	return a, r.Err
}

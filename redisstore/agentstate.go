package redisstore

import (
	"strings"

	"github.com/google/uuid"
)

// The fields of an agent by their index in the replies of identity/block/agent_state.lua.
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
	agentRestricted
	agentMaxOpenSessions
	agentNoSecret
	agentAudiences // this one and those behind it are not read for lists, because they may be long
	agentJWKS
	agentJWKSURI
)

// agentFields are the fields of an agent's hash in this order.
var agentFields = []string{
	agentOrganization: "organization", agentName: "name", agentScopes: "scopes", agentDescription: "description",
	agentMetadata: "metadata", agentCreated: "created", agentRevoked: "revoked", agentSuspended: "suspended",
	agentSuspensionReason: "suspension_reason", agentRestricted: "restricted", agentMaxOpenSessions: "max_open_sessions",
	agentNoSecret: "no_secret", agentAudiences: "audiences", agentJWKS: "jwks", agentJWKSURI: "jwks_uri",
}

// listedAgentFields are those of an agent in a list.
var listedAgentFields = agentFields[:agentAudiences]

// readAgent reads an agent of the organization from its agentFields or listedAgentFields.
func readAgent(organization, id uuid.UUID, r *reply) (Agent, error) {
	a := Agent{
		ID: id, Organization: organization, Name: r.Text(agentName), Scopes: strings.Fields(r.Text(agentScopes)),
		Description: r.Optional(agentDescription), Metadata: r.Optional(agentMetadata),
		Created: r.Time(agentCreated), Revoked: r.TimeOrZero(agentRevoked),
		Suspended: r.TimeOrZero(agentSuspended), SuspensionReason: r.Optional(agentSuspensionReason),
		DPoPRequired: hasFlag(r.Optional(agentRestricted), 'p'), NoSecret: r.Optional(agentNoSecret) != "",
	}
	if len(r.Values) > len(listedAgentFields) {
		a.Audiences, a.JWKS, a.JWKSURI = audiencesFrom(r.Optional(agentAudiences)), r.Optional(agentJWKS), r.Optional(agentJWKSURI)
	}
	a.Limits, a.counted = readAgentLimits(r, r.Optional(agentRestricted), r.Optional(agentMaxOpenSessions))
	return a, r.Err
}

// hasFlag says whether an agent's field restricted has a flag; see identity/include/restrict_agent.lua.
func hasFlag(restricted string, flag byte) bool {
	flags, _, _ := strings.Cut(restricted, " ")
	return strings.IndexByte(flags, flag) >= 0
}

// noAudiences is the field audiences of an agent whose tokens are for the issuer only. It is no URI.
const noAudiences = "-"

// audiencesText returns the field audiences, "" for any.
func audiencesText(audiences []string) string {
	if audiences != nil && len(audiences) == 0 {
		return noAudiences
	}
	return strings.Join(audiences, " ")
}

func audiencesFrom(text string) []string {
	switch text {
	case "":
		return nil
	case noAudiences:
		return []string{}
	}
	return strings.Fields(text)
}

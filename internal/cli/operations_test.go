package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"remit/internal/cli"
)

// commandOf has the command that calls each operation of the API, or in brackets why there is none.
var commandOf = map[string]string{
	"createOrganization": "org create", "getOrganization": "org show", "rotateApiKey": "org rotate-key",
	"createApiKey": "key create", "listApiKeys": "key list", "rotateApiKeyById": "key rotate", "deleteApiKey": "key revoke",
	"createAgent": "agent create", "listAgents": "agent list", "getAgent": "agent show", "changeAgent": "agent update",
	"suspendAgent": "agent suspend", "resumeAgent": "agent resume", "revokeAgent": "agent revoke",
	"rotateAgentSecret": "agent rotate-secret", "listFamilies": "agent families", "revokeFamily": "agent revoke-family",
	"deleteAgent":   "(for the console and operators: agent revoke ends an agent)",
	"suspendAgents": "suspend-all", "resumeAgents": "resume-all",
	"listEvents": "events", "listOrganizationEvents": "events", "getCheckpoint": "audit export",
	"exchangeSecret": "token get", "oauthToken": "token get", "introspectToken": "token inspect", "verify": "token verify",
	"refreshToken": "(a command asks for a new token)", "revokeToken": "(agent revoke-family ends a token's family)",
	"createSession": "session create", "listSessions": "session list", "getSession": "session show", "changeLimits": "session update",
	"endSession": "session end", "suspendSession": "session suspend", "resumeSession": "session resume",
	"getSessionTree": "session tree", "getSessionUsage": "session usage", "charge": "charge",
	"chargeBatch": "(for programs)", "grantLease": "(for programs)", "getLease": "(for programs)", "settleLease": "(for programs)",
	"listRequests": "session requests", "approveRequest": "session approve", "denyRequest": "session deny",
	"requestMore": "mcp", "getRequest": "mcp",
	"createSessionKey": "session key create", "listSessionKeys": "session key list", "deleteSessionKey": "session key delete",
	"setBudget": "budget set", "getBudget": "budget show", "deleteBudget": "budget delete",
	"createTrustedIssuer": "trusted-issuer create", "listTrustedIssuers": "trusted-issuer list",
	"getTrustedIssuer": "trusted-issuer show", "changeTrustedIssuer": "trusted-issuer update",
	"deleteTrustedIssuer": "trusted-issuer delete",
	"createWebhook":       "webhook create", "listWebhooks": "webhook list", "getWebhook": "webhook show",
	"changeWebhook": "webhook update", "deleteWebhook": "webhook delete", "rotateWebhookSecret": "webhook rotate",
	"testWebhook": "webhook test", "listDeliveries": "webhook deliveries", "retryDelivery": "webhook retry",
	"getUsage":         "usage",
	"beginTransaction": "transaction begin", "listTransactions": "transaction list", "getTransaction": "transaction show",
	"changeHold": "transaction update", "commitTransaction": "transaction commit", "rollbackTransaction": "transaction rollback",

	"verifyBehind": "(for proxies)", "verifyBehindByPost": "(for proxies)", "authorize": "(for proxies)",
	"authorizeByPost": "(for proxies)", "authorizeBehind": "(for proxies)", "authorizeBehindByPost": "(for proxies)",
	"oauthAuthorize": "(for other OAuth clients)", "oauthRevoke": "(for other OAuth clients)",
	"oauthIntrospect": "(for other OAuth clients)", "getAuthorizationServer": "(for other OAuth clients)",
	"getOpenIDConfiguration": "(for other OAuth clients)", "getProtectedResource": "(for other OAuth clients)",
	"getSigningKeys": "(for other verifiers of tokens)",
	"getHealth":      "(for orchestrators)", "getReadiness": "(healthcheck, of the service itself)", "getMetrics": "(for Prometheus)",
	"getOpenAPI": "(the description)", "getRoot": "(a page)", "getDocs": "(a page)",
}

// An operation that is new fails here until it has a command, or a reason for none.
func TestEveryOperationHasItsCommand(t *testing.T) {
	t.Parallel()
	text := must(os.ReadFile("../../openapi/openapi.json"))(t)
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	must(0, json.Unmarshal(text, &description))(t)
	commands := map[string]bool{}
	for _, leaf := range kong.Must(&cli.Commands{}).Model.Leaves(false) {
		commands[leaf.Path()] = true
	}
	described := map[string]bool{}
	for _, methods := range description.Paths {
		for _, operation := range methods {
			var named struct{ OperationID string }
			if json.Unmarshal(operation, &named) != nil || named.OperationID == "" {
				continue // what all methods of a path share
			}
			described[named.OperationID] = true
			command := commandOf[named.OperationID]
			if command == "" {
				t.Errorf("no command calls %s: add one, or say here why there is none", named.OperationID)
			} else if !strings.HasPrefix(command, "(") && !commands[command] {
				t.Errorf("%s: there is no command %q", named.OperationID, command)
			}
		}
	}
	for operation := range commandOf {
		if !described[operation] {
			t.Errorf("%s is no operation of the API", operation)
		}
	}
}

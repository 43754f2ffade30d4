package openapi

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unsampled are the operations without samples: by which method of the SDKs they are called, or why they have none.
var unsampled = map[string]string{
	"createApiKey": "Organization.CreateAPIKey", "listApiKeys": "Organization.APIKeys",
	"rotateApiKeyById": "Organization.RotateAPIKey", "deleteApiKey": "Organization.DeleteAPIKey",
	"listOrganizationEvents": "Organization.AllEvents", "getCheckpoint": "Organization.Checkpoint",
	"refreshToken": "Agent.Refresh", "verify": "Client.Verify", "grantLease": "Session.Lease", "settleLease": "Lease.Close",
	"createWebhook": "Organization.CreateWebhook", "listWebhooks": "Organization.Webhooks", "getWebhook": "Organization.GetWebhook",
	"changeWebhook": "Organization.UpdateWebhook", "deleteWebhook": "Organization.DeleteWebhook",
	"rotateWebhookSecret": "Organization.RotateWebhookSecret", "testWebhook": "Organization.TestWebhook",
	"listDeliveries": "Organization.Deliveries", "retryDelivery": "Organization.RetryDelivery",
	"getSessionUsage": "Session.Usage", "getUsage": "Organization.Usage",

	"verifyBehind": "for proxies", "verifyBehindByPost": "for proxies", "authorize": "for proxies", "authorizeByPost": "for proxies",
	"authorizeBehind": "for proxies", "authorizeBehindByPost": "for proxies",
	"oauthAuthorize": "for other OAuth clients", "oauthRevoke": "for other OAuth clients", "oauthIntrospect": "for other OAuth clients",
	"getAuthorizationServer": "for other OAuth clients", "getOpenIDConfiguration": "for other OAuth clients",
	"getProtectedResource": "for other OAuth clients", "getSigningKeys": "for other verifiers of tokens",
	"revokeToken": "a token ends soon by itself; RevokeFamily and RevokeAgent end it at once", "getLease": "a lease knows itself",
	"deleteAgent": "for the console and operators: RevokeAgent ends an agent",
	"getHealth":   "for orchestrators", "getReadiness": "for orchestrators", "getMetrics": "for Prometheus",
	"getOpenAPI": "the description", "getRoot": "a page", "getDocs": "a page",
}

// An operation that has samples is called by every SDK, see TestEverySDKHasSamplesOfTheSameOperations. A method of the Go SDK is in every SDK,
// see TestCallsHaveOneNameInEachLanguagesSpelling in package sdk.
func TestTheSDKsCallEveryOperation(t *testing.T) {
	t.Parallel()
	a := must(read(description))(t)
	var client strings.Builder
	for _, file := range must(filepath.Glob("../client/*.go"))(t) {
		client.Write(must(os.ReadFile(file))(t))
	}
	sampled := partsOf(goSamples)
	unknown := slices.AppendSeq(slices.Clone(sampled), maps.Keys(unsampled))
	for _, g := range a.Groups {
		for _, op := range g.Operations {
			how, listed := unsampled[op.ID]
			switch has := slices.Contains(sampled, op.ID); {
			case has && listed:
				t.Errorf("%s has samples, and is listed as one without", op.ID)
			case !has && !listed:
				t.Errorf("no SDK calls %s: add a method with a sample to each, or say in unsampled why there is none", op.ID)
			}
			unknown = slices.DeleteFunc(unknown, func(id string) bool { return id == op.ID })
			of, method, called := strings.Cut(how, ".")
			if called && !strings.Contains(client.String(), " *"+of+") "+method+"(") {
				t.Errorf("the Go SDK has no method %s, which calls %s", how, op.ID)
			}
		}
	}
	if len(unknown) > 0 {
		t.Errorf("no operations have the ids %v, of samples or in unsampled", unknown)
	}
}

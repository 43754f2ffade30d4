package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"remit/test/prover"
)

// foreignIssuer is an issuer that the test runs: it signs tokens, and publishes its keys.
type foreignIssuer struct {
	name    string // iss
	jwksURI string
	key     *prover.Key
	kid     string
	served  atomic.Pointer[[]any] // the keys that it publishes
	reads   atomic.Int64          // of its keys
}

// newForeignIssuer runs an issuer of this name that signs by the algorithm.
func newForeignIssuer(t *testing.T, name, algorithm string) *foreignIssuer {
	t.Helper()
	f := &foreignIssuer{name: name, key: prover.New(algorithm), kid: "key-1"}
	f.publish(f.publicKey())
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.reads.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": *f.served.Load()})
	}))
	t.Cleanup(host.Close)
	f.jwksURI = host.URL + "/jwks"
	return f
}

func (f *foreignIssuer) publish(keys ...any) { f.served.Store(&keys) }

// publicKey is the current key as issuers publish theirs.
func (f *foreignIssuer) publicKey() object {
	return changed(f.key.JWK(), object{"kid": f.kid, "use": "sig", "alg": f.key.Algorithm})
}

// changed returns an object with these members changed.
func changed(from, changes object) object {
	all := maps.Clone(from)
	maps.Copy(all, changes)
	return all
}

// withoutNil returns an object without the members that are nil.
func withoutNil(from object) object {
	maps.DeleteFunc(from, func(_ string, value any) bool { return value == nil })
	return from
}

// sign returns a token with these claims, without those that are nil, and with iss and the times of one that was made a minute ago for ten minutes.
func (f *foreignIssuer) sign(claims object) string {
	return f.signWith(object{}, claims)
}

// signWith is sign with other members of the header.
func (f *foreignIssuer) signWith(header, claims object) string {
	now := time.Now().Unix()
	usual := object{"iss": f.name, "aud": issuer, "iat": now - 60, "nbf": now - 60, "exp": now + 540}
	return f.key.Sign(withoutNil(changed(object{"alg": f.key.Algorithm, "kid": f.kid, "typ": "JWT"}, header)), withoutNil(changed(usual, claims)))
}

// workload is a platform's token: its real shape, with the claims by which a rule may tell its workloads apart.
type workload struct {
	issuer, algorithm string
	header, claims    object
	rule              object
}

// workloads are tokens as platforms make them.
var workloads = map[string]workload{
	"Kubernetes": {
		"https://kubernetes.default.svc.cluster.local", "RS256", object{"typ": nil}, object{
			"aud": []string{issuer}, "jti": "ea28ed49-2e11-4280-9ec5-bc3d1d84661a", "sub": "system:serviceaccount:agents:researcher",
			"kubernetes.io": object{
				"namespace": "agents", "node": object{"name": "node-1", "uid": "58456cb0-dd00-45ed-b797-5578fdceaced"},
				"pod":            object{"name": "researcher-69cbfb9798-jv9gn", "uid": "778a530c-b3f4-47c0-9cd5-ab018fb64f33"},
				"serviceaccount": object{"name": "researcher", "uid": "a087d5a0-e1dd-43ec-93ac-f13d89cd13af"}, "warnafter": 1730295086,
			},
		},
		object{"sub": "system:serviceaccount:agents:researcher"},
	},
	"GitHub": {
		"https://token.actions.githubusercontent.com", "RS256", object{"x5t": "eBZ_cn3sXYAd0ch4THBKHIgOwOE"}, object{
			"jti": "6f2b7d7c-5a0c-4a02-bd2c-7f0c1d3a9d4e", "sub": "repo:acme/app:ref:refs/heads/main", "ref": "refs/heads/main",
			"sha": "1f0e9ab6d27ffa1b1a3f0f3bb7dba8d7a5d1e3c2", "repository": "acme/app", "repository_owner": "acme", "repository_owner_id": "65",
			"run_id": "30433642", "run_number": "10", "run_attempt": "2", "repository_visibility": "private", "repository_id": "74",
			"actor_id": "12", "actor": "octocat", "workflow": "deploy", "head_ref": "", "base_ref": "", "event_name": "push",
			"ref_protected": "true", "ref_type": "branch", "workflow_ref": "acme/app/.github/workflows/deploy.yml@refs/heads/main",
			"job_workflow_ref": "acme/app/.github/workflows/deploy.yml@refs/heads/main", "runner_environment": "github-hosted",
			"environment": "production",
		},
		object{"repository": "acme/app", "ref": "refs/heads/main", "job_workflow_ref": "acme/app/.github/workflows/*"},
	},
	"GitLab": {
		"https://gitlab.com", "RS256", object{}, object{
			"jti": "235b3a54-b797-45c7-ae9a-f72d7bc6ef5b", "sub": "project_path:acme/app:ref_type:branch:ref:main", "namespace_id": "72",
			"namespace_path": "acme", "project_id": "20", "project_path": "acme/app", "user_id": "1", "user_login": "sample-user",
			"user_email": "sample-user@example.com", "user_access_level": "developer", "pipeline_id": "574", "pipeline_source": "push",
			"job_id": "302", "ref": "main", "ref_type": "branch", "ref_path": "refs/heads/main", "ref_protected": "true",
			"groups_direct": []string{"acme/admins"}, "runner_id": 1, "runner_environment": "gitlab-hosted",
			"sha": "714a629c0b401fdce83e847fc9589983fc6f46bc", "project_visibility": "private",
			"ci_config_ref_uri": "gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main",
		},
		object{"project_path": "acme/app", "ref_path": "refs/heads/*", "ref_protected": "true"},
	},
	"GCP": {
		"https://accounts.google.com", "RS256", object{}, object{
			"azp": "117869402012312345678", "sub": "117869402012312345678", "email": "researcher@acme-prod.iam.gserviceaccount.com",
			"email_verified": true, "nbf": nil, "google": object{"compute_engine": object{
				"instance_id": "8377217182838274", "project_id": "acme-prod", "project_number": 739419398126, "zone": "us-west1-a"}},
		},
		object{"sub": "117869402012312345678", "email": "researcher@acme-prod.iam.gserviceaccount.com"},
	},
	"SPIFFE": {
		"spiffe://acme.example", "ES256", object{}, object{
			"iss": nil, "nbf": nil, "aud": []string{"https://other.example", issuer}, "sub": "spiffe://acme.example/ns/agents/sa/researcher",
		},
		object{"sub": "spiffe://acme.example/ns/agents/*"},
	},
}

// trust makes the tenant trust the issuer by its jwks_uri, for its agent.
func (w tenant) trust(f *foreignIssuer, claims object) string {
	w.t.Helper()
	return w.post(issuersPath, fields{"issuer": f.name, "jwks_uri": f.jwksURI, "rules": []any{issuerRule(w.agent.id, claims)}},
		asKey(w.key)).is(201).text("id")
}

// trustKey is trust for the issuer's key itself.
func (w tenant) trustKey(f *foreignIssuer, claims object) string {
	w.t.Helper()
	return w.post(issuersPath, fields{
		"issuer": f.name, "jwks": object{"keys": []any{f.publicKey()}}, "rules": []any{issuerRule(w.agent.id, claims)},
	}, asKey(w.key)).is(201).text("id")
}

// present asks for a token by an assertion.
func (w tenant) present(assertion string, more ...string) *response {
	w.t.Helper()
	return w.postForm("/oauth2/token", byAssertion(w.agent.id, assertion, more...))
}

func byAssertion(agent, assertion string, more ...string) raw {
	pairs := []string{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion", assertion, "client_id", agent}
	return form(append(pairs, more...)...)
}

// aLoneGrant is an answer of the token endpoint without a refresh token.
func aLoneGrant(scope string) fields {
	return fields{"access_token": anAccessToken, "token_type": "Bearer", "expires_in": 3600, "scope": scope}
}

// untrusted fails the test unless the answer is the one for every assertion that is not trusted.
func (r *response) untrusted() *response {
	r.t.Helper()
	return r.refusedOAuth(400, "invalid_grant").has(fields{"error_description": "the assertion is not trusted for this client"})
}

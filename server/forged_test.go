package server_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"remit/test/prover"
	"remit/test/redistest"
)

// Clients without a genuine credential must not load Redis: forged ones are refused before any command, and wrong proofs before they are
// used up. What forgeries there are, internal/token shows.
func TestForgedCredentialsCostNoRedisCall(t *testing.T) {
	t.Parallel()
	private := privateRedis(t)
	calls := countCalls(t, private.URL())
	h := start(t, setup{redis: private.URL()}).newTenant().holding("ES256")
	w, tokens, session := h.tenant, h.tenant.exchange(), h.newSession(nil)
	charge, bound := "/sessions/"+session+"/actions", h.exchange().access
	stolen := h.proof("GET", verifyPath)
	stolen.Token = bound
	before := calls()
	w.get("/sessions/"+session, asAgent(tokens.access)).is(200)
	h.get(verifyPath, h.proven(bound, "GET", verifyPath)).is(200)
	if calls() == before {
		t.Fatal("a genuine request is not counted: the test proves nothing")
	}
	sessionKey := w.sessionKey(session)
	refreshes := []string{"", "rmr_", strings.ToUpper(tokens.refresh), tokens.refresh[:40], tokens.refresh + "A", otherByte(tokens.refresh, 10),
		otherByte(tokens.refresh, 60), "rmr_" + strings.Repeat("A", 96)}
	accesses := []string{"x", "..", tokens.access + "A", algNone(tokens.access), otherSignature(tokens.access), long(4096), tokens.access[:99],
		otherByte(tokens.access, 20), otherByte(tokens.access, 200), "rmsk_", sessionKey + "A", sessionKey[:99], otherByte(sessionKey, 10), otherByte(sessionKey, 120)}
	for name, ask := range map[string]struct {
		forged  []string
		present func(forged string) *response
		code    string
	}{
		"a refresh": {refreshes, func(forged string) *response {
			return w.post("/v1/auth/refresh", fields{"refresh_token": forged})
		}, "invalid_refresh_token"},
		"a revocation": {refreshes, func(forged string) *response {
			return w.post("/v1/auth/revoke", fields{"refresh_token": forged}, asAgent(tokens.access))
		}, "invalid_refresh_token"},
		"a reading":       {accesses, func(forged string) *response { return w.get("/sessions/"+session, asAgent(forged)) }, "invalid_token"},
		"a charge":        {accesses, func(forged string) *response { return w.post(charge, fields{}, asAgent(forged)) }, "invalid_token"},
		"a list by key":   {misspelt(w.key), func(forged string) *response { return w.get("/v1/agents", asKey(forged)) }, "invalid_api_key"},
		"a charge by key": {misspelt(w.key)[:20], func(forged string) *response { return w.post(charge, fields{}, asKey(forged)) }, "invalid_api_key"},
		"an exchange": {misspelt(w.agent.secret), func(forged string) *response {
			return w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": forged})
		}, "invalid_credentials"},
		"a proof": {[]string{"", "x", h.key.Prove(h.proof("GET", verifyPath)), prover.New("ES256").Prove(stolen)},
			func(forged string) *response {
				return h.get(verifyPath, header("Authorization", "DPoP "+bound), withProof(forged))
			}, "invalid_dpop_proof"},
	} {
		for _, forged := range ask.forged {
			cost := 1
			for attempt := 0; attempt < 3 && cost > 0; attempt++ { // an instance makes a call of its own once a second
				before := calls()
				ask.present(forged).refused(401, ask.code)
				cost = calls() - before
			}
			wantEqual(t, fmt.Sprintf("Redis calls of %s with %.99q", name, forged), cost, 0)
		}
	}
}

// misspelt returns a key or secret with one character changed, lost, doubled or swapped with its neighbour: what its
// checksum is there to find.
func misspelt(genuine string) []string {
	forged := []string{"x", genuine[:4], genuine + "0", "rmr_" + genuine[4:], strings.ToLower(genuine) + "x"}
	for i := 4; i < len(genuine); i += 2 {
		forged = append(forged, otherByte(genuine, i), genuine[:i]+genuine[i+1:], genuine[:i]+genuine[i:i+1]+genuine[i:])
		if i+1 < len(genuine) && genuine[i] != genuine[i+1] {
			forged = append(forged, genuine[:i]+genuine[i+1:i+2]+genuine[i:i+1]+genuine[i+2:])
		}
	}
	return forged
}

// countCalls returns a function that returns how many commands a real Redis has run, except its own.
func countCalls(t *testing.T, url string) func() int {
	t.Helper()
	client := redistest.PlainClient(t, url)
	return func() (total int) {
		t.Helper()
		for command, calls := range redistest.CommandsRun(t, client, nil) {
			if !strings.HasPrefix(command, "client|") { // sent when a client connects, which it may do at any time
				total += calls
			}
		}
		return total
	}
}

func lastDot(jwt string) int { return strings.LastIndexByte(jwt, '.') }

// otherSignature returns the JWT with one bit of its signature flipped.
func otherSignature(jwt string) string {
	at := lastDot(jwt) + 1
	signature, _ := base64.RawURLEncoding.DecodeString(jwt[at:])
	signature[0] ^= 1
	return jwt[:at] + base64.RawURLEncoding.EncodeToString(signature)
}

// algNone returns the JWT as one that asks not to be verified (RFC 7519 §6).
func algNone(jwt string) string {
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"at+jwt"}`))
	return header + jwt[strings.IndexByte(jwt, '.'):lastDot(jwt)+1]
}

// otherByte returns the text with the byte at i replaced by another of the base62 alphabet.
func otherByte(text string, i int) string {
	other := byte('0')
	if text[i] == other {
		other = '1'
	}
	return text[:i] + string(other) + text[i+1:]
}

func long(size int) string { return strings.Repeat("x", size) }

package server_test

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/token"
)

// Clients without a genuine credential must not load Redis: forged ones are refused before any command.
func TestForgedCredentialsCostNoRedisCall(t *testing.T) {
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		api := onMiniredis(t, setup{})
		wantForgeriesFree(t, api, api.on.mini.CommandCount)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		private := privateRedis(t)
		wantForgeriesFree(t, start(t, setup{redis: private.URL()}), countCalls(t, private.URL()))
	})
}

func wantForgeriesFree(t *testing.T, api *client, calls func() int) {
	t.Helper()
	w := api.newTenant()
	tokens, session := w.exchange(), w.newSession(nil)
	before := calls()
	w.get("/sessions/"+session, asAgent(tokens.access)).is(200)
	if calls() == before {
		t.Fatal("a genuine request is not counted: the test proves nothing")
	}
	for _, batch := range []struct {
		name    string
		forged  []string
		present func(forged string) *response
		code    string
	}{
		{"refresh tokens", forgedRefreshTokens(tokens.refresh), func(forged string) *response {
			return w.post("/v1/auth/refresh", fields{"refresh_token": forged})
		}, "invalid_refresh_token"},
		{"refresh tokens to revoke", forgedRefreshTokens(tokens.refresh), func(forged string) *response {
			return w.post("/v1/auth/revoke", fields{"refresh_token": forged}, asAgent(tokens.access))
		}, "invalid_refresh_token"},
		{"access tokens", forgedAccessTokens(tokens.access), func(forged string) *response {
			return w.get("/sessions/"+session, asAgent(forged))
		}, "invalid_token"},
		{"access tokens to charge", forgedAccessTokens(tokens.access), func(forged string) *response {
			return w.post("/sessions/"+session+"/actions", fields{}, asAgent(forged))
		}, "invalid_token"},
		{"API keys", misspelt(w.key), func(forged string) *response {
			return w.get("/v1/agents", asKey(forged))
		}, "invalid_api_key"},
		{"API keys to charge", misspelt(w.key), func(forged string) *response {
			return w.post("/sessions/"+session+"/actions", fields{}, asKey(forged))
		}, "invalid_api_key"},
		{"agent secrets", misspelt(w.agent.secret), func(forged string) *response {
			return w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": forged})
		}, "invalid_credentials"},
	} {
		for n, forged := range batch.forged {
			cost := 1
			for attempt := 0; attempt < 3 && cost > 0; attempt++ { // an instance makes a call of its own once a second
				before := calls()
				batch.present(forged).refused(401, batch.code)
				cost = calls() - before
			}
			if cost != 0 {
				t.Errorf("of the forged %s number %d costs %d Redis calls, want none", batch.name, n, cost)
			}
		}
	}
}

// forgedRefreshTokens returns what looks like the genuine token but is not.
func forgedRefreshTokens(genuine string) []string {
	forged := []string{"", "rmr_", "rmr", genuine + "A", "rmx_" + genuine[4:], strings.ToUpper(genuine)}
	for i := 4; i < len(genuine); i += 3 {
		forged = append(forged, otherByte(genuine, i))
	}
	for size := 5; size < len(genuine); size += 7 {
		forged = append(forged, genuine[:size])
	}
	for range 20 {
		var random [72]byte
		rand.Read(random[:])
		forged = append(forged, "rmr_"+base64.RawURLEncoding.EncodeToString(random[:]))
	}
	return forged
}

func forgedAccessTokens(genuine string) []string {
	forged := []string{"x", "..", "a.b.c", genuine + ".", genuine + "A", algNone(genuine), otherSignature(genuine), long(4096)}
	for i := 0; i < len(genuine); i += 11 {
		if other := otherByte(genuine, i); genuine[i] != '.' {
			forged = append(forged, other)
		}
	}
	for size := 1; size < len(genuine); size += 29 {
		forged = append(forged, genuine[:size])
	}
	return forged
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

var callsOf = regexp.MustCompile(`^cmdstat_([^:]+):calls=(\d+),`)

// countCalls returns a function that returns how many commands a real Redis has run, except its own.
func countCalls(t *testing.T, url string) func() int {
	t.Helper()
	client := redis.NewClient(must(redis.ParseURL(url))(t))
	t.Cleanup(func() { _ = client.Close() })
	return func() int {
		t.Helper()
		total := 0
		lines := bufio.NewScanner(strings.NewReader(must(client.Info(t.Context(), "commandstats").Result())(t)))
		for lines.Scan() {
			if stat := callsOf.FindStringSubmatch(lines.Text()); stat != nil && !isGreeting[stat[1]] && stat[1] != "info" {
				total += must(strconv.Atoi(stat[2]))(t)
			}
		}
		return total
	}
}

// isGreeting holds what a client of Redis sends when it connects, which it may do at any time.
var isGreeting = map[string]bool{"hello": true, "client|setinfo": true, "client|setname": true, "client|maint_notifications": true}

// The HMAC proves that a token was issued. Only Redis knows whether it is still valid.
func TestAGenuineRefreshTokenOfNoFamilyIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		agent := uuid.MustParse(w.agent.id)
		for name, issued := range map[string]token.RefreshToken{
			"no such family": {Agent: agent, Family: uuid.New(), Generation: 1},
			"no such agent":  {Agent: uuid.New(), Family: uuid.New(), Generation: 1},
		} {
			refused := w.post("/v1/auth/refresh", fields{"refresh_token": api.on.keyring.FormatRefresh(issued)})
			t.Run(name, func(t *testing.T) { refused.refused(401, "invalid_refresh_token") })
		}
	})
}

// Redis may have lost its last writes; the token's signature proves that its generation was issued (DESIGN §2.4).
func TestAGenerationAheadOfRedisIsAcceptedAndMovesItForward(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		first := w.exchange()
		ahead := must(api.on.keyring.ParseRefresh(first.refresh))(t)
		ahead.Generation += 5
		next := pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": api.on.keyring.FormatRefresh(ahead)}).is(200))
		if got := must(api.on.keyring.ParseRefresh(next.refresh))(t); got.Generation != ahead.Generation+1 {
			t.Errorf("generation %d after %d", got.Generation, ahead.Generation)
		}
		w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).refused(401, "invalid_refresh_token")
		w.get("/sessions", asAgent(next.access)).refused(401, "invalid_token")
	})
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

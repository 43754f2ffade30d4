package service

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"remit/internal/redisproc"
	"remit/internal/token"
)

type agentOf struct {
	id, secret string
}

type pair struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

func (p *program) createAgent(t *testing.T, key string) agentOf {
	t.Helper()
	var answer struct{ ID, Secret string }
	if status := p.post(t, "/v1/agents", key, `{"name":"scout","scopes":["read"]}`, &answer); status != http.StatusCreated {
		t.Fatalf("no agent: %d", status)
	}
	return agentOf{answer.ID, answer.Secret}
}

func (p *program) post(t *testing.T, path, key, body string, answer any) int {
	response, text := p.send(t, http.MethodPost, path, body, "X-API-Key", key)
	_ = json.Unmarshal([]byte(text), answer)
	return response.StatusCode
}

func (p *program) exchange(t *testing.T, a agentOf) (pair, int) {
	var tokens pair
	status := p.post(t, "/v1/auth/token", "", fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, a.id, a.secret), &tokens)
	return tokens, status
}

func (p *program) refresh(t *testing.T, spent string) (pair, int) {
	var tokens pair
	status := p.post(t, "/v1/auth/refresh", "", fmt.Sprintf(`{"refresh_token":%q}`, spent), &tokens)
	return tokens, status
}

func (p *program) verify(t *testing.T, access string) int {
	status, _ := p.get(t, "/v1/auth/verify", "Authorization", "Bearer "+access)
	return status
}

func kidOf(t *testing.T, access string) string {
	t.Helper()
	header, _, _ := strings.Cut(access, ".")
	text := must(base64.RawURLEncoding.DecodeString(header))(t)
	var decoded struct{ Kid string }
	must(0, json.Unmarshal(text, &decoded))(t)
	return decoded.Kid
}

// runKeys runs `remit keys …`, which must fail with these words, "" if it must succeed, and returns what it printed.
func runKeys(t *testing.T, failure string, args ...string) string {
	t.Helper()
	output, err := command(t, append([]string{"keys"}, args...)...).CombinedOutput()
	if (err != nil) != (failure != "") || !strings.Contains(string(output), failure) {
		t.Errorf("remit keys %s: %v: %s; want %q", strings.Join(args, " "), err, output, failure)
	}
	return string(output)
}

func startRedis(t *testing.T, args ...string) (url string) {
	t.Helper()
	redis := must(redisproc.Start(t.Context(), redisproc.Config{Args: args}))(t)
	t.Cleanup(func() { _ = redis.Stop() })
	return redis.URL()
}

func TestKeysRotateUnderLoadWithoutRejectingAToken(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	kek := writeFile(t, string(token.GenerateRefreshKey()))
	env := []string{"REMIT_REDIS_URL=" + url, "REMIT_KEY_ENCRYPTION_KEY=" + kek}
	instances := []*program{start(t, env).ready(t), start(t, env).ready(t)}
	_, apiKey := instances[0].createOrganization(t)
	agent := instances[0].createAgent(t, apiKey)
	first, _ := instances[0].exchange(t, agent)
	firstKid := kidOf(t, first.Access)

	var refused, asked atomic.Int64
	done := make(chan struct{})
	var load sync.WaitGroup
	for i := range 4 {
		load.Go(func() {
			tokens := first
			for n := i; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				issuer, verifier := instances[n%2], instances[(n+1)%2]
				var status int
				if n%8 < 4 && tokens != first {
					tokens, status = issuer.refresh(t, tokens.Refresh)
				} else {
					tokens, status = issuer.exchange(t, agent)
				}
				asked.Add(2)
				if status != http.StatusOK || verifier.verify(t, tokens.Access) != http.StatusOK {
					refused.Add(1)
				}
			}
		})
	}
	rotated := func(kind string) {
		runKeys(t, "", "rotate", kind, "--redis-url", url, "--key-encryption-key", kek, "--publish-for", "4s")
	}
	rotated("token")
	rotated("signing") // last: its key is published for 4 s from now on
	publishedBeforeSigning(t, instances, firstKid)
	becomes(t, "both issue tokens of the new keys", func() bool { // the second reading of the keys after the switch
		a, _ := instances[0].exchange(t, agent)
		b, _ := instances[1].exchange(t, agent)
		return kidOf(t, a.Access) != firstKid && kidOf(t, a.Access) == kidOf(t, b.Access) &&
			a.Refresh[:9] != first.Refresh[:9] && b.Refresh[:9] != first.Refresh[:9]
	})
	close(done)
	load.Wait()
	if refused.Load() != 0 || asked.Load() < 100 {
		t.Errorf("%d of %d requests were refused", refused.Load(), asked.Load())
	}
	for _, instance := range instances {
		is(t, "a token of the key before", instance.verify(t, first.Access), http.StatusOK)
	}
	if _, status := instances[1].refresh(t, first.Refresh); status != http.StatusOK {
		t.Errorf("a refresh token of the key before is answered %d", status)
	}
}

// publishedBeforeSigning waits until both instances publish two keys, and checks that none signs with the second before.
func publishedBeforeSigning(t *testing.T, instances []*program, firstKid string) {
	t.Helper()
	becomes(t, "both publish the new key", func() bool {
		published := 0
		for _, instance := range instances {
			_, jwks := instance.get(t, "/.well-known/jwks.json")
			if strings.Count(jwks, `"kid"`) == 2 {
				published++
			}
			if !strings.HasPrefix(jwks, `{"keys":[{`) || !strings.Contains(jwks, firstKid) {
				t.Fatalf("JWKS %s", jwks)
			}
		}
		return published == len(instances)
	})
	_, jwks := instances[0].get(t, "/.well-known/jwks.json")
	if strings.Index(jwks, firstKid) > strings.LastIndex(jwks, `"kid"`) {
		t.Error("the new key signs before both instances publish it")
	}
}

func TestKeysAreListedAndRetired(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	p := start(t, []string{"REMIT_REDIS_URL=" + url}).ready(t)
	_, apiKey := p.createOrganization(t)
	tokens, _ := p.exchange(t, p.createAgent(t, apiKey))
	signer := kidOf(t, tokens.Access)

	runKeys(t, "signs", "retire", "signing", signer, "--redis-url", url)
	runKeys(t, "", "rotate", "signing", "--redis-url", url, "--publish-for", "1h")
	runKeys(t, "already waiting", "rotate", "signing", "--redis-url", url, "--publish-for", "1h")
	output := runKeys(t, "", "list", "--redis-url", url)
	waits := regexp.MustCompile(`(?m)^signing +(\S+) +published`).FindStringSubmatch(output)
	if waits == nil || !strings.Contains(output, signer+"  signs") {
		t.Fatalf("listed are %s", output)
	}
	runKeys(t, "", "retire", "signing", waits[1], "--redis-url", url)
	output = runKeys(t, "", "list", "--redis-url", url)
	if left := regexp.MustCompile(`(?m)^signing .*-$`).FindAllString(output, -1); len(left) != 1 || strings.Count(output, "signing") != 1 {
		t.Errorf("after withdrawing the key to come, one key must be left, without an end: %s", output)
	}
	// Ids of keys are in base64url, so one in 64 begins with a dash, and one in 4,096 with two.
	const id = "-QvyXpXOJkwRPo0tpq_lW89W32h4Q3j0gyc779ikXe8"
	runKeys(t, "no such key", "retire", "signing", id, "--redis-url", url)
	runKeys(t, "no such key", "retire", "--redis-url", url, "signing", id)
	runKeys(t, "no such key", "retire", "signing", "--redis-url", url, "--", "--"+id[2:])
}

func TestEncryptedKeysNeedTheirKey(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	kek, other := writeFile(t, string(token.GenerateRefreshKey())), writeFile(t, string(token.GenerateRefreshKey()))
	redis := "REMIT_REDIS_URL=" + url
	start(t, []string{redis, "REMIT_KEY_ENCRYPTION_KEY=" + kek}).ready(t).stopWell(t)
	endsSaying(t, "unusable key", redis)
	endsSaying(t, "unusable key", redis, "REMIT_KEY_ENCRYPTION_KEY="+other)
	start(t, []string{redis, "REMIT_KEY_ENCRYPTION_KEY=" + kek}).ready(t)
	for _, kind := range []string{"signing", "token"} { // instances could not decrypt a new one
		runKeys(t, "key encryption key", "rotate", kind, "--redis-url", url)
	}
	if output := runKeys(t, "", "list", "--redis-url", url); strings.Contains(output, "published") || !strings.Contains(output, "\ntoken ") {
		t.Errorf("a key was added, or the list names no token key:\n%s", output)
	}
}

func TestGenerateKeyPrintsTheRequestedKind(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"signing"}, {"signing", "--algorithm", "ES256"}, {"signing", "--algorithm", "RS256"}} {
		must(token.ParseSigningKey([]byte(runKeys(t, "", append([]string{"generate"}, args...)...))))(t)
	}
	for _, kind := range []string{"token", "encryption"} {
		must(token.ParseRefreshKey([]byte(runKeys(t, "", "generate", kind))))(t)
	}
}

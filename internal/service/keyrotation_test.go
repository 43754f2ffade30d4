package service

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"remit/internal/redisproc"
	"remit/internal/token"
)

// agentOf is the id and secret of an agent.
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
	request, err := http.NewRequest(http.MethodPost, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("X-API-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	_ = json.Unmarshal(text, answer)
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
	request, err := http.NewRequest(http.MethodGet, p.url+"/v1/auth/verify", nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+access)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// kidOf returns which key signed an access token.
func kidOf(t *testing.T, access string) string {
	t.Helper()
	header, _, _ := strings.Cut(access, ".")
	text, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		t.Fatal(err)
	}
	var decoded struct{ Kid string }
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded.Kid
}

// runKeys runs `remit keys …` and returns what it printed.
func runKeys(t *testing.T, args ...string) (string, error) {
	t.Helper()
	output, err := command(t, append([]string{"keys"}, args...)...).CombinedOutput()
	return string(output), err
}

func startRedis(t *testing.T) string {
	t.Helper()
	redis, err := redisproc.Start(t.Context(), redisproc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Stop() })
	return redis.URL()
}

func TestKeysRotateUnderLoadWithoutRejectingAToken(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	kek := filepath.Join(t.TempDir(), "kek")
	if err := os.WriteFile(kek, token.GenerateRefreshKey(), 0o600); err != nil {
		t.Fatal(err)
	}
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
		if output, err := runKeys(t, "rotate", kind, "--redis-url", url, "--key-encryption-key", kek, "--publish-for", "4s"); err != nil {
			t.Errorf("rotating the %s key: %v: %s", kind, err, output)
		}
	}
	rotated("token")
	rotated("signing") // last: its key is published for 4 s from now on
	publishedBeforeSigning(t, instances, firstKid)
	waitFor(t, func() bool { // the second reading of the keys after the switch
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
		if status := instance.verify(t, first.Access); status != http.StatusOK {
			t.Errorf("a token of the key before is answered %d", status)
		}
	}
	if _, status := instances[1].refresh(t, first.Refresh); status != http.StatusOK {
		t.Errorf("a refresh token of the key before is answered %d", status)
	}
}

// publishedBeforeSigning waits until both instances publish two keys, and checks that none signs with the second before.
func publishedBeforeSigning(t *testing.T, instances []*program, firstKid string) {
	t.Helper()
	waitFor(t, func() bool {
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

	if output, err := runKeys(t, "retire", "signing", signer, "--redis-url", url); err == nil {
		t.Errorf("the key that signs was retired: %s", output)
	}
	if output, err := runKeys(t, "rotate", "signing", "--redis-url", url, "--publish-for", "1h"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if output, err := runKeys(t, "rotate", "signing", "--redis-url", url, "--publish-for", "1h"); err == nil || !strings.Contains(output, "already waiting") {
		t.Errorf("a second rotation in between: %v: %s", err, output)
	}
	output, err := runKeys(t, "list", "--redis-url", url)
	if err != nil || !strings.Contains(output, signer+"  signs") || !strings.Contains(output, "published") {
		t.Fatalf("%v: %s", err, output)
	}
	var published string
	for line := range strings.Lines(output) {
		if fields := strings.Fields(line); fields[0] == "signing" && fields[2] == "published" {
			published = fields[1]
		}
	}
	if output, err := runKeys(t, "retire", "signing", published, "--redis-url", url); err != nil {
		t.Errorf("withdrawing the key to come: %v: %s", err, output)
	}
	output, _ = runKeys(t, "list", "--redis-url", url)
	if strings.Contains(output, published) || strings.Count(output, "signing") != 1 {
		t.Errorf("after withdrawing it: %s", output)
	}
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "signing") && !strings.HasSuffix(strings.TrimSpace(line), "-") {
			t.Errorf("the key before has an end, though nothing succeeds it: %s", line)
		}
	}
}

// Ids of keys are in base64url, so one in 64 begins with a dash, and one in 4,096 with two.
func TestAKeyIDThatBeginsWithADashIsNoFlag(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	start(t, []string{"REMIT_REDIS_URL=" + url}).ready(t)
	id := "-QvyXpXOJkwRPo0tpq_lW89W32h4Q3j0gyc779ikXe8"
	for _, args := range [][]string{
		{"retire", "signing", id, "--redis-url", url},
		{"retire", "--redis-url", url, "signing", id},
		{"retire", "signing", "--redis-url", url, "--", "--" + id[2:]},
	} {
		if output, err := runKeys(t, args...); err == nil || !strings.Contains(output, "no such key") {
			t.Errorf("remit keys %s: %v: %s", strings.Join(args, " "), err, output)
		}
	}
}

func TestEncryptedKeysNeedTheirKey(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	dir := t.TempDir()
	kek, other := filepath.Join(dir, "kek"), filepath.Join(dir, "other")
	for _, file := range []string{kek, other} {
		if err := os.WriteFile(file, token.GenerateRefreshKey(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	redis := "REMIT_REDIS_URL=" + url
	if err := start(t, []string{redis, "REMIT_KEY_ENCRYPTION_KEY=" + kek}).ready(t).stop(t); err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{{redis}, {redis, "REMIT_KEY_ENCRYPTION_KEY=" + other}} {
		p := start(t, env)
		if err := p.Wait(); err == nil || !strings.Contains(p.Stderr(), "unusable key") {
			t.Errorf("started with %v it ended with %v:\n%s", env, err, p.Stderr())
		}
	}
	start(t, []string{redis, "REMIT_KEY_ENCRYPTION_KEY=" + kek}).ready(t)
}

func TestGenerateKeyPrintsTheRequestedKind(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"signing"}, {"signing", "--algorithm", "ES256"}, {"signing", "--algorithm", "RS256"}} {
		output, err := runKeys(t, append([]string{"generate"}, args...)...)
		if _, parseErr := token.ParseSigningKey([]byte(output)); err != nil || parseErr != nil {
			t.Errorf("%v: %v, %v", args, err, parseErr)
		}
	}
	for _, kind := range []string{"token", "encryption"} {
		output, err := runKeys(t, "generate", kind)
		if _, parseErr := token.ParseRefreshKey([]byte(output)); err != nil || parseErr != nil {
			t.Errorf("%s: %v, %v", kind, err, parseErr)
		}
	}
}

func TestRotateRefusesAKeyThatInstancesCannotDecrypt(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	kek := writeFile(t, string(token.GenerateRefreshKey()))
	start(t, []string{"REMIT_REDIS_URL=" + url, "REMIT_KEY_ENCRYPTION_KEY=" + kek}).ready(t)
	for _, kind := range []string{"signing", "token"} {
		if output, err := runKeys(t, "rotate", kind, "--redis-url", url); err == nil || !strings.Contains(output, "key encryption key") {
			t.Errorf("rotating the %s key without the key encryption key: %v: %s", kind, err, output)
		}
	}
	if output, _ := runKeys(t, "list", "--redis-url", url); strings.Contains(output, "published") || !strings.Contains(output, "\ntoken ") {
		t.Errorf("a key was added, or the list names no token key:\n%s", output)
	}
}

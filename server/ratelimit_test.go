package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/access"
)

var someone = netip.MustParseAddr("203.0.113.1")

func TestABucketEmptiesAndRefills(t *testing.T) {
	t.Parallel()
	clock := &stoppedClock{at: time.Unix(1_800_000_000, 0)}
	limit := access.NewRateLimiter[netip.Addr]("test", 60, 10, clock.now) // one a second
	for i := range 60 {
		if _, taken := limit.Allow(someone); !taken {
			t.Fatalf("token %d of 60 is refused", i+1)
		}
	}
	for _, step := range []struct {
		pass  time.Duration
		taken bool
		left  access.BucketState
	}{
		{0, false, access.BucketState{Remaining: 0, Reset: 1}},
		{999 * time.Millisecond, false, access.BucketState{Remaining: 0, Reset: 1}},
		{time.Millisecond, true, access.BucketState{Remaining: 0, Reset: 1}},
		{0, false, access.BucketState{Remaining: 0, Reset: 1}},
		{30 * time.Second, true, access.BucketState{Remaining: 29, Reset: 29}},
		{time.Hour, true, access.BucketState{Remaining: 59, Reset: 59}},
	} {
		clock.advance(step.pass)
		if left, taken := limit.Allow(someone); taken != step.taken || left != step.left {
			t.Errorf("after %s: taken %t, left %+v; want %t, %+v", step.pass, taken, left, step.taken, step.left)
		}
	}
}

func TestConcurrentRequestsTakeNoMoreThanTheBucketHolds(t *testing.T) {
	t.Parallel()
	clock := &stoppedClock{}
	limit := access.NewRateLimiter[netip.Addr]("test", 10, 10, clock.now)
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if _, ok := limit.Allow(someone); ok {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	wantEqual(t, "tokens taken", taken.Load(), 10)
}

// A crowd passes while the bucket is full, and all fail. The bucket's debt is paid back, and is bounded.
func TestFailuresBeyondTheBucketArePaidBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ failures, wait int }{
		"one too many":             {61, 2},
		"twice the bucket":         {120, 61},
		"far more than the bucket": {5000, 61},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &stoppedClock{at: time.Unix(1_800_000_000, 0)}
			limit := access.NewRateLimiter[netip.Addr]("test", 60, 10, clock.now)
			for range test.failures {
				limit.Debit(someone)
			}
			if got := limit.Peek(someone); got != (access.BucketState{Remaining: 0, Reset: test.wait}) {
				t.Fatalf("left %+v, want nothing for %d s", got, test.wait)
			}
			clock.advance(time.Duration(test.wait)*time.Second - time.Millisecond)
			if got := limit.Peek(someone); got.Remaining != 0 {
				t.Errorf("admitted before the wait is over: %+v", got)
			}
			clock.advance(time.Millisecond)
			wantEqual(t, "after the wait", limit.Peek(someone), (access.BucketState{Remaining: 1, Reset: 1}))
		})
	}
}

func TestAServerKeepsAsManyAddressesAsItSays(t *testing.T) {
	t.Parallel()
	usual := newLimits(Limits{OrganizationsPerMinute: 1}, (&stoppedClock{}).now)
	usual.organizations.Allow(someone)
	for i := range 70_000 {
		address := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		agent := uuid.UUID{byte(i >> 16), byte(i >> 8), byte(i)}
		usual.organizations.Allow(address)
		if _, taken := usual.organizations.Allow(someone); taken {
			t.Fatalf("the address seen last is forgotten after %d others", i)
		}
		usual.failedAuth.Record(address, access.Credential{Agent: agent, Secret: access.SecretHash{1}}, redisstore.ErrInvalidCredentials)
		usual.failedAuth.Record(address, access.Credential{Agent: agent, Secret: access.SecretHash{1}}, nil)
	}
	if _, taken := usual.organizations.Allow(netip.AddrFrom4([4]byte{10})); !taken {
		t.Error("the address unseen for longest is still known")
	}
	for kept, got := range map[string]int{
		"organizations": usual.organizations.Buckets.Len(), "failed-auth": usual.failedAuth.Attempts.Buckets.Len(),
		"failed-auth-address": usual.failedAuth.Addresses.Buckets.Len(), "succeeded": usual.failedAuth.Succeeded.Len(),
	} {
		wantEqual(t, kept, got, 65_536)
	}
}

func TestOrganizationsAreLimitedPerAddress(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{Limits: Limits{OrganizationsPerMinute: 2}})
	client := from(t, "")
	create := func() reply { return s.post(t, client, "/v1/organizations", `{"name":"acme"}`) }
	create().is(t, 201, "")
	create().is(t, 201, "")
	refused := create().is(t, 429, "rate_limited")
	if refused.text(t, "title") != "Rate limited" || refused.header.Get("Retry-After") != "30" {
		t.Errorf("refused with %v, Retry-After %q; want 30", refused.fields, refused.header.Get("Retry-After"))
	}
	s.clock.advance(30 * time.Second)
	create().is(t, 201, "")
	create().is(t, 429, "rate_limited")
}

func TestTheUsualLimits(t *testing.T) {
	t.Parallel()
	for _, limits := range []Limits{{}, {OrganizationsPerMinute: -1, FailedAuthPerMinute: -1}} {
		s := runServer(t, "", Config{Limits: limits})
		for path, want := range map[string][2]string{
			"/v1/organizations": {`"organizations";q=300;w=60`, `"organizations";r=299;t=60`},
			"/v1/auth/token":    {`"failed-auth";q=600;w=60`, `"failed-auth";r=600;t=60`},
			"/v1/auth/refresh":  {`"failed-auth";q=600;w=60`, `"failed-auth";r=600;t=60`},
		} {
			got := s.post(t, from(t, ""), path, `{}`).is(t, 400, "invalid_request")
			wantEqual(t, path, [2]string{got.header.Get("RateLimit-Policy"), got.header.Get("RateLimit")}, want)
		}
	}
}

var (
	policyField = regexp.MustCompile(`^"([a-z-]+)";q=(\d+);w=(\d+)$`)
	limitField  = regexp.MustCompile(`^"([a-z-]+)";r=(\d+);t=(\d+)$`)
)

// remaining returns what the headers say is left, and fails the test when they are not well-formed or disagree.
func (r reply) remaining(t *testing.T, policy string) int {
	t.Helper()
	quota, left := policyField.FindStringSubmatch(r.header.Get("RateLimit-Policy")), limitField.FindStringSubmatch(r.header.Get("RateLimit"))
	if quota == nil || left == nil || quota[1] != policy || left[1] != policy || quota[3] != "60" {
		t.Fatalf("headers of %q are malformed: %v", policy, r.header)
	}
	q, _ := strconv.Atoi(quota[2])
	remaining, _ := strconv.Atoi(left[2])
	reset, _ := strconv.Atoi(left[3])
	if remaining > q || reset < 1 || reset*q < remaining*60 {
		t.Errorf("%v and %v promise more than the policy", quota, left)
	}
	if after := r.header.Get("Retry-After"); r.status == 429 && (remaining != 0 || after != left[3]) {
		t.Errorf("refused with %d left, t=%s, Retry-After %q", remaining, left[3], after)
	}
	return remaining
}

func TestOnlyAWrongCredentialCosts(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{Limits: Limits{FailedAuthPerMinute: 100}})
	client := from(t, "")
	agent, secret := s.newAgent(t, client)
	first := s.exchange(t, client, agent, secret).is(t, 200, "").text(t, "refresh_token")
	second := s.refresh(t, client, first).is(t, 200, "").text(t, "refresh_token")
	s.refresh(t, client, second).is(t, 200, "")
	left := 100
	for _, step := range []struct {
		name   string
		ask    func() reply
		status int
		code   string
		cost   int
	}{
		{"an exchange that succeeds", func() reply { return s.exchange(t, client, agent, secret) }, 200, "", 0},
		{"a malformed exchange", func() reply { return s.exchange(t, client, "x", secret) }, 400, "invalid_request", 0},
		{"a body that is no JSON", func() reply { return s.post(t, client, "/v1/auth/refresh", `{`) }, 400, "invalid_request", 0},
		{"a wrong secret", func() reply { return s.exchange(t, client, agent, token.NewAgentSecret()) }, 401, "invalid_credentials", 1},
		{"a misspelt secret", func() reply { return s.exchange(t, client, agent, secret+"x") }, 401, "invalid_credentials", 1},
		{"a refresh token used again", func() reply { return s.refresh(t, client, first) }, 401, "invalid_refresh_token", 1},
	} {
		got := step.ask().is(t, step.status, step.code)
		left -= step.cost
		want := left
		if step.status == 400 { // of an unknown agent
			want = 100
		}
		wantEqual(t, step.name+": failures left", got.remaining(t, "failed-auth"), want)
	}
	for left := range 2 { // of no agent that could be believed
		forged := s.refresh(t, client, "rmr_x").is(t, 401, "invalid_refresh_token")
		wantEqual(t, "failures left to forged refresh tokens", forged.remaining(t, "failed-auth"), 99-left)
	}
	s.redis.Close()
	if got := s.exchange(t, client, agent, secret).is(t, 503, "unavailable"); got.remaining(t, "failed-auth") != left {
		t.Errorf("trouble with the store costs: %v", got.header)
	}
}

// An agent that has not succeeded here before is refused, right or wrong, once too many secrets were wrong.
func TestAnEmptyBucketRefusesSecretsUntilItRefills(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{Limits: Limits{FailedAuthPerMinute: 4}})
	client := from(t, "")
	agent, secret := s.newAgent(t, client)
	for range 4 { // forged credentials, which are refused without Redis, have a bucket of their own
		s.refresh(t, client, "rmr_x").is(t, 401, "invalid_refresh_token")
	}
	for range 50 {
		s.refresh(t, client, "rmr_x").is(t, 429, "rate_limited")
	}
	for i := range 4 {
		failed := s.exchange(t, client, agent, token.NewAgentSecret()).is(t, 401, "invalid_credentials")
		wantEqual(t, "failures left", failed.remaining(t, "failed-auth"), 3-i)
	}
	s.exchange(t, client, agent, secret).is(t, 429, "rate_limited").remaining(t, "failed-auth")
	s.post(t, client, "/v1/organizations", `{"name":"acme"}`).is(t, 201, "")
	s.clock.advance(15 * time.Second)
	s.exchange(t, client, agent, secret).is(t, 200, "")
}

// Failures of one agent do not affect other agents at the address, and credentials known to be valid always pass.
func TestFailuresOfOneAgentDoNotLimitOthersAtItsAddress(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{Limits: Limits{FailedAuthPerMinute: 4}})
	client := from(t, "")
	target, known := s.newAgent(t, client)
	neighbour, unknown := s.newAgent(t, client)
	refresh := s.exchange(t, client, target, known).is(t, 200, "").text(t, "refresh_token")
	for range 4 {
		s.exchange(t, client, target, token.NewAgentSecret()).is(t, 401, "invalid_credentials")
	}
	for range 3 {
		s.exchange(t, client, target, token.NewAgentSecret()).is(t, 429, "rate_limited")
	}
	s.exchange(t, client, target, known).is(t, 200, "")
	refresh = s.refresh(t, client, refresh).is(t, 200, "").text(t, "refresh_token")
	s.exchange(t, client, neighbour, unknown).is(t, 200, "")

	for i := range 40 { // all that the address may try, on unknown agents
		s.exchange(t, client, uuid.NewString(), token.NewAgentSecret()).
			is(t, map[bool]int{true: 401, false: 429}[i < 36], map[bool]string{true: "invalid_credentials", false: "rate_limited"}[i < 36])
	}
	refused := s.exchange(t, client, uuid.NewString(), token.NewAgentSecret()).is(t, 429, "rate_limited")
	refused.remaining(t, "failed-auth-address")
	s.exchange(t, client, target, known).is(t, 200, "")
	s.exchange(t, client, neighbour, unknown).is(t, 200, "")
	s.exchange(t, client, neighbour, token.NewAgentSecret()).is(t, 401, "invalid_credentials")
	refresh = s.refresh(t, client, refresh).is(t, 200, "").text(t, "refresh_token")
	s.oauthRefresh(t, client, target, known, refresh, 200)
}

// A secret that was rotated away is no longer known to be right.
func TestASecretThatIsRightNoLongerIsForgotten(t *testing.T) {
	t.Parallel()
	limit := access.NewAuthLimiter(1, (&stoppedClock{}).now)
	old := access.Credential{Agent: uuid.New(), Secret: access.SecretHash{1}}
	limit.Record(someone, old, nil)
	if !limit.IsKnownGood(old) || limit.IsKnownGood(access.Credential{Agent: old.Agent, Secret: access.SecretHash{2}}) || limit.IsKnownGood(access.Credential{Agent: old.Agent}) {
		t.Error("what succeeded is not what is known")
	}
	limit.Record(someone, old, redisstore.ErrUnavailable)
	if !limit.IsKnownGood(old) {
		t.Error("it is forgotten for trouble with the store")
	}
	limit.Record(someone, old, redisstore.ErrInvalidCredentials)
	if limit.IsKnownGood(old) {
		t.Error("it is known still")
	}
}

// oauthToken asks for a token by a form.
func (r runningServer) oauthToken(t *testing.T, client *http.Client, grant, agent, secret, refresh string) *http.Response {
	t.Helper()
	response := must(client.PostForm("http://"+r.address+"/oauth2/token", url.Values{
		"grant_type": {grant}, "client_id": {agent}, "client_secret": {secret}, "refresh_token": {refresh}}))(t)
	_ = response.Body.Close()
	return response
}

func (r runningServer) oauthRefresh(t *testing.T, client *http.Client, agent, secret, refresh string, status int) {
	t.Helper()
	wantEqual(t, "/oauth2/token", r.oauthToken(t, client, "refresh_token", agent, secret, refresh).StatusCode, status)
}

// Guessing by one face must not leave the other open.
func TestTheOAuthFaceCountsWithTheOther(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{Limits: Limits{FailedAuthPerMinute: 2}})
	client := from(t, "")
	agent, secret := s.newAgent(t, client)
	s.exchange(t, client, agent, token.NewAgentSecret()).is(t, 401, "invalid_credentials")
	for _, step := range []struct {
		secret string
		status int
		left   string
	}{
		{token.NewAgentSecret(), 401, `"failed-auth";r=0;t=30`},
		{secret, 429, `"failed-auth";r=0;t=30`},
	} {
		response := s.oauthToken(t, client, "client_credentials", agent, step.secret, "")
		if left := response.Header.Get("RateLimit"); response.StatusCode != step.status || left != step.left {
			t.Errorf("answered %d, left %s; want %d, %s", response.StatusCode, left, step.status, step.left)
		}
		if after := response.Header.Get("Retry-After"); (after == "30") != (step.status == 429) {
			t.Errorf("%d with Retry-After %q", step.status, after)
		}
	}
	s.exchange(t, client, agent, secret).is(t, 429, "rate_limited")
}

func TestDisabledRateLimitsAllowEverythingAndAddNoHeaders(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{Limits: Limits{Off: true, OrganizationsPerMinute: 1, FailedAuthPerMinute: 1}})
	client := from(t, "")
	for range 3 {
		created := s.post(t, client, "/v1/organizations", `{"name":"acme"}`).is(t, 201, "")
		failed := s.refresh(t, client, "rmr_x").is(t, 401, "invalid_refresh_token")
		wantEqual(t, "headers of limits", fmt.Sprint(created.header["Ratelimit"], failed.header["Ratelimit-Policy"]), "[] []")
	}
}

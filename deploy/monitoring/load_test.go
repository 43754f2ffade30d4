package monitoring

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/client"
	"remit/internal/redisproc"
	"remit/money"
	"remit/test/redistest"
	"remit/test/serviceproc"
	"remit/test/suite"
)

// service is a running service. The test can freeze its Redis.
type service struct {
	*testing.T
	serviceproc.Caller
	metrics      string
	gateway      string // its URL, which has its metrics too
	redis        *redisproc.Server
	client       *client.Client
	organization *client.Organization
	apiKey       string
	agent        client.AgentInfo
	acts         *client.Agent
}

func startService(t *testing.T) *service {
	t.Helper()
	s := &service{T: t, redis: redistest.StartRedis(t, redisproc.Config{Dir: t.TempDir()})}
	running := serviceproc.Run(t, "--redis-url", s.redis.URL(), "--metrics-listen", "127.0.0.1:0", "--refresh-grace", "0s", "--webhook-allow-private")
	s.Caller = serviceproc.Caller{T: t, URL: running.URL}
	s.metrics = regexp.MustCompile(`msg=metrics url=(http://\S+)`).FindStringSubmatch(running.Output())[1]
	s.client = suite.Must(client.New(s.URL, client.Options{MaxAttempts: 1}))(s)
	acme := suite.Must(s.client.CreateOrganization(t.Context(), client.OrganizationParams{Name: "acme"}))(s)
	s.apiKey = string(acme.APIKey)
	s.organization = s.client.Organization(s.apiKey)
	s.agent = suite.Must(s.organization.CreateAgent(t.Context(), client.AgentParams{Name: "scout", Scopes: []string{"read", "transactions:rollback"}}))(s)
	s.acts = s.client.Agent(s.agent.ID, string(s.agent.Secret))
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	s.gateway = s.startGateway()
	suite.Must(s.organization.CreateWebhook(t.Context(), client.WebhookParams{URL: receiver.URL}))(s)
	return s
}

// refused fails the test unless a session limit, the session's state or a missing scope refused the call.
func (s *service) refused(err error) {
	s.Helper()
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusForbidden {
		s.Fatalf("want a refusal, got %v", err)
	}
}

func (s *service) session(p client.SessionParams) *client.Session {
	s.Helper()
	p.AgentID = s.agent.ID
	created := suite.Must(s.organization.CreateSession(s.Context(), p))(s)
	return s.acts.Session(created.ID)
}

// wants is Call as the organization. It fails the test if the response has another status.
func (s *service) wants(status int, method, path, body string) map[string]any {
	s.Helper()
	got, answer := s.Call(method, path, map[string]string{"X-API-Key": s.apiKey}, body)
	if got != status {
		s.Fatalf("%s %s: %d %v, want %d", method, path, got, answer, status)
	}
	return answer
}

const burst = 24 // calls at once: enough to share pipelines

func atOnce(calls int, call func()) {
	var group sync.WaitGroup
	for range calls {
		group.Go(call)
	}
	group.Wait()
}

// work makes every kind of request to a healthy service, including refused ones. It is repeatable.
func (s *service) work() {
	s.Helper()
	ctx := s.Context()
	session := s.session(client.SessionParams{MaxActions: 100_000})
	atOnce(burst, func() {
		for range 5 {
			if _, err := session.Charge(ctx, client.Charge{ActionType: "llm.call", Value: 1200}); err != nil {
				s.Error(err)
			}
		}
	})

	for _, refused := range []struct {
		session *client.Session
		action  client.Charge
	}{
		{s.session(client.SessionParams{MaxActions: 1}), client.Charge{Count: 2}},
		{s.session(client.SessionParams{MaxValue: new(money.MicroUSD)}), client.Charge{Value: 1}},
		{session, client.Charge{Scope: "write"}},
	} {
		_, err := refused.session.Charge(ctx, refused.action)
		s.refused(err)
	}
	for range 2 {
		suite.Must(session.Charge(ctx, client.Charge{IdempotencyKey: "of-" + session.ID()}))(s)
	}
	suite.Must(s.acts.ChargeMany(ctx, []client.SessionCharge{{SessionID: session.ID()}, {SessionID: session.ID(), Charge: client.Charge{Value: 10}}}, client.BatchOptions{}))(s)
	s.transactions(session)
	s.leases()
	s.observe()
	s.limits()
	for _, err := range s.organization.Sessions(ctx, client.SessionFilter{}) {
		suite.NoError(s, err)
		break
	}
	suite.NoError(s, session.End(ctx))
	_, err := session.Charge(ctx, client.Charge{})
	s.refused(err)
	s.tokens()
	s.callModels()
	s.wants(http.StatusNotFound, "GET", "/nowhere", "")
}

func (s *service) transactions(session *client.Session) {
	s.Helper()
	ctx := s.Context()
	for _, settle := range []func(*client.Transaction) error{
		func(t *client.Transaction) error { return t.Commit(ctx, client.CommitParams{}) },
		func(t *client.Transaction) error { return t.Rollback(ctx, "") },
	} {
		begun := suite.Must(session.Begin(ctx, client.TransactionParams{ActionType: "pay", PreState: map[string]any{}, Value: 500}))(s)
		suite.NoError(s, settle(begun))
	}
	suite.Must(session.Begin(ctx, client.TransactionParams{ActionType: "pay", PreState: map[string]any{}, ExpiresIn: time.Second}))(s)
	eventually(s.T, "a hold expires", func() bool {
		s.wants(http.StatusOK, "GET", "/v1/sessions/"+session.ID(), "")
		return !strings.Contains(s.scrape(s.metrics), "\nremit_holds_expired_total 0\n")
	})
}

// observe charges a session that observes more than its limit.
func (s *service) observe() {
	s.Helper()
	session := s.session(client.SessionParams{MaxActions: 1}).ID()
	s.wants(http.StatusOK, "PATCH", "/v1/sessions/"+session, `{"enforcement":"observe"}`)
	s.wants(http.StatusOK, "POST", "/v1/sessions/"+session+"/actions", `{"count":2}`)
}

// limits lets a limit of an agent and the organization's budget refuse a session, and an agent ask for more than its session
// allows.
func (s *service) limits() {
	s.Helper()
	made := s.wants(http.StatusCreated, "POST", "/v1/agents", `{"name":"bound","scopes":[],"limits":{"max_open_sessions":0}}`)
	s.wants(http.StatusForbidden, "POST", "/v1/sessions", fmt.Sprintf(`{"agent_id":%q}`, made["id"]))
	s.wants(http.StatusOK, "PUT", "/v1/budget", `{"max_value_usd":0.01,"period":"none"}`)
	s.wants(http.StatusForbidden, "POST", "/v1/sessions", fmt.Sprintf(`{"agent_id":%q,"max_value_usd":1}`, s.agent.ID))
	s.wants(http.StatusNoContent, "DELETE", "/v1/budget", "")
	suite.Must(s.session(client.SessionParams{}).RequestMore(s.Context(), client.MoreParams{AddActions: 1, Reason: "one page is left"}))(s)
}

// leases settles one lease with more than its session allows, and lets another expire.
func (s *service) leases() {
	s.Helper()
	session := "/v1/sessions/" + s.session(client.SessionParams{MaxActions: 10, MaxLease: time.Minute}).ID()
	grant := func(seconds int) string {
		s.Helper()
		lease := s.wants(http.StatusCreated, "POST", session+"/leases", fmt.Sprintf(`{"max_actions":1,"expires_in_seconds":%d}`, seconds))
		return fmt.Sprint("/v1/leases/", lease["id"])
	}
	s.wants(http.StatusOK, "POST", grant(60)+"/settle", `{"action_count":1,"value_used_usd":1000}`)
	lease := grant(1)
	eventually(s.T, "a lease expires", func() bool { return s.wants(http.StatusOK, "GET", lease, "")["status"] == "expired" })
	s.wants(http.StatusOK, "GET", session, "")
}

// tokens exchanges, refreshes, uses a refresh token twice, revokes a family, and revokes an agent.
func (s *service) tokens() {
	s.Helper()
	ctx := s.Context()
	suite.NoError(s, s.acts.Refresh(ctx))
	exchange := fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, s.agent.ID, string(s.agent.Secret))
	opened := func() string { // a family
		s.Helper()
		return fmt.Sprintf(`{"refresh_token":%q}`, s.wants(http.StatusOK, "POST", "/v1/auth/token", exchange)["refresh_token"])
	}
	stolen := opened()
	s.wants(http.StatusOK, "POST", "/v1/auth/refresh", stolen)
	s.wants(http.StatusUnauthorized, "POST", "/v1/auth/refresh", stolen)
	access := map[string]string{"Authorization": "Bearer " + suite.Must(s.acts.Token(ctx))(s)}
	if status, answer := s.Call("POST", "/v1/auth/revoke", access, opened()); status != http.StatusOK {
		s.Fatalf("a revocation: %d %v", status, answer)
	}
	if status, answer := s.Call("GET", "/v1/agents", nil, ""); status != http.StatusUnauthorized {
		s.Fatalf("without a credential: %d %v", status, answer)
	}

	suite.Must(s.client.CreateOrganization(ctx, client.OrganizationParams{Name: "another"}))(s)
	gone := suite.Must(s.organization.CreateAgent(ctx, client.AgentParams{Name: "gone", Scopes: []string{}}))(s)
	suite.NoError(s, s.organization.RevokeAgent(ctx, gone.ID))
}

// waitForEvents starts a request that waits for an event during the whole test.
func (s *service) waitForEvents() {
	s.Helper()
	quiet := suite.Must(s.organization.CreateAgent(s.Context(), client.AgentParams{Name: "quiet", Scopes: []string{}}))(s)
	go func() {
		for _, err := range s.organization.Events(s.Context(), quiet.ID, "") {
			if err != nil {
				return // it ends with the test
			}
		}
	}()
}

// freeze stops Redis until a write has an unknown outcome and a call was shed.
func (s *service) freeze() {
	s.Helper()
	session := s.session(client.SessionParams{})
	defer redistest.Suspend(s.T, s.redis)()
	var unknown, shed atomic.Bool
	atOnce(12, func() { // enough to share pipelines
		for range 5 {
			_, err := session.Charge(s.Context(), client.Charge{})
			switch {
			case errors.Is(err, client.ErrOutcomeUnknown):
				unknown.Store(true)
			case errors.Is(err, client.ErrUnavailable):
				shed.Store(true)
			default:
				s.Errorf("a charge to a frozen Redis: %v", err)
			}
			if unknown.Load() && shed.Load() {
				return
			}
		}
	})
	if !unknown.Load() || !shed.Load() {
		s.Errorf("a frozen Redis: unknown outcome %v, shed %v", unknown.Load(), shed.Load())
	}
}

// acceptsBurst reports whether the service creates as many sessions at once as work makes charges.
func (s *service) acceptsBurst() bool {
	var refused atomic.Bool
	atOnce(burst, func() {
		if _, err := s.organization.CreateSession(s.Context(), client.SessionParams{AgentID: s.agent.ID}); err != nil {
			refused.Store(true)
		}
	})
	return !refused.Load()
}

// flood exceeds the limits per address. For some time after it, no agent can exchange a secret.
func (s *service) flood() {
	s.Helper()
	wrong := fmt.Sprintf(`{"agent_id":%q,"secret":"rms_wrong"}`, s.agent.ID)
	for _, one := range []struct{ path, body string }{{"/v1/organizations", `{}`}, {"/v1/auth/token", wrong}} {
		status := 0
		for tries := 0; status != http.StatusTooManyRequests; tries++ {
			if tries == 1000 {
				s.Fatalf("%s has no limit", one.path)
			}
			status, _ = s.Call("POST", one.path, nil, one.body)
		}
	}
}

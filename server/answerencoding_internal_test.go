package server

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"remit/internal/event"
	"remit/internal/token"
	"remit/money"
	"remit/redisstore"
	"remit/server/budgets"
	"remit/server/identity"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// hostile has what encoders treat differently: quotes, control characters, HTML, the line ends of JavaScript, characters
// beyond the BMP, and one that stands for invalid UTF-8.
const hostile = "\"\\/\b\f\n\r\t\x00\x1f\x7f<b>&'\u00e9\u2028\u2029\uFFFD\U0001F600"

// hostileObject is metadata as an early version may have stored it: with white space, escapes and numbers of every form.
const hostileObject = "{ \"a\" : [ 1, 2.50, -0, 1e400, 9007199254740993, \"<\\u00e9\u00e9\\u2028\u2028\\/\\ud83d\\ude00>\" ] ,\n" +
	"\"\" : null, \"n\" : { \"n\" : { \"n\" : [ [ ] , { } ] } } , \"\\u0061\\u0000\" : true }"

// namedAnswer is a body that the encoder writes.
type namedAnswer struct {
	name  string
	value any
}

// answersOfEveryType has each type of body that the encoder writes, with as little and with as much as it may hold.
func answersOfEveryType() []namedAnswer {
	id, other := uuid.MustParse("0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc3f1"), uuid.MustParse("0199a1b2-ffff-7e5f-8a9b-0c1d2e3fc3f1")
	at := web.Timestamp(time.Date(2026, 2, 28, 23, 59, 59, 7e6, time.FixedZone("", 3600)))
	most, none, count, scopes := money.Max, money.MicroUSD(0), int64(1<<53), []string{"read", "tools:<a>&'b'/c", "!#[]~"}
	object := jsontext.Value(hostileObject)
	usage := web.LimitUsage{ActionCount: 1, MaxActions: 1e9, ValueUsed: 12_300_000, MaxValue: money.Max, ValueHeld: 1, RemainingActions: 999_999_999, RemainingValue: 100_001, Expires: at}
	problem := web.Problem{
		Type: "urn:remit:problem:x", Title: hostile, Status: 400, Detail: hostile, Code: "x", RequestID: hostile,
		Errors: []web.FieldError{{Field: hostile, Message: hostile}, {}}, RequiredScope: "a", SessionStatus: redisstore.Expired,
		TransactionStatus: redisstore.RolledBack, Limit: "max_actions", ResetsAt: at, Suspended: at, LimitUsage: &usage,
	}
	ofQuota := web.NewProblem(403, "quota_exceeded", "d")
	ofQuota.QuotaUsage = &web.QuotaUsage{Quota: "agents", Used: 1 << 53, Max: 0}
	session := budgets.SessionAnswer{
		ID: id, Agent: other, Status: redisstore.Active, MaxActions: 1e9, ActionCount: 7, MaxValue: money.Max, ValueUsed: 12_300_000, ValueHeld: 100_001, Overage: 5, Committed: 1, MaxCommitted: &most, MaxLease: 3600, Scopes: scopes, Metadata: object, Expires: at, Created: at, Ended: at,
		Suspended: at, SuspensionReason: hostile, Enforcement: budgets.Observes, Observed: &count, MaxPerAction: &most, Thresholds: []int{1, 100},
		Parent: other, DelegatedActions: &count, DelegatedValue: &most,
	}
	agent := identity.AgentAnswer{ID: id, Organization: other, Name: hostile, Scopes: scopes, Status: redisstore.Revoked, Description: hostile, Metadata: object, Created: at, Revoked: at, Suspended: at, SuspensionReason: hostile, Secret: "rms_secret",
		Limits: &redisstore.AgentLimits{ValuePerDay: &most, OpenSessions: &count}, Usage: &identity.AgentUsage{ValueToday: &none, ResetsAt: &at, OpenSessions: nil},
		AgentCredentials: identity.AgentCredentials{Audiences: &scopes, JWKS: jsontext.Value(`{"keys":[]}`), JWKSURI: "https://a.example/" + hostile, DPoPRequired: true, HasSecret: new(false)}}
	told := event.Event{
		ID: "1-1", Type: "session.created", Time: at, Agent: id, Actor: event.Actor{Type: event.ByKey, ID: other}, Request: hostile, Session: id,
		Transaction: other, Family: id, Lease: other, Asked: id, Child: other, Issuer: id,
		Data: event.Data{
			Limit: "max_actions", MaxActions: &count, AddActions: &count, MaxLease: &count, Actions: &count, OverageActions: &count,
			MaxValue: &most, AddValue: &most, MaxCommitted: &none, Held: &most, Leased: &most, Delegated: &most, Released: &most,
			Charged: &none, Overage: &most, Late: true, Expires: at, PreviousExpires: at, Spent: at, Reason: hostile, Changed: scopes,
			Enforcement: budgets.Observes, MaxPerAction: &most, Limits: &event.AgentLimits{ActionsPerMinute: &count}, PreState: object,
			Budget: "session", Threshold: 80, Thresholds: []int{1, 100},
		},
	}
	transaction := budgets.TransactionAnswer{
		ID: id, Agent: other, Session: id, Sequence: 7, Status: redisstore.Committed, ActionType: hostile, Value: money.Max, ValueHeld: 1, Overage: 100_001, Reversible: true, Reason: hostile, PreState: object, PostState: object, Metadata: object, Expires: at, Created: at,
		Committed: at, Late: true, RolledBack: at, WouldRefuse: "max_value_usd",
	}
	used := budgets.LeaseUsage{ActionCount: 7, ValueUsed: 12_300_000, Overage: money.Max, OverageActions: 1e9, Late: true, Settled: at}
	lease, settled := budgets.LeaseAnswer{ID: id, Session: other, Status: redisstore.LeaseOpen, MaxActions: 1e9, MaxValue: money.Max, Created: at, Expires: at, LeaseUsage: nil, WouldRefuse: "max_actions"}, budgets.LeaseAnswer{ID: id, Session: other, Status: redisstore.LeaseSettled, MaxActions: 7, MaxValue: 1, Created: at, Expires: at, LeaseUsage: &used, WouldRefuse: ""}
	settlement := budgets.SettlementAnswer{ID: id, Session: other, Status: redisstore.LeaseSettled, LeaseUsage: used, Renewed: &lease, Refusal: &budgets.RefusedRenewal{Code: "session_limit_reached", Limit: "max_actions", Detail: hostile, Needed: &web.Needed{Actions: 7, Value: 12_300_000}}}
	asked := budgets.SessionRequestAnswer{ID: id, Session: other, Agent: id, Status: redisstore.Approved, AddActions: 1e9, AddValue: money.Max, Reason: hostile, Granted: &budgets.Granted{Actions: 7, Value: 12_300_000}, Comment: hostile, Created: at, Decided: at}
	resource := identity.Resources{Agents: &count, OpenSessions: nil, PendingTransactions: &count, RefreshFamilies: nil, IdempotencyKeys: &count, Bytes: nil}
	organization := identity.OrganizationAnswer{ID: id, Name: hostile, APIKey: "rmk_key", Metadata: object, Created: at, Quotas: &resource, Usage: &identity.Resources{}}
	introspected := access.Introspection{Active: true, Scope: "a b", ClientID: id, TokenType: "Bearer", Expires: 1 << 40, Issued: 1, Subject: other, Issuer: "https://i.example/\u2028", Agent: id, Organization: other, Audience: token.Audience{hostile}, Session: id, Actor: &access.DescribedActor{Subject: id, Actor: nil}, Confirmation: access.Confirmation{Thumbprint: "jkt"}}
	forTwo := access.Introspection{Audience: token.Audience{hostile, "urn:a"}}
	metadata := access.ServerMetadata{
		Issuer: "i", AuthorizationEndpoint: "a", TokenEndpoint: "t", RevocationEndpoint: "r", IntrospectionEndpoint: "n", JWKS: "j", GrantTypes: []string{"client_credentials"}, ResponseTypes: []string{}, TokenAuthMethods: nil, RevocationAuthMethods: scopes, IntrospectionAuthMethods: []string{hostile}, TokenAuthAlgorithms: nil, RevocationAuthAlgorithms: scopes, IntrospectionAuthAlgorithms: []string{hostile}, ProofAlgorithms: scopes,
		SubjectTypes: []string{"public"}, SigningAlgorithms: scopes,
	}
	return []namedAnswer{
		{"problem", problem}, {"problem of a quota", ofQuota}, {"least problem", web.NewProblem(404, "not_found", "")},
		{"session", session}, {"least session", budgets.SessionOf(redisstore.Session{})},
		{"summaries", []budgets.SessionSummary{{ID: id, Agent: other, Status: redisstore.Active, ActionCount: 7, MaxActions: 1e9, ValueUsed: 12_300_000, MaxValue: money.Max, Expires: at}, {}}},
		{"no summaries", []budgets.SessionSummary{}}, {"nil summaries", []budgets.SessionSummary(nil)},
		{"ended", budgets.EndedAnswer{ID: id, Status: redisstore.Completed, Ended: at}}, {"least ended", budgets.EndedAnswer{}},
		{"agent", agent}, {"least agent", identity.AgentOf(redisstore.Agent{})}, {"agents", []identity.AgentAnswer{agent, identity.AgentOf(redisstore.Agent{})}},
		{"revoked agent", identity.RevokedAgentAnswer{ID: id, Status: redisstore.Revoked, Revoked: at}}, {"rotated secret", identity.RotatedSecretAnswer{ID: id, Secret: "s", PreviousExpires: at}},
		{"event", told}, {"least event", event.Event{}}, {"events", []event.Event{told, {}, told}},
		{"transaction", transaction}, {"least transaction", budgets.TransactionAnswer{}},
		{"transactions", []budgets.TransactionAnswer{transaction, {}}},
		{"dry transaction", budgets.DryTransaction{TransactionAnswer: transaction, DryRun: true}},
		{"lease", lease}, {"settled lease", settled}, {"least lease", budgets.LeaseAnswer{}},
		{"settlement", settlement}, {"least settlement", budgets.SettlementAnswer{}},
		{"settlement without a renewal", budgets.SettlementAnswer{Refusal: &budgets.RefusedRenewal{Code: "unavailable"}}},
		{"request for more", asked}, {"least request for more", budgets.SessionRequestAnswer{}},
		{"organization", organization}, {"least organization", identity.OrganizationOf(redisstore.Organization{})},
		{"rotated key", identity.RotatedKeyAnswer{APIKey: "k", PreviousExpires: at}}, {"families", []identity.FamilyAnswer{{ID: id, Created: at, LastUsed: at, Expires: at}, {}}},
		{"introspection", introspected}, {"least introspection", access.Introspection{}}, {"introspection for two", forTwo}, {"tokens", access.TokenPair{AccessToken: "a", RefreshToken: "r", TokenType: "bearer", ExpiresIn: 3600}},
		{"revoked token", access.RevokedTokenAnswer{Revoked: true}}, {"oauth grant", access.OAuthGrant{AccessToken: "a", TokenType: "Bearer", ExpiresIn: 3600, RefreshToken: "r", Scope: "a b"}},
		{"oauth error", access.OAuthErrorAnswer{Error: "invalid_request", Description: hostile, OAuthCause: access.OAuthCause{}}}, {"server metadata", metadata},
		{"oauth error with its cause", access.OAuthErrorAnswer{Error: "x", Description: "d", OAuthCause: access.OAuthCause{Code: "c", RequiredScope: "a", SessionStatus: redisstore.Expired, Suspended: at, QuotaUsage: &web.QuotaUsage{Quota: "agents", Used: 1 << 53, Max: 0}}}},
		{"resource metadata", access.ResourceMetadata{Resource: hostile, AuthorizationServers: []string{hostile}, JWKS: "j", BearerMethods: []string{"header"}, ProofAlgorithms: []string{"ES256"}, Documentation: "d"}},
		{"ready", healthAnswer{"ready", []string{hostile}}}, {"healthy", healthAnswer{Status: "ok"}},
		{"charge", budgets.ChargeAnswer{Session: id, LimitUsage: usage, WouldRefuse: ""}}, {"observed charge", budgets.ChargeAnswer{Session: id, LimitUsage: usage, WouldRefuse: "max_actions"}}, {"least charge", budgets.ChargeAnswer{}},
		{"batch", []budgets.BatchResult{{Status: 200, Body: budgets.ChargeAnswer{Session: id, LimitUsage: usage, WouldRefuse: ""}}, {Status: 400, Body: problem}, {Status: 403, Body: ofQuota}, {Status: 0, Body: nil}}},
	}
}

// The file was written by the encoder that the service had first: go-json-experiment/json. It reads the requests still, so
// the bodies are also held to what it writes today.
func TestEveryTypeOfAnswerKeepsItsBytes(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/answers.txt")
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]string{}
	for line := range strings.Lines(string(file)) {
		name, body, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		pinned[name] = body
	}
	answers := answersOfEveryType()
	if len(pinned) != len(answers) {
		t.Errorf("%d answers are pinned, want %d", len(pinned), len(answers))
	}
	for _, a := range answers {
		first, err := strict.Marshal(a.value)
		if err != nil || string(first) != pinned[a.name] {
			t.Errorf("%s: the first encoder writes %s, %v, pinned is %s", a.name, first, err, pinned[a.name])
		}
		if got, err := web.Encode(a.value); string(got) != pinned[a.name] || err != nil {
			t.Errorf("%s: %s, %v, want %s", a.name, got, err, pinned[a.name])
		}
	}
}

// An encoder that prepares each type at its first use must do so for many callers at once.
func TestManyCallersEncodeATypeForTheFirstTime(t *testing.T) {
	t.Parallel()
	values := firstUses()
	begin := make(chan struct{})
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			<-begin
			for _, value := range values {
				want, err := strict.Marshal(value)
				if got, failed := web.Encode(value); !bytes.Equal(got, want) || failed != nil || err != nil {
					t.Errorf("%s, %v, want %s, %v", got, failed, want, err)
				}
			}
		})
	}
	close(begin)
	callers.Wait()
}

// firstUses are answers in types that nothing else encodes.
func firstUses() (values []any) {
	for _, a := range answersOfEveryType() {
		switch v := a.value.(type) {
		case web.Problem:
			type once web.Problem
			values = append(values, struct{ Own once }{once(v)})
		case budgets.SessionAnswer:
			type once budgets.SessionAnswer
			values = append(values, []once{once(v), once(v)})
		case identity.AgentAnswer:
			type once identity.AgentAnswer
			values = append(values, map[string]*once{"x": (*once)(&v)})
		case event.Event:
			type once event.Event
			values = append(values, [2]once{once(v), once(v)})
		case budgets.TransactionAnswer:
			type once budgets.TransactionAnswer
			values = append(values, &[]once{once(v)})
		case identity.OrganizationAnswer:
			type once identity.OrganizationAnswer
			values = append(values, []any{once(v), 1, nil})
		}
	}
	return values
}

// What cannot be written as JSON is an error, and no half of a body.
func TestAnAnswerThatIsNoJSONIsAnError(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"invalid UTF-8":             access.OAuthErrorAnswer{Description: "a\xffb"},
		"half a character":          []identity.AgentAnswer{{Name: "\xe2\x80"}},
		"a surrogate":               web.Problem{Detail: "\xed\xa0\x80"},
		"invalid UTF-8 in metadata": identity.OrganizationAnswer{Metadata: jsontext.Value("{\"a\":\"\xff\"}")},
		"half an object":            identity.OrganizationAnswer{Metadata: jsontext.Value(`{"a":`)},
		"two objects":               identity.OrganizationAnswer{Metadata: jsontext.Value(`{}{}`)},
		"a name given twice":        identity.OrganizationAnswer{Metadata: jsontext.Value(`{"a":1,"a":2}`)},
	} {
		if _, err := strict.Marshal(value); err == nil {
			t.Errorf("%s: the first encoder writes it", name)
		}
		if body, err := web.Encode(value); err == nil || body != nil {
			t.Errorf("%s: %s, %v", name, body, err)
		}
	}
}

func FuzzAnswersKeepTheirBytes(f *testing.F) {
	f.Add(hostile, []byte(hostileObject))
	f.Add("\xff", []byte(`{"a":"\ud800"}`))
	f.Add("", []byte(`{"a":1,"\u0061":2}`))
	f.Fuzz(func(t *testing.T, text string, object []byte) {
		for _, value := range []any{
			identity.AgentAnswer{Name: text, Scopes: []string{text, text}, Metadata: object},
			[]budgets.BatchResult{{Status: 400, Body: web.Problem{Detail: text, Errors: []web.FieldError{{Field: text, Message: text}}}}},
			budgets.TransactionAnswer{ActionType: text, PreState: object, PostState: object},
		} {
			want, refused := strict.Marshal(value)
			got, err := web.Encode(value)
			if (err == nil) != (refused == nil) || err == nil && !bytes.Equal(got, want) {
				t.Errorf("%q, %q: %s, %v, want %s, %v", text, object, got, err, want, refused)
			}
		}
	})
}

package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/webhooks"
	"remit/test/suite"
)

// countedKind is a kind of object whose bytes scripts count.
type countedKind struct {
	count  int // of those that a test creates
	create func(ctx context.Context, s *Store, w tenant, i int, idem *Idempotency) (uuid.UUID, error)
	remove func(ctx context.Context, s *Store, w tenant, id uuid.UUID) error
}

func apiKeysNamed(name string) countedKind {
	return countedKind{60, func(ctx context.Context, s *Store, w tenant, _ int, idem *Idempotency) (uuid.UUID, error) {
		fresh := APIKey{Organization: w.key.Organization}
		rand.Read(fresh.Hash[:])
		created, err := s.CreateAPIKey(ctx, w.key, fresh, NewAPIKey{Name: name, Role: Viewer, Lifetime: time.Hour, Idempotency: idem})
		return created.ID, err
	}, func(ctx context.Context, s *Store, w tenant, id uuid.UUID) error {
		return s.DeleteAPIKey(ctx, w.key, id)
	}}
}

func issuersWith(t *testing.T, change func(*testing.T, *TrustedIssuerSettings)) countedKind {
	t.Helper()
	return countedKind{MostTrustedIssuers - 2, func(ctx context.Context, s *Store, w tenant, i int, idem *Idempotency) (uuid.UUID, error) {
		settings := w.trusting(fmt.Sprintf("https://%d.example", i))
		change(t, &settings)
		created, err := s.CreateTrustedIssuer(ctx, w.key, settings, idem)
		return created.ID, err
	}, func(ctx context.Context, s *Store, w tenant, id uuid.UUID) error {
		return s.DeleteTrustedIssuer(ctx, w.key, id)
	}}
}

func webhooksWith(settings webhooks.Settings) countedKind {
	return countedKind{webhooks.MostWebhooks - 2, func(ctx context.Context, s *Store, w tenant, _ int, idem *Idempotency) (uuid.UUID, error) {
		created, err := s.CreateWebhook(ctx, w.key, NewID(w.key.Organization), settings, idem)
		return created.ID, err
	}, func(ctx context.Context, s *Store, w tenant, id uuid.UUID) error {
		return s.DeleteWebhook(ctx, w.key, id)
	}}
}

func withDeliveries(each int, like func(webhooks.Webhook, int64, Status) webhooks.Delivery) countedKind {
	kind := webhooksWith(shortSettings())
	create := kind.create
	kind.count = 3
	kind.create = func(ctx context.Context, s *Store, w tenant, i int, idem *Idempotency) (uuid.UUID, error) {
		id, err := create(ctx, s, w, i, idem)
		if err != nil {
			return id, err
		}
		claim, err := s.ClaimWebhooks(ctx, w.key.Organization, w.agent.ID, time.Minute)
		if err != nil {
			return id, err
		}
		at := slices.IndexFunc(claim.Webhooks, func(hook webhooks.Webhook) bool { return hook.ID == id })
		hook := claim.Webhooks[at]
		report := webhooks.DeliveryReport{Webhook: id, Found: hook.Progress, Reached: hook.Progress}
		for n := range each {
			status := []Status{webhooks.DeliveryPending, webhooks.DeliveryDelivered, webhooks.DeliveryDead}[n%3]
			report.Outcomes = append(report.Outcomes, like(hook, int64(n+1), status))
		}
		for range 2 { // the second report replaces the records, and says that all have succeeded or were given up
			if report.Found, err = s.NoteDeliveries(ctx, claim, report); err != nil {
				return id, err
			}
			for n := range report.Outcomes {
				if report.Outcomes[n].Status == webhooks.DeliveryPending && n%2 == 0 {
					report.Outcomes[n].Status = webhooks.DeliveryDead
				}
			}
		}
		return id, nil
	}
	return kind
}

func shortSettings() webhooks.Settings {
	secret := webhooks.Secret{Sealed: "plain:" + strings.Repeat("A", 44)}
	return webhooks.Settings{URL: "https://example.com/hook", Types: []string{"session.ended"}, Secrets: []webhooks.Secret{secret}}
}

// shortDelivery is a delivery as most are.
func shortDelivery(hook webhooks.Webhook, number int64, status Status) webhooks.Delivery {
	at := time.Now()
	return webhooks.Delivery{
		ID: webhooks.DeliveryID(hook.ID, number), Event: number, Type: "session.ended", Status: status, Attempts: 1, Created: at, First: at,
		Last: at, Took: 15 * time.Millisecond, Answer: 200,
	}
}

func countedKinds(t *testing.T) map[string]countedKind {
	t.Helper()
	return map[string]countedKind{
		"API keys":                      apiKeysNamed("ci"),
		"API keys of long names":        apiKeysNamed(strings.Repeat("n", 255)),
		"trusted issuers":               issuersWith(t, func(*testing.T, *TrustedIssuerSettings) {}),
		"trusted issuers of long rules": issuersWith(t, makeLongest),
		"webhooks":                      webhooksWith(shortSettings()),
		"webhooks of long settings":     webhooksWith(longestSettings()),
		"deliveries":                    withDeliveries(400, shortDelivery),
		"deliveries of long records":    withDeliveries(400, longestDelivery),
	}
}

// makeLongest makes settings as long as the API takes them.
func makeLongest(t *testing.T, settings *TrustedIssuerSettings) {
	t.Helper()
	settings.Issuer += "/" + strings.Repeat("x", 230)
	settings.JWKSURI, settings.JWKS = "", strings.Repeat("x", 16<<10)
	settings.Description, settings.Rules = strings.Repeat("\U0001F600", 500), longestRules(t, settings.Rules[0].Agent)
}

// taken returns what Redis needs for what an organization has set up.
func (w tenant) taken(t *testing.T, s *Store) (bytes int64) {
	t.Helper()
	keys := slices.Concat(s.issuerKeys(w.key.Organization), s.WebhookKeys(w.key.Organization)[1:])
	for _, hook := range must(s.Webhooks(t.Context(), w.key))(t) {
		keys = append(keys, s.DeliveryKeys(w.key.Organization, hook.ID)...)
	}
	for _, key := range keys {
		if must(peek(t, s).Exists(t.Context(), key).Result())(t) == 1 {
			bytes += must(peek(t, s).MemoryUsage(t.Context(), key, 0).Result())(t)
		}
	}
	return bytes
}

// The bytes that scripts count are near Redis's own figures, and are freed to the last when the objects are removed.
func TestTheBytesThatScriptsCountAreNearThoseOfRedis(t *testing.T) {
	t.Parallel()
	const tolerance = 0.25
	for name, kind := range countedKinds(t) {
		if strings.Contains(name, " of long") && !suite.Long {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 1})
				none := usageOf(t, s, w.key.Organization)["bytes"]
				first := must(kind.create(t.Context(), s, w, -1, nil))(t) // for it the hashes become larger ones
				heldBefore, before := usageOf(t, s, w.key.Organization)["bytes"], w.taken(t, s)
				made := []uuid.UUID{first}
				for i := range kind.count {
					made = append(made, must(kind.create(t.Context(), s, w, i, nil))(t))
				}
				held, after := usageOf(t, s, w.key.Organization)["bytes"], w.taken(t, s)
				said, real := float64(held-heldBefore)/float64(kind.count), float64(after-before)/float64(kind.count)
				t.Logf("%.0f B each, Redis needs %.0f B", said, real)
				if said < real*(1-tolerance) || said > real*(1+tolerance) {
					t.Errorf("%.0f B each, Redis needs %.0f B", said, real)
				}
				for _, id := range made {
					mustDo(t, kind.remove(t.Context(), s, w, id))
				}
				wantEqual(t, "the bytes when all are removed", usageOf(t, s, w.key.Organization)["bytes"], none)
			})
		})
	}
}

func TestAnOrganizationAtItsQuotaOfBytesSetsUpNoMore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"API keys", "trusted issuers", "webhooks"} {
		kind := countedKinds(t)[name]
		t.Run(name, func(t *testing.T) {
			onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
				bytes := func() int64 { return usageOf(t, s, w.key.Organization)["bytes"] }
				before := bytes()
				must(kind.create(t.Context(), s, w, 1, nil))(t)
				one := bytes() - before
				keyed := func() *Idempotency { return &Idempotency{Key: "again", Seal: plainSeal("secret")} }
				second := must(kind.create(t.Context(), s, w, 2, keyed()))(t)
				held := bytes()
				w.setQuotas(t, s, map[string]int64{"bytes": held + one})
				must(kind.create(t.Context(), s, w, 3, nil))(t)
				for what, idem := range map[string]*Idempotency{"by itself": nil, "with a key": {Key: "more", Seal: plainSeal("secret")}} {
					wantBeyondQuota(t, what, errOf(kind.create(t.Context(), s, w, 4, idem)), "bytes", held+one)
				}
				repeated := keyed()
				if id, err := kind.create(t.Context(), s, w, 2, repeated); err != nil || !repeated.Outcome.Replayed || id != second {
					t.Errorf("repeated: %v %v, replayed %t", id, err, repeated.Outcome.Replayed)
				}
				wantEqual(t, "the bytes that are counted", bytes(), held+one)
				mustDo(t, kind.remove(t.Context(), s, w, second))
				eventually(t, "there is room again", func() bool {
					_, err := kind.create(t.Context(), s, w, 5, nil)
					return err == nil
				})
			})
		})
	}
}

// A change counts what it adds, and is refused beyond the quota unless it adds nothing or rotates a secret.
func TestAChangeOfSettingsCountsTheDifference(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		issuer, hook := w.trust(t, s, "https://one.example"), w.hook(t, s, 1)
		bytes := func() int64 { return usageOf(t, s, w.key.Organization)["bytes"] }
		quota := func(most int64) { w.setQuotas(t, s, map[string]int64{"bytes": most}) }
		describe := map[string]func(string) error{
			"a trusted issuer": func(text string) error {
				return errOf(s.ChangeTrustedIssuer(t.Context(), w.key, issuer.ID, func(set *TrustedIssuerSettings) error { set.Description = text; return nil }))
			},
			"a webhook": func(text string) error {
				return errOf(s.ChangeWebhook(t.Context(), w.key, hook.ID, nil, func(set *webhooks.Settings) error { set.Description = text; return nil }))
			},
		}
		for name, change := range describe {
			mustDo(t, change(strings.Repeat("d", 100)))
			before := bytes()
			mustDo(t, change(strings.Repeat("d", 300)))
			wantEqual(t, name+" that has grown", bytes(), before+200)
			quota(bytes())
			wantBeyondQuota(t, name+" that grows", change(strings.Repeat("d", 301)), "bytes", before+200)
			wantError(t, name+" as long as before", change(strings.Repeat("e", 300)), nil)
			wantError(t, name+" gets shorter", change(strings.Repeat("d", 100)), nil)
			wantEqual(t, name+" that has shrunk", bytes(), before)
			quota(1)
			if name == "a webhook" {
				must(s.ChangeWebhook(t.Context(), w.key, hook.ID, nil, func(set *webhooks.Settings) error {
					set.Secrets = append(set.Secrets, webhooks.Secret{Sealed: "plain:BB=="})
					return nil
				}))(t)
				wantBeyondQuota(t, "a test event", errOf(s.SendTest(t.Context(), w.key, hook.ID, nil, time.Now())), "bytes", 1)
			}
			quota(kernel.DefaultQuota)
		}
	})
}

// An agent's proofs count while Redis has them; no quota refuses one, else the agent could commit and settle nothing.
func TestProofsCountUntilTheyAreForgotten(t *testing.T) {
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)}))(t)
		bytes := func() int64 { return usageOf(t, s, w.key.Organization)["bytes"] }
		bytes() // has the exchange counted now
		clock(10 * time.Minute)
		none := bytes()
		mustDo(t, s.SetQuotas(t.Context(), w.key.Organization, map[string]int64{"bytes": 1}))
		clock(10*time.Minute + 90*time.Second)
		p := newProof(1)
		for _, want := range []error{nil, ErrProofUsed} { // what is refused counts nothing
			wantError(t, "a proof", s.UseProof(t.Context(), bound(grant), *p), want)
		}
		wantError(t, "another", errOf(s.VerifyProof(t.Context(), bound(grant), *newProof(1))), nil)
		for _, c := range []struct {
			at   time.Duration
			want int64
		}{{10*time.Minute + 90*time.Second, 2}, {14*time.Minute - 2*time.Second, 2}, {14 * time.Minute, 0}} {
			clock(c.at)
			wantEqual(t, fmt.Sprint("bytes of proofs after midnight by ", c.at), bytes()-none, c.want*kernel.ProofSize)
		}
	})
}

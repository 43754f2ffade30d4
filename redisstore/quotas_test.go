package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// usageOf returns what an organization holds, as Redis has it once this store's own part is counted.
func usageOf(t *testing.T, s *Store, organization uuid.UUID) map[string]int64 {
	t.Helper()
	usage, _ := must2(s.OrganizationUsage(t.Context(), organization))(t)
	return usage
}

// setQuotas sets quotas of the tenant's organization, which hold at this store from now on.
func (w tenant) setQuotas(t *testing.T, s *Store, quotas map[string]int64) {
	t.Helper()
	mustDo(t, s.SetQuotas(t.Context(), w.key.Organization, quotas))
	usageOf(t, s, w.key.Organization)
}

// wantBeyondQuota is wantOverQuota where it is not known how much is used.
func wantBeyondQuota(t *testing.T, what string, err error, quota string, most int64) {
	t.Helper()
	var refused *QuotaError
	if !errors.As(err, &refused) || refused.Quota != quota || refused.Max != most {
		t.Errorf("%s beyond the quota: %v", what, err)
	}
}

func wantOverQuota(t *testing.T, err error, quota string, used, most int64) {
	t.Helper()
	wantError(t, quota, err, &QuotaError{Quota: quota, Used: used, Max: most})
}

// quotaCase is one way to create something that a quota counts.
type quotaCase struct {
	quota  string
	before int64 // what a tenant holds at first
	create func(context.Context, *Store, tenant, Grant) error
}

var quotaCases = []quotaCase{
	{"agents", 1, func(ctx context.Context, s *Store, w tenant, _ Grant) error {
		return errOf(s.CreateAgent(ctx, w.key, Agent{Name: "scout"}, [32]byte{3}, nil))
	}},
	{"open_sessions", 1, func(ctx context.Context, s *Store, w tenant, _ Grant) error {
		return errOf(s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour}))
	}},
	{"pending_transactions", 0, func(ctx context.Context, s *Store, w tenant, g Grant) error {
		return errOf(s.Begin(ctx, g.AccessToken, NewTransaction{ActionType: "call", PreState: "{}", Lifetime: time.Hour}))
	}},
	{"refresh_families", 1, func(ctx context.Context, s *Store, w tenant, _ Grant) error {
		return errOf(s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{}))
	}},
	{"idempotency_keys", 0, func(ctx context.Context, s *Store, w tenant, g Grant) error {
		return errOf(s.Charge(ctx, byToken(g), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: uuid.NewString()}}))
	}},
	{"idempotency_keys", 0, func(ctx context.Context, s *Store, w tenant, _ Grant) error {
		return errOf(s.Charge(ctx, w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: uuid.NewString()}}))
	}},
	{"idempotency_keys", 0, func(ctx context.Context, s *Store, w tenant, g Grant) error {
		charges := []BatchCharge{{Session: w.session.ID, Charge: Charge{Count: 1}}}
		return errOf(s.ChargeBatch(ctx, byToken(g), charges, &Idempotency{Key: uuid.NewString()}))
	}},
}

func TestEachQuotaIsExactOnOneInstance(t *testing.T) {
	t.Parallel()
	for i, c := range quotaCases {
		t.Run(fmt.Sprint(c.quota, i), func(t *testing.T) {
			onTenantOf(t, Config{}, NewSession{MaxActions: 1000}, func(t *testing.T, s *Store, w tenant) {
				const more = 5
				g, most := w.exchange(t, s), c.before+more
				must(0, s.SetQuotas(t.Context(), w.key.Organization, map[string]int64{c.quota: most}))(t)
				wantEqual(t, "what a tenant holds", usageOf(t, s, w.key.Organization)[c.quota], c.before)
				var created atomic.Int64
				concurrently(t, 4, func(int) {
					for range 2 * more {
						if err := c.create(t.Context(), s, w, g); err == nil {
							created.Add(1)
						} else {
							wantBeyondQuota(t, "a creation", err, c.quota, most)
						}
					}
				})
				wantEqual(t, "how many were created", created.Load(), more)
				wantOverQuota(t, c.create(t.Context(), s, w, g), c.quota, most, most)
				wantEqual(t, "how many are held", usageOf(t, s, w.key.Organization)[c.quota], most)

				must(0, s.SetQuotas(t.Context(), w.key.Organization, map[string]int64{c.quota: kernel.DefaultQuota}))(t)
				eventually(t, "the new quota holds", func() bool { return c.create(t.Context(), s, w, g) == nil })
			})
		})
	}
}

func TestTheQuotaOfBytesIsExactOnOneInstance(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		g := w.exchange(t, s)
		held := usageOf(t, s, w.key.Organization)["bytes"]
		begin := quotaCases[2].create
		one := s.transactionDemand(g.AccessToken, NewTransaction{ActionType: "call", PreState: "{}"}).Bytes
		most := held + 3*one
		w.setQuotas(t, s, map[string]int64{"bytes": most})
		for range 3 {
			must(0, begin(t.Context(), s, w, g))(t)
		}
		wantBeyondQuota(t, "a transaction", begin(t.Context(), s, w, g), "bytes", most)
	})
}

func TestWhatIsFreedIsNoLongerUsed(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
		g := w.exchange(t, s)
		pending := func() int64 { return usageOf(t, s, w.key.Organization)["pending_transactions"] }
		var begun []uuid.UUID
		for range 4 {
			n := NewTransaction{ActionType: "call", PreState: "{}", Lifetime: 5 * time.Minute}
			begun = append(begun, must(s.Begin(t.Context(), g.AccessToken, n))(t).ID)
		}
		wantEqual(t, "how many are pending", pending(), 4)
		must(s.Commit(t.Context(), g.AccessToken, begun[0], Commit{}))(t)
		must(s.Rollback(t.Context(), byToken(g), begun[1], Rollback{}))(t)
		must(s.Rollback(t.Context(), w.byKey(), begun[0], Rollback{}))(t) // it was not pending any more
		wantEqual(t, "how many are pending after a commit and a rollback", pending(), 2)
		must(s.EndSession(t.Context(), byToken(g), w.session.ID))(t)
		wantEqual(t, "how many sessions are open after the end", usageOf(t, s, w.key.Organization)["open_sessions"], 0)
	})
}

// A refusal that is kept for an idempotency key takes memory as a success does.
func TestRefusalsStoredForIdempotencyKeysAreCounted(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		const most = 3
		g := w.exchange(t, s)
		n := NewTransaction{ActionType: "a", PreState: "{}", Lifetime: time.Hour}
		id := must(s.Begin(t.Context(), g.AccessToken, n))(t).ID
		must(s.Commit(t.Context(), g.AccessToken, id, Commit{}))(t)
		idem := func() *Idempotency { return &Idempotency{Key: uuid.NewString()} }
		for name, c := range map[string]struct {
			bounded bool
			do      func() error
		}{
			"a charge beyond the limit": {true, func() error {
				return errOf(s.Charge(t.Context(), byToken(g), w.session.ID, Charge{Count: 2, Idempotency: idem()}))
			}},
			"a change of what is committed": {true, func() error {
				return errOf(s.ChangeHold(t.Context(), g.AccessToken, id, NewHold{Value: new(money.MicroUSD), Idempotency: idem()}))
			}},
			"a top-up": {true, func() error {
				return errOf(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{AddValue: new(money.MicroUSD), Idempotency: idem()}))
			}},
			"a second commit": {false, func() error {
				return errOf(s.Commit(t.Context(), g.AccessToken, id, Commit{Idempotency: idem()}))
			}},
			"a limit set": {false, func() error {
				return errOf(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxValue: new(money.MicroUSD), Idempotency: idem()}))
			}},
			"a charge by key": {true, func() error {
				return errOf(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 2, Idempotency: idem()}))
			}},
		} {
			before := usageOf(t, s, w.key.Organization)["idempotency_keys"]
			limit := before + most
			w.setQuotas(t, s, map[string]int64{"idempotency_keys": limit})
			var refused *QuotaError
			for range most {
				if err := c.do(); errors.As(err, &refused) {
					t.Errorf("%s: %v", name, err)
				}
			}
			kept := len(outcomesKept(t, s))
			if err := c.do(); errors.As(err, &refused) != c.bounded {
				t.Errorf("%s beyond the quota: %v", name, err)
			}
			wantEqual(t, name+" beyond the quota: the outcomes and claims kept", len(outcomesKept(t, s)), kept)
			wantEqual(t, name+": the keys counted", usageOf(t, s, w.key.Organization)["idempotency_keys"], limit)
		}
	})
}

// What a quota has refused leaves its idempotency key to another request, and uses none up.
func TestAQuotaRefusalLeavesTheIdempotencyKeyUnused(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		create := map[string]func(*Idempotency) error{
			"open_sessions": func(idem *Idempotency) error {
				return errOf(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour, Idempotency: idem}))
			},
			"agents": func(idem *Idempotency) error {
				idem.Seal = plainSeal("secret")
				return errOf(s.CreateAgent(t.Context(), w.key, Agent{Name: "scout"}, [32]byte{3}, idem))
			},
		}
		w.setQuotas(t, s, map[string]int64{"agents": 1, "open_sessions": 1})
		for name, do := range create {
			wantOverQuota(t, do(&Idempotency{Key: name, Fingerprint: [32]byte{1}}), name, 1, 1)
		}
		if used := usageOf(t, s, w.key.Organization)["idempotency_keys"]; used != 0 || len(outcomesKept(t, s)) != 0 {
			t.Errorf("%d keys are counted, and kept %v", used, outcomesKept(t, s))
		}
		w.setQuotas(t, s, map[string]int64{"agents": kernel.DefaultQuota, "open_sessions": kernel.DefaultQuota})
		for name, do := range create {
			corrected := &Idempotency{Key: name, Fingerprint: [32]byte{2}}
			if err := do(corrected); err != nil || corrected.Outcome.Replayed {
				t.Errorf("%s: %v, replayed %t", name, err, corrected.Outcome.Replayed)
			}
		}
	})
}

// A transaction is counted until the time to which it was changed last, and no longer than it is pending.
func TestATransactionIsCountedUntilTheTimeToWhichItWasChanged(t *testing.T) {
	t.Parallel()
	for name, lifetime := range map[string]time.Duration{"longer": 3 * time.Hour, "shorter": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
				g := w.exchange(t, s)
				buckets := func() map[string]string {
					usageOf(t, s, w.key.Organization)
					all := must(peek(t, s).HGetAll(t.Context(), s.keys.OrganizationUsage(w.key.Organization)).Result())(t)
					maps.DeleteFunc(all, func(field, sum string) bool { return sum == "0" || field[0] != 't' || !strings.Contains(field, ":") })
					return all
				}
				n := NewTransaction{ActionType: "call", PreState: "{}", Lifetime: time.Hour}
				id := must(s.Begin(t.Context(), g.AccessToken, n))(t).ID
				buckets()
				idem := &Idempotency{Key: "change"}
				for range 2 { // the second time it is replayed, and changes nothing
					must(s.ChangeHold(t.Context(), g.AccessToken, id, NewHold{Lifetime: &lifetime, Idempotency: idem}))(t)
				}
				changed := must(s.Transaction(t.Context(), byToken(g), id))(t)
				e := kernel.PendingUntil(changed.Expires.Sub(changed.Created), changed.Expires)
				want := map[string]string{fmt.Sprintf("t%d:%d", e.Width, int64(e.Remaining/time.Minute)/e.Width): "1"}
				wantEqual(t, "how pending transactions are counted", buckets(), want)
				must(s.Commit(t.Context(), g.AccessToken, id, Commit{}))(t)
				wantEqual(t, "how many buckets are left after the commit", len(buckets()), 0)
			})
		})
	}
}

// What a request was answered before is answered again, also when nothing new may be created.
func TestARepeatedRequestIsAnsweredThoughItsQuotaIsReached(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
		g := w.exchange(t, s)
		asks := map[string]func(o *Idempotency) error{
			"a charge by token": func(o *Idempotency) error {
				return errOf(s.Charge(t.Context(), byToken(g), w.session.ID, Charge{Count: 1, Idempotency: o}))
			},
			"a charge by key": func(o *Idempotency) error {
				return errOf(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: o}))
			},
			"a session": func(o *Idempotency) error {
				return errOf(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour, Idempotency: o}))
			},
			"a transaction": func(o *Idempotency) error {
				return errOf(s.Begin(t.Context(), g.AccessToken, NewTransaction{ActionType: "a", PreState: "{}", Lifetime: time.Hour, Idempotency: o}))
			},
			"a batch": func(o *Idempotency) error {
				return errOf(s.ChargeBatch(t.Context(), byToken(g), []BatchCharge{{Session: w.session.ID, Charge: Charge{Count: 1}}}, o))
			},
		}
		for what, ask := range asks {
			wantError(t, what, ask(&Idempotency{Key: what}), nil)
		}
		w.setQuotas(t, s, map[string]int64{"idempotency_keys": 1, "open_sessions": 1, "pending_transactions": 1, "bytes": 1})
		for what, ask := range asks {
			again := &Idempotency{Key: what}
			if err := ask(again); err != nil || !again.Outcome.Replayed {
				t.Errorf("%s: replayed %v, %v", what, again.Outcome.Replayed, err)
			}
		}
	})
}

// Beyond every quota an organization can still stop its agents and settle what has happened.
func TestNoQuotaRefusesRevocationOrSettlement(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
		g := w.exchange(t, s)
		n := NewTransaction{ActionType: "a", PreState: "{}", Lifetime: time.Hour, Session: w.session.ID}
		first, second := must(s.Begin(t.Context(), g.AccessToken, n))(t).ID, must(s.Begin(t.Context(), g.AccessToken, n))(t).ID
		all := map[string]int64{}
		for _, name := range kernel.ResourceNames {
			all[name] = 1
		}
		w.setQuotas(t, s, all)
		must(s.Commit(t.Context(), g.AccessToken, first, Commit{Idempotency: &Idempotency{Key: "a"}}))(t)
		must(s.Rollback(t.Context(), w.byKey(), second, Rollback{Idempotency: &Idempotency{Key: "b"}}))(t)
		must(s.Charge(t.Context(), byToken(g), w.session.ID, Charge{Count: 1}))(t)
		must(s.RotateRefresh(t.Context(), g.Agent, g.Family, 1, GrantRequest{}))(t)
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		must(s.RotateAgentSecret(t.Context(), w.key, w.agent.ID, SecretRotation{Hash: [32]byte{5}}, nil))(t)
		mustDo(t, s.RevokeFamily(t.Context(), g.AccessToken, g.Family))
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		must(s.RotateAPIKey(t.Context(), w.key, APIKey{Hash: [32]byte{6}}, 0, nil))(t)
	})
}

func TestUsageLeavesTheSumWhenItExpires(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		a := s.core.Usage.Account(w.key.Organization)
		usageOf(t, s, w.key.Organization)
		client, key := peek(t, s), s.keys.OrganizationUsage(w.key.Organization)
		must(client.HSet(t.Context(), key, "f1:29000000", 7, "t16:1", 3).Result())(t) // they expired in 2025 and in 1970
		if usage := usageOf(t, s, w.key.Organization); usage["refresh_families"] != 0 || usage["pending_transactions"] != 0 {
			t.Errorf("what has expired is counted: %v", usage)
		}
		wantEqual(t, "whether the bucket of what has expired is kept", must(client.HExists(t.Context(), key, "f1:29000000").Result())(t), false)
		a.Mu.Lock()
		defer a.Mu.Unlock()
		if a.Reserved != (kernel.Quantities{}) || a.Unsent != (kernel.Quantities{}) {
			t.Errorf("something is left over: %+v", a)
		}
	})
}

func TestABucketNeverFallsBelowZero(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		s.core.Usage.Note(w.key.Organization, func(c *kernel.Changes, _ *kernel.Quantities) {
			c.Expire(kernel.ExpiryOf('f', time.Hour, time.Hour), -5)
		})
		usageOf(t, s, w.key.Organization)
		s.core.Usage.Note(w.key.Organization, func(c *kernel.Changes, _ *kernel.Quantities) {
			c.Expire(kernel.ExpiryOf('f', time.Hour, time.Hour), 2)
		})
		wantEqual(t, "how many families there are", usageOf(t, s, w.key.Organization)["refresh_families"], 2)
	})
}

func TestASecondInstanceLearnsOfTheUsage(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		g := w.exchange(t, s)
		must(0, s.SetQuotas(t.Context(), w.key.Organization, map[string]int64{"pending_transactions": 4}))(t)
		other := anotherInstance(t, s)
		begin, created := quotaCases[2].create, 0
		for range 100 { // in turn, until both are refused
			for _, at := range []*Store{s, other} {
				if begin(t.Context(), at, w, g) == nil {
					created++
				}
			}
			usageOf(t, s, w.key.Organization)
			if usageOf(t, other, w.key.Organization)["pending_transactions"] >= 4 {
				break
			}
		}
		usageOf(t, s, w.key.Organization)
		for _, at := range []*Store{s, other} {
			wantOverQuota(t, begin(t.Context(), at, w, g), "pending_transactions", int64(created), 4)
		}
		if created < 4 || created > 5 {
			t.Errorf("%d were created, want 4, or 5 for those that were created between two syncs", created)
		}
	})
}

func TestUsageIsWrittenToRedisPeriodicallyAndOnClose(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		eventually(t, "the usage is in Redis", func() bool {
			return must(peek(t, s).Exists(t.Context(), s.keys.OrganizationUsage(w.key.Organization)).Result())(t) == 1
		})
		eventually(t, "the holdings are told", func() bool {
			score, err := peek(t, s).ZScore(t.Context(), s.keys.Holdings(), string(w.key.Organization[:])).Result()
			return err == nil && score > kernel.AgentSize
		})
		other := must(Open(s.config))(t)
		before := usageOf(t, s, w.key.Organization)["refresh_families"]
		w.exchange(t, other)
		_ = other.Close()
		wantEqual(t, "the families after the end of the other instance", usageOf(t, s, w.key.Organization)["refresh_families"], before+1)
	})
}

func TestQuotasOfAnUnknownOrganizationOrNameAreRefused(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		unknown := NewRootID()
		wantError(t, "setting", s.SetQuotas(t.Context(), unknown, map[string]int64{"agents": 1}), ErrUnknownOrganization)
		wantError(t, "reading", errOf(s.Quotas(t.Context(), unknown)), ErrUnknownOrganization)
		for _, bad := range []map[string]int64{{"agents": -2}, {"agents": kernel.MaxQuota + 1}, {"": 1}, {"keys": 1}, {"agents": 1, "x": 1}} {
			if s.SetQuotas(t.Context(), w.key.Organization, bad) == nil {
				t.Errorf("%v is set", bad)
			}
		}
		quotas := must(s.Quotas(t.Context(), w.key.Organization))(t)
		if want := kernel.DefaultQuotas.ByName(); quotas["agents"] != want["agents"] || len(quotas) != int(kernel.Resources) || quotas["bytes"] != 0 {
			t.Errorf("the quotas are %v, want %v", quotas, want)
		}
		wantGone(t, s, s.keys.OrganizationUsage(unknown))
	})
}

func TestParseQuotasReadsPairsAndRefusesEverythingElse(t *testing.T) {
	t.Parallel()
	got, err := ParseQuotas("agents=5, bytes=0,open_sessions=default")
	if err != nil || got["agents"] != 5 || got["bytes"] != 0 || got["open_sessions"] != kernel.DefaultQuota || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "agents", "agents=", "agents=-1", "agents=1.5", "agents=1e9", "agents=1000000000000001",
		"agents=99999999999999999999", "agents=1,agents=2", "nothing=1", "agents=1,"} {
		if got, err := ParseQuotas(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	if _, err := Open(Config{URL: "redis://localhost", Quotas: map[string]int64{"nothing": 1}}); err == nil {
		t.Error("a store is opened with a quota that does not exist")
	}
}

// withRates opens the store a second time with rates, whose clock is ahead by what has passed.
func (w tenant) withRates(t *testing.T, s *Store, rates Rates) (limited *Store, passed *atomic.Int64) {
	t.Helper()
	cfg := s.config
	cfg.Rates = rates
	limited, passed = must(Open(cfg))(t), new(atomic.Int64)
	t.Cleanup(func() { _ = limited.Close() })
	began := time.Now()
	limited.core.Usage.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
	must(limited.Organization(t.Context(), w.key))(t)
	return limited, passed
}

func TestRatesRefuseFastCreationsWithRetryAfter(t *testing.T) {
	t.Parallel()
	const perSecond = 2
	for _, c := range []struct {
		limit string
		rates Rates
		cases []quotaCase
	}{
		{kernel.OrganizationRate, Rates{Organization: perSecond}, quotaCases},
		{kernel.AgentRate, Rates{Agent: perSecond}, []quotaCase{quotaCases[2], quotaCases[3], quotaCases[4]}},
	} {
		for i, one := range c.cases {
			t.Run(fmt.Sprint(c.limit, one.quota, i), func(t *testing.T) {
				onTenantOf(t, Config{}, NewSession{MaxActions: 1000}, func(t *testing.T, s *Store, w tenant) {
					g := w.exchange(t, s)
					limited, passed := w.withRates(t, s, c.rates)
					for n := range perSecond * kernel.BurstTime {
						wantError(t, fmt.Sprintf("the %d. of a burst", n+1), one.create(t.Context(), limited, w, g), nil)
					}
					wantError(t, "too much", one.create(t.Context(), limited, w, g), &RateError{Limit: c.limit, RetryAfter: time.Second / perSecond})
					must(limited.Charge(t.Context(), byToken(g), w.session.ID, Charge{Count: 1}))(t) // it creates nothing
					passed.Add(int64(time.Second / perSecond))
					wantError(t, "after the time to come again", one.create(t.Context(), limited, w, g), nil)
				})
			})
		}
	}
}

// A dry run refuses what a quota would refuse, and takes nothing from it.
func TestADryBeginTakesNothingFromAQuota(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 100, MaxValue: money.USD}, func(t *testing.T, s *Store, w tenant) {
		token := w.exchange(t, s).AccessToken
		w.setQuotas(t, s, map[string]int64{"pending_transactions": 2})
		dry := w.beginning(1)
		dry.DryRun = true
		for range 5 {
			must(s.Begin(t.Context(), token, dry))(t)
		}
		w.begin(t, s, token, 1)
		w.begin(t, s, token, 1)
		wantUnchanged(t, s, "at the quota", func() {
			wantError(t, "at the quota", errOf(s.Begin(t.Context(), token, dry)), &QuotaError{Quota: "pending_transactions", Used: 2, Max: 2})
		})
	})
}

// stopSyncing ends what the store does with Redis unasked, for tests that count calls.
func stopSyncing(t *testing.T, s *Store) {
	t.Helper()
	y := &s.core.Usage.Syncing
	y.Mu.Lock()
	y.Closed = true
	y.Mu.Unlock()
	eventually(t, "the syncing has ended", func() bool {
		y.Mu.Lock()
		defer y.Mu.Unlock()
		return !y.Running
	})
}

package redisstore

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAnAgentIsReadAsItWasCreated(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		for _, wanted := range []Agent{
			{Name: "bare", Scopes: []string{}, ID: NewRootID(), Organization: NewRootID()}, // which are not the caller's to choose
			{Name: "größe\n", Scopes: []string{"orders:read"}},
			{Name: "full", Scopes: []string{"orders:read", "orders:write", "admin"}, Description: "buys things", Metadata: `{"a":1}`},
			{Name: "with keys", Scopes: []string{}, Audiences: []string{"https://a.example", "urn:b"}, JWKS: `{"keys":[]}`, NoSecret: true},
			{Name: "bound", Scopes: []string{}, Audiences: []string{}, JWKSURI: "https://a.example/keys", DPoPRequired: true,
				Limits: AgentLimits{ActionsPerMinute: new(int64(7))}},
		} {
			before := time.Now().Add(-time.Millisecond)
			agent := must(s.CreateAgent(t.Context(), w.key, wanted, [32]byte{2}, nil))(t)
			if agent.Created.Before(before) || agent.Created.After(time.Now()) || agent.ID == wanted.ID {
				t.Errorf("created %s at %s", agent.ID, agent.Created)
			}
			wanted.ID, wanted.Organization, wanted.Created = agent.ID, w.key.Organization, agent.Created
			wantEqual(t, "what is created", agent, wanted)
			read := must(s.Agent(t.Context(), w.key, agent.ID))(t)
			if !reflect.DeepEqual(read, wanted) || read.Status() != Active {
				t.Errorf("read %+v (%s), want %+v", read, read.Status(), wanted)
			}
		}
	})
}

func TestAgentsAreListedInPagesNewestFirst(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, _ tenant) { // who is another organization's
		key, want := newOrganization(t, s), map[Status][]Agent{}
		for i, agent := range newAgents(t, s, key, 8) {
			status := Active
			if i%3 == 0 {
				status, agent.Revoked = Revoked, must(s.RevokeAgent(t.Context(), key, agent.ID))(t)
			}
			want[status] = append([]Agent{agent}, want[status]...)
			want[""] = append([]Agent{agent}, want[""]...)
		}
		for _, status := range []Status{"", Active, Revoked, Completed} {
			for limit := 1; limit <= 9; limit++ {
				read := func(q Query) (Page[Agent], error) { return s.Agents(t.Context(), key, q) }
				got, pages := followed(t, Query{Limit: limit, Status: status}, read, nil)
				if !reflect.DeepEqual(got, want[status]) || status == "" && pages != (8+limit-1)/limit {
					t.Errorf("status %q in %d pages of %d: %+v, want %+v", status, pages, limit, got, want[status])
				}
			}
		}
	})
}

func TestRevokingAnAgentAgainReturnsTheFirstTime(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		before := time.Now().Add(-time.Millisecond)
		first := must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		if first.Before(before) || first.After(time.Now()) {
			t.Errorf("revoked at %s", first)
		}
		eventually(t, "a later millisecond", func() bool { return time.Now().After(first.Add(2 * time.Millisecond)) })
		wantEqual(t, "revoked again", must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t), first)
		agent := must(s.Agent(t.Context(), w.key, w.agent.ID))(t)
		wantEqual(t, "its revocation", agent.Revoked, first)
		wantEqual(t, "its status", agent.Status(), Revoked)
		wantEqual(t, "its record does not end", must(peek(t, s).PTTL(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t), -1)
	})
}

func TestARevokedAgentHasNothingLeft(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		defer w.unchanged(t, s)()
		w.wantNoRefresh(t, s, grant.Family, 1)
		for _, operation := range slices.Concat(askedByEither(byToken(grant)), askedByAgent(grant.AccessToken)) {
			wantError(t, operation.name, operation.ask(s, t, targetIn(w.agent.ID, w.session.ID)), ErrInvalidToken)
		}
		_, err := s.RotateAgentSecret(t.Context(), w.key, w.agent.ID, SecretRotation{Hash: [32]byte{3}, Grace: time.Minute}, nil)
		wantError(t, "RotateAgentSecret", err, ErrAgentRevoked)
	})
}

// An agent begins with secret 1, and each rotation makes the next. "use" and "check" present one to an exchange and to a check,
// "refuse" to both.
func TestARotationDecidesWhichSecretsOfAnAgentAreGood(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"one without grace ends at once":      "use 1, rotate 0s, refuse 1, rotate 0s, refuse 2, use 3",
		"one that is used lives for a grace":  "use 1, rotate 1m, use 1, use 2, check 1, use 1",
		"one that is unused does so too":      "rotate 1m, use 1, use 2, use 1",
		"one ends after its grace":            "rotate 30ms, await 1, refuse 1, use 2",
		"one that is used stays":              "rotate 1m, use 2, rotate 1m, refuse 1, use 2, use 3",
		"one that is checked stays":           "rotate 1m, check 2, rotate 1m, refuse 1, check 2, check 3",
		"one in use ends without grace":       "rotate 1m, rotate 0s, refuse 1, refuse 2, use 3",
		"an unused one stays after one ended": "rotate 0s, rotate 1m, refuse 1, use 2, use 3",
		// The answer to a rotation may get lost: then no agent has the secret it made, and all still use the one before.
		"an unused one is replaced": "use 1, rotate 1m, use 1, rotate 1m, refuse 2, use 1, rotate 1m, refuse 3, use 1, use 4",
	} {
		t.Run(name, func(t *testing.T) {
			onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
				for step := range strings.SplitSeq(steps, ", ") {
					verb, of, _ := strings.Cut(step, " ")
					if verb == "rotate" {
						grace, before := must(time.ParseDuration(of))(t), time.Now().Add(-time.Millisecond)
						until := w.rotateSecret(t, s, grace)
						if grace > 0 && (until.Before(before.Add(grace)) || until.After(time.Now().Add(grace))) {
							t.Errorf("the old secret ends at %s, %s after %s", until, grace, before)
						}
						continue
					}
					secret := [32]byte{byte(must(strconv.Atoi(of))(t)) + 1}
					exchange := func() error { return errOf(s.ExchangeSecret(t.Context(), w.agent.ID, secret, GrantRequest{})) }
					check := func() error { return errOf(s.CheckSecret(t.Context(), w.agent.ID, secret)) }
					switch verb {
					case "use":
						wantError(t, step, exchange(), nil)
					case "check":
						wantEqual(t, step, must(s.CheckSecret(t.Context(), w.agent.ID, secret))(t), w.key.Organization)
					case "await":
						eventually(t, step, func() bool { return check() != nil })
					case "refuse":
						wantError(t, step, exchange(), ErrInvalidCredentials)
						wantError(t, step, check(), ErrInvalidCredentials)
					}
				}
			})
		})
	}
}

func TestRotatingASecretEndsNoFamily(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		w.rotateSecret(t, s, 0)
		must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1}))(t)
		must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{}))(t)
	})
}

// rotateSecret rotates the agent's secret, and returns when the one in use ends.
func (w *tenant) rotateSecret(t *testing.T, s *Store, grace time.Duration) time.Time {
	t.Helper()
	w.secret[0]++
	return must(s.RotateAgentSecret(t.Context(), w.key, w.agent.ID, SecretRotation{Hash: w.secret, Grace: grace}, nil))(t)
}

// newAgents creates agents of the organization, and returns them oldest first.
func newAgents(t *testing.T, s *Store, key APIKey, n int) []Agent {
	t.Helper()
	agents := make([]Agent, n)
	for i := range agents {
		agents[i] = must(s.CreateAgent(t.Context(), key,
			Agent{Name: fmt.Sprint("agent ", i), Scopes: []string{"read"}}, [32]byte{2}, nil))(t)
	}
	return agents
}

// TestFlagsOfAnAgentKeepTheirOrder: charges look only at the beginning of the flags for s and n.
func TestFlagsOfAnAgentKeepTheirOrder(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		flags := func() string { return peek(t, s).HGet(t.Context(), s.keys.Agent(w.agent.ID), "restricted").Val() }
		change := func(c AgentChanges) Agent { return must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, c))(t) }
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		change(AgentChanges{DPoPRequired: new(true), Scopes: &[]string{"read"}})
		change(AgentChanges{Limits: NewAgentLimits{OpenSessions: LimitChange{Given: true, Value: new(int64(7))}}})
		wantEqual(t, "the flags", flags(), "nspo")
		wantEqual(t, "it needs proofs", change(AgentChanges{DPoPRequired: new(false)}).DPoPRequired, false)
		wantEqual(t, "the flags", flags(), "nso")
		change(AgentChanges{DPoPRequired: new(true)})
		must(s.ResumeAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		wantEqual(t, "it needs proofs", must(s.Agent(t.Context(), w.key, w.agent.ID))(t).DPoPRequired, true)
		wantEqual(t, "the flags", flags(), "npo")
	})
}

package redisstore

import (
	"testing"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// A forged key may name any organization: it must not fill that organization's share.
func TestCallsWithUnprovenKeysStayOutOfOrganizationsFlows(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		own := flow{Owner: w.key.Organization}
		forged := APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}
		_, err := s.Organization(t.Context(), forged)
		wantError(t, "a forged key", err, ErrInvalidAPIKey)
		if got := s.core.Proven.Flow(forged); got != kernel.UnprovenFlow {
			t.Errorf("a forged key has the flow %v", got)
		}
		must(s.Organization(t.Context(), w.key))(t)
		if got := s.core.Proven.Flow(w.key); got != own {
			t.Errorf("a good key has the flow %v, want %v", got, own)
		}
		if got := s.core.Proven.Urgent(w.key); got != (flow{Owner: own.Owner, Kind: kernel.Urgent}) {
			t.Errorf("what takes authority away has the flow %v", got)
		}
		must(s.RotateAPIKey(t.Context(), w.key, APIKey{Hash: [32]byte{2}}, 0, nil))(t)
		if got := s.core.Proven.Flow(APIKey{Organization: w.key.Organization, Hash: [32]byte{2}}); got != own {
			t.Errorf("the key that took its place has the flow %v", got)
		}
		if got := s.core.Proven.Flow(w.key); got != kernel.UnprovenFlow {
			t.Errorf("a key that was rotated has the flow %v", got)
		}
	})
}

// A key's calls lose the share of their organization, and their urgency, when it is forgotten.
func TestRotatingKeysDoesNotEvictAnotherOrganizationsProvenKey(t *testing.T) {
	t.Parallel()
	p := kernel.NewProvenKeys()
	calm, busy := APIKey{Organization: uuid.New(), Hash: [32]byte{1}}, APIKey{Organization: uuid.New(), Hash: [32]byte{1}}
	p.Note(calm, nil)
	for i := range kernel.MaxProven + 1 {
		p.Note(busy, nil)
		next := [32]byte{byte(i), byte(i >> 8), 1}
		p.Rotated(busy, next, i%2 == 0)
		busy.Hash = next
	}
	if got := p.Urgent(calm); got != (flow{Owner: calm.Organization, Kind: kernel.Urgent}) {
		t.Errorf("the key of another organization has the flow %v", got)
	}
}

func TestBothKeysOfARotationWithGraceHaveTheirOrganizationsShareUntilOneIsRefused(t *testing.T) {
	t.Parallel()
	p := kernel.NewProvenKeys()
	old := APIKey{Organization: uuid.New(), Hash: [32]byte{1}}
	next, own := APIKey{Organization: old.Organization, Hash: [32]byte{2}}, flow{Owner: old.Organization}
	p.Note(old, nil)
	p.Rotated(old, next.Hash, false)
	p.Note(APIKey{Organization: old.Organization, Hash: [32]byte{9}}, ErrInvalidAPIKey) // a forged one says nothing of them
	if p.Flow(old) != own || p.Flow(next) != own {
		t.Errorf("within the grace the keys have the flows %v and %v", p.Flow(old), p.Flow(next))
	}
	p.Note(old, ErrInvalidAPIKey)
	if p.Flow(old) != kernel.UnprovenFlow || p.Flow(next) != own {
		t.Errorf("after it the keys have the flows %v and %v", p.Flow(old), p.Flow(next))
	}
}

// Its signature is good for up to an hour more.
func TestARevokedAgentLeavesItsOrganizationsFlowOnceItsTokenWasRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		calls := map[string]func(Caller) error{
			"charge": func(c Caller) error {
				_, err := s.Charge(t.Context(), c, w.session.ID, Charge{Count: 1})
				return err
			},
			"batch":  func(c Caller) error { return chargeTwice(t.Context(), s, c, w.session.ID, nil) },
			"begin":  func(c Caller) error { _, err := s.Begin(t.Context(), *c.Token, NewTransaction{}); return err },
			"check":  func(c Caller) error { return s.CheckToken(t.Context(), *c.Token) },
			"list":   func(c Caller) error { _, err := s.Sessions(t.Context(), c, Query{Limit: 1}); return err },
			"events": func(c Caller) error { _, _, err := s.Events(t.Context(), c, w.agent.ID, "", 1); return err },
		}
		held := s.Remembered(grant.AccessToken)
		must(s.Charge(t.Context(), Caller{Token: held}, w.session.ID, Charge{Count: 1}))(t)
		if got := held.Flow(); got != (flow{Owner: w.key.Organization}) {
			t.Errorf("a live token has the flow %v", got)
		}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		for name, call := range calls {
			held := s.Remembered(grant.AccessToken)
			wantError(t, name, call(Caller{Token: held}), ErrInvalidToken)
			if got := held.Flow(); got != kernel.UnprovenFlow {
				t.Errorf("%s: a token that was refused has the flow %v", name, got)
			}
		}
	})
}

// Forged keys cost nothing to make: as many as there may be, exchanges do not share their flow.
func TestExchangesDoNotWaitForAFloodOfForgedKeys(t *testing.T) {
	t.Parallel()
	p := kernel.NewProvenKeys()
	forged := p.Of(Caller{Key: &APIKey{Organization: uuid.New(), Hash: [32]byte{9}}, Urgent: true})
	if forged == (flow{}) || forged.Owner != uuid.Nil || forged.Kind == kernel.Urgent {
		t.Fatalf("a forged key has the flow %v", forged)
	}
	if other := p.Of(Caller{Key: &APIKey{Organization: uuid.New(), Hash: [32]byte{9}}}); other != forged {
		t.Errorf("another forged key has a flow of its own: %v", other)
	}
}

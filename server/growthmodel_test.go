package server_test

import (
	"fmt"
	"slices"
	"time"

	"remit/test/prover"
)

// What the search of growthsearch_test.go knows of each agent, session and token.

type grownAgent struct {
	agent
	scopes             []string
	revoked, suspended bool
	workload           bool // the platform's token is exchanged for its own
}

type grownSession struct {
	id               string
	of               *grownAgent
	parent           *grownSession // nil for a root
	settings         fields        // as the service shows them
	ended, suspended bool          // by itself: what its ancestors are counts too
}

type grownToken struct {
	text     string
	of       *grownAgent
	scopes   []string
	audience []string
	expires  time.Time
	key      *prover.Key   // nil for a bearer token
	session  *grownSession // of a delegated token
	subject  *grownToken   // that a delegated one was exchanged for
	revoked  bool
}

func within(part, whole []string) bool {
	return !slices.ContainsFunc(part, func(one string) bool { return !slices.Contains(whole, one) })
}

// over says whether a session has ended, by itself or with an ancestor.
func (s *grownSession) over() bool { return s != nil && (s.ended || s.parent.over()) }

func (s *grownSession) halted() bool { return s != nil && (s.suspended || s.parent.halted()) }

// alive says whether a token may be used now: nothing that it came from was revoked or suspended.
func (k *grownToken) alive() bool {
	if k.revoked || k.of.revoked || k.of.suspended || k.session.over() || k.session.halted() {
		return false
	}
	for actor := k.subject; actor != nil; actor = actor.subject {
		if actor.revoked || actor.of.revoked || actor.of.suspended || !slices.Contains(actor.of.scopes, "sessions:delegate") {
			return false
		}
	}
	return true
}

// mayDelegate says whether children may be created and tokens exchanged by a token, in sessions that it reaches.
func (k *grownToken) mayDelegate() bool {
	return k.alive() && slices.Contains(k.audience, issuer) && slices.Contains(k.left(), "sessions:delegate")
}

// left are the scopes that a token may use: those that it was issued with and that all of its agents still have.
func (k *grownToken) left() []string {
	left := slices.Clone(k.scopes)
	for one := k; one != nil; one = one.subject {
		left = slices.DeleteFunc(left, func(scope string) bool { return !slices.Contains(one.of.scopes, scope) })
	}
	return left
}

// reaches says whether a token may act in a session at all.
func (k *grownToken) reaches(s *grownSession) bool {
	if k.session != nil {
		return k.session == s
	}
	return k.of == s.of
}

func (k *grownToken) String() string {
	kind := "a token"
	if k.subject != nil {
		kind = "a delegated token of " + k.session.id
	}
	return fmt.Sprintf("%s of %s, family %s, scopes %q, audience %q, alive %t", kind, k.of.id, pair{k.text, ""}.family(), k.scopes, k.audience, k.alive())
}

func (s *grownSession) isBelow(other *grownSession) bool {
	return s != nil && (s.parent == other || s.parent.isBelow(other))
}

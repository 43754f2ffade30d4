package redisstore

import (
	"context"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// closeSample is how many open sessions closeSome checks.
const closeSample = 256

// closeSome moves inactive sessions from the open to the closed ones, and returns whether it did. It does nothing when it was
// called for the organization a moment ago.
func (s *Store) closeSome(ctx context.Context, organization uuid.UUID) bool {
	if !s.core.Usage.MayPrune(organization) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	prune(ctx, s, s.openSessions(organization), closeSample)
	return true
}

// countSettlement counts that a transaction is no longer pending, and the memory of its post-state.
func (s *Store) countSettlement(act kernel.Actor, idem *Idempotency, postState string) func(Transaction, error) (Transaction, error) {
	return func(t Transaction, err error) (Transaction, error) {
		if err != nil || idem.IsReplay() {
			return t, err
		}
		wasPending := t.Committed.IsZero() || t.RolledBack.IsZero()
		at := t.Committed
		if t.RolledBack.After(at) {
			at = t.RolledBack
		}
		s.core.Usage.Note(act.Organization, func(c *kernel.Changes, unsent *kernel.Quantities) {
			c.EventBytes += kernel.EventSize
			if remaining := t.Expires.Sub(at); wasPending && remaining > 0 {
				c.Expire(kernel.PendingUntil(t.Expires.Sub(t.Created), t.Expires), -1)
				unsent[kernel.PendingHeld]--
			}
			if postState != "" {
				bytes := kernel.Texts(0, postState)
				retention := s.config.Retention
				c.Expire(kernel.ExpiryOf('b', retention, retention), bytes)
				unsent[kernel.BytesHeld] += bytes
			}
		})
		return t, nil
	}
}

func (s *Store) sessionDemand(n NewSession, organization [16]byte) kernel.Demand {
	d := kernel.Demand{
		Organization: organization, Resource: kernel.NoResource, Events: kernel.EventSize,
		Bytes: kernel.SessionSize + kernel.Texts(kernel.TableSize, n.Metadata, n.scopesText()), Retained: n.Lifetime + s.config.Retention,
	}
	if n.Parent != uuid.Nil {
		d.Bytes += kernel.ChildSize
		d.Events += 2 * kernel.EventSize // of its parent's agent: what it was given, and what it has used
	}
	return d
}

func (s *Store) transactionDemand(t AccessToken, n NewTransaction) kernel.Demand {
	d := kernel.Demand{
		Organization: t.Organization, Agent: t.Agent, Resource: kernel.PendingHeld, Lifetime: n.Lifetime, Events: kernel.EventSize,
		Bytes: kernel.BeginSize + kernel.Texts(kernel.BeginTableSize, n.PreState, n.Metadata, n.ActionType), Retained: n.Lifetime + s.config.Retention,
	}
	if n.Session != uuid.Nil {
		d.Bytes += kernel.InSessionSize + int64(len(n.ActionType)) // as it is, and by action type
	}
	return d
}

func agentDemand(organization [16]byte, a Agent, scopes string) kernel.Demand {
	text := kernel.Texts(kernel.TableSize, a.Name, a.Description, a.Metadata, scopes, audiencesText(a.Audiences), a.JWKS, a.JWKSURI)
	return kernel.Demand{Organization: organization, Resource: kernel.NoResource, Bytes: kernel.AgentSize + text, Text: text}
}

func (s *Store) familyDemand(organization, agent [16]byte, asked GrantRequest) kernel.Demand {
	lifetime := s.config.RefreshLifetime
	return kernel.Demand{
		Organization: organization, Agent: agent, Resource: kernel.FamiliesHeld, Lifetime: lifetime, Events: kernel.EventSize,
		Bytes: kernel.FamilySize + kernel.Texts(kernel.TableSize, asked.scopes(), asked.familyAudience()), Retained: lifetime,
	}
}

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// DeletionProgress is how far a deletion is.
type DeletionProgress struct {
	Pass    int   // over all keys, from 1; there are at least two
	Walked  int64 // keys read, in all passes
	Removed int64 // keys removed, in all passes
}

const (
	// drainTime is how long a request that was authorized before the organization was closed may still write: a few calls.
	drainTime = 3 * callTimeout
	// maxPasses bounds a deletion that finds new keys in each pass.
	maxPasses = 20
)

// deletion is one run of DeleteOrganization.
type deletion struct {
	*Store
	organization uuid.UUID
	drain        time.Duration
	report       func(DeletionProgress)
	progress     DeletionProgress

	agents map[uuid.UUID]bool // of the organization; true if revoked
	cells  map[uint16]bool    // of the organization and its agents
}

// DeleteOrganization removes everything that Redis stores of an organization, in short steps, and reports after each. First
// it closes the organization: it suspends it, removes its API keys and revokes its agents. Then it waits until requests
// that were authorized before have ended. It removes the organization's own record last, so that an interrupted deletion
// can be repeated. Errors: ErrUnknownOrganization, ErrUnavailable, ErrOutcomeUnknown.
func (s *Store) DeleteOrganization(ctx context.Context, organization uuid.UUID, report func(DeletionProgress)) error {
	return s.deleteOrganization(ctx, organization, drainTime, report)
}

func (s *Store) deleteOrganization(ctx context.Context, organization uuid.UUID, drain time.Duration, report func(DeletionProgress)) error {
	if err := s.closeOrganization(ctx, organization); err != nil {
		return err
	}
	d := &deletion{Store: s, organization: organization, drain: drain, report: report, agents: map[uuid.UUID]bool{}}
	for d.progress.Pass < maxPasses {
		d.progress.Pass++
		before := d.progress.Removed
		if err := d.pass(ctx); err != nil {
			return err
		}
		if d.progress.Pass > 1 && d.progress.Removed == before {
			return d.finish(ctx)
		}
	}
	return fmt.Errorf("after %d passes there are still new keys; are all instances of this version?", maxPasses)
}

// closeOrganization suspends an organization for good. It removes its API keys too, for instances that do not follow
// suspensions.
func (s *Store) closeOrganization(ctx context.Context, organization uuid.UUID) error {
	_, err := s.organizationName(ctx, organization)
	if errors.Is(err, ErrUnknownOrganization) {
		suspended, err := s.core.SuspensionsNow(ctx)
		if err != nil || !suspended.Of[organization].Deleting {
			return cmp.Or(err, ErrUnknownOrganization)
		}
		return nil // an earlier deletion was interrupted at its last step
	}
	if err != nil {
		return err
	}
	if _, err := s.suspendAs(ctx, organization, "deleting"); err != nil {
		return err
	}
	return s.removeAPIKeys(ctx, organization)
}

// removeAPIKeys ends all API keys of an organization.
func (s *Store) removeAPIKeys(ctx context.Context, organization uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	place := s.keys.Organization(organization)
	fields, err := s.client.Redis().HGetAll(ctx, place).Result()
	if err != nil {
		return s.client.Classify(err, reads)
	}
	remove := []string{"key", "previous_key"}
	for field := range fields {
		if strings.HasPrefix(field, "k:") || strings.HasPrefix(field, "K:") {
			remove = append(remove, field)
		}
	}
	_, err = s.client.Call(ctx, kernel.OwnFlow, writes, "hdel", place, remove...)
	return err
}

// pass removes what one walk over all keys finds.
func (d *deletion) pass(ctx context.Context) error {
	if err := d.findAgents(ctx); err != nil {
		return err
	}
	if err := d.revokeAgents(ctx); err != nil {
		return err
	}
	if d.progress.Pass == 1 {
		if err := kernel.Rest(ctx, d.drain); err != nil {
			return err
		}
	}
	if err := d.removeWebhooks(ctx); err != nil {
		return err
	}
	return d.core.Walk(ctx, "*", d.sweep)
}

// findAgents finds the organization's agents.
func (d *deletion) findAgents(ctx context.Context) error {
	d.cells = map[uint16]bool{kernel.CellOf(d.organization): true}
	err := d.core.Walk(ctx, "a", func(ctx context.Context, keys []string) error {
		found, err := redisclient.Pipelined(ctx, d.client, keys, func(p redis.Pipeliner, key string) *redis.SliceCmd {
			return p.HMGet(ctx, key, "organization", "revoked")
		})
		if err != nil {
			return err
		}
		for i, key := range keys {
			name, _ := d.keys.Parse(key)
			r := reply{Values: found[i].Val()}
			if r.Optional(0) == string(d.organization[:]) {
				d.agents[name.ID] = d.agents[name.ID] || r.Optional(1) != ""
				d.cells[name.Cell] = true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.findDeletedAgents(ctx)
}

// findDeletedAgents finds the agents whose records have ended, and whose usage is kept.
func (d *deletion) findDeletedAgents(ctx context.Context) error {
	ids, err := d.core.MembersOf(ctx, kernel.OwnFlow, d.keys.DeletedAgents(d.organization), kernel.Members{})
	for _, id := range ids {
		if _, known := d.agents[id]; !known {
			d.agents[id], d.cells[kernel.CellOf(id)] = true, true
		}
	}
	return err
}

// revokeAgents revokes the agents that are still active, for instances that do not follow suspensions.
func (d *deletion) revokeAgents(ctx context.Context) error {
	for agent, revoked := range d.agents {
		if revoked {
			continue
		}
		keys := []string{d.keys.Agent(agent), d.keys.Events(agent)}
		_, err := d.client.Run(ctx, kernel.OwnFlow, revokeAgent, keys, d.organization, d.core.AuditAs(ctx, kernel.ActorKey))
		if err != nil && err != ErrUnknownAgent {
			return err
		}
		d.agents[agent] = true
	}
	return nil
}

// finish removes the records that named the other keys: of the agents, then of the organization.
func (d *deletion) finish(ctx context.Context) error {
	var records [][]string
	for agent := range d.agents {
		records = append(records, []string{d.keys.Agent(agent)})
	}
	if err := d.unlink(ctx, records); err != nil {
		return err
	}
	if err := d.unlink(ctx, [][]string{{d.keys.Organization(d.organization), d.keys.DeletedAgents(d.organization)}}); err != nil {
		return err
	}
	if _, err := d.client.Call(ctx, kernel.OwnFlow, writes, "zrem", d.keys.Holdings(), string(d.organization[:])); err != nil {
		return err
	}
	// Without a version it is read again.
	_, err := d.client.Call(ctx, kernel.OwnFlow, writes, "hdel", d.keys.Suspended(), string(d.organization[:]), kernel.VersionField)
	return err
}

// removeWebhooks removes the organization's webhooks and their deliveries, all with one command: a report that comes later finds no
// webhook, and writes nothing.
func (d *deletion) removeWebhooks(ctx context.Context) error {
	index := d.keys.Webhooks(d.organization)
	stored, err := d.client.Redis().HGetAll(ctx, index).Result() // which the operator may run
	if err != nil {
		return d.client.Classify(err, reads)
	}
	doomed := []string{index}
	for name := range stored {
		if id, err := uuid.FromBytes([]byte(name)); err == nil {
			doomed = append(doomed, d.DeliveryKeys(d.organization, id)...)
		}
	}
	return d.unlink(ctx, [][]string{doomed})
}

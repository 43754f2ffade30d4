package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// DeletionProgress is how far a deletion is.
type DeletionProgress struct {
	Pass    int   // over all keys; there are two at the least
	Walked  int64 // keys looked at, in all passes
	Removed int64 // keys removed, in all passes
}

const (
	// settleTime is how long a request that was admitted before the organization was closed may still write: a few calls.
	settleTime = 3 * callTimeout
	// maxPasses bounds a deletion that meets new keys in each pass.
	maxPasses = 20
	// maxUncertain bounds the keys that one pass leaves to the next; see deletion.
	maxUncertain = 1 << 20
)

// deletion is one run of DeleteOrganization.
type deletion struct {
	*Store
	organization uuid.UUID
	settle       time.Duration
	report       func(DeletionProgress)
	progress     DeletionProgress

	agents  map[uuid.UUID]bool // of the organization; true once revoked
	cells   map[uint16]bool    // of the organization and its agents
	foreign map[uint16]bool    // cells that others have something in
	// uncertain are keys in cells of the organization that do not say whose they are, as earlier versions have written them:
	// families, and claims on idempotency keys. They go if, after the walk that met them, nobody else is found in their
	// cell. In a shared cell they expire.
	uncertain []string
}

// DeleteOrganization removes all that Redis keeps of an organization, in steps that each take little time, and reports
// after each. First it refuses the organization: it suspends it, takes away its API keys and revokes its agents. Then it
// waits until requests that were admitted before are done. The organization's own record goes last, so that a deletion
// that was broken off can be repeated. Errors: ErrUnknownOrganization.
func (s *Store) DeleteOrganization(ctx context.Context, organization uuid.UUID, report func(DeletionProgress)) error {
	return s.deleteOrganization(ctx, organization, settleTime, report)
}

func (s *Store) deleteOrganization(ctx context.Context, organization uuid.UUID, settle time.Duration, report func(DeletionProgress)) error {
	if err := s.closeOrganization(ctx, organization); err != nil {
		return err
	}
	d := &deletion{Store: s, organization: organization, settle: settle, report: report, agents: map[uuid.UUID]bool{}}
	for d.progress.Pass < maxPasses {
		d.progress.Pass++
		before := d.progress.Removed
		if err := d.pass(ctx); err != nil {
			return err
		}
		if d.progress.Pass > 1 && d.progress.Removed == before && len(d.uncertain) == 0 {
			return d.finish(ctx)
		}
	}
	return fmt.Errorf("after %d passes there are still new keys; are all instances of this version?", maxPasses)
}

// closeOrganization refuses an organization for good. An instance that does not follow suspensions finds no API key.
func (s *Store) closeOrganization(ctx context.Context, organization uuid.UUID) error {
	_, err := s.organizationName(ctx, organization)
	if errors.Is(err, ErrUnknownOrganization) {
		suspended, err := s.suspensionsNow(ctx)
		if err != nil || !suspended.of[organization].Deleting {
			return orElse(err, ErrUnknownOrganization)
		}
		return nil // an earlier deletion was broken off at its last step
	}
	if err != nil {
		return err
	}
	if _, err := s.suspendAs(ctx, organization, "deleting"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	place := s.keys.organization(organization)
	return s.trouble(s.write(ctx, place, redis.NewIntCmd(ctx, "hdel", place, "key", "previous_key")), writes)
}

// pass removes what one walk over all keys finds.
func (d *deletion) pass(ctx context.Context) error {
	if err := d.findTenants(ctx); err != nil {
		return err
	}
	if err := d.removeUncertain(ctx); err != nil {
		return err
	}
	if err := d.revokeAgents(ctx); err != nil {
		return err
	}
	if d.progress.Pass == 1 && !pause(ctx, d.settle) {
		return context.Cause(ctx)
	}
	return d.walk(ctx, "*", d.sweep)
}

// findTenants looks for the organization's agents, and for the cells that others share with it.
func (d *deletion) findTenants(ctx context.Context) error {
	d.foreign = map[uint16]bool{}
	d.cells = map[uint16]bool{cellOf(d.organization): true}
	err := d.walk(ctx, "o", func(_ context.Context, keys []string) error {
		for _, key := range keys {
			if name, valid := d.keys.parse(key); valid && name.id != d.organization {
				d.foreign[name.cell] = true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.walk(ctx, "a", func(ctx context.Context, keys []string) error {
		found, err := ask(ctx, d.Store, keys, func(p redis.Pipeliner, key string) *redis.SliceCmd {
			return p.HMGet(ctx, key, "organization", "revoked")
		})
		if err != nil {
			return err
		}
		for i, key := range keys {
			name, _ := d.keys.parse(key)
			r := reply{values: found[i].Val()}
			if r.optional(0) != string(d.organization[:]) {
				d.foreign[name.cell] = true
				continue
			}
			d.agents[name.id] = d.agents[name.id] || r.optional(1) != ""
			d.cells[name.cell] = true
		}
		return nil
	})
}

// revokeAgents revokes the agents that still act: an instance that does not follow suspensions refuses them then.
func (d *deletion) revokeAgents(ctx context.Context) error {
	for agent, revoked := range d.agents {
		if revoked {
			continue
		}
		keys := []string{d.keys.agent(agent), d.keys.events(agent)}
		_, err := d.run(ctx, ownFlow, revokeAgent, keys, d.organization, d.auditAs(ctx, actorKey))
		if err != nil && err != ErrUnknownAgent {
			return err
		}
		d.agents[agent] = true
	}
	return nil
}

// sweep removes those keys that are the organization's, but for its record and those of its agents: by these a repeated
// deletion knows what else is its.
func (d *deletion) sweep(ctx context.Context, keys []string) error {
	var doomed [][]string
	var asked, indexes []string
	for _, key := range keys {
		name, valid := d.keys.parse(key)
		switch {
		case !valid || !d.cells[name.cell] || name.kind == "o" || name.kind == "a":
		case d.isMine(name):
			doomed = append(doomed, []string{key})
			if name.kind == "af" {
				indexes = append(indexes, key)
			}
		case slices.Contains([]string{"s", "t", "i"}, name.kind):
			asked = append(asked, key)
		case name.kind == "f":
			d.leave(key, name)
		}
	}
	owned, err := d.owned(ctx, asked)
	if err != nil {
		return err
	}
	if err := d.removeFamilies(ctx, indexes); err != nil {
		return err
	}
	d.progress.Walked += int64(len(keys))
	return d.unlink(ctx, append(doomed, owned...))
}

// removeFamilies removes the families in indexes of agents, before the indexes themselves.
func (d *deletion) removeFamilies(ctx context.Context, indexes []string) error {
	for _, index := range indexes {
		name, _ := d.keys.parse(index)
		for from := int64(0); ; from += walkStep {
			entries, err := d.client.ZRange(ctx, index, from, from+walkStep-1).Result()
			if err != nil {
				return d.trouble(err, reads)
			}
			var doomed [][]string
			for _, entry := range entries {
				if family, err := ofCell(name.id).id(entry); err == nil {
					doomed = append(doomed, []string{d.keys.family(name.id, family)})
				}
			}
			if err := d.unlink(ctx, doomed); err != nil {
				return err
			}
			if len(entries) < walkStep {
				break
			}
		}
	}
	return nil
}

// isMine says whether a key's own name tells that it is the organization's or one of its agents'.
func (d *deletion) isMine(name keyName) bool {
	_, ofAgent := d.agents[name.id]
	return ofAgent || name.id == d.organization && strings.HasPrefix(name.kind, "o")
}

// leave leaves a key to the next pass, if its cell is the organization's alone as far as this one knows.
func (d *deletion) leave(key string, name keyName) {
	if !d.foreign[name.cell] && len(d.uncertain) < maxUncertain {
		d.uncertain = append(d.uncertain, key)
	}
}

// owned returns those keys whose values say that they are the organization's, each with what goes with it.
func (d *deletion) owned(ctx context.Context, keys []string) ([][]string, error) {
	owners, err := ask(ctx, d.Store, keys, func(p redis.Pipeliner, key string) *redis.Cmd {
		if name, _ := d.keys.parse(key); name.kind == "i" {
			return p.Do(ctx, "getrange", key, -len(uuid.UUID{}.String()), -1)
		}
		return p.Do(ctx, "hget", key, "a")
	})
	if err != nil {
		return nil, err
	}
	var mine [][]string
	for i, key := range keys {
		text, _ := owners[i].Text()
		owner, _ := uuid.FromBytes([]byte(text)) // uuid.Nil for what has just expired
		name, _ := d.keys.parse(key)
		_, ofAgent := d.agents[owner]
		switch {
		case name.kind == "i" && (strings.HasSuffix(text, string(d.organization[:])) || text == d.organization.String()):
			mine = append(mine, []string{key})
		case name.kind == "i":
			d.leave(key, name)
		case ofAgent && name.kind == "s":
			mine = append(mine, []string{key, d.keys.holds(name.id, name.id), d.keys.sessionTransactions(name.id, name.id)})
		case ofAgent:
			mine = append(mine, []string{key})
		}
	}
	return mine, nil
}

// removeUncertain removes what the pass before has left, where still nobody else is in its cell.
func (d *deletion) removeUncertain(ctx context.Context) error {
	var doomed [][]string
	for _, key := range d.uncertain {
		if name, _ := d.keys.parse(key); !d.foreign[name.cell] {
			doomed = append(doomed, []string{key})
		}
	}
	d.uncertain = nil
	return d.unlink(ctx, doomed)
}

// unlink removes keys, some at a time; those that stand together are in one slot and go at once.
func (d *deletion) unlink(ctx context.Context, keys [][]string) error {
	for some := range slices.Chunk(keys, walkStep) {
		removed, err := ask(ctx, d.Store, some, func(p redis.Pipeliner, together []string) *redis.IntCmd {
			return p.Unlink(ctx, together...)
		})
		if err != nil {
			return err
		}
		for _, n := range removed {
			d.progress.Removed += n.Val()
		}
	}
	d.report(d.progress)
	return nil
}

// finish removes the records by which the others were known.
func (d *deletion) finish(ctx context.Context) error {
	var records [][]string
	for agent := range d.agents {
		records = append(records, []string{d.keys.agent(agent)})
	}
	if err := d.unlink(ctx, records); err != nil {
		return err
	}
	if err := d.unlink(ctx, [][]string{{d.keys.organization(d.organization)}}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	place := d.keys.suspended() // without a version it is read again
	return d.trouble(d.write(ctx, place, redis.NewIntCmd(ctx, "hdel", place, string(d.organization[:]), versionField)), writes)
}

// ask sends a command for each of many things in one pipeline, and returns the commands.
func ask[T any, C redis.Cmder](ctx context.Context, s *Store, things []T, command func(redis.Pipeliner, T) C) ([]C, error) {
	if len(things) == 0 {
		return nil, nil
	}
	sent := make([]C, len(things))
	_, _ = s.client.Pipelined(ctx, func(p redis.Pipeliner) error { // its error is the first command's, which may be no value
		for i, thing := range things {
			sent[i] = command(p, thing)
		}
		return nil
	})
	for _, c := range sent {
		if err := c.Err(); err != nil && err != redis.Nil { // no value: the key has just expired
			return nil, s.trouble(err, reads)
		}
	}
	return sent, nil
}

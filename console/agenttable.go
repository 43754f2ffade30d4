package console

import (
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"remit/server/pages"
)

// agentRow is an agent as the API lists it and as pages show it.
type agentRow struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Status      string    `json:"status"`
	CreatedAt   time.Time `json:"created_at"`
	SuspendedAt time.Time `json:"suspended_at"`

	Spent spending `json:"-"`
}

const (
	statusActive    = "active"
	statusSuspended = "suspended"
	statusRevoked   = "revoked"
	statusPending   = "pending"
)

// State is the status in one word.
func (a agentRow) State() string { return stateOf(a.Status, !a.SuspendedAt.IsZero()) }

// stateOf returns the state of an agent or a session in one word.
func stateOf(status string, isSuspended bool) string {
	if status == statusActive && isSuspended {
		return statusSuspended
	}
	return status
}

// agentTable is the agents of an organization, newest first, in little memory. It does not change once it is read: viewers share it.
type agentTable struct {
	parts     []agentPart
	size      int  // agents
	bytes     int  // that it takes
	truncated bool // there are more agents
	crowded   bool // because memory ran out

	memory    *pages.CacheMemory // for its bytes
	displaced atomic.Bool
}

// agentPart is a page of the API's list.
type agentPart struct {
	agents []keptAgent
	names  string // one after the other
}

// keptAgent is an agent in an agentTable. Times are in ms since 1970, 0 for never.
type keptAgent struct {
	id                 uuid.UUID
	created, suspended int64
	nameEnd            uint32 // in names
	status             uint8  // in agentStatuses
}

var agentStatuses = []string{statusActive, statusRevoked}

const (
	keptAgentBytes = int(unsafe.Sizeof(keptAgent{}))
	// partBytes and tableBytes are what a part and a table take beside their agents, with what the allocator rounds up.
	partBytes  = 512
	tableBytes = 1 << 10
)

// bytesOf returns how many bytes a page of the API's list takes in a table.
func bytesOf(page []agentRow) int {
	bytes := partBytes + len(page)*keptAgentBytes
	for _, one := range page {
		bytes += len(one.Name)
	}
	return bytes
}

// add adds a page of the API's list.
func (t *agentTable) add(page []agentRow) error {
	var names strings.Builder
	names.Grow(bytesOf(page) - partBytes - len(page)*keptAgentBytes)
	part := agentPart{agents: make([]keptAgent, len(page))}
	for i, one := range page {
		id, err := uuid.Parse(one.ID)
		status := slices.Index(agentStatuses, one.Status)
		if err != nil || status < 0 {
			return errUnreadable
		}
		names.WriteString(one.Name)
		part.agents[i] = keptAgent{
			id: id, created: millisOf(one.CreatedAt), suspended: millisOf(one.SuspendedAt),
			nameEnd: uint32(names.Len()), status: uint8(status), //nolint:gosec // of 200 names, of two statuses
		}
	}
	part.names = names.String()
	t.parts = append(t.parts, part)
	t.size += len(page)
	t.bytes += bytesOf(page)
	return nil
}

func millisOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis)
}

// all returns the agents with their names.
func (t *agentTable) all() iter.Seq2[*keptAgent, string] {
	return func(yield func(*keptAgent, string) bool) {
		if t == nil {
			return
		}
		for _, part := range t.parts {
			from := uint32(0)
			for i := range part.agents {
				one := &part.agents[i]
				if !yield(one, part.names[from:one.nameEnd]) {
					return
				}
				from = one.nameEnd
			}
		}
	}
}

// state is the status in one word.
func (a *keptAgent) state() string { return stateOf(agentStatuses[a.status], a.suspended != 0) }

// row returns the agent as pages show it.
func (a *keptAgent) row(name string, spent spending) agentRow {
	return agentRow{
		ID: a.id.String(), Name: name, Status: agentStatuses[a.status], Spent: spent,
		CreatedAt: timeOf(a.created), SuspendedAt: timeOf(a.suspended),
	}
}

// matches reports whether the id contains a text in lower case.
func (a *keptAgent) matches(text string) bool { return strings.Contains(a.id.String(), text) }

package client_test

import (
	"slices"
	"sync"
	"testing"

	"remit/client"
	"remit/money"
)

// These tests check with the service what the fakes of the other tests assume.

func TestListsOfTheServiceHavePages(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o)
	var made []string
	for range 105 { // a page has 100
		made = append(made, sessionOf(o, agent, client.SessionParams{}).ID())
	}
	slices.Reverse(made)
	for name, sessions := range map[string][]string{
		"organization": collect(t, o.Sessions(t.Context(), client.SessionFilter{AgentID: agent.ID(), Status: "active"}), sessionID),
		"agent":        collect(t, agent.Sessions(t.Context(), client.SessionFilter{}), sessionID),
	} {
		if !slices.Equal(sessions, made) {
			t.Errorf("%s: %d sessions, want %d, newest first", name, len(sessions), len(made))
		}
	}
	agents := collect(t, o.Agents(t.Context(), client.AgentFilter{Status: "active"}), func(a client.AgentInfo) string { return a.ID })
	if !slices.Equal(agents, []string{agent.ID()}) {
		t.Errorf("agents %q", agents)
	}
}

func sessionID(s client.SessionSummary) string { return s.ID }

func collect[T any](t *testing.T, list func(func(T, error) bool), id func(T) string) (ids []string) {
	t.Helper()
	for element, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id(element))
	}
	return ids
}

// The charges of concurrent goroutines add up exactly.
func TestChargesOfManyGoroutinesAddUp(t *testing.T) {
	t.Parallel()
	o := organization()
	session := sessionOf(o, agentOf(o), client.SessionParams{MaxActions: 150, MaxValue: new(money.Max)})
	var group sync.WaitGroup
	var mu sync.Mutex
	var done, refused int64
	for range 20 {
		group.Go(func() {
			for range 10 {
				_, err := session.Charge(t.Context(), client.Charge{Value: 333_333})
				mu.Lock()
				switch {
				case err == nil:
					done++
				case as[*client.LimitReached](err) != nil:
					refused++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	info, err := session.Get(t.Context())
	if err != nil || done != 150 || refused != 50 || info.ActionCount != 150 || info.ValueUsed != 150*333_333 {
		t.Errorf("%d done, %d refused, %+v, %v", done, refused, info, err)
	}
}

//go:build long

package console

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// It runs alone: beside others, on a busy machine and with the race detector, the interpreter of Lua in miniredis takes longer for a call than
// the service waits.
func TestTooManyActionTypesLeaveTheSumsRight(t *testing.T) {
	w := newWorld(t, settings{})
	const agents, types, each = 40, 256, 64 // of an agent, of a session
	for range agents {
		agent := w.newAgent("a")
		for from := 0; from < types; from += each {
			session := w.newSession(agent, map[string]any{"max_actions": 1000, "max_value_usd": 1000})
			var batch []map[string]any
			for n := range each {
				batch = append(batch, map[string]any{"session_id": session, "action_type": fmt.Sprint(agent, " ", from+n), "value_usd": 0.01})
			}
			for part := range slices.Chunk(batch, 8) { // in calls that a slow Redis answers in time too
				w.api("POST", "/v1/actions", w.keys[admin], map[string]any{"actions": part}, nil)
			}
		}
	}
	s := w.console.fleets.spendingsOf(spentOf{organization: uuid.MustParse(w.org)}, time.Now())
	got := must(s.reports(api{host: w.console.host, key: w.keys[viewer]}, time.Now()))(t)
	if got.Problem != tooManyTypes || got.Total != (spending{102_400_000, 102_400_000}) {
		t.Errorf("%+v, %q", got.Total, got.Problem)
	}
}

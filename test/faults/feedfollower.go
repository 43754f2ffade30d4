package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"remit/internal/auditlog"
)

// feedPage is how many events the follower reads at once.
const feedPage = 200

// follow reads the feed page by page, each after the last event of the one before, at the instances in turn.
func (f *Feed) follow() {
	after := int64(0)
	for n := 0; f.reading.Err() == nil; n++ {
		status, answer, err := f.do(f.urls[n%2], http.MethodGet, fmt.Sprintf("/v1/events?after=%d&limit=%d&wait=1", after, feedPage), "", nil)
		if err != nil || status != http.StatusOK {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		after = f.take(after, answer)
	}
}

// take notes a page of events after the one with this number, and returns the number of the last.
func (f *Feed) take(after int64, page []byte) int64 {
	came := time.Now()
	var lines []json.RawMessage
	err := json.Unmarshal(page, &lines)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.faults = append(f.faults, fmt.Sprintf("after event %d: %v", after, err))
	}
	for _, line := range lines {
		e := FedEvent{Line: string(line), Came: came}
		if err := json.Unmarshal(line, &e); err != nil || e.Sequence != after+1 {
			f.faults = append(f.faults, fmt.Sprintf("after event %d comes %s (%v)", after, line, err))
		}
		after = max(after, e.Sequence)
		f.events = append(f.events, e)
	}
	return after
}

func (f *Feed) stopReading() {
	f.quit()
	f.follower.Wait()
}

// Finish stops the changers, waits until the follower has every event of the trails, and checks everything.
func (f *Feed) Finish() {
	f.t.Helper()
	f.StopChanges()
	ended := time.Now()
	trails := f.trails()
	total := 0
	for _, trail := range trails {
		total += len(trail)
	}
	for f.followed() < total && time.Since(ended) < feedPatience {
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Logf("%v after the last change the feed has %d events of %d", time.Since(ended).Round(10*time.Millisecond), f.followed(), total)
	f.stopReading()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.t.Logf("%d changes were acknowledged, others not: %v", len(f.changes), f.refused)
	for _, fault := range append(f.faults, checkFeed(f.changes, f.events, trails)...) {
		f.t.Error(fault)
	}
	f.verify()
}

// followed returns how many events the follower has read.
func (f *Feed) followed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.events)
}

// Events returns what the follower has read.
func (f *Feed) Events() []FedEvent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events)
}

// trails returns the ids of the events in each agent's trail.
func (f *Feed) trails() map[string][]string {
	f.t.Helper()
	trails := map[string][]string{}
	for _, agent := range f.agents {
		r := f.reader()
		for _, e := range r.readTrail(agent) {
			trails[agent] = append(trails[agent], e.ID)
		}
		if r.err != nil {
			f.t.Fatal(r.err)
		}
	}
	return trails
}

// verify verifies the chain of the events, with the checkpoint of the service. The caller holds the lock.
func (f *Feed) verify() {
	f.t.Helper()
	status, checkpoint, err := f.do(f.urls[0], http.MethodGet, "/v1/events/checkpoint", "", nil)
	if err != nil || status != http.StatusOK {
		f.t.Fatalf("the checkpoint: %d %s %v", status, checkpoint, err)
	}
	_, keys, err := f.do(f.urls[0], http.MethodGet, "/.well-known/jwks.json", "", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	found, err := auditlog.Verify(strings.NewReader(Export(f.events)))
	if err != nil {
		f.t.Fatalf("the chain: %v", err)
	}
	signed, err := auditlog.VerifyCheckpoint(string(checkpoint), keys)
	if err == nil {
		err = found.Check(signed)
	}
	if err != nil || signed.Organization != f.Organization {
		f.t.Errorf("the checkpoint %+v: %v", signed, err)
	}
}

// Export returns the events as lines, as remit audit export writes them.
func Export(events []FedEvent) string {
	var lines strings.Builder
	for _, e := range events {
		lines.WriteString(e.Line + "\n")
	}
	return lines.String()
}

// checkFeed returns where the events differ from what they must be: of every change that was acknowledged there is one, and those of
// an agent are those of its trail, in its order.
func checkFeed(changes []Change, events []FedEvent, trails map[string][]string) []string {
	var faults []string
	ofRequest, left := map[string][]FedEvent{}, map[string][]string{}
	for agent, trail := range trails {
		left[agent] = trail
	}
	for i, e := range events {
		ofRequest[e.Request] = append(ofRequest[e.Request], e)
		trail := left[e.Agent]
		if e.Sequence != int64(i+1) {
			faults = append(faults, fmt.Sprintf("event %d has place %d", e.Sequence, i+1))
		}
		if len(trail) == 0 || e.ID != e.Agent+":"+trail[0] {
			return append(faults, fmt.Sprintf("event %d is %s, where the agent's trail has %v", e.Sequence, e.ID, trail[:min(1, len(trail))]))
		}
		left[e.Agent] = trail[1:]
	}
	for agent, trail := range left {
		if len(trail) > 0 {
			faults = append(faults, fmt.Sprintf("%d events of agent %s are missing, from %s on", len(trail), agent, trail[0]))
		}
	}
	for _, c := range changes {
		found := ofRequest[c.Request]
		if len(found) != 1 || found[0].Agent != c.Agent || found[0].Type != c.Type {
			faults = append(faults, fmt.Sprintf("change %+v has the events %+v", c, found))
		}
	}
	return faults
}

// feedDelays returns how long after changes that ended in this time the follower had their events, in ascending order.
func (f *Feed) feedDelays(since, until time.Time) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	came := map[string]time.Time{}
	for _, e := range f.events {
		came[e.Request] = e.Came
	}
	var delays []time.Duration
	for _, c := range f.changes {
		if at, known := came[c.Request]; known && c.Ended.After(since) && c.Ended.Before(until) {
			delays = append(delays, at.Sub(c.Ended))
		}
	}
	slices.Sort(delays)
	return delays
}

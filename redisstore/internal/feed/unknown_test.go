package feed

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// marksOf returns when the agent of the call is due, in time since the call, until it is forgotten.
func marksOf(u *unknownCalls, agent uuid.UUID, since time.Time) []time.Duration {
	var marks []time.Duration
	for len(u.agents) > 0 && len(marks) < 10 {
		at := u.agents[agent].at()
		call, due := u.due(at)[agent]
		if !due {
			return nil
		}
		after := call
		after.marked++
		u.replace(agent, call, after)
		marks = append(marks, at.Sub(since))
	}
	return marks
}

func TestAnAgentIsMarkedAgainUntilItsCallCanNoLongerRun(t *testing.T) {
	t.Parallel()
	organization, agent, now := kernel.NewRootID(), kernel.NewRootID(), time.Now()
	for name, test := range map[string]struct {
		calls []unknownCall
		want  []time.Duration
	}{
		"a call that has ended": {[]unknownCall{{organization: organization, since: now}}, []time.Duration{0}},
		"a call that may run":   {[]unknownCall{{organization: organization, since: now, mayRun: true}}, markPauses},
		"one that has ended, after one that may run": {[]unknownCall{{organization: organization, since: now, mayRun: true},
			{organization: organization, since: now.Add(time.Second)}}, markPauses},
		"the later one of two that may run": {[]unknownCall{{organization: organization, since: now.Add(-time.Second), mayRun: true},
			{organization: organization, since: now, mayRun: true}}, markPauses},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnknownCalls()
			for _, call := range test.calls {
				u.add(agent, call)
			}
			got := marksOf(u, agent, now)
			if !slices.Equal(got, test.want) {
				t.Errorf("marked after %v, want %v", got, test.want)
			}
		})
	}
}

func TestACallThatCameMeanwhileIsNotForgotten(t *testing.T) {
	t.Parallel()
	u, agent, now := newUnknownCalls(), kernel.NewRootID(), time.Now()
	u.add(agent, unknownCall{since: now})
	before := u.due(now)[agent]
	u.add(agent, unknownCall{since: now.Add(time.Second), mayRun: true})
	u.replace(agent, before, before)
	if call := u.agents[agent]; !call.mayRun {
		t.Errorf("%+v is remembered", call)
	}
}

func TestUnknownCallsKeepTheirBound(t *testing.T) {
	t.Parallel()
	u, now := newUnknownCalls(), time.Now()
	var last uuid.UUID
	for range maxUnknownCalls {
		last = kernel.NewRootID()
		u.add(last, unknownCall{since: now, mayRun: true})
	}
	u.add(kernel.NewRootID(), unknownCall{since: now, mayRun: true})
	later := now.Add(time.Second)
	u.add(last, unknownCall{since: later, mayRun: true}) // needs no further place
	if len(u.agents) != maxUnknownCalls || !u.agents[last].since.Equal(later) {
		t.Errorf("%d agents are remembered, the last one since %s", len(u.agents), u.agents[last].since)
	}
}

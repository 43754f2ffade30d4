package sdk

import (
	"io"
	"net/http"
	"testing"

	"remit/client/metered"
	"remit/client/prices"
	"remit/money"
	"remit/test/serviceproc"
)

const tieredTable = `{"plain": {
	"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6, "input_cost_per_token_priority": 4e-6, "output_cost_per_token_priority": 16e-6,
	"input_cost_per_token_flex": 1e-6, "output_cost_per_token_flex": 4e-6, "max_input_tokens": 100000}}`

// A call holds the dearest tier that it can get, and costs the one that its answer names.
func TestAMeteredCallCostsTheTierThatServedIt(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t).URL
	table := must(prices.Parse([]byte(tieredTable)))(t)
	for _, row := range []struct{ asks, says, holds, costs string }{
		{"", "default", "priority", "default"},
		{"", "priority", "priority", "priority"},
		{"", "", "priority", "priority"},
		{"auto", "flex", "priority", "flex"},
		{"default", "", "default", "default"},
		{"standard_only", "standard", "default", "default"},
		{"flex", "", "default", "default"},
		{"flex", "flex", "default", "flex"},
		{"priority", "default", "priority", "default"},
	} {
		for _, path := range providerPaths {
			for _, more := range []string{"", streamedCall} {
				t.Run(path+" "+row.asks+" "+row.says+more, func(t *testing.T) {
					t.Parallel()
					m := newMeter(t, service, money.USD, func(transport *metered.Transport) { transport.Prices = table })
					fake := "seed=2"
					if row.says != "" {
						fake += ",tier=" + row.says
					}
					if row.asks != "" {
						more += `,"service_tier":"` + row.asks + `"`
					}
					r := m.request(t.Context(), path, fake, more)
					hold := must(table.WorstIn("plain", row.holds, r.ContentLength, 50))(t)
					var held money.MicroUSD
					m.http.Transport.(*metered.Transport).Base = base(func(r *http.Request) (*http.Response, error) {
						info, err := m.session.Get(t.Context())
						held = info.ValueHeld
						if err != nil {
							return nil, err
						}
						return m.base.RoundTrip(r)
					})
					_, _, err := m.do(r)
					record, _ := m.only(t)
					cost, errCost := table.CostIn("plain", row.costs, row.costs, prices.Usage(record.Usage))
					if info := m.usage(t); err != nil || errCost != nil || info.ValueUsed != cost || held != hold {
						t.Errorf("%v, %v: %s of %s, want %s of %s", err, errCost, info.ValueUsed, held, cost, hold)
					}
				})
			}
		}
	}
}

// Reasoning is paid and not sent: a stream that breaks off costs its hold where there can be some.
func TestAStreamThatCanReasonCostsItsHoldWhenItBreaksOff(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t).URL
	table := must(prices.Parse([]byte(`{"plain": {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6, "supports_reasoning": true}}`)))(t)
	for more, isHold := range map[string]bool{"": true, `,"reasoning_effort":"none"`: false} {
		m := newMeter(t, service, money.USD, func(transport *metered.Transport) { transport.Prices = table })
		r := m.request(t.Context(), chatPath, "seed=3,cut=midway", streamedCall+`,"max_completion_tokens":20000`+more)
		hold := must(table.Worst("plain", r.ContentLength, 20_000))(t)
		_, _, err := m.do(r)
		if info := m.usage(t); err == nil || isHold != (info.ValueUsed == hold) || info.ValueUsed == 0 {
			t.Errorf("%s: %v, %s of %s used", more, err, info.ValueUsed, hold)
		}
	}
}

// A caller who did not ask for the usage reads a stream without the chunk that has it, whose length is that of what passes. Servers may
// omit the empty line after the last event.
func TestAnAnswerWithoutItsUsageChunkHasNoLength(t *testing.T) {
	t.Parallel()
	m := answeredBy(t, serviceproc.Run(t).URL, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, lastEvents) // short enough to get a Content-Length
	})
	answer := must(m.http.Do(m.request(t.Context(), chatPath, "", streamedCall)))(t)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || string(text) != "data: [DONE]" || answer.ContentLength != -1 || answer.Header.Get("Content-Length") != "" {
		t.Errorf("%q, %v, %d, %q", text, err, answer.ContentLength, answer.Header.Get("Content-Length"))
	}
	if info, want := m.usage(t), m.costOf(t, prices.Usage{Input: 10, Output: 5}); info.ValueUsed != want {
		t.Errorf("%s used, want %s", info.ValueUsed, want)
	}
}

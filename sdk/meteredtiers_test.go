package sdk

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"remit/client"
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
	table, err := prices.Parse([]byte(tieredTable))
	if err != nil {
		t.Fatal(err)
	}
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
					hold, err := table.WorstIn("plain", row.holds, r.ContentLength, 50)
					if err != nil {
						t.Fatal(err)
					}
					var held money.MicroUSD
					m.http.Transport.(*metered.Transport).Base = base(func(r *http.Request) (*http.Response, error) {
						info, err := m.session.Get(t.Context())
						held = info.ValueHeld
						if err != nil {
							return nil, err
						}
						return m.base.RoundTrip(r)
					})
					_, _, err = m.do(r)
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
	table, err := prices.Parse([]byte(`{"plain": {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6, "supports_reasoning": true}}`))
	if err != nil {
		t.Fatal(err)
	}
	for more, isHold := range map[string]bool{"": true, `,"reasoning_effort":"none"`: false} {
		m := newMeter(t, service, money.USD, func(transport *metered.Transport) { transport.Prices = table })
		r := m.request(t.Context(), chatPath, "seed=3,cut=midway", streamedCall+`,"max_completion_tokens":20000`+more)
		hold, err := table.Worst("plain", r.ContentLength, 20_000)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = m.do(r)
		if info := m.usage(t); err == nil || isHold != (info.ValueUsed == hold) || info.ValueUsed == 0 {
			t.Errorf("%s: %v, %s of %s used", more, err, info.ValueUsed, hold)
		}
	}
}

// A caller who did not ask for the usage reads the stream of one who did, without the chunk that has it.
func TestTheUsageChunkReachesOnlyItsAsker(t *testing.T) {
	t.Parallel()
	m := newMeter(t, serviceproc.Run(t).URL, money.USD, nil)
	for _, fake := range []string{"seed=12", "seed=12,chunks=odd", "seed=13,tools=1,chunks=odd"} {
		_, asked, err := m.do(m.request(t.Context(), chatPath, fake, streamedCall+`,"stream_options":{"include_usage":true}`))
		if err != nil {
			t.Fatal(err)
		}
		_, got, err := m.do(m.request(t.Context(), chatPath, fake, streamedCall))
		end := "\n\n"
		if strings.Contains(fake, "odd") {
			end = "\r\n\r\n"
		}
		var want []byte
		chunks := 0
		for event := range bytes.SplitAfterSeq(asked, []byte(end)) {
			if bytes.Contains(event, []byte(`"choices":[],`)) {
				chunks++
				continue
			}
			want = append(want, event...)
		}
		if err != nil || chunks != 1 || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %d chunks of usage\n%s\n%s", fake, err, chunks, got, want)
		}
	}
}

// The answer's length is that of what passes.
func TestAnAnswerWithoutItsUsageChunkHasNoLength(t *testing.T) {
	t.Parallel()
	m := answeredBy(t, serviceproc.Run(t).URL, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, lastEvents) // short enough to get a Content-Length
	})
	answer, err := m.http.Do(m.request(t.Context(), chatPath, "", streamedCall))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || string(text) != "data: [DONE]" || answer.ContentLength != -1 || answer.Header.Get("Content-Length") != "" {
		t.Errorf("%q, %v, %d, %q", text, err, answer.ContentLength, answer.Header.Get("Content-Length"))
	}
}

// A refusal says what the call needs and which member of the request lowers that.
func TestARefusedCallSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	m := newMeter(t, serviceproc.Run(t).URL, 100, nil)
	for _, row := range []struct{ path, body, says string }{
		{chatPath, `{"model":"plain"}`, "the call may cost up to 0.032802 USD (4,096 tokens of output): set max_completion_tokens"},
		{chatPath, `{"model":"plain","max_tokens":50}`, "the call may cost up to 0.000466 USD (50 tokens of output): lower max_tokens, or send less"},
		{responsesPath, `{"model":"plain"}`, "the call may cost up to 0.032802 USD (4,096 tokens of output): set max_output_tokens"},
		{messagesPath, `{"model":"plain","max_tokens":4000}`, "the call may cost up to 0.03207 USD (4,000 tokens of output): lower max_tokens, or send less"},
	} {
		_, err := m.http.Post(m.url+row.path, "application/json", strings.NewReader(row.body))
		if err == nil || !errors.As(err, new(*client.LimitReached)) || !strings.HasSuffix(err.Error(), row.says) {
			t.Errorf("%s: %v", row.body, err)
		}
	}
}

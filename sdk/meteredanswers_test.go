package sdk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/client/metered"
	"remit/client/prices"
	"remit/money"
	"remit/test/serviceproc"
)

func answeredBy(t *testing.T, service string, change func(*metered.Transport), answer http.HandlerFunc) *meter {
	t.Helper()
	m := newMeter(t, service, 1000*money.USD, change)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // then the server notices when the client hangs up
		answer(w, r)
	}))
	t.Cleanup(func() {
		m.base.CloseIdleConnections()
		server.Close()
	})
	m.url = server.URL
	return m
}

func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text) // fails only when the client is gone
	_ = http.NewResponseController(w).Flush()
}

func (m *meter) transaction(t *testing.T) (only client.TransactionInfo) {
	t.Helper()
	for tx, err := range m.agent.Transactions(t.Context(), client.TransactionFilter{SessionID: m.session.ID()}) {
		if err != nil || only.ID != "" {
			t.Fatalf("%+v and %+v, %v", only, tx, err)
		}
		only = tx
	}
	return only
}

const (
	firstEvent = "data: {\"choices\":[]}\n\n"
	lastEvents = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\ndata: [DONE]"
	wholeUsage = `{"usage":{"prompt_tokens":10,"completion_tokens":5}}`
)

func (m *meter) costOf(t *testing.T, u prices.Usage) money.MicroUSD {
	t.Helper()
	return must(m.table.Cost("plain", u))(t)
}

// A hold lasts as long as a caller waits: for an answer that has not begun, and for more of one that has.
func TestAHoldLastsWhileTheCallerWaits(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t).URL
	const expiry, wait = 4 * time.Second, 5 * time.Second
	for name, answer := range map[string]http.HandlerFunc{
		"before the answer": func(w http.ResponseWriter, r *http.Request) {
			waitFor(r.Context(), wait)
			_, _ = io.WriteString(w, wholeUsage)
		},
		"within the answer": func(w http.ResponseWriter, r *http.Request) {
			stream(w, firstEvent)
			waitFor(r.Context(), wait)
			stream(w, lastEvents)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := answeredBy(t, service, func(transport *metered.Transport) { transport.Expiry = expiry }, answer)
			_, _, err := m.do(m.request(t.Context(), chatPath, "", streamedCall))
			want := m.costOf(t, prices.Usage{Input: 10, Output: 5})
			if tx := m.transaction(t); err != nil || tx.Status != "committed" || tx.Value != want || tx.Late {
				t.Errorf("%v, want %s: %+v", err, want, tx)
			}
			if len(m.errors) > 0 {
				t.Error(<-m.errors)
			}
		})
	}
}

func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// An answer that is too long to be kept passes whole, and what it may have cost is spent.
func TestALongAnswerPassesAndCostsTheMost(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t).URL
	const size = 65 << 20
	long := func(w http.ResponseWriter, kind, before, after string) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, before)
		piece := strings.Repeat(" ", 1<<20)
		for range size >> 20 {
			_, _ = io.WriteString(w, piece)
		}
		_, _ = io.WriteString(w, after)
	}
	for name, row := range map[string]struct {
		more   string
		answer http.HandlerFunc
	}{
		"not streamed": {"", func(w http.ResponseWriter, _ *http.Request) { long(w, "application/json", `{}`, "") }},
		"a line without end": {streamedCall, func(w http.ResponseWriter, _ *http.Request) {
			long(w, "text/event-stream", "data: ", "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := answeredBy(t, service, nil, row.answer)
			r := m.request(t.Context(), chatPath, "", row.more)
			hold, answer := m.held(t, r), must(m.http.Do(r))(t)
			defer answer.Body.Close()
			n, err := io.Copy(io.Discard, answer.Body)
			if info := m.usage(t); err != nil || n < size || info.ValueUsed != hold {
				t.Errorf("%d bytes, %v: %s used, want %s", n, err, info.ValueUsed, hold)
			}
		})
	}
}

// A caller that has the last event, or the last byte, sees the call settled, though the connection goes on.
func TestAMeteredCallIsSettledBeforeItsLastEventPasses(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t).URL
	const events, shown = firstEvent + lastEvents + "\n\n", firstEvent + "data: [DONE]\n\n"
	for _, row := range []struct {
		more, kind, sent string
		bytes            int // that the caller reads
	}{{streamedCall, "text/event-stream", events, len(shown)}, {"", "application/json", wholeUsage, len(wholeUsage)}} {
		m := answeredBy(t, service, nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", row.kind)
			if row.more == "" {
				w.Header().Set("Content-Length", strconv.Itoa(row.bytes))
			}
			_, _ = io.WriteString(w, row.sent)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		answer := must(m.http.Do(m.request(ctx, chatPath, "", row.more)))(t)
		_, err := io.ReadFull(answer.Body, make([]byte, row.bytes))
		want := m.costOf(t, prices.Usage{Input: 10, Output: 5})
		if info := must(m.session.Get(t.Context()))(t); err != nil || info.ValueHeld != 0 || info.ValueUsed != want {
			t.Errorf("%s: %v, %s held, %s used, want %s", row.kind, err, info.ValueHeld, info.ValueUsed, want)
		}
		cancel()
		answer.Body.Close()
	}
}

// What the base refuses before it sends anything costs nothing, as well as what is cancelled just then.
func TestAMeteredCallThatTheBaseDoesNotSendCostsNothing(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t).URL
	ended, cancel := context.WithCancel(t.Context())
	for name, change := range map[string]func(*http.Request) *http.Request{
		"an invalid header": func(r *http.Request) *http.Request {
			r.Header.Set("X-Wrong", "a\nb")
			return r
		},
		"no program listens": func(r *http.Request) *http.Request {
			r.URL.Host = "127.0.0.1:1"
			return r
		},
		"cancelled after its hold": func(r *http.Request) *http.Request {
			cancel()
			return r.WithContext(ended)
		},
	} {
		m := newMeter(t, service, money.USD, nil)
		m.http.Transport.(*metered.Transport).Base = base(func(r *http.Request) (*http.Response, error) { return m.base.RoundTrip(change(r)) })
		_, _, err := m.do(m.request(t.Context(), chatPath, "", ""))
		if tx := m.transaction(t); err == nil || tx.Status != "rolled_back" || len(m.provider.Ledger()) != 0 {
			t.Errorf("%s: %v, %+v", name, err, tx)
		}
	}
	m := newMeter(t, service, money.USD, nil)
	if _, _, err := m.do(m.request(ended, chatPath, "", "")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if info := m.usage(t); info.ActionCount != 0 {
		t.Errorf("cancelled before: %+v", info)
	}
}

type base func(*http.Request) (*http.Response, error)

func (b base) RoundTrip(r *http.Request) (*http.Response, error) { return b(r) }

// A reader that has gone does not see that the usage is missing. OnError does.
func TestAUsageThatIsMissingIsReportedWithoutAReader(t *testing.T) {
	t.Parallel()
	m := answeredBy(t, serviceproc.Run(t).URL, nil, func(w http.ResponseWriter, r *http.Request) {
		stream(w, firstEvent+"data: [DONE]\n\n")
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	answer := must(m.http.Do(m.request(ctx, chatPath, "", streamedCall)))(t)
	defer answer.Body.Close()
	must(io.ReadFull(answer.Body, make([]byte, len(firstEvent+"data: [DONE]\n\n"))))(t)
	cancel()
	select {
	case err := <-m.errors:
		if _, is := errors.AsType[*metered.UsageMissing](err); !is {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("OnError was not told")
	}
	hold := m.held(t, m.request(t.Context(), chatPath, "", streamedCall))
	if info := m.usage(t); info.ValueUsed != hold {
		t.Errorf("%s used, want %s", info.ValueUsed, hold)
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

// With Ask, a call that does not fit waits for the decision.
func TestAMeteredCallAsksForWhatIsMissing(t *testing.T) {
	t.Parallel()
	m := newMeter(t, serviceproc.Run(t).URL, 100, func(transport *metered.Transport) {
		transport.OnLimit, transport.Reason = client.Ask, "one more call"
	})
	approved := make(chan error, 1)
	go func() { approved <- approveFirst(t.Context(), m.organization, m.session.ID()) }()
	status, _, err := m.do(m.request(t.Context(), chatPath, "", ""))
	_, cost := m.only(t)
	if info := m.usage(t); err != nil || status != http.StatusOK || info.ValueUsed != cost || info.ActionCount != 1 {
		t.Errorf("%d, %v, cost %s: %+v", status, err, cost, info)
	}
	noError(t, <-approved)
}

func approveFirst(ctx context.Context, o *client.Organization, session string) error {
	for {
		requests, err := o.Requests(ctx, session, client.MoreFilter{Status: "pending"})
		if err != nil {
			return err
		}
		if len(requests) > 0 {
			_, err = o.ApproveRequest(ctx, session, requests[0].ID, client.ApprovalParams{})
			return err
		}
		waitFor(ctx, 5*time.Millisecond)
	}
}

package sdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/client"
	"remit/client/metered"
	"remit/client/prices"
	"remit/money"
	"remit/test/fakeprovider"
	"remit/test/serviceproc"
)

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"
)

var providerPaths = []string{chatPath, responsesPath, messagesPath}

// meter is an agent whose calls of a fake provider a session pays for.
type meter struct {
	provider     *fakeprovider.Provider
	server       *httptest.Server // of the provider
	url          string           // of the provider
	organization *client.Organization
	agent        *client.Agent
	session      *client.Session
	table        *prices.Table
	http         *http.Client
	base         *http.Transport
	errors       chan error // what OnError got
}

// newMeter returns a meter with a session that has so much value. Change the transport before the first call.
func newMeter(t *testing.T, service string, value money.MicroUSD, change func(*metered.Transport)) *meter {
	t.Helper()
	table := must(prices.ReadFile("testdata/prices/table.json"))(t)
	m := &meter{provider: new(fakeprovider.Provider), table: table, errors: make(chan error, 100)}
	m.server, m.base = httptest.NewServer(m.provider), &http.Transport{MaxIdleConnsPerHost: 50}
	m.url = m.server.URL
	t.Cleanup(func() {
		m.base.CloseIdleConnections()
		m.server.Close()
	})
	remit := must(client.New(service, client.Options{}))(t)
	m.organization = remit.Organization(string(must(remit.CreateOrganization(t.Context(), client.OrganizationParams{Name: "acme"}))(t).APIKey))
	made := must(m.organization.CreateAgent(t.Context(), client.AgentParams{Name: "scout"}))(t)
	m.agent = remit.Agent(made.ID, string(made.Secret))
	limits := client.SessionParams{AgentID: made.ID, MaxValue: &value, MaxActions: 1_000_000}
	m.session = m.agent.Session(must(m.organization.CreateSession(t.Context(), limits))(t).ID)
	transport := &metered.Transport{Session: m.session, Prices: table, Base: m.base, OnError: func(err error) { m.errors <- err }}
	if change != nil {
		change(transport)
	}
	m.http = &http.Client{Transport: transport}
	return m
}

// request is a call of a model that costs 6 USD for 1,000,000 tokens of input and 24 for so many of output at most.
func (m *meter) request(ctx context.Context, path, fake, more string) *http.Request {
	body := `{"model":"plain","max_tokens":50,"messages":[{"role":"user","content":"hello, hello"}]` + more + `}`
	if path == responsesPath {
		body = `{"model":"plain","max_output_tokens":50,"input":"hello, hello"` + more + `}`
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-Fake", fake)
	return r
}

func (m *meter) do(r *http.Request) (status int, body []byte, err error) {
	answer, err := m.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// usage waits until nothing is held, and returns what is used.
func (m *meter) usage(t *testing.T) client.SessionInfo {
	t.Helper()
	var info client.SessionInfo
	await(t, "nothing is held", func() bool {
		info = must(m.session.Get(t.Context()))(t)
		return info.ValueHeld == 0
	})
	return info
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}

func atOnce(calls, most int, call func(i int)) {
	next := make(chan int)
	var group sync.WaitGroup
	for range most {
		group.Go(func() {
			for i := range next {
				call(i)
			}
		})
	}
	for i := range calls {
		next <- i
	}
	close(next)
	group.Wait()
}

// atRest waits until none of the session's transactions is pending, also none without a value, and returns them all. A call that was
// cancelled may begin after its caller has gone, and is rolled back then.
func atRest(
	t *testing.T, session *client.Session, list func(context.Context, client.TransactionFilter) iter.Seq2[client.TransactionInfo, error],
) (all []client.TransactionInfo, info client.SessionInfo) {
	t.Helper()
	isPending := func(tx client.TransactionInfo) bool { return tx.Status == "pending" }
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		all = nil
		for tx, err := range list(t.Context(), client.TransactionFilter{SessionID: session.ID()}) {
			noError(t, err)
			all = append(all, tx)
		}
		info := must(session.Get(t.Context()))(t)
		if !slices.ContainsFunc(all, isPending) && int64(len(all)) == info.ActionCount || time.Now().After(deadline) {
			return all, info
		}
	}
}

// only waits for the provider's one record, and returns what it costs.
func (m *meter) only(t *testing.T) (fakeprovider.Record, money.MicroUSD) {
	t.Helper()
	await(t, "the provider has counted one call", func() bool { return len(m.provider.Ledger()) == 1 })
	record := m.provider.Ledger()[0]
	return record, m.cost(t, record)
}

func (m *meter) cost(t *testing.T, r fakeprovider.Record) money.MicroUSD {
	t.Helper()
	return must(m.table.Cost(r.Model, prices.Usage(r.Usage)))(t)
}

const streamedCall = `,"stream":true`

// What a metered client reads is what the provider writes, byte by byte, and its refusals too.
func TestAMeteredAnswerPassesThroughUnchanged(t *testing.T) {
	t.Parallel()
	m := newMeter(t, serviceproc.Run(t).URL, money.USD, nil)
	for _, path := range providerPaths {
		for _, more := range []string{"", streamedCall + `,"stream_options":{"include_usage":true}`} {
			for _, fake := range []string{"seed=12,chunks=odd", "error=429", "error=500", "error=400"} {
				status, metered, err := m.do(m.request(t.Context(), path, fake, more))
				plain := must((&http.Client{Transport: m.base}).Do(m.request(t.Context(), path, fake, more)))(t)
				body := must(io.ReadAll(plain.Body))(t)
				plain.Body.Close()
				if err != nil || status != plain.StatusCode || !bytes.Equal(body, metered) {
					t.Errorf("%s%s %s: %v, %d\n%s\n%s", path, more, fake, err, status, body, metered)
				}
			}
		}
	}
}

func (m *meter) held(t *testing.T, r *http.Request) money.MicroUSD {
	t.Helper()
	return must(m.table.Worst("plain", r.ContentLength, 50))(t)
}

// whenSent returns a context whose requests call done when one was sent to the provider, whatever was sent to Remit before.
func (m *meter) whenSent(ctx context.Context, done func()) context.Context {
	var host atomic.Value
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(to string) { host.Store(to) },
		WroteRequest: func(httptrace.WroteRequestInfo) {
			if host.Load() == strings.TrimPrefix(m.url, "http://") {
				done()
			}
		},
	})
}

// What a stream has cost when it breaks off is at least what the provider counts, and at most the hold. A call that is not streamed may have
// been made in full when its answer is lost: the hold is spent.
func TestACallThatBreaksOffCostsTheMostThatItCanHaveCost(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t).URL
	for _, path := range providerPaths {
		for _, row := range []struct{ name, fake, more string }{
			{"error", "seed=3,error=midway", streamedCall}, {"cut", "seed=4,cut=midway,chunks=odd", streamedCall},
			{"hang up", "seed=5,pace=20", streamedCall}, {"cancel", "seed=5,pace=20", streamedCall}, {"abandon", "seed=5,pace=20", streamedCall},
			{"cut", "cut=midway", ""}, {"error", "usage=missing", ""}, {"cancel when sent", "pace=1000", ""}, {"hang up", "", ""},
		} {
			t.Run(path+" "+row.name+row.more, func(t *testing.T) {
				t.Parallel()
				m := newMeter(t, service, money.USD, func(transport *metered.Transport) {
					if row.name == "abandon" {
						transport.Expiry = 2 * time.Second
					}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				sent := ctx
				if row.name == "cancel when sent" {
					sent = m.whenSent(ctx, cancel)
				}
				r := m.request(sent, path, row.fake, row.more)
				hold := m.held(t, r)
				answer, err := m.http.Do(r)
				if (err != nil) != (row.name == "cancel when sent") {
					t.Fatal(err)
				}
				if err == nil {
					m.breakOff(t, row.name, answer, cancel)
				}
				info := m.usage(t)
				if row.more == "" {
					if info.ValueUsed != hold {
						t.Errorf("%s used of a hold of %s", info.ValueUsed, hold)
					}
					return
				}
				most := must(m.table.Worst("plain", r.ContentLength+50, 50))(t) // with what asks for the usage
				record, cost := m.only(t)
				left := row.name == "hang up" || row.name == "cancel" // before the provider has counted the rest
				if record.Ended && row.name != "abandon" || info.ValueUsed < cost && !left || info.ValueUsed == 0 || info.ValueUsed > most {
					t.Errorf("%s used, the provider counts %s, at most %s: %+v", info.ValueUsed, cost, most, record)
				}
			})
		}
	}
}

func (m *meter) breakOff(t *testing.T, name string, answer *http.Response, cancel func()) {
	t.Helper()
	t.Cleanup(func() { answer.Body.Close() })
	switch name {
	case "hang up":
		io.ReadFull(answer.Body, make([]byte, 10))
		answer.Body.Close()
	case "cancel": // the body is neither read nor closed
		cancel()
	case "error", "cut":
		if _, err := io.ReadAll(answer.Body); err == nil && name == "cut" {
			t.Error("the answer is whole")
		}
		answer.Body.Close()
	}
}

// Calls at once, of which some are cancelled, break off or are refused, leave exact totals: each call that ended costs what the
// provider counts, no hold is left, and the limit holds.
func TestManyMeteredCallsReconcileWithTheProvider(t *testing.T) {
	t.Parallel()
	reconcile(t, serviceproc.Run(t).URL, 300, 20)
}

// ending is how the reader of a call sees it end.
type ending struct {
	whole bool // read to the end, and not cancelled
	err   error
}

func reconcile(t *testing.T, service string, calls, most int) {
	t.Helper()
	m := newMeter(t, service, money.MicroUSD(150*calls), nil) // too little for the last of them
	endings := make([]ending, calls)
	atOnce(calls, most, func(i int) { endings[i] = m.random(t, i) })
	m.reconcile(t, endings)
}

var fakes = []string{
	"", "", "", "chunks=odd", "tools=1", "reasoning=1", "cached=1,chunks=odd", "usage=missing", "usage=negative", "error=midway",
	"error=429", "error=500", "cut=midway", "pace=1",
}

// random makes a call in a way that its number chooses. The number is its transaction's type and its id in the ledger.
func (m *meter) random(t *testing.T, i int) (e ending) {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	fake := fmt.Sprintf("seed=%d,%s", i, fakes[random.IntN(len(fakes))])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	more := ""
	if random.IntN(3) > 0 {
		more = streamedCall
	}
	way := random.IntN(6)
	if way == 0 {
		defer time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, cancel).Stop()
	}
	r := m.request(ctx, providerPaths[i%3], fake, more)
	r.Header.Set("X-Call", strconv.Itoa(i))
	transport := &metered.Transport{Session: m.session, Prices: m.table, Base: m.base, ActionType: strconv.Itoa(i), OnError: func(err error) {
		if _, is := errors.AsType[*metered.UsageMissing](err); !is {
			t.Error(err)
		}
	}}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return ending{err: err}
	}
	defer answer.Body.Close()
	if way == 1 {
		io.ReadFull(answer.Body, make([]byte, 1+random.IntN(500)))
		return ending{}
	}
	_, err = io.ReadAll(answer.Body)
	if ctx.Err() != nil { // a cancelled answer that is in a buffer can be read to its end, and costs what had come before
		return ending{}
	}
	return ending{err == nil, err}
}

// reconcile compares the usage of the session with the ledger of the provider and with what the callers saw.
func (m *meter) reconcile(t *testing.T, endings []ending) {
	t.Helper()
	transactions, info := atRest(t, m.session, m.agent.Transactions)
	m.server.Close() // a caller may have the last byte of an answer before the provider has counted it: this waits until it has
	ledger := map[string]fakeprovider.Record{}
	for _, r := range m.provider.Ledger() {
		ledger[r.ID] = r
	}
	var used money.MicroUSD
	booked := map[string]client.TransactionInfo{}
	for _, tx := range transactions {
		booked[tx.ActionType] = tx
		if tx.Status == "committed" {
			used += tx.Value
		}
		if tx.Status == "pending" || tx.Overage != 0 {
			t.Errorf("%+v", tx)
		}
	}
	if used != info.ValueUsed || used > info.MaxValue || int64(len(booked)) != info.ActionCount {
		t.Errorf("%s committed in %d transactions, the session has %+v", used, len(booked), info)
	}
	counts := map[string]int{}
	for i, e := range endings {
		record, called := ledger[strconv.Itoa(i)]
		tx, held := booked[strconv.Itoa(i)]
		kind := "broken off"
		_, isLimit := errors.AsType[*client.LimitReached](e.err)
		_, isMissing := errors.AsType[*metered.UsageMissing](e.err)
		switch {
		case isLimit:
			kind = "over the limit"
			if called || held {
				t.Errorf("call %d was refused: %+v, %+v", i, record, tx)
			}
		case isMissing:
			kind = "without usage"
			if tx.Status != "committed" || tx.Value < m.cost(t, record) {
				t.Errorf("call %d has no usage: %+v, %+v", i, tx, record)
			}
		case e.whole && record.Status != http.StatusOK:
			kind = "refused by the provider"
			if tx.Status != "rolled_back" {
				t.Errorf("call %d was refused by the provider: %+v", i, tx)
			}
		case e.whole && record.Ended:
			kind = "ended"
			if cost := m.cost(t, record); tx.Status != "committed" || tx.Value != cost {
				t.Errorf("call %d cost %s: %+v, %+v", i, cost, tx, record)
			}
		}
		counts[kind]++
	}
	t.Logf("%v, %s of %s used", counts, info.ValueUsed, info.MaxValue)
	for _, kind := range []string{"ended", "broken off", "over the limit", "without usage", "refused by the provider"} {
		if counts[kind] == 0 {
			t.Errorf("no call was %s", kind)
		}
	}
}

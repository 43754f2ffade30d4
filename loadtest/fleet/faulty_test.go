package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/money"
	"remit/test/redistest"
	"remit/test/serviceproc"
)

// stopHonest ends the honest service, if a test has started it.
var stopHonest = func() {}

// honestURL starts the service that the tests share, once. Each run has an organization of its own there.
var honestURL = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "remit-fleet-")
	if err != nil {
		return "", err
	}
	settings := []string{"REMIT_LISTEN=127.0.0.1:0", "REMIT_DATA_DIR=" + filepath.Join(dir, "data"), "REMIT_RATE_LIMITS=off"}
	service, err := serviceproc.LaunchWith(dir, settings)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	stopHonest = func() {
		if err := errors.Join(service.Stop(), os.RemoveAll(dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return service.URL, nil
})

// fault is what a faulty service does with a request, instead of answering it honestly.
type fault func(q *asked) answered

// faulty is the honest service behind a proxy that does one thing wrong.
type faulty struct {
	url    string
	client *http.Client
	issued sync.Map     // refresh tokens that a refresh has returned
	count  atomic.Int64 // of what goes wrong seldom
}

// startFaulty serves until the test ends, and returns the base URL.
func startFaulty(t *testing.T, wrong fault) string {
	t.Helper()
	redistest.SkipIfShort(t) // the service runs on one
	transport := &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}
	s := &faulty{url: must(honestURL())(t), client: &http.Client{Transport: transport}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := wrong(&asked{s, r, body})
		maps.Copy(w.Header(), answer.header)
		w.Header().Del("Content-Length") // of what is changed
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.body)
	}))
	t.Cleanup(transport.CloseIdleConnections)
	t.Cleanup(server.Close)
	return server.URL
}

// asked is a request on its way to the honest service. A fault may change it.
type asked struct {
	*faulty
	*http.Request
	body members
}

// answered is what the service answers, on its way back. A fault may change it.
type answered struct {
	status int
	header http.Header
	body   members
}

func (q *asked) honestly() answered {
	r, err := http.NewRequestWithContext(q.Context(), q.Method, q.url+q.URL.RequestURI(), bytes.NewReader(q.body))
	if err != nil {
		panic(err)
	}
	r.Header = q.Header
	answer, err := q.client.Do(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the run is over
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return answered{answer.StatusCode, answer.Header, body}
}

// undone does nothing, and shows what the request is about.
func (q *asked) undone() answered {
	q.Method, q.URL.Path, q.body = http.MethodGet, path.Dir(q.URL.Path), nil
	return q.honestly()
}

// twice asks twice. The second time is another request to the service.
func (q *asked) twice() (first, second answered) {
	first = q.honestly()
	q.Header.Del("Idempotency-Key")
	return first, q.honestly()
}

func tells(status int, format string, args ...any) answered {
	return answered{status, http.Header{"Content-Type": {"application/json"}}, fmt.Appendf(nil, format, args...)}
}

func problemOf(status int, code string) answered { return tells(status, `{"code":%q}`, code) }

func (r answered) code() string { return readProblem(reply{status: r.status, body: r.body}).Code }

// members is JSON whose members a fault changes by their names, wherever they are. Counts are read as whole dollars.
type members []byte

func member(name string) *regexp.Regexp {
	return regexp.MustCompile(`"` + name + `":("[^"]*"|[^,}\]]*)`)
}

func (m members) number(name string) (n money.MicroUSD) {
	if found := member(name).FindSubmatch(m); found != nil {
		_ = n.UnmarshalText(found[1])
	}
	return n
}

func (m *members) set(name string, to any) {
	*m = member(name).ReplaceAllLiteral(*m, fmt.Appendf(nil, `"%s":%v`, name, to))
}

func (m *members) add(name string, by money.MicroUSD) {
	*m = member(name).ReplaceAllFunc(*m, func(found []byte) []byte {
		return fmt.Appendf(nil, `"%s":%s`, name, members(found).number(name)+by)
	})
}

func (m *members) replace(text, by string) { *m = bytes.ReplaceAll(*m, []byte(text), []byte(by)) }

// Requests of the fleet. A star is an id.
const (
	onAction   = "POST /v1/sessions/*/actions"
	onEnd      = "POST /v1/sessions/*/end"
	onRead     = "GET /v1/sessions/*"
	onBegin    = "POST /v1/transactions"
	onCommit   = "POST /v1/transactions/*/commit"
	onRollback = "POST /v1/transactions/*/rollback"
	onRefresh  = "POST /v1/auth/refresh"
)

// at is a fault at these requests. All others are answered honestly.
func at(requests string, wrong fault) fault {
	return func(q *asked) answered {
		if is, _ := path.Match(requests, q.Method+" "+q.URL.Path); is {
			return wrong(q)
		}
		return q.honestly()
	}
}

// lies is a fault in the answers to these requests.
func lies(requests string, change func(r *answered)) fault {
	return at(requests, func(q *asked) answered {
		r := q.honestly()
		change(&r)
		return r
	})
}

// adds is the lie that a number is larger by so much.
func adds(name string, by money.MicroUSD) func(*answered) {
	return func(r *answered) { r.body.add(name, by) }
}

// seldomEvery is how often a fault occurs that is seldom: at one request in N.
const seldomEvery = 20

func (s *faulty) occasion() bool { return s.count.Add(1)%seldomEvery == 0 }

func seldom(wrong fault) fault {
	return func(q *asked) answered {
		if q.occasion() {
			return wrong(q)
		}
		return q.honestly()
	}
}

// dry asks what a charge would do.
func dry(q *asked) answered {
	q.Header.Del("Idempotency-Key") // which has no dry run
	q.body = append([]byte(`{"dry_run":true,`), q.body[1:]...)
	return q.honestly()
}

// losing is a fault that loses the answer to a change by an agent, for one change in N, after the change.
func losing(instead func() answered) fault {
	return func(q *asked) answered {
		r := q.honestly()
		isChange := q.Method == http.MethodPost && q.Header.Get("Authorization") != "" && r.status < 300
		if isChange && r.header.Get("Idempotent-Replayed") == "" && q.occasion() {
			return instead()
		}
		return r
	}
}

// Faults of several tests. The first four break no rule: they only make outcomes unknown, and totals must still reconcile.
var (
	noFault          = (*asked).honestly
	failsAfterCharge = losing(func() answered { return problemOf(http.StatusServiceUnavailable, "outcome_unknown") })
	hangsUp          = losing(func() answered { panic(http.ErrAbortHandler) })
	startsSlowly     = at(onRefresh, func(q *asked) answered {
		if q.count.Add(1) <= seldomEvery {
			return problemOf(http.StatusServiceUnavailable, codeUnavailable)
		}
		return q.honestly()
	})

	chargesTwice     = at(onAction, func(q *asked) answered { _, second := q.twice(); return second })
	chargesTwiceLies = at(onAction, func(q *asked) answered { first, _ := q.twice(); return first })
	losesCharges     = at(onAction, seldom(dry))
	refusesEarly     = at(onAction, seldom(func(q *asked) answered {
		r := dry(q)
		if r.status == http.StatusOK {
			r.status = http.StatusForbidden
			r.body = append([]byte(`{"code":"session_limit_reached","limit":"max_actions",`), r.body[1:]...)
		}
		return r
	}))
	breaksSuccessor = at(onRefresh, func(q *asked) answered {
		if _, spent := q.issued.Load(decoded[tokenPair](q.body).RefreshToken); spent {
			return problemOf(http.StatusUnauthorized, "invalid_refresh_token")
		}
		r := q.honestly()
		q.issued.Store(decoded[tokenPair](r.body).RefreshToken, true)
		return r
	})
	neverEnds = at(onEnd, func(q *asked) answered {
		id := path.Base(path.Dir(q.URL.Path))
		return tells(http.StatusOK, `{"id":%q,"status":"completed","ended_at":"2026-01-02T03:04:05.678Z"}`, id)
	})
	showsLess     = lies(onRead, adds("action_count", -money.USD))
	showsMore     = lies(onRead, adds("value_used_usd", 1))
	keepsParts    = lies(onRead, func(r *answered) { r.body.set("value_delegated_usd", 1) })
	neverSuspends = at("POST /v1/sessions/*/suspend", (*asked).undone)
)

// smallRun is a run long enough for both limits to be reached. Few of its requests are in flight at once: on a busy machine hundreds
// would wait until the service or the SDK gives them up.
func smallRun(addr string) config {
	return config{agents: 5, sessions: 4, rate: 2000, duration: 400 * time.Millisecond, inFlight: callers, addr: addr, transactions: 40}
}

// untilCharges returns a context that ends when a run is under way: with its twentieth charge.
func untilCharges(t *testing.T) (context.Context, fault) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var charges atomic.Int64
	return ctx, func(q *asked) answered {
		if path.Base(q.URL.Path) == "actions" && charges.Add(1) == 20 {
			cancel()
		}
		return q.honestly()
	}
}

func ran(ctx context.Context, cfg config) (code int, report, progress string) {
	var stdout, stderr bytes.Buffer
	code = run(ctx, cfg, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

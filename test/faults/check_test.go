package faults

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/money"
)

// charged is a call that charges session s one action and a dollar.
func charged(outcome Outcome, key string) Call {
	c := Call{Kind: Charge, Session: "s", Key: key, Outcome: outcome, Effect: Effect{Actions: 1, Used: money.USD}, Code: "unavailable", Status: 503}
	if outcome == OK {
		c.Status, c.Code, c.Answer = 200, "", `{"action_count":1,"max_actions":9,"value_used_usd":1,"max_value_usd":9}`
	}
	return c
}

func with(c Call, change func(*Call)) Call {
	change(&c)
	return c
}

// stored is session s with that many actions of one dollar each.
func stored(actions int64) Stored {
	return Stored{Sessions: map[string]Session{
		"s": {Actions: actions, MaxActions: 9, Used: money.MicroUSD(actions) * money.USD, MaxValue: 9 * money.USD},
	}}
}

// transaction is a call about transaction t, which holds two dollars of session s.
func transaction(kind Kind, outcome Outcome) Call {
	c := Call{Kind: kind, Subject: "t", Session: "s", Key: string(kind), Outcome: outcome, Status: 200, Effect: Effect{Held: -2 * money.USD}}
	switch {
	case outcome == Unknown:
		c.Status = 0
	case outcome == Refused:
		c.Status, c.Code = 409, "transaction_not_pending"
	}
	switch kind {
	case Begin:
		c.Subject, c.Answer, c.Effect = "", `{"id":"t"}`, Effect{Actions: 1, Held: 2 * money.USD}
	case Commit:
		c.Effect.Used = money.USD
	}
	return c
}

// leased is a call about a lease of 4 actions and two dollars of session s, of which one of each is spent.
func leased(kind Kind, outcome Outcome) Call {
	c := Call{Kind: kind, Session: "s", Key: string(kind), Outcome: outcome, Status: 200, Effect: Effect{Actions: 4, Held: 2 * money.USD}}
	if kind == Settle {
		c.Effect = Effect{Actions: -3, Used: money.USD, Held: -2 * money.USD}
	}
	if outcome == Unknown {
		c.Status = 0
	}
	return c
}

// settledTwice is a lease that is granted, and settled with two keys at once. Where it is refused, the lease is unknown.
func settledTwice(outcomes ...Outcome) []Call {
	calls := []Call{leased(Grant, OK)}
	for i, outcome := range outcomes {
		c := leased(Settle, outcome)
		c.Subject, c.Key = "l", strings.Repeat("k", i+1)
		if outcome == Refused {
			c.Status, c.Code = 404, "not_found"
		}
		calls = append(calls, c)
	}
	return calls
}

func afterTransaction(status string, actions int64, used, held money.MicroUSD) Stored {
	return Stored{
		Sessions:     map[string]Session{"s": {Actions: actions, MaxActions: 9, Used: used, Held: held, MaxValue: 9 * money.USD}},
		Transactions: map[string]string{"t": status},
	}
}

func at(began, ended int, c Call) Call {
	c.Began, c.Ended = time.Duration(began), time.Duration(ended)
	return c
}

// The histories are forged: each rule must find its violation, and accept the closest correct history.
func TestCheckFindsEachViolation(t *testing.T) {
	t.Parallel()
	refreshed := func(successor string) Call {
		return Call{Kind: Refresh, Subject: "token", Outcome: OK, Status: 200, Answer: successor}
	}
	revoked := Call{Kind: Revoke, Subject: "family", Outcome: OK, Status: 200}
	used := Call{Kind: Use, Subject: "family", Outcome: OK, Status: 200}
	for _, tc := range []struct {
		name   string
		calls  []Call
		stored Stored
		want   []Rule
	}{
		{"an acknowledged charge that is stored", []Call{charged(OK, "")}, stored(1), nil},
		{"an acknowledged charge that is not stored", []Call{charged(OK, "")}, stored(0), []Rule{RuleLost, RuleLost}},
		{"an unavailable charge that is not stored", []Call{charged(Refused, "")}, stored(0), nil},
		{"an unavailable charge that is stored", []Call{charged(Refused, "")}, stored(1), []Rule{RuleSurplus, RuleSurplus}},
		{"a charge of unknown outcome that is stored", []Call{charged(Unknown, "")}, stored(1), nil},
		{"a charge of unknown outcome that is not stored", []Call{charged(Unknown, "")}, stored(0), nil},
		{"a charge of unknown outcome that is stored twice", []Call{charged(Unknown, "")}, stored(2), []Rule{RuleSurplus, RuleSurplus}},
		{"a key that is acknowledged twice, stored once", []Call{charged(OK, "k"), charged(OK, "k")}, stored(1), nil},
		{"a key that is acknowledged twice, stored twice", []Call{charged(OK, "k"), charged(OK, "k")}, stored(2), []Rule{RuleSurplus, RuleSurplus}},
		{"a key of unknown outcome, then acknowledged, not stored", []Call{charged(Unknown, "k"), charged(OK, "k")}, stored(0), []Rule{RuleLost, RuleLost}},
		{"a key of unknown outcome, then unavailable, stored", []Call{charged(Unknown, "k"), charged(Refused, "k")}, stored(1), nil},
		{"a key of unknown outcome, then refused for good, stored", []Call{charged(Unknown, "k"), with(charged(Refused, "k"), func(c *Call) { c.Status, c.Code = 403, "session_limit_reached" })},
			stored(1), []Rule{RuleSurplus, RuleSurplus}},
		{"a key that is acknowledged and refused", []Call{charged(OK, "k"), with(charged(Refused, "k"), func(c *Call) { c.Status, c.Code = 403, "session_limit_reached" })},
			stored(1), []Rule{RuleKey}},
		{"a key with two answers", []Call{charged(OK, "k"), with(charged(OK, "k"), func(c *Call) { c.Answer = strings.Replace(c.Answer, "9", "8", 1) })},
			stored(1), []Rule{RuleKey}},
		{"two keys with an answer each", []Call{charged(OK, "k"), charged(OK, "l")}, stored(2), nil},
		{"a session above its limit", []Call{charged(Unknown, "")}, Stored{Sessions: map[string]Session{"s": {Actions: 1, MaxActions: 0}}}, []Rule{RuleLimit}},
		{"a session whose value and holds are above its limit", []Call{transaction(Begin, OK)},
			Stored{Sessions: map[string]Session{"s": {Actions: 1, MaxActions: 9, Held: 2 * money.USD, MaxValue: money.USD}}, Transactions: map[string]string{"t": "pending"}},
			[]Rule{RuleLimit}},
		{"an answer above a limit", []Call{with(charged(OK, ""), func(c *Call) { c.Answer = `{"action_count":2,"max_actions":1}` })}, stored(1), []Rule{RuleLimit}},
		{"a charged session that is not stored", []Call{charged(OK, "")}, Stored{}, []Rule{RuleMissing}},
		{"a session whose usage lacks an action", []Call{charged(OK, "")}, withUsed(stored(1), 0, money.USD, 1, money.USD), []Rule{RuleUsage}},
		{"a session whose usage by type is a micro-dollar more", []Call{charged(OK, "")}, withUsed(stored(1), 1, money.USD, 1, money.USD+1), []Rule{RuleUsage}},
		{"a session without usage", []Call{charged(OK, "")}, withUsed(stored(1), 0, 0, 0, 0), []Rule{RuleUsage, RuleUsage}},
		{"a created session that is not stored", nil, Stored{Missing: []string{"s"}}, []Rule{RuleLost}},

		{"a transaction begun, its hold stored", []Call{transaction(Begin, OK)}, afterTransaction("pending", 1, 0, 2*money.USD), nil},
		{"a transaction begun, its hold lost", []Call{transaction(Begin, OK)}, afterTransaction("pending", 1, 0, 0), []Rule{RuleLost}},
		{"a transaction begun, not stored", []Call{transaction(Begin, OK)}, afterTransaction("", 1, 0, 2*money.USD), []Rule{RuleStatus}},
		{"a transaction committed", []Call{transaction(Begin, OK), transaction(Commit, OK)}, afterTransaction("committed", 1, money.USD, 0), nil},
		{"a transaction committed, its hold still there", []Call{transaction(Begin, OK), transaction(Commit, OK)}, afterTransaction("committed", 1, money.USD, 2*money.USD), []Rule{RuleSurplus}},
		{"a transaction committed, stored as pending", []Call{transaction(Begin, OK), transaction(Commit, OK)}, afterTransaction("pending", 1, money.USD, 0), []Rule{RuleStatus}},
		{"a commit of unknown outcome that happened", []Call{transaction(Begin, OK), transaction(Commit, Unknown)}, afterTransaction("committed", 1, money.USD, 0), nil},
		{"a commit of unknown outcome that did not", []Call{transaction(Begin, OK), transaction(Commit, Unknown)}, afterTransaction("pending", 1, 0, 2*money.USD), nil},
		{"a commit refused that happened", []Call{transaction(Begin, OK), transaction(Rollback, OK), transaction(Commit, Refused)}, afterTransaction("committed", 1, 0, 0), []Rule{RuleStatus}},
		{"a rollback, and a refused commit", []Call{transaction(Begin, OK), transaction(Rollback, OK), transaction(Commit, Refused)}, afterTransaction("rolled_back", 1, 0, 0), nil},
		{"a commit and a rollback", []Call{transaction(Begin, OK), transaction(Rollback, OK), transaction(Commit, OK)}, afterTransaction("committed", 1, money.USD, 0), []Rule{RuleSurplus, RuleBothEnds}},

		{"a lease granted, and counted whole", []Call{leased(Grant, OK)}, afterTransaction("", 4, 0, 2*money.USD), nil},
		{"a lease granted, not counted", []Call{leased(Grant, OK)}, afterTransaction("", 0, 0, 0), []Rule{RuleLost, RuleLost}},
		{"a lease settled, the rest returned", []Call{leased(Grant, OK), leased(Settle, OK)}, afterTransaction("", 1, money.USD, 0), nil},
		{"a lease settled, the rest kept", []Call{leased(Grant, OK), leased(Settle, OK)}, afterTransaction("", 4, 2*money.USD, 0), []Rule{RuleSurplus, RuleSurplus}},
		{"a lease settled twice", []Call{leased(Grant, OK), leased(Settle, OK)}, afterTransaction("", 0, money.USD, 0), []Rule{RuleLost}},
		{"a settlement of unknown outcome that happened", []Call{leased(Grant, OK), leased(Settle, Unknown)}, afterTransaction("", 1, money.USD, 0), nil},
		{"a settlement of unknown outcome that did not", []Call{leased(Grant, OK), leased(Settle, Unknown)}, afterTransaction("", 4, 0, 2*money.USD), nil},
		{"two settlements at once", settledTwice(OK, OK), afterTransaction("", 1, money.USD, 0), nil},
		{"two, of which both count", settledTwice(OK, OK), afterTransaction("", -2, 2*money.USD, 0), []Rule{RuleLost, RuleSurplus}},
		{"two, the first after the lease was forgotten", settledTwice(Refused, OK), afterTransaction("", 1, money.USD, 0), []Rule{RuleDenied}},
		{"two, the second after the lease was forgotten", settledTwice(OK, Refused), afterTransaction("", 1, money.USD, 0), []Rule{RuleDenied}},
		{"two, of which none counts", settledTwice(Refused, OK), afterTransaction("", 4, 0, 2*money.USD), []Rule{RuleSurplus, RuleLost, RuleSurplus, RuleDenied}},
		{"two, one of unknown outcome that happened", settledTwice(Refused, Unknown), afterTransaction("", 1, money.USD, 0), []Rule{RuleDenied}},
		{"a settlement that is refused", []Call{{Kind: Settle, Outcome: Refused, Status: 409, Code: "lease_settled"}}, Stored{}, []Rule{RuleAnswer}},

		{"a use before the revocation was acknowledged", []Call{at(1, 9, used), at(2, 5, revoked)}, Stored{}, nil},
		{"a use after the revocation was acknowledged", []Call{at(2, 5, revoked), at(6, 7, used)}, Stored{}, []Rule{RuleRevoked}},
		{"a use after the first of two acknowledgements", []Call{at(6, 7, used), at(8, 9, revoked), at(2, 5, revoked)}, Stored{}, []Rule{RuleRevoked}},
		{"a use after a revocation of unknown outcome", []Call{with(at(2, 5, revoked), func(c *Call) { c.Outcome, c.Status = Unknown, 0 }), at(6, 7, used)}, Stored{}, nil},
		{"a refused use", []Call{at(2, 5, revoked), with(at(6, 7, used), func(c *Call) { c.Outcome, c.Status, c.Code = Refused, 401, "invalid_token" })}, Stored{}, nil},
		{"a use of something else", []Call{at(2, 5, revoked), with(at(6, 7, used), func(c *Call) { c.Subject = "another" })}, Stored{}, nil},

		{"the same successor again", []Call{refreshed("one"), refreshed("one")}, Stored{}, nil},
		{"two successors", []Call{refreshed("one"), refreshed("two")}, Stored{}, []Rule{RuleSuccessors}},
		{"a live token", nil, Stored{Live: map[string][]string{"f": {"one"}}}, nil},
		{"two live tokens", nil, Stored{Live: map[string][]string{"f": {"one", "two"}}}, []Rule{RuleLive}},

		{"a refresh that logs out", []Call{{Kind: Refresh, Outcome: Refused, Status: 401, Code: "invalid_refresh_token"}}, Stored{}, []Rule{RuleDenied}},
		{"a session that is not found", []Call{{Kind: Charge, Outcome: Refused, Status: 404, Code: "not_found"}}, Stored{}, []Rule{RuleDenied}},
		{"a request that is refused as wrong", []Call{{Kind: Charge, Outcome: Refused, Status: 422, Code: "invalid_request"}}, Stored{}, []Rule{RuleAnswer}},
		{"an internal error", []Call{{Kind: End, Outcome: Unknown, Status: 500, Code: "internal_error"}}, Stored{}, []Rule{RuleAnswer}},
		{"an answer of unknown outcome", []Call{{Kind: End, Outcome: Unknown, Status: 503, Code: "outcome_unknown"}}, Stored{}, nil},
		{"no answer", []Call{{Kind: End, Outcome: Unknown}}, Stored{}, nil},
	} {
		if got := rulesOf(Check(tc.calls, withUsage(tc.stored))); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func rulesOf(violations []Violation) (rules []Rule) {
	for _, v := range violations {
		rules = append(rules, v.Rule)
	}
	return rules
}

// withUsed gives session s this usage, and this one by type.
func withUsed(s Stored, actions int64, value money.MicroUSD, actionsByType int64, valueByType money.MicroUSD) Stored {
	s.Usage, s.ByType = map[string]Used{"s": {Actions: actions, Value: value}}, map[string]Used{"s": {Actions: actionsByType, Value: valueByType}}
	return s
}

// withUsage gives each session the usage that it shows, unless it has another.
func withUsage(s Stored) Stored {
	if s.Usage != nil {
		return s
	}
	s.Usage = map[string]Used{}
	for id, session := range s.Sessions {
		s.Usage[id] = Used{Actions: session.Actions, Value: session.Used}
	}
	s.ByType = s.Usage
	return s
}

func TestOpenFilesAndConnectionsAreComparedWithTheBaseline(t *testing.T) {
	t.Parallel()
	before := resources{files: 30, connections: 6}
	for _, tc := range []struct {
		name string
		now  resources
		want []Rule
	}{
		{"as before", before, nil},
		{"a pool that has grown, with its files", resources{files: 84, connections: 60}, nil},
		{"a file that is left", resources{files: 31, connections: 6}, []Rule{RuleFiles}},
		{"a file that is left beside a pool that has grown", resources{files: 85, connections: 60}, []Rule{RuleFiles}},
		{"more connections than pools hold", resources{files: 189, connections: 165}, []Rule{RuleConns}},
	} {
		if got := rulesOf(compareOpen(before, tc.now, 2)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// dumped is a goroutine in the dump of a process, with the functions that it is in and what created it.
func dumped(id int, state, creator string, functions ...string) string {
	text := fmt.Sprintf("goroutine %d gp=0xc00 m=nil [%s]:\n", id, state)
	for _, function := range functions {
		text += function + "(0x1)\n\t/src/a.go:1 +0x1\n"
	}
	if creator != "" {
		text += "created by " + creator + "\n\t/src/b.go:2 +0x1\n"
	}
	return text + "\n"
}

func TestGoroutinesLeaveOutIdleWorkersAndBackground(t *testing.T) {
	t.Parallel()
	const pool, pipeline = "github.com/valyala/fasthttp.(*workerPool)", "github.com/redis/go-redis/v9.(*ClusterClient).processPipeline in goroutine "
	dump := "SIGQUIT: quit\nPC=0x4 m=0 sigcode=0\n\n" +
		dumped(1, "select", "", "runtime.gopark", "main.(*serve).serve") +
		dumped(2, "GC worker (idle)", "runtime.gcBgMarkStartWorkers in goroutine 1", "runtime.gopark", "runtime.gcBgMarkWorker") +
		dumped(3, "chan receive", pool+".getCh in goroutine 22", "runtime.chanrecv2", pool+".workerFunc") +
		dumped(4, "IO wait, 2 minutes", pool+".getCh in goroutine 22", "internal/poll.runtime_pollWait", pool+".workerFunc") +
		dumped(73, "sync.WaitGroup.Wait", "remit/internal/service.(*service).followRedis in goroutine 1",
			"sync.(*WaitGroup).Wait", "remit/internal/service.poll") +
		dumped(659, "IO wait", pipeline+"73", "net.(*conn).Read") +
		dumped(660, "IO wait", pipeline+"4", "net.(*conn).Read") +
		dumped(74, "sync.WaitGroup.Wait", "remit/server/internal/access.(*keyReads).start in goroutine 1",
			"sync.(*WaitGroup).Wait", "remit/server/internal/access.(*keyReads).run") +
		dumped(661, "IO wait", pipeline+"74", "net.(*conn).Read") +
		dumped(147, "sync.WaitGroup.Wait", "remit/redisstore/internal/kernel.Open in goroutine 1",
			"sync.(*WaitGroup).Wait", "remit/redisstore/internal/kernel.(*Core).keepUsage") +
		dumped(1926, "syscall", "sync.(*WaitGroup).Go in goroutine 147", "remit/redisstore/internal/kernel.(*Core).syncAll.func1") +
		"rax    0x0\n"
	var got []string
	for _, stack := range goroutinesIn(dump) {
		got = append(got, strings.Fields(stack)[1])
		if strings.Contains(stack, "rax") {
			t.Errorf("a stack contains registers: %q", stack)
		}
	}
	if want := []string{"1", "4", "73", "660"}; !slices.Equal(got, want) {
		t.Errorf("goroutines %v, want %v", got, want)
	}
	others := dumped(5, "select", "", "runtime.gopark", "main.(*serve).serve") + dumped(6, "IO wait", pipeline+"9", "net.(*conn).Read")
	if more := beyond(goroutinesIn(dump), goroutinesIn(others)); len(more) != 2 || !strings.HasPrefix(more[0]+more[1], "goroutine 4 ") {
		t.Errorf("beyond %q are %q", others, more)
	}
	for starter, stay := range map[string]int{"remit/redisstore/internal/kernel.(*Core).keepUsage": 0, "remit/redisstore.(*dueRecorder).run": 1} {
		begun := dumped(148, "runnable", "sync.(*WaitGroup).Go in goroutine 147", "sync.(*WaitGroup).Go.func1")
		left := goroutinesIn(dumped(147, "select", "", starter) + strings.Repeat(begun, mostStarted+2))
		if len(left) != stay+2 {
			t.Errorf("%d of %d that %s has started are left, want 2 beside the %d at rest", len(left), mostStarted+2, starter, stay)
		}
	}
	servers := strings.Repeat(dumped(9, "select", "", "remit/redisstore/internal/feed.(*Feeds).serve"), mostServed+2)
	if left := goroutinesIn(servers); len(left) != 2 {
		t.Errorf("%d of %d servers of feeds are left, want 2", len(left), mostServed+2)
	}
}

// A goroutine whose function has moved would count as leaked, and only in long runs.
func TestBackgroundNamesFunctionsThatExist(t *testing.T) {
	t.Parallel()
	names := regexp.MustCompile(`remit/([\w/]+)\.(?:\(\*(\w+)\)\.)?(\w+)`).FindAllStringSubmatch(strings.ReplaceAll(background+"|"+polling, `\`, ""), -1)
	if len(names) != 1+strings.Count(background+"|"+polling, "|") {
		t.Fatalf("%q", names)
	}
	for _, name := range names {
		files := must(filepath.Glob(filepath.Join("../..", name[1], "*.go")))(t)
		method := regexp.MustCompile(`func (?:\(\w+ \*` + name[2] + `\) )?` + name[3] + `\(`)
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && !strings.HasSuffix(file, "_test.go") && method.Match(text)
		}) {
			t.Errorf("no function %s", name[0])
		}
	}
}

func TestOnlyAnUnsentCallIsRefusedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		code   string
		want   Outcome
	}{
		{200, "", OK}, {201, "", OK}, {401, "invalid_token", Refused}, {403, "session_limit_reached", Refused},
		{503, "unavailable", Refused}, {503, "outcome_unknown", Unknown}, {503, "", Unknown}, {500, "internal_error", Unknown}, {502, "", Unknown},
	} {
		if got := outcomeOfAnswer(tc.status, tc.code); got != tc.want {
			t.Errorf("%d %s is %s, want %s", tc.status, tc.code, got, tc.want)
		}
	}
	h := NewHistory()
	c := NewCaller(h)
	defer c.Close()
	if call, _ := c.Do("http://127.0.0.1:1", Request{Call: Call{Kind: Read}, Method: "GET", Path: "/"}); call.Outcome != Refused || call.Code != codeUnreachable {
		t.Errorf("a call to a closed port: %+v", call)
	}
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer silent.Close()
	if call, _ := c.Do(silent.URL, Request{Call: Call{Kind: Read}, Method: "GET", Path: "/"}); call.Outcome != Unknown || call.Status != 0 {
		t.Errorf("a call whose connection is closed: %+v", call)
	}
	// The call is sent once. The outcome of a retry by net/http must not replace the lost answer.
	var once *httptest.Server
	answers := 1
	once = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answers--; answers < 0 {
			once.Listener.Close()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer once.Close()
	keyed := Request{Call: Call{Kind: Charge, Key: "k"}, Method: "POST", Path: "/", Body: object{}}
	if call, _ := c.Do(once.URL, keyed); call.Outcome != OK {
		t.Errorf("a call that is answered: %+v", call)
	}
	if call, _ := c.Do(once.URL, keyed); call.Outcome != Unknown || call.Code == codeUnreachable {
		t.Errorf("a call whose connection is closed, and then its listener: %+v", call)
	}
	if n := h.Count(func(Call) bool { return true }); n != 4 {
		t.Errorf("%d calls are recorded, want 4", n)
	}
}

package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	when        = `"2026-11-21T09:19:32Z"`
	fleetAgent  = `{"id":"a1","org_id":"o1","name":"scout","scopes":["read"],"status":"active","metadata":{},"created_at":` + when
	fleetBudget = `{"max_value_usd":100,"period":"month","value_reserved_usd":10.5,"value_used_usd":2,"remaining_usd":87.5,"period_started_at":` +
		when + `,"resets_at":` + when + `}`
	fleetDelivery = `{"id":"d1","webhook_id":"w1","event_seq":42,"type":"session.ended","status":"dead","attempt_count":7,"response_status":503,` +
		`"error":"no: \u001b[2J\tb\nc\u202e","duration_ms":1031,"created_at":` + when + `,"last_attempt_at":` + when + `}`
	fleetRequest = `"session_id":"s1","agent_id":"a1","add_actions":2,"add_value_usd":0.5,"reason":"more pages","created_at":` + when
)

func fleetSession(id, members string) string {
	return `{"id":"` + id + `","agent_id":"a1","status":"active","max_actions":10,"action_count":3,"max_value_usd":8,"value_used_usd":1.5,` +
		`"value_held_usd":0,"value_committed_usd":1.5,"scopes":[],"metadata":{},"expires_at":` + when + `,"created_at":` + when + members + `}`
}

var fleetAnswers = map[string]string{
	"POST /v1/agents/a1/suspend": fleetAgent + `,"suspended_at":` + when + `,"suspension_reason":"leak"}`,
	"POST /v1/agents/a1/resume":  fleetAgent + `}`,
	"PATCH /v1/agents/a1": fleetAgent + `,"limits":{"max_value_usd_per_day":5,"max_actions_per_minute":60,"max_open_sessions":7},` +
		`"usage":{"value_used_usd_today":1.25,"resets_at":` + when + `,"open_sessions":2}}`,
	"GET /v1/agents":               `[` + fleetAgent + `}]`,
	"GET /v1/organizations/o1":     `{"id":"o1","name":"acme","metadata":{},"created_at":` + when + `}`,
	"POST /v1/agents/suspend":      `{"suspended":12}`,
	"POST /v1/agents/resume":       `{"resumed":11}`,
	"POST /v1/sessions/s1/suspend": fleetSession("s1", `,"suspended_at":`+when+`,"suspension_reason":"odd"`),
	"POST /v1/sessions/s1/resume":  fleetSession("s1", ``),
	"POST /v1/sessions":            fleetSession("s2", `,"parent_session_id":"s1","max_value_usd_per_action":0.5`),
	"PATCH /v1/sessions/s1":        fleetSession("s1", `,"enforcement":"observe","observed_refusals":3,"actions_delegated":4,"value_delegated_usd":2`),
	"GET /v1/sessions/s1/requests": `[{"id":"r1","status":"pending",` + fleetRequest + `}]`,
	"POST /v1/sessions/s1/requests/r1/approve": `{"id":"r1","status":"approved","granted_actions":1,"granted_value_usd":0.25,"comment":"go on","decided_at":` +
		when + `,` + fleetRequest + `}`,
	"POST /v1/sessions/s1/requests/r1/deny": `{"id":"r1","status":"denied","comment":"too dear","decided_at":` + when + `,` + fleetRequest + `}`,
	"GET /v1/sessions/s1/tree": fleetSession("s1", `,"value_delegated_usd":4,"actions_delegated":5,"children":[`+
		fleetSession("s2", `,"children":[`+fleetSession("s3", `,"children":[]`)+`]`)+`,`+
		fleetSession("s4", `,"suspended_at":`+when+`,"children":[]`)+`]`),
	"GET /v1/webhooks/w1/deliveries":           `[` + fleetDelivery + `]`,
	"POST /v1/webhooks/w1/deliveries/d1/retry": fleetDelivery,

	"PUT /v1/budget":    fleetBudget,
	"GET /v1/budget":    fleetBudget,
	"DELETE /v1/budget": ``,

	"GET /v1/sessions/s9/tree": fleetSession("s9", `,"children":[`+fleetSession("s8", `,"children":[],"children_truncated":true`)+`]`),
}

// fleet is a service with fixed answers, and the terminal of a person with its API key.
type fleet struct {
	*terminal
	mu   sync.Mutex
	sent []string
	over atomic.Bool // whether the session of the tree has ended
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{terminal: newTerminal(t)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.env["REMIT_ADDR"], f.env["REMIT_API_KEY"] = server.URL, "rmk_1"
	return f
}

func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	place := r.Method + " " + r.URL.Path
	f.mu.Lock()
	f.sent = append(f.sent, strings.TrimSpace(place+" "+string(body)))
	f.mu.Unlock()
	answer, known := fleetAnswers[place]
	switch {
	case !known:
		http.Error(w, "the test has no answer for "+place, http.StatusNotImplemented)
	case answer == "":
		w.WriteHeader(http.StatusNoContent)
	case f.over.Load():
		io.WriteString(w, strings.Replace(answer, `"status":"active"`, `"status":"completed"`, 1))
	default:
		io.WriteString(w, answer)
	}
}

func (f *fleet) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[len(f.sent)-1]
}

func TestTheCommandsOfAFleetSendAndShow(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, test := range []struct {
		command string // words; a low line stands for a space in a word
		sent    string
		shown   []string
	}{
		{"agent suspend a1 --reason leak", `POST /v1/agents/a1/suspend {"reason":"leak"}`, []string{`^SUSPENDED +2026-11-21T09:19:32Z$`, `^REASON +leak$`}},
		{"agent resume a1", `POST /v1/agents/a1/resume {}`, []string{`^STATUS +active$`}},
		{"agent update a1 --max-value-usd-per-day 5 --max-actions-per-minute none --max-open-sessions 7",
			`PATCH /v1/agents/a1 {"limits":{"max_actions_per_minute":null,"max_open_sessions":7,"max_value_usd_per_day":5}}`,
			[]string{`^PER DAY +1.25 of 5 USD until 2026-11-21T09:19:32Z$`, `^PER MINUTE +60 actions$`, `^OPEN SESSIONS +2 of 7$`}},
		{"agent update a1 --name spy --scopes read,pay --description=", `PATCH /v1/agents/a1 {"name":"spy","description":"","scopes":["read","pay"]}`, nil},
		{"agent update a1 --scopes read --scopes pay --audience urn:a --audience urn:b", `PATCH /v1/agents/a1 {"scopes":["read","pay"],"audiences":["urn:a","urn:b"]}`, nil},
		{"agent update a1 --scopes=", `PATCH /v1/agents/a1 {"scopes":[]}`, nil},
		{"suspend-all --yes --reason leak", `POST /v1/agents/suspend {"all":true,"reason":"leak"}`, []string{`^SUSPENDED +12$`}},
		{"resume-all --yes", `POST /v1/agents/resume {"all":true}`, []string{`^RESUMED +11$`}},
		{"session suspend s1 --reason odd", `POST /v1/sessions/s1/suspend {"reason":"odd"}`, []string{`^REASON +odd$`}},
		{"session resume s1", `POST /v1/sessions/s1/resume {}`, []string{`^STATUS +active$`}},
		{"session create a1 --parent s1 --max-value-usd-per-action 0.5",
			`POST /v1/sessions {"agent_id":"a1","max_value_usd_per_action":0.5,"parent_session_id":"s1"}`,
			[]string{`^PARENT +s1$`, `^PER ACTION +0.5 USD$`}},
		{"session update s1 --max-value-usd-per-action none --enforcement observe",
			`PATCH /v1/sessions/s1 {"enforcement":"observe","max_value_usd_per_action":null}`,
			[]string{`^DELEGATED +4 actions, 2 USD$`, `^ENFORCEMENT +3 refusals observed \(observe\)$`}},
		{"session requests s1 --status pending", `GET /v1/sessions/s1/requests`, []string{`^r1  pending  \+2 +\+0.5 USD  2026-11-21T09:19:32Z  more pages$`}},
		{"session approve s1 r1 --add-actions 1 --add-value-usd 0.25 --comment go_on",
			`POST /v1/sessions/s1/requests/r1/approve {"add_actions":1,"add_value_usd":0.25,"comment":"go on"}`,
			[]string{`^ASKED +2 actions, 0.5 USD$`, `^GRANTED +1 actions, 0.25 USD$`, `^COMMENT +go on$`}},
		{"session deny s1 r1 --comment too_dear", `POST /v1/sessions/s1/requests/r1/deny {"comment":"too dear"}`, []string{`^STATUS +denied$`}},
		{"budget set 100 --period month", `PUT /v1/budget {"max_value_usd":100,"period":"month"}`, []string{`^RESERVED +10.5 USD$`}},
		{"budget show", `GET /v1/budget`, []string{`^REMAINING +87.5 USD$`, `^RESETS +2026-11-21T09:19:32Z$`}},
		{"budget delete", `DELETE /v1/budget`, []string{`^BUDGET +deleted$`}},
		{"session tree s1", `GET /v1/sessions/s1/tree`, []string{
			`^SESSION   AGENT  STATUS     ACTIONS           VALUE                  EXPIRES$`,
			`^s1        a1     active     3\+5 delegated/10  1.5\+4 delegated/8 USD  2026-11-21T09:19:32Z$`,
			`^├─ s2     a1     active     3/10 +1.5/8 USD`, `^│  └─ s3  a1 `, `^└─ s4     a1     suspended  3/10 `,
		}},
		{"webhook deliveries w1", `GET /v1/webhooks/w1/deliveries`,
			[]string{`^d1  42   session\.ended  dead    7         503       2026-11-21T09:19:32Z  -             no: \\x1b\[2J\\tb\\nc\\u202e$`}},
		{"webhook retry w1 d1", `POST /v1/webhooks/w1/deliveries/d1/retry`,
			[]string{`^SEQ +42$`, `^RESPONSE +503$`, `^ERROR +no: \\x1b\[2J\\tb\\nc\\u202e$`, `^TOOK +1\.031s$`, `^LAST ATTEMPT +2026-11-21T09:19:32Z$`}},
		{"budget show --json", `GET /v1/budget`, []string{`"resets_at":"2026-11-21T09:19:32Z"`}},
		{"session tree s1 --json", `GET /v1/sessions/s1/tree`, []string{`"children":\[{"id":"s3"`}},
		{"suspend-all --yes --json", `POST /v1/agents/suspend {"all":true}`, []string{`{"suspended":12}`}},
		{"session requests s1 --json", `GET /v1/sessions/s1/requests`, []string{`"add_value_usd":0.5`}},
		{"session tree s9", `GET /v1/sessions/s9/tree`, []string{`^└─ s8 `, `^Some children are not shown: a tree is read with at most 1000 sessions\.$`}},
	} {
		words := strings.Fields(test.command)
		for i, word := range words {
			words[i] = strings.ReplaceAll(word, "_", " ")
		}
		shown := f.good(words...).stdout
		wantEqual(t, test.command, f.last(), test.sent)
		has(t, shown, test.shown...)
	}
}

// People type the organization's name, so that the wrong API key stops no fleet.
func TestSuspendingAllAgentsIsConfirmed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		typed string
		exit  int
		sends bool
	}{{"acme\n", 0, true}, {"Acme\n", exitFailed, false}, {"\n", exitFailed, false}} {
		t.Run(fmt.Sprintf("%q", test.typed), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			w := f.open(80, "suspend-all")
			w.shows(`This suspends all agents of "acme". Type its name to continue:`)
			w.types(test.typed)
			w.exits(test.exit)
			wantEqual(t, "it sends "+f.last(), f.last() == `POST /v1/agents/suspend {"all":true}`, test.sends)
		})
	}
	f := newFleet(t)
	if r := f.run("resume-all"); r.exit != exitFailed || !strings.Contains(r.stderr, "needs --yes; nothing was changed") || f.sent != nil {
		t.Errorf("exit %d: %s, sent %q", r.exit, r.stderr, f.sent)
	}
}

func TestAWatchedTreeIsDrawnLiveUntilItsRootHasEnded(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.open(80, "session", "tree", "s1", "--watch", quick)
	w.shows("└─ s4 ")
	has(t, w.screen(), `\As1       █+▒+░+  80%  3\+5 delegated/10 actions$`, `^├─ s2    █+░+  30%  3/10 actions$`, `^│  └─ s3 █+`, `^└─ s4    █+░+  30%  suspended  3/10 actions$`)
	f.over.Store(true)
	w.exits(0)
	has(t, w.screen(), `\As1 .* 80%  completed  3\+5 delegated/10 actions$`)
	// Without a terminal it is printed once per change.
	if out := f.good("session", "tree", "s1", "--watch", quick, "--json").stdout; strings.Count(out, "\n") != 1 || !strings.Contains(out, `"completed"`) {
		t.Errorf("prints %s", out)
	}
	has(t, f.good("session", "tree", "s1", "--watch", quick).stdout, `^└─ s4 `)
}

package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/server/budgets"
)

func TestASessionShowsExactlyWhatItUsedHeldAndDelegated(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	child := w.newSession(ids["agent"], map[string]any{"parent_session_id": ids["session"], "max_actions": 3, "max_value_usd": 4.000001})
	page := b.get(ids.path(session)).want(200)
	page.says("2 of 10", "$1.25 of $20.00", "held $2.00", "delegated $4.000001", "delegated 3", "scout", "llm.call", "more is needed", "transaction.begun")
	wantEqual(t, "the tree leads to the child", slices.Contains(page.links(), sessions+"/"+child), true)
	b.get(sessions+"/"+child).says("a part of", "0 of 3")
	b.get(sessions).says("$4.000001", "held $2.00", "2 of 10")
}

func TestSessionsAreFiltered(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	other := w.newAgent("other")
	var made []string
	for range 26 {
		made = append(made, w.newSession(other, nil))
	}
	w.asAdmin("POST", "/v1/sessions/"+made[0]+"/end", map[string]any{})
	for path, want := range map[string]int{
		sessions: 25, sessions + "?status=completed": 1, sessions + "?status=revoked": 0,
		sessions + "?agent=" + ids["agent"]: 1, sessions + "?status=all&agent=" + other: 25,
	} {
		wantEqual(t, path, len(b.get(path).want(200).rows("Session")), want)
	}
}

func TestALargeTreeIsCut(t *testing.T) {
	t.Parallel()
	deep := func(n int) client.SessionTree { return client.SessionTree{Children: make([]client.SessionTree, n)} }
	tree := client.SessionTree{Children: []client.SessionTree{deep(150), deep(150)}}
	cut(&tree, new(int))
	shown := 2 + len(tree.Children[0].Children) + len(tree.Children[1].Children)
	if shown != shownInTree || !tree.Children[1].ChildrenTruncated || tree.Children[0].ChildrenTruncated {
		t.Errorf("%d of 302 are shown", shown)
	}
}

func TestALongStateIsCutInTheListAndWholeOnItsPage(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	long := strings.Repeat("a", 60_000)
	ids := w.sampleOf(texts{"scout", "more", "llm.call", long, "m"})
	got := b.get(ids.path(session)).want(200).says("aaa…")
	wantAtMost(t, "the bytes of the session's page", len(got.text), 60_000)
	b.get(Prefix+"/transactions/"+ids["transaction"]).want(200).says(long, "llm.call", "$2.00 held")
}

func TestAnOperatorCreatesASessionWithAllItsMembers(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, operator)
	parent := w.newSession(ids["agent"], map[string]any{"max_lease_seconds": 60, "enforcement": "observe"})
	on := ids.path(agent)
	page := b.send(b.get(on), sessions, "max_actions", "7", "max_value_usd", "1.000001", "expires_in_seconds", "10m", "max_value_usd_per_action", "$0.5",
		"max_committed_usd", "2", "max_lease_seconds", "30", "enforcement", "observe", "parent_session_id", parent, "scopes", "read",
		"thresholds", "50 90%", "metadata", `{"ticket": "T-7", "n": 12345678901234567890}`)
	page.want(http.StatusOK).says("The session is created", "0 of 7", "$0.00 of $1.000001")
	id := page.what[strings.LastIndexByte(page.what, '/')+1:]
	made := w.asAdmin("GET", "/v1/sessions/"+id, nil)
	for member, want := range map[string]any{
		"agent_id": ids["agent"], "parent_session_id": parent, "max_actions": 7, "max_value_usd": 1.000001, "max_value_usd_per_action": 0.5,
		"max_committed_usd": 2, "max_lease_seconds": 30, "enforcement": "observe", "scopes": "[read]", "thresholds": "[50 90]",
	} {
		wantEqual(t, member, fmt.Sprint(made[member]), fmt.Sprint(want))
	}
	_, text := w.askAPI("GET", "/v1/sessions/"+id, nil, "X-API-Key", w.keys[admin])
	wantContains(t, "the metadata as typed", text, `"n":12345678901234567890`)
	created, expires := must(time.Parse(time.RFC3339, made["created_at"].(string)))(t), must(time.Parse(time.RFC3339, made["expires_at"].(string)))(t)
	wantEqual(t, "its lifetime", expires.Sub(created).Round(time.Second), 10*time.Minute)
	b.send(b.get(sessions+"?agent="+ids["agent"]), sessions).says("The session is created", "0 of 1,000", "of $100.00")
}

func TestTheFormOfASessionShowsTheServicesDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{defaults: budgets.SessionDefaults{MaxActions: 1234, MaxValue: 5_500_001, Lifetime: 90 * time.Minute}})
	ids := w.sample()
	for _, on := range []string{ids.path(agent), sessions} {
		page := w.as(t, operator).get(on).says("1,234 actions, $5.500001 and 1h30m")
		controls := controlsOf(page.formNode(sessions, "post"))
		for name, want := range map[string]string{"max_actions": "1234", "max_value_usd": "5.500001", "expires_in_seconds": "1h30m", "thresholds": "80 100"} {
			wantEqual(t, on+": the default of "+name, attribute(controls[name], "placeholder"), want)
		}
	}
}

func TestARefusalByALimitMarksItsField(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, operator)
	ended := w.newSession(ids["agent"], nil)
	w.asAdmin("POST", "/v1/sessions/"+ended+"/end", map[string]any{})
	w.asAdmin(http.MethodPut, "/v1/budget", map[string]any{"max_value_usd": 30, "period": "none"})
	revoked := w.sample()["agent"]
	w.asAdmin("POST", "/v1/agents/"+revoked+"/revoke", map[string]any{})
	for _, test := range []struct {
		field string
		pairs []string
	}{
		{"agent_id", []string{"agent_id", ended, "max_value_usd", "1"}},
		{"agent_id", []string{"agent_id", revoked, "max_value_usd", "1"}},
		{"parent_session_id", []string{"parent_session_id", ids["agent"]}},
		{"parent_session_id", []string{"parent_session_id", ended}},
		{"max_actions", []string{"parent_session_id", ids["session"], "max_actions", "1000"}},
		{"max_value_usd", []string{"parent_session_id", ids["session"], "max_value_usd", "1000"}},
		{"max_value_usd", []string{"max_value_usd", "50"}},
	} {
		got := b.send(b.get(sessions), sessions, append([]string{"agent_id", ids["agent"]}, test.pairs...)...)
		for name, control := range controlsOf(got.formNode(sessions, "post")) {
			wantEqual(t, fmt.Sprintf("%v: a mark at %s of %q", test.pairs, name, got.words()), has(control, "aria-invalid"), name == test.field)
		}
	}
}

func TestALifetimeIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int64{1, 59, 60, 90, 600, 3600, 3601, 5400, 36000, 86400, 2_592_000} {
		text := SessionDefaults{Lifetime: time.Duration(seconds) * time.Second}.Lives()
		wantEqual(t, text, must(readLifetime(text))(t), any(seconds))
	}
	for text, want := range map[string]any{"": nil, "900": int64(900), "90m": int64(5400), "24h": int64(86400)} {
		wantEqual(t, text, must(readLifetime(text))(t), want)
	}
	for _, text := range []string{"1.5s", "soon", "1d", "99999999999999999999", "1h 30m", "0x10"} {
		_, err := readLifetime(text)
		wantEqual(t, text+" is refused", err != nil, true)
	}
}

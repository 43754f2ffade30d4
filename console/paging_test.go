package console

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/valyala/fasthttp"
	"remit/internal/cli"
)

// way returns where the link of this name leads, "" for none.
func (a *answer) way(name string) string {
	a.t.Helper()
	for link := range a.elements("a") {
		if textOf(link) == name {
			return attribute(link, "href")
		}
	}
	return ""
}

// rows returns the texts of the cells of this label, and their exact times.
func (a *answer) rows(label string) (texts []string) {
	a.t.Helper()
	for cell := range a.elements("td") {
		if attribute(cell, "data-label") != label {
			continue
		}
		text := textOf(cell)
		for part := range cell.Descendants() {
			text += attribute(part, "datetime")
		}
		texts = append(texts, text)
	}
	return texts
}

func TestEveryListLeadsBackByOnePage(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	many, secret := w.newSecretAgent("many")
	access := ""
	for range 102 {
		access = w.exchange(many, secret)
	}
	holder := w.newSession(many, map[string]any{"max_actions": 100})
	for range 60 {
		w.newSession(many, nil)
		w.asAgent(access, "/v1/transactions", map[string]any{"session_id": holder, "action_type": "x"})
	}
	for range 101 {
		w.asAdmin("POST", "/v1/webhooks/"+ids["webhook"]+"/test", map[string]any{})
	}
	for n := range 101 {
		w.newAgent(fmt.Sprint("agent ", n))
	}
	w.settled()
	for path, label := range map[string]string{
		agents + "?sort=name": "Name", sessions + "?status=all": "Session", sessions + "/" + holder: "Action type", agents + "/" + many: "Family",
		webhooks + "/" + ids["webhook"]: "Created", eventsPath: "Number",
	} {
		b.leadsBack(path, label)
	}
}

// leadsBack goes two pages on and two back, once more if the list has grown meanwhile: events come when their feed is served.
func (b *browser) leadsBack(path, label string) {
	b.t.Helper()
	for {
		first := b.get(path).want(200)
		second := b.get(first.way("Next page")).want(200)
		third := b.get(second.way("Next page")).want(200)
		again := b.get(third.way("Previous page")).want(200)
		var rows [6][]string
		for i, page := range []*answer{first, second, third, again, b.get(again.way("Previous page")), b.get(third.way("First page"))} {
			rows[i] = page.want(200).rows(label)
		}
		if !slices.Equal(b.get(path).want(200).rows(label), rows[0]) {
			continue
		}
		if first.way("Previous page") != "" || len(rows[0]) != len(rows[1]) || slices.Equal(rows[1], rows[0]) || slices.Equal(rows[2], rows[1]) {
			b.t.Errorf("%s: a page that another follows is not full, or its next pages are the same: %q", path, rows[:3])
		}
		wantEqual(b.t, path+", its pages on the way back", [3][]string(rows[3:]), [3][]string{rows[1], rows[0], rows[0]})
		return
	}
}

func TestTheWayBackIsBounded(t *testing.T) {
	t.Parallel()
	at := func(cursor, past string) string { return query("/x", "cursor", cursor, "past", past) }
	visited := func(address string) paging {
		u := must(url.Parse(address))(t)
		ctx := new(fasthttp.RequestCtx)
		ctx.Request.SetRequestURI(address)
		cursor := u.Query().Get("cursor")
		next := fmt.Sprintf("%022d", atoi(cursor)+1)
		return (&visit{query: ctx.QueryArgs()}).paged(cursor, next, at)
	}
	page, longest := visited("/x"), 0
	for range 2 * mostPast {
		longest = max(longest, len(page.Next))
		page = visited(page.Next)
	}
	wantAtMost(t, "the bytes of an address", longest, 1000)
	back := 0
	for ; page.Previous != ""; back++ {
		page = visited(page.Previous)
	}
	wantEqual(t, "by how many pages it leads back", back, mostPast)
	wantEqual(t, "the address of the first", page.First, "/x")
	for _, past := range []string{"a.<b>", strings.Repeat("a.", mostPast) + "a", ".", ""} {
		wantEqual(t, past+" leads back to", visited(query("/x", "cursor", "5", "past", past)).Previous, "")
	}
}

func TestWhatIsEmptySaysWhatToDoNextWithACommandThatExists(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	none := base64.RawURLEncoding.EncodeToString(append(make([]byte, 15), 1)) // of an id before all others
	for path, says := range map[string]string{
		agents: "no agent yet", sessions: "No session matches", budget: "no budget", eventsPath: "Nothing has happened yet", webhooks: "There is no webhook",
		stopPath: "no agent to stop", requestsPath: "No agent has asked for more", usagePath: "Nothing was used on these days",
	} {
		b.checkEmpty(path, says)
	}
	agent, gone := w.newAgent("scout"), w.newAgent("gone")
	w.asAdmin("POST", "/v1/agents/"+gone+"/revoke", map[string]any{})
	session, ended := w.newSession(agent, nil), w.newSession(agent, nil)
	w.asAdmin("POST", "/v1/sessions/"+ended+"/end", map[string]any{})
	hook := w.asAdmin("POST", "/v1/webhooks", map[string]any{"url": "https://hooks.example.com/a"})["id"].(string)
	b.whole(agents)
	for path, says := range map[string]string{
		Prefix: "No agent spent anything", agents + "?page=7": "ends before this page", agents + "?q=unknown": "No agent matches",
		agents + "/" + agent: "has no tokens", agents + "/" + agent + "?families=" + none: "ends before this page", agents + "/" + gone: "is revoked",
		sessions + "?cursor=" + none: "ends before this page", sessions + "?status=expired": "No session matches",
		sessions + "/" + session: "An agent begins one", sessions + "/" + session + "?transactions=" + none: "ends before this page",
		sessions + "/" + ended: "the session is over", eventsPath + "?type=agent.suspended": "is of this type",
		requestsPath + "?status=denied": "No request matches", requestsPath + "?page=7": "ends before this page",
		usagePath + "?page=7": "ends before this page", webhooks + "/" + hook: "Nothing was sent yet", webhooks + "/" + hook + "?status=dead": "No delivery is dead",
	} {
		b.checkEmpty(path, says)
	}
}

// checkEmpty checks what a page says instead of a list, and the commands that it shows there.
func (b *browser) checkEmpty(path, says string) {
	b.t.Helper()
	var texts, commands []string
	for node := range b.whole(path).want(200).elements("div") {
		if attribute(node, "class") != "empty" {
			continue
		}
		texts = append(texts, textOf(node))
		for code := range node.Descendants() {
			if code.Data == "code" && code.Parent.Data == "pre" {
				commands = append(commands, textOf(code))
			}
		}
	}
	wantContains(b.t, path, strings.Join(texts, "\n"), says)
	wantEqual(b.t, path+", its commands", len(commands), len(texts))
	for _, command := range commands {
		arguments, isOurs := strings.CutPrefix(command, "remit ")
		if !isOurs {
			continue
		}
		parser := must(kong.New(new(cli.Commands), kong.Name("remit")))(b.t)
		if _, err := parser.Parse(strings.Fields(arguments)); err != nil && !strings.Contains(err.Error(), "required") {
			b.t.Errorf("%s: %s: %v", path, command, err)
		}
	}
}

package server_test

import (
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

var nextLink = regexp.MustCompile(`^<(/[^>]*)>; rel="next"$`)

// pages follows a list to its end and returns the ids of each page.
func (c *client) pages(path string, as option) [][]string {
	c.t.Helper()
	var all [][]string
	for range 100 {
		r := c.get(path, as).is(200)
		all = append(all, r.ids())
		link := r.header.Get("Link")
		if link == "" {
			return all
		}
		parts := nextLink.FindStringSubmatch(link)
		if parts == nil {
			c.t.Fatalf("%s: Link %q", path, link)
		}
		path = parts[1]
	}
	c.t.Fatalf("%s: no end after 100 pages", path)
	return nil
}

func (c *client) wantPages(path string, as option, want ...[]string) {
	c.t.Helper()
	if got := c.pages(path, as); !slices.EqualFunc(got, want, slices.Equal) {
		c.t.Errorf("%s: pages %v, want %v", path, got, want)
	}
}

func TestAListOfAgentsIsFollowedToItsEnd(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		newest := []string{w.agent.id}
		for range 4 {
			newest = slices.Insert(newest, 0, w.newAgent().id)
		}
		w.wantPages("/v1/agents?limit=2", asKey(w.key), newest[:2], newest[2:4], newest[4:])
		w.wantPages("/v1/agents", asKey(w.key), newest)
		w.wantPages("/v1/agents?status=revoked", asKey(w.key), []string{})
		w.delete("/v1/agents/"+newest[1], asKey(w.key)).is(200)
		w.wantPages("/v1/agents?status=revoked&limit=1", asKey(w.key), newest[1:2])
		w.wantPages("/v1/agents?limit=3&status=active", asKey(w.key), []string{newest[0], newest[2], newest[3]}, newest[4:])
	})
}

func TestAListOfSessionsIsFilteredByStatusAndAgent(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		colleague := w.newAgent()
		var mine, theirs []string
		for range 3 {
			mine = slices.Insert(mine, 0, w.newSession(nil))
			theirs = slices.Insert(theirs, 0, w.newSessionOf(colleague, nil))
		}
		w.post("/sessions/"+mine[1]+"/end", nil, asKey(w.key)).is(200)
		w.post("/sessions/"+theirs[0]+"/end", nil, asKey(w.key)).is(200)
		key, agent := asKey(w.key), asAgent(w.exchange().access)
		for _, path := range []string{"/sessions", "/v1/sessions"} {
			w.wantPages(path+"?limit=4", key, []string{theirs[0], mine[0], theirs[1], mine[1]}, []string{theirs[2], mine[2]})
			w.wantPages(path+"?limit=2&agent_id="+w.agent.id, key, mine[:2], mine[2:])
			w.wantPages(path+"?status=active&limit=3", key, []string{mine[0], theirs[1], theirs[2]}, mine[2:])
			w.wantPages(path+"?status=completed&agent_id="+colleague.id, key, theirs[:1])
			w.wantPages(path+"?status=expired", key, []string{})
			w.wantPages(path+"?status=revoked", key, []string{})
			w.wantPages(path, agent, mine)
			w.wantPages(path+"?status=active&limit=1&agent_id="+w.agent.id, agent, mine[:1], mine[2:])
		}
	})
}

func TestTheNextLinkKeepsTheFiltersAndThePrefix(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, session, mine := asAgent(w.exchange().access), w.newSession(nil), "&agent_id="+w.agent.id
		w.newSession(nil)
		for range 2 {
			w.beginAs(access, fields{"session_id": session}).is(201)
		}
		for path, filters := range map[string]string{"/sessions": "&status=active" + mine, "/v1/sessions": "&status=active" + mine,
			"/v1/transactions": "&status=pending&session_id=" + session + mine} {
			r := w.get(path+"?limit=1"+filters, access).is(200)
			parts := nextLink.FindStringSubmatch(r.header.Get("Link"))
			if parts == nil {
				t.Fatalf("%s: Link %q", r.what, r.header.Get("Link"))
			}
			next := must(url.Parse(parts[1]))(t)
			cursor := next.Query().Get("cursor")
			want := must(url.ParseQuery("limit=1" + filters + "&cursor=" + cursor))(t)
			if next.Path != path || cursor == "" || !reflect.DeepEqual(next.Query(), want) {
				t.Errorf("%s: the next page is at %s", r.what, next)
			}
		}
	})
}

package server_test

import (
	"fmt"
	"net/url"
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

func TestListsAreEmptyArraysAtFirst(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		org := api.post("/v1/organizations", fields{"name": "acme"}).is(201)
		for _, path := range []string{"/v1/agents", "/sessions", "/v1/sessions"} {
			if r := api.get(path, asKey(org.text("api_key"))).is(200); string(r.body) != "[]" {
				t.Errorf("%s: %s, want []", path, r.body)
			}
		}
		w := api.newTenant()
		if r := w.get("/sessions", asAgent(w.exchange().access)).is(200); string(r.body) != "[]" {
			t.Errorf("an agent's /sessions: %s, want []", r.body)
		}
	})
}

func TestAListOfAgentsIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		newest := []string{w.agent.id}
		for range 4 {
			newest = slices.Insert(newest, 0, w.newAgent().id)
		}
		w.wantPages("/v1/agents?limit=2", asKey(w.key), newest[:2], newest[2:4], newest[4:])
		w.wantPages("/v1/agents?limit=5", asKey(w.key), newest)
		w.wantPages("/v1/agents?limit=200", asKey(w.key), newest)
		w.wantPages("/v1/agents", asKey(w.key), newest)

		w.delete("/v1/agents/"+newest[1], asKey(w.key)).is(200)
		w.delete("/v1/agents/"+newest[4], asKey(w.key)).is(200)
		w.wantPages("/v1/agents?status=revoked&limit=1", asKey(w.key), newest[1:2], newest[4:])
		w.wantPages("/v1/agents?limit=2&status=active", asKey(w.key), []string{newest[0], newest[2]}, newest[3:4])
	})
}

func TestAListWithoutALimitHasPagesOf50(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		var newest []string
		for range 51 {
			newest = slices.Insert(newest, 0, w.newSession(nil))
		}
		for _, as := range []option{asKey(w.key), asAgent(w.exchange().access)} {
			w.wantPages("/sessions", as, newest[:50], newest[50:])
		}
	})
}

func TestAListOfSessionsIsFilteredByStatusAndAgent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		colleague := w.newAgent()
		var mine, theirs []string
		for range 3 {
			mine = slices.Insert(mine, 0, w.newSession(nil))
			theirs = slices.Insert(theirs, 0, w.newSessionOf(colleague, nil))
		}
		w.post("/sessions/"+mine[1]+"/end", nil, asKey(w.key)).is(200)
		w.post("/sessions/"+theirs[0]+"/end", nil, asKey(w.key)).is(200)
		all := []string{theirs[0], mine[0], theirs[1], mine[1], theirs[2], mine[2]}
		key, agent := asKey(w.key), asAgent(w.exchange().access)

		for _, prefix := range withAndWithoutV1 {
			path := prefix + "/sessions"
			w.wantPages(path+"?limit=4", key, all[:4], all[4:])
			w.wantPages(path+"?limit=2&agent_id="+w.agent.id, key, mine[:2], mine[2:])
			w.wantPages(path+"?status=completed&limit=1", key, theirs[:1], mine[1:2])
			w.wantPages(path+"?status=active&limit=3", key, []string{mine[0], theirs[1], theirs[2]}, mine[2:])
			w.wantPages(path+"?status=active&agent_id="+colleague.id, key, theirs[1:])
			w.wantPages(path+"?status=completed&agent_id="+colleague.id, key, theirs[:1])
			w.wantPages(path+"?status=expired", key, []string{})
			w.wantPages(path+"?status=revoked", key, []string{})

			w.wantPages(path+"?limit=2", agent, mine[:2], mine[2:])
			w.wantPages(path+"?agent_id="+w.agent.id, agent, mine)
			w.wantPages(path+"?status=active&limit=1", agent, mine[:1], mine[2:])
			w.wantPages(path+"?status=completed", agent, mine[1:2])
		}
	})
}

func TestTheNextLinkKeepsTheFiltersAndThePrefix(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		w.newSession(nil)
		w.newSession(nil)
		for _, prefix := range withAndWithoutV1 {
			r := w.get(prefix+"/sessions?status=active&limit=1&agent_id="+w.agent.id, asKey(w.key)).is(200)
			parts := nextLink.FindStringSubmatch(r.header.Get("Link"))
			if parts == nil {
				t.Fatalf("Link %q", r.header.Get("Link"))
			}
			next := must(url.Parse(parts[1]))(t)
			query := next.Query()
			if next.Path != prefix+"/sessions" || query.Get("status") != "active" || query.Get("limit") != "1" ||
				query.Get("agent_id") != w.agent.id || query.Get("cursor") == "" || len(query) != 4 {
				t.Errorf("the next page is at %s", next)
			}
		}
	})
}

// A cursor is an id; one of another organization's session must not open a page of that organization's sessions.
func TestACursorOfAnotherOrganizationShowsNothingOfIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		own := w.newSession(nil)
		for range 2 {
			other.newSession(nil)
		}
		link := other.get("/sessions?limit=1", asKey(other.key)).is(200).header.Get("Link")
		cursor := must(url.Parse(nextLink.FindStringSubmatch(link)[1]))(t).Query().Get("cursor")
		if ids := w.get("/sessions?cursor="+cursor, asKey(w.key)).is(200).ids(); fmt.Sprint(ids) != fmt.Sprint([]string{own}) {
			t.Errorf("%v, want the own session %s", ids, own)
		}
	})
}

package server_test

import (
	"regexp"
	"slices"
	"strings"
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
		if at, _, _ := strings.Cut(path, "?"); parts == nil || !strings.HasPrefix(parts[1], at+"?") {
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

// Which agents and sessions are on which page, redisstore shows.
func TestAListOfAgentsIsFollowedToItsEnd(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		second, third := w.newAgent().id, w.newAgent().id
		w.delete("/v1/agents/"+second, asKey(w.key)).is(200)
		w.wantPages("/v1/agents?limit=2", asKey(w.key), []string{third, second}, []string{w.agent.id})
		w.wantPages("/v1/agents?limit=1&status=active", asKey(w.key), []string{third}, []string{w.agent.id})
		w.wantPages("/v1/agents?status=revoked", asKey(w.key), []string{second})
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
			w.wantPages(path, agent, mine)
			w.wantPages(path+"?status=active&limit=1&agent_id="+w.agent.id, agent, mine[:1], mine[2:])
		}
	})
}

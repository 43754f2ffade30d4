package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	stored "remit/redisstore/records"
	"remit/server/internal/web"
	"remit/server/records"
)

// FuzzID checks that an id has one spelling apart from its case, and that any other is refused.
func FuzzID(f *testing.F) {
	const id = "018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"
	for _, seed := range []string{
		"", id, strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + " ", " " + id, id + "\n", id + "\x00",
		id[:35], id + "0", "018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3fg", "018f3c2ab-4d5-7e06-91a2-b3c4d5e6c3f1", "018f3c2a_b4d5_7e06_91a2_b3c4d5e6c3f1",
		uuid.Nil.String(), strings.Repeat("f", 36), strings.Repeat("-", 36), "018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3\u00e9", "+18f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := web.ParseID(text)
		if ok && (id.String() != strings.ToLower(text) || string(redisstore.AppendID(nil, id)) != id.String()) {
			t.Errorf("%q is read as %s", text, id)
		}
		if !ok && anID.MatchString(text) {
			t.Errorf("%q is refused", text)
		}
	})
}

// anID is the form in RFC 9562 §4.
var anID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// FuzzListQuery holds the queries of lists against net/url: whatever is accepted says the same to it, once, and the link
// to the next page is the same except for its start.
func FuzzListQuery(f *testing.F) {
	const id = "018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"
	cursor := base64.RawURLEncoding.EncodeToString([]byte("0123456789abcdef"))
	for _, seed := range []string{
		"", "limit=1", "limit=200", "limit=201", "limit=0", "limit=-1", "limit=+1", "limit=%2b1", "limit=01", "limit=1e2", "limit= 1", "limit=1%00",
		"limit=1&limit=2", "limit=1&%6cimit=2", "Limit=1", "limit", "limit=", "limit=65537", "cursor=" + cursor, "cursor=" + cursor + "=", "cursor=" + cursor + "%0A",
		"cursor=%0d%0a" + cursor, "cursor=" + cursor[:21], "cursor=" + cursor[:21] + "h", "cursor=AAAAAAAAAAAAAAAAAAAAAA", "cursor=", "status=active", "status=Active",
		"status=pending", "status=", "agent_id=" + id, "agent_id=" + strings.ToUpper(id), "agent_id=" + uuid.Nil.String(), "session_id=" + id, "agent_id={" + id + "}",
		"limit=5&status=active&agent_id=" + id + "&cursor=" + cursor, "&&limit=1&", "limit=1;status=active", "a=b", "=", "=1", "limit=%", "limit=%zz", "limit=1#", "limit=1&%00=",
		"limit=1?limit=2", "status=active+", "wait=30", "wait=31", "wait=256", "wait=-0", "wait=&after=", "after=1-0", "after=1", "after=01-00", "after=18446744073709551615-18446744073709551615",
		"after=1-0&wait=1&limit=2", "after=1-0%0a", "after=-", "after=1--1", "after=1-1-1", "a>b=\"", "limit=1&a=<>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if strings.ContainsAny(query, " \t\r\n") {
			return // another request line than this test means
		}
		ctx, ok := parse("GET /v1/sessions?" + query + " HTTP/1.1\r\nHost: remit.example\r\n\r\n")
		if !ok {
			return
		}
		if _, err := web.CheckFraming(&ctx.Request.Header); err != nil {
			return
		}
		statuses := []redisstore.Status{redisstore.Active, redisstore.Completed}
		if got, err := web.ReadQuery(ctx, statuses, "agent_id"); err == nil {
			said := requireOnce(t, query, "limit", "cursor", "status", "agent_id")
			want := redisstore.Query{Limit: web.DefaultPage, Status: redisstore.Status(said.Get("status"))}
			if said.Has("limit") {
				want.Limit, _ = strconv.Atoi(said.Get("limit"))
			}
			if said.Has("cursor") {
				copy(want.Before[:], must(base64.RawURLEncoding.DecodeString(said.Get("cursor")))(t))
			}
			if said.Has("agent_id") {
				want.Agent = uuid.MustParse(said.Get("agent_id"))
			}
			if got != want || got.Limit < 1 || got.Limit > web.MaxPage || said.Has("cursor") && said.Get("cursor") != web.CursorOf(got.Before) {
				t.Errorf("%q is read as %+v, want %+v", query, got, want)
			}
			requireNext(t, ctx, got)
		}
		if got, err := records.ReadEventQuery(ctx); err == nil {
			said := requireOnce(t, query, "limit", "after", "wait")
			if got.Limit < 1 || got.Limit > web.MaxPage || got.Wait < 0 || got.Wait.Seconds() > records.MaxWait || got.After != said.Get("after") ||
				said.Has("after") && !stored.ValidEventID(got.After) ||
				said.Has("wait") && int(got.Wait.Seconds()) != must(strconv.Atoi(said.Get("wait")))(t) {
				t.Errorf("%q is read as %+v", query, got)
			}
		}
	})
}

// requireOnce returns an accepted query as net/url reads it, in which every parameter is a known one and is given once.
func requireOnce(t *testing.T, query string, known ...string) url.Values {
	t.Helper()
	said, err := url.ParseQuery(query)
	if err != nil {
		t.Errorf("%q is accepted: %v", query, err)
	}
	for name, values := range said {
		if name == "" && strings.Join(values, "") == "" {
			continue // between two &
		}
		if !slices.Contains(known, name) || len(values) != 1 {
			t.Errorf("%q is accepted with %q as %q", query, name, values)
		}
	}
	return said
}

// requireNext follows the link to the next page.
func requireNext(t *testing.T, ctx *fasthttp.RequestCtx, this redisstore.Query) {
	t.Helper()
	next := redisstore.NewRootID()
	web.AnnounceNext(ctx, next)
	link := string(ctx.Response.Header.Peek("Link"))
	target, found := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	followed, ok := parse("GET " + target + " HTTP/1.1\r\nHost: remit.example\r\n\r\n")
	if !found || !ok {
		t.Fatalf("%q is no link", link)
	}
	got, err := web.ReadQuery(followed, []redisstore.Status{redisstore.Active, redisstore.Completed}, "agent_id")
	if this.Before = next; err != nil || got != this {
		t.Errorf("%q asks for %+v, %v, want %+v", link, got, err, this)
	}
}

// FuzzCursor asks for pages from any place: a cursor that a list cannot have given is refused, and any other gives what is
// the organization's own, and older.
func FuzzCursor(f *testing.F) {
	s, handle := onMiniature(f)
	own, foreign := newTenant(f, s), newTenant(f, s)
	for _, id := range append(own.sessions, foreign.sessions...) {
		f.Add(web.CursorOf(id))
	}
	for _, seed := range []string{
		"", web.CursorOf(uuid.Nil), web.CursorOf(uuid.Max), web.CursorOf(own.agent), web.CursorOf(foreign.organization), own.agent.String(), "AAAA", "\x00", "*",
		web.CursorOf(own.sessions[0]) + "=", web.CursorOf(own.sessions[0]) + "\n", web.CursorOf(own.sessions[0])[:21], "____", strings.Repeat("_", 22), strings.Repeat("_", 21) + "w",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		for _, filter := range []string{"", "status=active&", "agent_id=" + own.agent.String() + "&"} {
			ctx, ok := parse("GET /v1/sessions?" + filter + "cursor=" + url.QueryEscape(cursor) +
				" HTTP/1.1\r\nHost: remit.example\r\nX-API-Key: " + own.key + "\r\n\r\n")
			if !ok {
				return // longer than a request line may be
			}
			handle(ctx)
			raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
			given := err == nil && len(raw) == len(uuid.Nil) && uuid.UUID(raw) != uuid.Nil && web.CursorOf(uuid.UUID(raw)) == cursor
			switch status := ctx.Response.StatusCode(); {
			case !given && status != 400, given && status != 200:
				t.Fatalf("cursor %q: %d %s", cursor, status, ctx.Response.Body())
			case given:
				own.requireOwn(t, ctx.Response.Body(), uuid.UUID(raw))
			}
		}
	})
}

// tenant is an organization with an agent and a few sessions.
type tenant struct {
	organization, agent uuid.UUID
	key                 string
	sessions            []uuid.UUID // newest first
}

func newTenant(f *testing.F, s *Server) tenant {
	f.Helper()
	made := tenant{organization: redisstore.NewRootID()}
	made.key = token.NewAPIKey(made.organization)
	ctx, key := context.Background(), redisstore.APIKey{Organization: made.organization, Hash: token.Hash(made.key)}
	must(s.store.CreateOrganization(ctx, "", key, "tenant", "", nil))(f)
	made.agent = must(s.store.CreateAgent(ctx, key, redisstore.Agent{Name: "agent", Scopes: []string{"read"}}, token.Hash("secret"), nil))(f).ID
	for range 3 {
		session := must(s.store.CreateSession(ctx, key, redisstore.NewSession{
			Agent: made.agent, MaxActions: 1, MaxValue: 1, Lifetime: time.Hour,
		}))(f)
		made.sessions = append([]uuid.UUID{session.ID}, made.sessions...)
	}
	return made
}

// requireOwn checks that a page has all sessions of the tenant that come below the id, and nothing else.
func (own tenant) requireOwn(t *testing.T, page []byte, below uuid.UUID) {
	t.Helper()
	var got []struct{ ID uuid.UUID }
	must(0, json.Unmarshal(page, &got))(t)
	var listed []uuid.UUID
	for _, session := range got {
		listed = append(listed, session.ID)
	}
	want := slices.DeleteFunc(slices.Clone(own.sessions), func(id uuid.UUID) bool { return id.String() >= below.String() })
	if !slices.Equal(listed, want) {
		t.Errorf("below %s: %v, want %v", below, listed, want)
	}
}

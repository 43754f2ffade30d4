package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
)

const (
	verifyPath    = "/v1/auth/verify"
	authorizePath = "/v1/auth/authorize"
)

// shows fails the test unless the answer has these headers.
func (r *response) shows(headers map[string]string) *response {
	r.t.Helper()
	for name, want := range headers {
		wantEqual(r.t, r.what+": "+name, r.header.Get(name), want)
	}
	return r
}

// identifies fails the test unless the answer lets pass, and names the tenant's agent and its scopes.
func (r *response) identifies(w tenant, scopes ...string) *response {
	r.t.Helper()
	return r.is(200).shows(map[string]string{"X-Agent-Id": w.agent.id, "X-Org-Id": w.org, "X-Scopes": strings.Join(scopes, " ")})
}

// remains fails the test unless the answer says that this is left of the session.
func (r *response) remains(actions, value string) *response {
	r.t.Helper()
	return r.shows(map[string]string{"X-Remaining-Actions": actions, "X-Remaining-Value-Usd": value})
}

// stopped fails the test unless a proxy would let nothing pass, nor learn whose request it was.
func (r *response) stopped(status int, code string) *response {
	r.t.Helper()
	r.refused(status, code)
	for name := range r.header {
		if name == "X-Agent-Id" || name == "X-Org-Id" || name == "X-Scopes" || strings.HasPrefix(name, "X-Remaining-") {
			r.t.Errorf("%s: a refusal with %s", r.what, name)
		}
	}
	return r
}

// allOf sets several headers.
func allOf(options ...option) option {
	return func(h http.Header) {
		for _, set := range options {
			set(h)
		}
	}
}

// charged fails the test unless so much is charged to the session.
func (w tenant) charged(session string, actions int, value any) {
	w.t.Helper()
	if s := w.session(session); s["action_count"] != num(actions) || s["value_used_usd"] != num(value) {
		w.t.Errorf("the session has used %v and %v, want %d and %v", s["action_count"], s["value_used_usd"], actions, value)
	}
}

func TestVerifyReturnsTheTokensAgentToAProxy(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, narrowed := w.exchange().access, w.grant("read").granted(w.client, "read").access
		for _, method := range []string{"GET", "HEAD"} {
			for _, path := range []string{verifyPath, verifyPath + "?scope=write"} {
				w.ask(method, path, nil, asAgent(access)).identifies(w, agentScopes...)
			}
			w.ask(method, verifyPath, nil, asAgent(narrowed), header("X-Scope", "read")).identifies(w, "read")
			w.ask(method, verifyPath+"?scope=read", nil, asAgent(narrowed), header("X-Scope", "write")).identifies(w, "read")
		}
	})
}

func TestVerifyNamesTheScopeThatTheTokenLacks(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		narrowed := w.grant("read").granted(w.client, "read").access
		for _, scope := range []string{"write", "admin", "rea", "READ"} {
			for _, r := range []*response{
				w.get(verifyPath+"?scope="+scope, asAgent(narrowed)),
				w.get(verifyPath, asAgent(narrowed), header("X-Scope", scope)),
				w.get(verifyPath+"?scope="+scope, asAgent(narrowed), header("X-Scope", "read")),
				w.ask("PUT", verifyPath+"/reports?scope=read", nil, asAgent(narrowed), header("X-Scope", scope)),
			} {
				r.stopped(403, "insufficient_scope").has(fields{"required_scope": scope})
				want := `Bearer realm="remit", error="insufficient_scope", scope="` + scope + `"`
				wantEqual(t, r.what+": WWW-Authenticate", r.header.Get("WWW-Authenticate"), want)
			}
		}
		w.ask("HEAD", verifyPath+"?scope=write", nil, asAgent(narrowed)).is(403)
	})
}

// proxyPaths are ways to ask of each of the two, with what else the question needs.
func proxyPaths(session string) map[string]option {
	of := header("X-Session-Id", session)
	return map[string]option{
		verifyPath: anonymous, verifyPath + "?scope=read": anonymous, verifyPath + "/": anonymous, verifyPath + "/a/b": anonymous,
		authorizePath: of, authorizePath + "?session_id=" + session: anonymous, authorizePath + "/": of, authorizePath + "/a/b": of,
	}
}

func TestProxiesNeedALiveAccessToken(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		session := w.newSession(nil)
		for path, with := range proxyPaths(session) {
			for _, as := range []option{anonymous, asKey(w.key), asAgent(""), byBasic(w.agent), header("X-Agent-Id", w.agent.id)} {
				r := w.get(path, as, with).stopped(401, "missing_credentials")
				wantEqual(t, r.what+": WWW-Authenticate", r.header.Get("WWW-Authenticate"), `Bearer realm="remit"`)
			}
			w.get(path, asAgent(w.expired(t)), with).stopped(401, "invalid_token")
		}
		// An unauthorized caller does not learn what else is wrong.
		w.get(authorizePath+"?session_id=x&value_usd=x").stopped(401, "missing_credentials")
		w.charged(session, 0, 0)
	})
}

func TestAuthorizeChargesOnceAndReturnsWhatRemains(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		headers := func(session, value, count, action, scope string) option {
			return allOf(header("X-Session-Id", session), header("X-Value-Usd", value), header("X-Count", count), header("X-Action-Type", action),
				header("X-Scope", scope))
		}
		for _, test := range []struct {
			query            string // {id} is the session's
			with             option // nil: all in headers
			actions          int
			value            any
			left, leftOfUSD5 string
		}{
			{"?session_id={id}", anonymous, 1, 0, "9", "5"},
			{"?session_id={id}&value_usd=0.25&count=3&action_type=call&scope=read", anonymous, 3, "0.25", "7", "4.75"},
			{"", nil, 2, "0.1", "8", "4.9"},
			{"?session_id={id}&value_usd=1.5&count=2&action_type=call&scope=read", headers(uuid.NewString(), "0", "1", long(999), "admin"), // the query counts
				2, "1.5", "8", "3.5"},
			{"?session_id={ID}", anonymous, 1, 0, "9", "5"},
			{"?session_id={id}&count=10&value_usd=5.000000", anonymous, 10, 5, "0", "0"},
		} {
			id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
			if test.with == nil {
				test.with = headers(id, "0.1", "2", "call", "write")
			}
			query := strings.NewReplacer("{id}", id, "{ID}", strings.ToUpper(id)).Replace(test.query)
			w.get(authorizePath+query, access, test.with).identifies(w, agentScopes...).remains(test.left, test.leftOfUSD5)
			w.charged(id, test.actions, test.value)
		}
	})
}

// DESIGN §2.4 says any: proxies pass on methods of WebDAV and others too.
func TestProxyPathsAnswerToAnyMethod(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, session := asAgent(w.exchange().access), w.newSession(fields{"max_actions": 100})
		charges := 0
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
			for _, path := range []string{authorizePath, authorizePath + "/", authorizePath + "/reports/1"} {
				w.ask(method, path, nil, access, header("X-Session-Id", session)).identifies(w, agentScopes...)
				charges++
				w.charged(session, charges, 0)
			}
			for _, path := range []string{verifyPath + "/", verifyPath + "/reports/1"} {
				w.ask(method, path, nil, access).identifies(w, agentScopes...)
			}
		}
		w.charged(session, charges, 0)
	})
}

func TestAProxyThatIsRefusedChargesNothing(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, narrowed := w.exchange().access, w.grant("read").granted(w.client, "read").access
		id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5, "scopes": list("read")})
		ended := w.newSession(nil)
		w.post("/sessions/"+ended+"/end", nil, asKey(w.key)).is(200)
		refused := func(access, query, code string) {
			t.Helper()
			byHeaders := func(h http.Header) {
				for name, values := range must(url.ParseQuery(query))(t) {
					h.Set("X-"+strings.ReplaceAll(name, "_", "-"), values[0])
				}
			}
			answers := []*response{w.get(authorizePath+"?"+query, asAgent(access))}
			if !strings.Contains(query, "=+1") { // HTTP itself takes spaces from around a header
				answers = append(answers, w.post(authorizePath, nil, asAgent(access), byHeaders), w.get(authorizePath+"/a", asAgent(access), byHeaders))
			}
			for _, r := range answers {
				if r.stopped(403, code); code == "insufficient_scope" {
					r.has(fields{"required_scope": "write"})
				}
			}
			w.ask("HEAD", authorizePath+"?"+query, nil, asAgent(access)).is(403)
		}
		of := "session_id=" + id
		refused(access, of+"&count=11", "session_limit_reached")
		refused(access, of+"&value_usd=5.000001", "session_limit_reached")
		refused(access, of+"&scope=write", "insufficient_scope") // which the session lacks
		refused(narrowed, of+"&scope=write", "insufficient_scope")
		refused(access, "session_id="+ended, "session_not_active")
		for _, session := range []string{uuid.NewString(), w.newTenant().newSession(nil), w.newSessionOf(w.newAgent(), nil)} {
			refused(access, "session_id="+session, "not_found")
		}
		for _, bad := range []string{
			"session_id=x", "session_id={" + id + "}", "value_usd=1", "session_id=", of + "&value_usd=x", of + "&value_usd=-1",
			of + "&value_usd=0.0000001", of + "&value_usd=1000000001", of + "&value_usd=+1", of + "&value_usd=%221%22", of + "&count=0",
			of + "&count=-1", of + "&count=1001", of + "&count=1.0", of + "&count=9223372036854775808", of + "&action_type=" + long(201),
			of + "&scope=a+b",
		} {
			refused(access, bad, "invalid_request")
		}
		for _, path := range []string{ // what would disable a check
			verifyPath + "?scopes=admin", verifyPath + "?scope=", verifyPath + "?scope=read&scope=write", verifyPath + "?scope=%ff",
			verifyPath + "?scope=read+write", authorizePath + "?" + of + "&value=5", authorizePath + "?" + of + "&value_usd=",
			authorizePath + "?" + of + "&value_usd=0&value_usd=5", authorizePath + "?" + of + "&scopes=admin",
		} {
			w.get(path, asAgent(access)).stopped(403, "invalid_request")
		}
		w.charged(id, 0, 0)
	})
}

// The appended path and its query come from the client: they must set neither price nor scope.
func TestProxyPathsTakeNothingFromWhatIsAppended(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, narrowed := w.exchange().access, w.grant("read").granted(w.client, "read").access
		id, other := w.newSession(fields{"max_actions": 100, "max_value_usd": 100}), w.newSession(nil)
		price := allOf(header("X-Session-Id", id), header("X-Value-Usd", "0.5"), header("X-Count", "2"), header("X-Scope", "write"))
		query := "?value_usd=0&count=1&scope=&scope=read&action_type=" + long(999) + "&session_id=" + other
		appended := []string{
			"/", "//", "/x", "/%2F..//x", "/../verify", "/../../../healthz", "/%2e%2e/verify", "/..%2fverify", "/./x", "/x/..",
			"/%", "/%zz", "/%00", "/x;y=1", "/" + other, "/v1/auth/verify", "/x%3Fvalue_usd=0",
		}
		for i, path := range appended {
			ask := func(to string, as option, with option) *response {
				t.Helper()
				headers, text := http.Header{"Host": {"x"}, "Connection": {"close"}}, &strings.Builder{}
				allOf(as, with)(headers)
				must(0, headers.Write(text))(t)
				answers := w.exchangeRaw("GET " + to + path + query + " HTTP/1.1\r\n" + text.String() + "\r\n") // which no client would write
				if len(answers) != 1 {
					t.Fatalf("%s: %d answers", path, len(answers))
				}
				answers[0].what = to + path
				return answers[0]
			}
			ask(authorizePath, asAgent(access), price).identifies(w, agentScopes...)
			w.charged(id, 2*(i+1), num(float64(i+1)/2))
			ask(authorizePath, asAgent(narrowed), price).stopped(403, "insufficient_scope")
			ask(authorizePath, asAgent(access), anonymous).stopped(403, "invalid_request")
			ask(authorizePath, anonymous, price).stopped(401, "missing_credentials")
			ask(verifyPath, asAgent(access), anonymous).identifies(w, agentScopes...)
			ask(verifyPath, asAgent(narrowed), header("X-Scope", "write")).stopped(403, "insufficient_scope")
			ask(verifyPath, anonymous, anonymous).stopped(401, "missing_credentials")
		}
		w.charged(id, 2*len(appended), num(float64(len(appended))/2))
		w.charged(other, 0, 0)
	})
}

func TestAuthorizeChargesOnceForAnIdempotencyKey(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		for _, method := range []string{"GET", "POST", "HEAD", "DELETE"} {
			session := w.newSession(fields{"max_actions": 3})
			path := authorizePath + "?value_usd=0.5&session_id=" + session
			inHeader, inQuery := keyed("key-"+method), path+"&idempotency_key=query-"+method
			first := w.ask(method, path, nil, access, inHeader).identifies(w, agentScopes...).remains("2", "99.5").fresh()
			w.ask(method, path, nil, access, inHeader).identifies(w, agentScopes...).remains("2", "99.5").replays(first)
			w.ask(method, authorizePath+"?count=2&session_id="+session, nil, access, inHeader).is(403)
			w.ask(method, inQuery, nil, access).remains("1", "99")
			w.ask(method, inQuery, nil, access, inHeader).remains("1", "99")
			w.charged(session, 2, 1)
		}
		session := w.newSession(fields{"max_actions": 1})
		path := authorizePath + "?idempotency_key=full&session_id=" + session + "&count="
		full := w.get(path+"2", access).is(403) // a refusal by a limit is an outcome
		w.patch("/sessions/"+session, fields{"max_actions": 9}, asKey(w.key)).is(200)
		w.get(path+"2", access).replays(full)
		w.get(path+"3", access).stopped(403, "idempotency_key_reused")
		w.charged(session, 0, 0)
	})
}

// A client that sends one key with all its requests must not pay once for them all.
func TestAuthorizeTakesNoIdempotencyKeyThatAProxyOnlyPassesOn(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, key := asAgent(w.exchange().access), keyed("the client's")
		for name, value := range map[string]string{
			"X-Forwarded-Uri": "/x", "X-Original-URI": "/y", "X-Forwarded-Method": "POST", "X-Original-URL": "http://h/u", "X-Original-Method": "PUT",
		} {
			session := w.newSession(nil)
			path := authorizePath + "?session_id=" + session
			for range 3 {
				w.get(path, access, key, header(name, value)).is(200).fresh()
			}
			for range 2 { // what the proxy says itself counts
				w.get(path+"&idempotency_key=own-"+name, access, key, header(name, value)).is(200)
			}
			w.charged(session, 4, 0)
		}
		session := w.newSession(nil)
		for range 3 { // as Envoy does
			w.get(authorizePath+"/some/path?idempotency_key=q", access, key, header("X-Session-Id", session)).is(200).fresh()
		}
		for _, bad := range []string{"&idempotency_key=", "&idempotency_key=a%20b", "&idempotency_key=a&idempotency_key=b"} {
			w.get(authorizePath+"?session_id="+session+bad, access).stopped(403, "invalid_request")
		}
		w.charged(session, 3, 0)
	})
}

package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"remit/server"
)

// accessLog is a service's access log, as JSON.
type accessLog struct{ syncBuffer }

func (l *accessLog) telling(every uint64) server.AccessLog {
	return server.AccessLog{Log: slog.New(slog.NewJSONHandler(l, nil)), Every: every}
}

func (l *accessLog) parsed(t *testing.T) (lines []fields) {
	t.Helper()
	for text := range strings.Lines(l.String()) {
		line := fields{}
		if strings.HasSuffix(text, "\n") { // it may be written in parts
			must(0, json.Unmarshal([]byte(text), &line))(t)
			lines = append(lines, line)
		}
	}
	return lines
}

// lines waits for so many: an answer is there a moment before its line.
func (l *accessLog) lines(t *testing.T, want int) (lines []fields) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d lines in the access log", want), func() bool { lines = l.parsed(t); return len(lines) >= want })
	if len(lines) != want {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), want, l.String())
	}
	return lines
}

func (l *accessLog) of(t *testing.T, requestID string) (found fields) {
	t.Helper()
	eventually(t, "a line of "+requestID, func() bool {
		lines := l.parsed(t)
		at := slices.IndexFunc(lines, func(line fields) bool { return line["request_id"] == requestID })
		if at >= 0 {
			found = lines[at]
		}
		return at >= 0
	})
	return found
}

func TestTheAccessLogHasTheCallerTheRouteAndTheOutcome(t *testing.T) {
	t.Parallel()
	log := &accessLog{}
	api := onMiniredis(t, setup{access: log.telling(1), proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	w := api.newTenant()
	tokens, session := w.exchange(), w.newSession(nil)
	named := func(id string) option { return header("X-Request-Id", id) }
	secret := fields{"agent_id": w.agent.id, "secret": w.agent.secret}
	oauth := func(id, path, form string) {
		api.post(path, raw(form), header("Content-Type", "application/x-www-form-urlencoded"), named(id))
	}
	client := "client_id=" + w.agent.id + "&client_secret=" + w.agent.secret
	w.post("/sessions/"+session+"/actions", fields{"value_usd": 1}, asAgent(tokens.access), named("charge"))
	w.get("/v1/sessions/"+session+"?x=1", asKey(w.key), named("read"))
	w.post("/sessions/"+session+"/actions", fields{"value_usd": 1e6}, asAgent(tokens.access), named("refused"))
	w.get("/v1/nowhere", named("nowhere"))
	w.get("/healthz", header("X-Forwarded-For", "1.1.1.1, 2001:db8:2:3:4:5:6:7"), named("proxied"))
	w.post("/v1/auth/token", secret, named("exchange"))
	w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret + "x"}, named("guess"))
	w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}, named("refresh"))
	oauth("oauth", "/oauth2/token", client+"&grant_type=client_credentials")
	oauth("oauth-introspect", "/oauth2/introspect", client+"&token="+tokens.access)
	oauth("oauth-guess", "/oauth2/token", client+"x&grant_type=client_credentials")
	w.post("/v1/auth/revoke", fields{"refresh_token": tokens.refresh}, asAgent(tokens.access), named("revoke"))

	organization, agent := any(w.org), any(w.agent.id)
	for id, want := range map[string]fields{
		"charge":           {"method": "POST", "route": "/v1/sessions/{id}/actions", "status": 200.0, "code": nil, "organization_id": organization, "agent_id": agent, "client": "127.0.0.1"},
		"read":             {"method": "GET", "route": "/v1/sessions/{id}", "status": 200.0, "code": nil, "organization_id": organization, "agent_id": nil},
		"refused":          {"status": 403.0, "code": "session_limit_reached", "agent_id": agent},
		"nowhere":          {"route": "", "status": 404.0, "code": "not_found", "organization_id": nil},
		"proxied":          {"client": "2001:db8:2:3::"}, // for which a single one may stand
		"exchange":         {"route": "/v1/auth/token", "status": 200.0, "organization_id": organization, "agent_id": agent},
		"guess":            {"status": 401.0, "code": "invalid_credentials", "organization_id": nil, "agent_id": nil},
		"refresh":          {"status": 200.0, "organization_id": organization, "agent_id": agent},
		"oauth":            {"route": "/oauth2/token", "status": 200.0, "organization_id": organization, "agent_id": agent},
		"oauth-introspect": {"status": 200.0, "organization_id": organization, "agent_id": agent},
		"oauth-guess":      {"status": 401.0, "code": "invalid_credentials", "organization_id": nil, "agent_id": nil},
		"revoke":           {"route": "/v1/auth/revoke", "status": 200.0, "organization_id": organization, "agent_id": agent},
	} {
		line := log.of(t, id)
		for name, value := range want {
			wantEqual(t, fmt.Sprintf("%s: %s", id, name), line[name], value)
		}
		took, isNumber := line["duration_ms"].(float64)
		bytes, isCount := line["bytes"].(float64)
		if line["msg"] != "request" || line["level"] != "INFO" || !isNumber || took <= 0 || !isCount || bytes <= 0 {
			t.Errorf("%s: %v", id, line)
		}
		known := []string{"time", "level", "msg", "request_id", "method", "route", "status", "code", "duration_ms", "bytes",
			"organization_id", "agent_id", "client"}
		for name := range maps.Keys(line) {
			if !slices.Contains(known, name) {
				t.Errorf("%s: it tells %s=%v", id, name, line[name])
			}
		}
	}
	for _, secret := range []string{w.key, w.agent.secret, tokens.access, tokens.refresh, session, "x=1", "nowhere\","} {
		if text := strings.ReplaceAll(log.String(), `"request_id":"nowhere",`, ""); strings.Contains(text, secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
}

func TestTheAccessLogHasASampleAndAllFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		every          uint64
		fine, failed   int
		lines, failure int
	}{{3, 10, 4, 8, 4}, {0, 10, 4, 4, 4}, {1, 10, 4, 14, 4}, {100, 10, 0, 1, 0}} {
		log := &accessLog{}
		api := onMiniredis(t, setup{access: log.telling(test.every), noKeys: true})
		for i := range max(test.fine, test.failed) {
			if i < test.fine {
				api.get("/healthz").is(200)
			}
			if i < test.failed {
				api.get("/.well-known/jwks.json").refused(503, "unavailable")
			}
		}
		lines := log.lines(t, test.lines)
		failed := slices.DeleteFunc(slices.Clone(lines), func(line fields) bool { return line["status"] != 503.0 })
		wantEqual(t, fmt.Sprintf("every %d: lines of failed requests", test.every), len(failed), test.failure)
	}
}

// TestNothingThatAClientSendsForgesALine sends what would be a line of its own, or a terminal's command, wherever a client
// may send bytes.
func TestNothingThatAClientSendsForgesALine(t *testing.T) {
	t.Parallel()
	const forged = "\x1b[31m\\n{\"msg\":\"forged\"} msg=forged"
	for format, newHandler := range map[string]func(io.Writer) slog.Handler{
		"json": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
	} {
		log := &accessLog{}
		api := onMiniredis(t, setup{access: server.AccessLog{Log: slog.New(newHandler(log)), Every: 1}})
		requests := []string{
			"GET /" + forged + " HTTP/1.1\r\nHost: x\r\n\r\n",
			forged + " / HTTP/1.1\r\nHost: x\r\n\r\n",
			"FORGED{\"msg\":\"forged\"} / HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /?a=\nmsg=forged HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: " + forged + "\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + forged + "\r\nUser-Agent: " + forged + "\r\nX-Forwarded-For: " + forged + "\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\n msg=forged\r\nX-API-Key: " + forged + "\r\n\r\n",
			"FORGED / HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /v1/agents?x=msg=forged HTTP/1.1\r\nHost: forged\r\nX-Request-Id: \" msg=forged\r\nUser-Agent: forged\r\nX-Forwarded-For: forged\r\n\r\n",
			"POST /v1/auth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 23\r\n\r\n{\"agent_id\":\"forged\\n\"}",
			"\x16\x03\x01" + forged + "\r\n\r\n",
		}
		for _, request := range requests {
			api.exchangeRaw(request)
		}
		eventually(t, "all lines", func() bool { return strings.Count(log.String(), "\n") >= len(requests) })
		if text := log.String(); strings.Count(text, "\n") != len(requests) || !strings.Contains(text, "missing_credentials") || strings.Contains(text, "forged") || strings.Contains(text, "\x1b") {
			t.Errorf("%s: %d requests are told of as\n%s", format, len(requests), text)
		}
	}
}

func TestAFailureIsLoggedOnceInEachLogUnderOneRequestID(t *testing.T) {
	t.Parallel()
	log, troubles := &accessLog{}, &syncBuffer{}
	api := onMiniredis(t, setup{access: log.telling(0), log: troubles})
	w := api.newTenant()
	api.on.mini.SetError("LOADING busy")
	api.get("/v1/agents", asKey(w.key), header("X-Request-Id", "mine"))
	if line := log.of(t, "mine"); line["status"] != 503.0 || line["code"] != "unavailable" || line["level"] != "INFO" {
		t.Errorf("it says %v", line)
	}
	if text := troubles.String(); strings.Count(text, "request_id=mine") != 1 || !strings.Contains(text, `msg="request failed" request_id=mine`) {
		t.Errorf("the log says %s", text)
	}
}

func TestUnreadableRequestsHaveNoMethod(t *testing.T) {
	t.Parallel()
	log := &accessLog{}
	api := onMiniredis(t, setup{access: log.telling(1)})
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 20_000) + "\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
	} {
		api.exchangeRaw(request)
	}
	for _, line := range log.lines(t, 2) {
		if line["method"] != "_OTHER" {
			t.Errorf("it says %v", line)
		}
	}
	for _, status := range []string{"431", "413"} {
		api.wantMetrics(`remit_http_requests_total{method="other",route="none",status="` + status + `"} 1`)
	}
}

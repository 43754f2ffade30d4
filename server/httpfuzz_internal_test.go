package server

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"mime"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// onMiniature is a server on an in-memory Redis, for what goes through all of it many times a second.
func onMiniature(f *testing.F) (*Server, fasthttp.RequestHandler) {
	f.Helper()
	store := must(redisstore.Open(redisstore.Config{URL: "redis://" + miniredis.RunT(f).Addr()}))(f)
	f.Cleanup(func() { _ = store.Close() })
	s := New(Config{Store: store, Log: slog.New(slog.DiscardHandler), Limits: Limits{Off: true}})
	return s, s.Handler()
}

// parse reads a request as a connection would, and returns false for what is none.
func parse(text string) (*fasthttp.RequestCtx, bool) {
	var request fasthttp.Request
	if request.Read(bufio.NewReader(strings.NewReader(text))) != nil {
		return nil, false
	}
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(&request, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}, nil)
	return ctx, true
}

// FuzzRouter sends any method and any target, without a credential. What is not written plainly is refused; what is,
// reaches the one route that its bytes name, or is 404 or 405; and every answer is one of ours.
func FuzzRouter(f *testing.F) {
	for _, seed := range [][2]string{
		{"GET", "/healthz"}, {"HEAD", "/readyz"}, {"POST", "/v1/agents"}, {"OPTIONS", "/v1/agents"}, {"PATCH", "/sessions/x"},
		{"get", "/healthz"}, {"BREW", "/v1/agents"}, {"BREW", "/v1/auth/authorize"}, {"CONNECT", "remit.example:443"}, {"OPTIONS", "*"}, {"GET", "/*"},
		{"GET", "/v1/agents/"}, {"GET", "/v1//agents"}, {"GET", "/v1/./agents"}, {"GET", "/v1/../v1/agents"}, {"GET", "/v1/%61gents"},
		{"GET", "/v1/agents%2f"}, {"GET", "/V1/agents"}, {"GET", "/v1\\agents"}, {"GET", "/v1/agents;a=b"}, {"GET", "/v1/agents#x"},
		{"GET", "/v1/agents#?limit=1"}, {"GET", "/v1/agents?#"}, {"GET", "v1/agents"}, {"GET", "?"}, {"GET", "//v1/agents"},
		{"GET", "http://a/v1/agents"}, {"GET", "http://a"}, {"GET", "http://a//v1/agents"}, {"GET", "HTTP://a:1/healthz"}, {"GET", "a://b@c/healthz"},
		{"GET", "/v1/auth/verify"}, {"PUT", "/v1/auth/verify"}, {"PUT", "/v1/auth/verify/"}, {"PUT", "/v1/auth/verify/../../agents"},
		{"PUT", "/v1/auth/authorize/%2e%2e//x"}, {"GET", "/v1/auth/verifyx"}, {"GET", "/v1/auth/verify/%"}, {"GET", "/v1/sessions/{id}"},
		{"GET", "/sessions/a/b"}, {"POST", "/sessions/a/end"}, {"GET", "/sessions/a/end"}, {"POST", "/v1/v1/sessions"}, {"DELETE", "/v1/agents/x"}, {"GET", "/v1/agents/\u00e9"},
		{"GET", "/\x00"}, {"GET", "/v1/agents\x7f"}, {"GET", "/v1/sessions/{path:*}"}, {"GET", "/:80"}, {"GET", "/v1/agents?x=/../.."}, {"GET", "//a/healthz?://"}, {"GET", "//a:b://c/healthz"}, {"PUT", "//a/v1/auth/verify/?://"},
		{"GET", "a://b/healthz"}, {"GET", "/a://b/healthz"}, {"GET", "http:///healthz"}, {"GET", "HTTPS://a/healthz#b"}, {"GET", "/healthz?://"},
	} {
		f.Add(seed[0], seed[1])
	}
	for _, target := range []string{
		"/v1", "/v1/", "/V1/agents", "/v1/Agents", "/v2/agents", "/sessions/", "/healthz/", "/v1/healthz",
		"/./v1/agents", "/v1/agents/x/y", "/v1/auth", "/v1/auth/",
		"/transactions", "/v1/transactions/", "/actions", "/v1/actions/", "/v1%2fagents",
		"/v1/agents/%2e%2e/agents", "/v1/agents%00", "/v1/agents%", "/v1/agents/%zz",
		"/v1/agents//", "/v1/x/../agents", "/..", "/../v1/agents", "/v1/agents/..", "/v1/agents..", "/v1/agents/..;/", "/v1/agents?limit=%31",
	} {
		f.Add("GET", target)
	}
	_, handle := onMiniature(f)
	f.Fuzz(func(t *testing.T, method, target string) {
		if target == "" || strings.ContainsAny(method+target, " \t\r\n") {
			return // another request line than this test means
		}
		ctx, ok := parse(method + " " + target + " HTTP/1.1\r\nHost: remit.example\r\n\r\n")
		if !ok {
			return
		}
		handle(ctx)
		requireRouted(t, ctx, method, target)
	})
}

// absoluteForm is a URL's beginning up to its path, with a host and a port or none, and no user.
var absoluteForm = regexp.MustCompile(`^((?i:https?)://(?:[\w.~-]+|\[[[:xdigit:]:.]+\])(?::[0-9]*)?)(?:[/?#]|$)`)

// pathOf is the path of a request target in origin form or absolute form (RFC 9112 §3.2); in another it has none.
func pathOf(target string) (path string, found bool) {
	rest, absolute := target, absoluteForm.FindStringSubmatch(target)
	if absolute != nil {
		rest = target[len(absolute[1]):]
	}
	path, _, _ = strings.Cut(rest, "?")
	if absolute != nil && path == "" {
		path = "/" // RFC 9110 §4.2.3
	}
	return path, absolute != nil || strings.HasPrefix(path, "/")
}

func requireRouted(t *testing.T, ctx *fasthttp.RequestCtx, method, target string) {
	t.Helper()
	path, found := pathOf(target)
	status, code := ctx.Response.StatusCode(), requireOurs(t, ctx)
	methods := MethodsAt(path)
	found = found || method == fasthttp.MethodOptions && target == "*"
	plain := found && !strings.Contains(path, "%") && !strings.Contains(path, "//") && !strings.Contains(path, "..") && !strings.Contains(target, "#")
	switch {
	case !plain && !strings.HasPrefix(path, web.VerifyPath+"/") && !strings.HasPrefix(path, web.AuthorizePath+"/"):
		if status != 400 {
			t.Errorf("%s %q is not written plainly: %d %s, want 400", method, path, status, code)
		}
	case methods == nil:
		if status != 404 || len(ctx.Response.Header.Peek("Allow")) > 0 {
			t.Errorf("%s %q: %d %s, want 404", method, path, status, code)
		}
	case methods[0] != "*" && !slices.Contains(methods, method):
		allowed := strings.Split(string(ctx.Response.Header.Peek("Allow")), ", ")
		slices.Sort(allowed)
		if status != 405 || !slices.Equal(allowed, methods) {
			t.Errorf("%s %q: %d %s, Allow %q; want 405 and %q", method, path, status, code, allowed, methods)
		}
	case status == 404 || status == 405 || status >= 500 && code != "unavailable":
		t.Errorf("%s %q: %d %s, but it is served", method, path, status, code)
	}
}

// requireOurs checks that an answer is one of this service, and returns its code, "" for success.
func requireOurs(t *testing.T, ctx *fasthttp.RequestCtx) string {
	t.Helper()
	if len(ctx.Response.Header.Peek(web.HeaderRequestID)) == 0 {
		t.Error("an answer without a request id")
	}
	if ctx.Response.StatusCode() < 400 {
		return ""
	}
	var said struct {
		Status      int    `json:"status"`
		Code, Error string // of a problem, or of OAuth's
	}
	if err := json.Unmarshal(ctx.Response.Body(), &said); err != nil {
		t.Fatalf("%d %q is no problem: %v", ctx.Response.StatusCode(), ctx.Response.Body(), err)
	}
	if said.Error != "" {
		return said.Error
	}
	if said.Status != ctx.Response.StatusCode() || web.Titles[said.Code] == "" {
		t.Errorf("%d is told as %d, %q", ctx.Response.StatusCode(), said.Status, said.Code)
	}
	return said.Code
}

// FuzzHeader gives one value to every header that is read as a credential or a name, over a connection.
func FuzzHeader(f *testing.F) {
	agent := uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1")
	secret, key := token.NewAgentSecret(), token.NewAPIKey(agent)
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	padded := basic(strings.ReplaceAll(agent.String(), "-", "%2D") + ":" + secret) // which leaves loose bits before its =
	for _, seed := range []string{
		padded, looseBits(padded),
		"", "Bearer", "Bearer ", "bearer e30.e30.e30", "Bearer\te30.e30.e30", "Bearer  e30.e30.e30", "Bearer a b", "BEARERx", "Bearer,x", "DPoP a", "dpop  a", "DPoP",
		basic(agent.String() + ":" + secret), basic(strings.ToUpper(agent.String()) + ":" + secret), basic(agent.String() + ":" + secret + ":"),
		basic(agent.String()), basic(":"), basic(""), basic("%zz:" + secret),
		basic("{" + agent.String() + "}:" + secret), "Basic " + strings.TrimRight(basic("a:b"), "="), "basic Og==", "Basic Oh==", "Basic O g==",
		key, strings.ToUpper(key), key + " ", secret, "rmk_", strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("a", 64),
		strings.Repeat("a", 65), "a b", "\u00e9", "\x7f", "\x00", "a,b", "\"a\"", ".-_", "a\tb", "a/b", "a:b", "<script>", "a=b", "%20",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsAny(value, "\r\n") {
			return // another header than this test means
		}
		head := "POST / HTTP/1.1\r\nHost: remit.example\r\nContent-Length: 0\r\n"
		for _, name := range []string{"Authorization", "X-API-Key", "Idempotency-Key", "X-Request-Id"} {
			head += name + ": " + value + "\r\n"
		}
		ctx, ok := parse(head + "\r\n")
		if !ok {
			return
		}
		value = strings.Trim(value, " \t") // RFC 9110 §5.5
		requireAccessToken(t, ctx, value)
		requireBasic(t, ctx, value)
		requireAPIKey(t, ctx, value)
		requireNames(t, ctx, value)
	})
}

// looseBits sets the last bit before the =, which decoders drop.
func looseBits(text string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := strings.IndexByte(text, '=') - 1
	return text[:last] + string(alphabet[strings.IndexByte(alphabet, text[last])|1]) + text[last+1:]
}

func requireAccessToken(t *testing.T, ctx *fasthttp.RequestCtx, value string) {
	t.Helper()
	given, found := access.AccessToken(ctx)
	scheme, text, spaced := strings.Cut(value, " ")
	proven := strings.EqualFold(scheme, "DPoP")
	if want := spaced && (proven || strings.EqualFold(scheme, "Bearer")); found != want {
		t.Errorf("%q has an access token: %t, want %t", value, found, want)
	}
	if found && (text != string(given.Text) || proven != given.Proven) {
		t.Errorf("%q is read as the token %q, with a proof: %t", value, given.Text, given.Proven)
	}
}

// requireBasic checks that a client is who its header names, by the very secret that it holds, and written in base64.
func requireBasic(t *testing.T, ctx *fasthttp.RequestCtx, value string) {
	t.Helper()
	client, err := access.ReadClientSecret(ctx, url.Values{})
	if err != nil {
		return
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(value[len("Basic "):])
	id, secret, _ := strings.Cut(string(raw), ":")
	id, idErr := url.QueryUnescape(id)
	secret, secretErr := url.QueryUnescape(secret)
	if err != nil || idErr != nil || secretErr != nil || !strings.EqualFold(id, client.Agent.String()) || client.Secret != token.Hash(secret) {
		t.Errorf("%q is read as %+v", value, client)
	}
	if token.CheckAgentSecret(secret) != nil {
		t.Errorf("%q: no agent has the secret %q", value, secret)
	}
}

func requireAPIKey(t *testing.T, ctx *fasthttp.RequestCtx, value string) {
	t.Helper()
	key, err := access.OrganizationKey(ctx)
	organization, wrong := token.APIKeyOrganization(value)
	switch {
	case value == "" && err != access.ErrMissingKey, value != "" && (err == nil) != (wrong == nil):
		t.Errorf("%q as an API key: %v", value, err)
	case err == nil && (key.Organization != organization || key.Hash != token.Hash(value)):
		t.Errorf("%q is read as the key of %s", value, key.Organization)
	}
}

var (
	aRequestID       = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,64}$`)
	anIdempotencyKey = regexp.MustCompile(`^[!-~]{1,255}$`)
)

// requireNames checks the idempotency key and the request id: taken as they are, or not at all.
func requireNames(t *testing.T, ctx *fasthttp.RequestCtx, value string) {
	t.Helper()
	idempotency, err := web.IdempotencyOf(ctx, "test", uuid.Nil)
	if taken := err == nil && idempotency != nil && idempotency.Key == value; taken != anIdempotencyKey.MatchString(value) {
		t.Errorf("%q as an idempotency key: %+v, %v", value, idempotency, err)
	}
	id := string(web.NewRequestIDs().Append(nil, ctx))
	if !aRequestID.MatchString(id) || aRequestID.MatchString(value) != (id == value) {
		t.Errorf("%q made the request id %q", value, id)
	}
}

// FuzzForm holds forms against a second reader, that of fasthttp: whatever is accepted says the same to both, once.
func FuzzForm(f *testing.F) {
	agent, secret := "018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1", token.NewAgentSecret()
	const form = "application/x-www-form-urlencoded"
	for _, seed := range [][2]string{
		{form, "grant_type=client_credentials&client_id=" + agent + "&client_secret=" + secret},
		{form, "client_id=" + agent + "&client_secret=" + secret + "&scope=a+b%20c"}, {form, "scope=a&scope=b"}, {form, "scope=a&sco%70e=b"},
		{form, "scope=a;grant_type=b"}, {form, "scope=%zz"}, {form, "scope=%"}, {form, "scope=%4"}, {form, "scope=%00&b=%ff"}, {form, "=a"}, {form, "="},
		{form, "&&"}, {form, "a"}, {form, "a&a"}, {form, "a=b=c"}, {form, "a=b&"}, {form, "a%26b=c"}, {form, "a+b=c"}, {form, ""}, {form, "\xff=\xff"},
		{form, "client_id=" + strings.ToUpper(agent) + "&client_secret=" + secret}, {form, "client_id=" + agent + "&client_secret=" + secret + "%0a"},
		{form + ";charset=utf-8", "a=b"}, {form + " ; charset=utf-16", "a=b"}, {"Application/X-WWW-Form-URLEncoded", "a=b"}, {form + ",text/plain", "a=b"},
		{"application/json", "{}"}, {"", "a=b"}, {"multipart/form-data; boundary=x", "--x"}, {form + "x", "a=b"}, {";" + form, "a=b"},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		ctx := &fasthttp.RequestCtx{}
		ctx.Request.Header.SetContentType(contentType)
		ctx.Request.SetBody(body)
		form, err := access.ReadForm(ctx)
		if err != nil {
			return
		}
		if mediaType, _, err := mime.ParseMediaType(contentType); err == nil && mediaType != "application/x-www-form-urlencoded" {
			t.Errorf("%q is taken for a form", contentType)
		}
		var other fasthttp.Args
		other.ParseBytes(body)
		count := 0
		delete(form, "") // which no handler asks for
		for name, value := range other.All() {
			if len(name) == 0 {
				continue
			}
			if count++; form.Get(string(name)) != string(value) {
				t.Errorf("%q: %q is %q and %q", body, name, form.Get(string(name)), value)
			}
		}
		if count != len(form) {
			t.Errorf("%q has %d parameters and %d", body, len(form), count)
		}
		client, err := access.ReadClientSecret(ctx, form)
		if err == nil && (client.Secret != token.Hash(form.Get("client_secret")) || !strings.EqualFold(client.Agent.String(), form.Get("client_id")) ||
			token.CheckAgentSecret(form.Get("client_secret")) != nil) {
			t.Errorf("%q is read as %+v", body, client)
		}
	})
}

func TestAFormThatMayBeOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	for headers, want := range map[string]bool{
		form: true, form + "Content-Type: text/plain\r\n": false, "content-type: text/plain\r\n" + form: false,
		form + "Content-Encoding: gzip\r\n": false,
	} {
		ctx, ok := parse("POST /oauth2/token HTTP/1.1\r\nHost: remit.example\r\nContent-Length: 3\r\n" + headers + "\r\na=b")
		if _, err := access.ReadForm(ctx); !ok || (err == nil) != want {
			t.Errorf("%q: %v", headers, err)
		}
	}
}

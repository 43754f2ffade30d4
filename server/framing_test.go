package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// follower is a request that is sent behind another on the same connection. Its answer tells that the connection
// was left open, and that the server saw the end of the one before where the client put it.
const follower = "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: follower\r\n\r\n"

// refusedAlone fails the test unless the server refused the request and closed the connection behind it.
func (c *client) refusedAlone(request string) {
	c.t.Helper()
	answers := c.exchangeRaw(request + follower)
	if len(answers) != 1 {
		c.t.Errorf("%d answers, want 1 and the connection closed: %s", len(answers), answers[0].body)
		return
	}
	answers[0].refused(400, "invalid_request")
	if got := answers[0].header.Get("Connection"); got != "close" {
		c.t.Errorf("Connection %q, want close", got)
	}
}

// answeredFirst fails the test unless the server answered the request with the status, and then its follower.
func (c *client) answeredFirst(request string, status int) *response {
	c.t.Helper()
	answers := c.exchangeRaw(request + follower)
	if len(answers) != 2 || answers[1].status != 200 || answers[1].header.Get("X-Request-Id") != "follower" {
		c.t.Fatalf("%d answers, want its own and its follower's; the first is %d %s", len(answers), answers[0].status, answers[0].body)
	}
	return answers[0].is(status)
}

// framed is a charge of a tenant's session, in parts: the test puts headers and a body between.
type framed struct{ line, key string }

func newFramed(w tenant) framed {
	return framed{
		line: "POST /sessions/" + w.newSession(nil) + "/actions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n",
		key:  "X-API-Key: " + w.key + "\r\n",
	}
}

const chunkedBody, emptyChunkedBody = "2\r\n{}\r\n0\r\n", "0\r\n"

func TestAPlainChunkedBodyIsAccepted(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	charge := newFramed(w)
	for name, body := range map[string]string{
		"one chunk":         chunkedBody,
		"two chunks":        "1\r\n{\r\n1\r\n}\r\n0\r\n",
		"a chunk extension": "2;name=value\r\n{}\r\n0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, coding := range []string{"chunked", "Chunked"} {
				w.in(t).answeredFirst(charge.line+charge.key+"Transfer-Encoding: "+coding+"\r\n\r\n"+body+"\r\n", 200)
			}
		})
	}
}

// What two parsers could read in two ways is a request smuggled past one of them.
func TestABodyWithTwoPossibleEndsIsRefused(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	charge := newFramed(w)
	smuggled := "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	before := api.on.mini.Dump()
	for name, rest := range map[string]string{
		"Content-Length and chunked":           "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n" + chunkedBody + "\r\n",
		"chunked and Content-Length":           "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n" + chunkedBody + "\r\n",
		"Content-Length and chunked, empty":    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + emptyChunkedBody + "\r\n",
		"Content-Length 0 and chunked, empty":  "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + emptyChunkedBody + "\r\n",
		"Content-Length and identity":          "Content-Length: 2\r\nTransfer-Encoding: identity\r\n\r\n{}",
		"Content-Length 0 and identity":        "Content-Length: 0\r\nTransfer-Encoding: identity\r\n\r\n",
		"identity":                             "Transfer-Encoding: identity\r\n\r\n",
		"identity with a request for its body": "Transfer-Encoding: identity\r\n\r\n" + smuggled,
		"gzip, chunked":                        "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunkedBody + "\r\n",
		"chunked, chunked":                     "Transfer-Encoding: chunked, chunked\r\n\r\n" + chunkedBody + "\r\n",
		"chunked, identity":                    "Transfer-Encoding: chunked, identity\r\n\r\n" + chunkedBody + "\r\n",
		"chunked twice":                        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunkedBody + "\r\n",
		"chunked and identity":                 "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunkedBody + "\r\n",
		"a coding of no name":                  "Transfer-Encoding: \r\nContent-Length: 2\r\n\r\n{}",
		"xchunked":                             "Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n\r\n{}",
		"a space before the colon":             "Transfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n{}",
		"on a line of its own":                 "Transfer-Encoding:\r\n chunked\r\nContent-Length: 2\r\n\r\n{}",
		"two lengths":                          "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"the same length twice":                "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"a list of lengths":                    "Content-Length: 2, 2\r\n\r\n{}",
		"a signed length":                      "Content-Length: +2\r\n\r\n{}",
		"a negative length":                    "Content-Length: -2\r\n\r\n{}",
		"a length in hex":                      "Content-Length: 0x2\r\n\r\n{}",
		"a chunk size that is none":            "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"a chunk size with a sign":             "Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
		"a chunk that is longer":               "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) { w.in(t).refusedAlone(charge.line + charge.key + rest) })
	}
	t.Run("nothing was charged", func(t *testing.T) {
		if after := api.on.mini.Dump(); after != before {
			t.Error("a refused request was carried out")
		}
	})
}

// A proxy that checks credentials, or drops them, sees the headers; a trailer comes after its decision.
func TestATrailerIsRefused(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	charge, access := newFramed(w), "Authorization: Bearer "+w.exchange().access+"\r\n"
	before := api.on.mini.Dump()
	for name, test := range map[string]struct{ headers, trailer string }{
		"an API key":                        {"", charge.key},
		"an API key, announced":             {"Trailer: X-API-Key\r\n", charge.key},
		"an access token":                   {"", access},
		"an access token, announced":        {"Trailer: Authorization\r\n", access},
		"a second API key":                  {charge.key, charge.key},
		"an access token beside an API key": {charge.key, access},
		"any":                               {charge.key, "X-Other: 1\r\n"},
		"any, announced":                    {charge.key + "Trailer: X-Other\r\n", "X-Other: 1\r\n"},
		"one announced and not sent":        {charge.key + "Trailer: X-Other\r\n", ""},
		"a header again":                    {charge.key + "X-Request-Id: a\r\n", "X-Request-Id: b\r\n"},
		"a media type":                      {charge.key, "Content-Type: text/plain\r\n"},
		"a length":                          {charge.key, "Content-Length: 2\r\n"},
		"a coding":                          {charge.key, "Transfer-Encoding: chunked\r\n"},
		"a content coding":                  {charge.key, "Content-Encoding: gzip\r\n"},
		"a host":                            {charge.key, "Host: y\r\n"},
		"a cookie":                          {charge.key + "Cookie: a=b\r\n", "Cookie: c=d\r\n"},
		"a connection option":               {charge.key, "Connection: keep-alive\r\n"},
	} {
		for body, chunks := range map[string]string{"a body": chunkedBody, "an empty body": emptyChunkedBody} {
			for wait, expect := range map[string]string{"": "", " after a 100": "Expect: 100-continue\r\n"} {
				t.Run(fmt.Sprintf("%s behind %s%s", name, body, wait), func(t *testing.T) {
					w.in(t).refusedAlone(charge.line + expect + "Transfer-Encoding: chunked\r\n" + test.headers + "\r\n" +
						chunks + test.trailer + "\r\n")
				})
			}
		}
	}
	t.Run("nothing was charged", func(t *testing.T) {
		if after := api.on.mini.Dump(); after != before {
			t.Error("a request with a trailer was carried out")
		}
	})
}

func TestACredentialGivenTwiceIsRefused(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	access := w.exchange().access
	for _, credential := range []string{"X-API-Key: " + w.key, "Authorization: Bearer " + access} {
		name, _, _ := strings.Cut(credential, ":")
		for _, second := range []string{credential, strings.ToLower(name) + ": other", name + ":", name + ": "} {
			for _, both := range []string{credential + "\r\n" + second, second + "\r\nX-Other: 1\r\n" + credential} {
				w.refusedAlone("GET /sessions HTTP/1.1\r\nHost: x\r\n" + both + "\r\n\r\n")
			}
		}
		w.answeredFirst("GET /sessions HTTP/1.1\r\nHost: x\r\n"+strings.ToLower(name)+credential[len(name):]+"\r\n\r\n", 200)
	}
}

func TestBothCredentialsAtOnceAreRefusedWhereEitherWouldDo(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		session, transaction := w.newSession(nil), w.begin(nil)
		beside := both(asKey(w.key), asAgent(w.exchange().access))
		for _, e := range append(endpointsOfBoth(w, session, transaction), rollbackOf(transaction)) {
			w.ask(e.method, e.path, e.body, beside).refused(400, "invalid_request")
		}
		if s := w.session(session); s["status"] != "active" || s["action_count"] != num(0) {
			t.Errorf("a refused request was carried out: %v", s)
		}
		if got := w.transaction(transaction)["status"]; got != "pending" {
			t.Errorf("a refused request was carried out: the transaction is %v", got)
		}
	})
}

func TestAPathThatIsNotPlainIsRefused(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	for _, path := range []string{
		"/v1%2fagents", "/v1/agents%2f" + w.agent.id, "/v1/agents/%2e%2e/agents", "/%761/agents", "/v1/agents%00", "/v1/agents%", "/v1/agents/%zz",
		"//v1/agents", "/v1//agents", "/v1/agents//", "/v1/x/../agents", "/..", "/../v1/agents", "/v1/agents/..", "/v1/agents..", "/v1/agents/..;/",
	} {
		t.Run(path, func(t *testing.T) {
			w.in(t).refusedAlone("GET " + path + " HTTP/1.1\r\nHost: x\r\nX-API-Key: " + w.key + "\r\n\r\n")
		})
	}
}

func TestAPathIsMatchedAsItIsWritten(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	for _, path := range []string{
		"/v1", "/v1/", "/v1/agents/", "/V1/agents", "/v1/Agents", "/v2/agents", "/v1/sessions/", "/sessions/", "/healthz/", "/v1/healthz",
		`/v1\agents`, "/v1/agents;x", "/./v1/agents", "/v1/./agents", "/v1/agents/" + w.agent.id + "/", "/v1/agents/" + w.agent.id + "/x",
		"/v1/auth", "/v1/auth/", "/transactions", "/v1/transactions/", "/v1/Transactions", "/actions", "/v1/actions/",
	} {
		t.Run(path, func(t *testing.T) {
			w.in(t).answeredFirst("GET "+path+" HTTP/1.1\r\nHost: x\r\nX-API-Key: "+w.key+"\r\n\r\n", 404).refused(404, "not_found")
		})
	}
	for _, path := range []string{"/v1/agents", "/v1/agents?limit=1", "/v1/agents?limit=%31", "http://x/v1/agents"} {
		w.answeredFirst("GET "+path+" HTTP/1.1\r\nHost: x\r\nX-API-Key: "+w.key+"\r\n\r\n", 200)
	}
}

func TestOnlyHTTP11AndHTTP10AreSpoken(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	for _, version := range []string{"HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "HTTP/3.0", "http/1.1", "HTTP/1", "HTTP/1.1x", "HTTPS/1.1", ""} {
		t.Run(version, func(t *testing.T) {
			api.in(t).refusedAlone("GET /healthz " + version + "\r\nHost: x\r\n\r\n")
		})
	}
}

func TestHTTP10IsAnswered(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	key := "X-API-Key: " + w.key + "\r\n"
	for name, request := range map[string]string{
		"without a Connection header": "GET /v1/agents HTTP/1.0\r\n" + key + "\r\n",
		"as nginx sends it":           "GET /v1/agents HTTP/1.0\r\nHost: x\r\nConnection: close\r\n" + key + "\r\n",
		"with a body":                 "POST /v1/organizations HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"name\":\"n\"}",
		"kept alive":                  "GET /v1/agents HTTP/1.0\r\nConnection: keep-alive\r\n" + key + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			answers := w.in(t).exchangeRaw(request)
			if len(answers) != 1 || answers[0].status >= 300 {
				t.Errorf("%d answers, the first is %d %s", len(answers), answers[0].status, answers[0].body)
			}
		})
	}
}

func TestHeadersOf16KiBAndMoreAreTooLarge(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	for name, lines := range map[string]string{
		"one long value":    "X-Long: " + long(16<<10),
		"many headers":      strings.TrimSuffix(strings.Repeat("X-Many: 0123456789\r\n", 1000), "\r\n"),
		"a long name":       long(17<<10) + ": 1",
		"a long credential": "Authorization: Bearer " + long(20<<10),
	} {
		t.Run(name, func(t *testing.T) {
			answers := api.in(t).exchangeRaw("GET /healthz HTTP/1.1\r\nHost: x\r\n" + lines + "\r\n\r\n")
			if len(answers) != 1 {
				t.Fatalf("%d answers, want 1", len(answers))
			}
			answers[0].refused(431, "headers_too_large")
		})
	}
	t.Run("a long path", func(t *testing.T) {
		api.in(t).exchangeRaw("GET /" + long(17<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n")[0].refused(431, "headers_too_large")
	})
	api.get("/healthz", header("X-Long", long(15<<10))).is(200)
}

func TestWhatIsNotHTTPIsRefused(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	for name, text := range map[string]string{
		"a TLS greeting":           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"no version":               "GET /healthz\r\n\r\n",
		"no path":                  "GET HTTP/1.1\r\nHost: x\r\n\r\n",
		"no host":                  "GET /healthz HTTP/1.1\r\n\r\n",
		"two hosts":                "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"a header without a colon": "GET /healthz HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
		"a space before the colon": "GET /healthz HTTP/1.1\r\nHost: x\r\nX-API-Key : y\r\n\r\n",
		"a control character":      "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Other: a\x01b\r\n\r\n",
		"a NUL in the path":        "GET /healthz\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) { api.in(t).refusedAlone(text) })
	}
}

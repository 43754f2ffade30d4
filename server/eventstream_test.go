package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/server"
	"remit/test/suite"
)

// stream is an event stream as its client reads it.
type stream struct {
	t      *testing.T
	conn   net.Conn
	answer *http.Response
	lines  *bufio.Reader
}

// frame is one event of a stream.
type frame struct{ id, event, data string }

// stream opens a connection of its own and reads the head of the answer. What is not read in 20 s fails the test.
func (c *client) stream(t *testing.T, path string, options ...option) *stream {
	t.Helper()
	request := must(http.NewRequest("GET", "http://"+c.on.address+path, nil))(t)
	for _, set := range append([]option{header("Accept", "text/event-stream")}, options...) {
		set(request.Header)
	}
	var text strings.Builder
	must(0, request.Write(&text))(t)
	s, _ := c.rawStream(t, text.String())
	return s
}

// rawStream sends this text on a connection of its own and reads the head of the answer. What comes behind the stream is in the reader.
func (c *client) rawStream(t *testing.T, text string) (*stream, *bufio.Reader) {
	t.Helper()
	conn := must(net.Dial("tcp", c.on.address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	must(0, conn.SetDeadline(time.Now().Add(20*time.Second)))(t)
	must(io.WriteString(conn, text))(t)
	reader := bufio.NewReader(conn)
	answer := must(http.ReadResponse(reader, nil))(t)
	return &stream{t, conn, answer, bufio.NewReader(answer.Body)}, reader
}

// streamOf is stream for the trail of the tenant's agent, which must be granted.
func (w tenant) streamOf(as option, options ...option) *stream {
	w.t.Helper()
	s := w.stream(w.t, w.eventsPath(), append([]option{as}, options...)...)
	if s.answer.StatusCode != 200 {
		body, _ := io.ReadAll(s.answer.Body)
		w.t.Fatalf("no stream: %d %s", s.answer.StatusCode, body)
	}
	return s
}

// block reads up to the next empty line: an event or a comment.
func (s *stream) block() ([]string, error) {
	var lines []string
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return append(lines, line), err
		}
		if line == "\n" {
			return lines, nil
		}
		lines = append(lines, line)
	}
}

// next returns the next event, without the comments before it, or io.EOF when the stream has ended as it should. The
// form is held to exactly what the service promises.
func (s *stream) next() (frame, error) {
	for {
		lines, err := s.block()
		if err != nil {
			return frame{}, err
		}
		if len(lines) == 1 && lines[0] == ":\n" {
			continue
		}
		var f frame
		if len(lines) != 3 {
			return f, fmt.Errorf("not an event: %q", lines)
		}
		for i, into := range []struct {
			name string
			text *string
		}{{"id: ", &f.id}, {"event: ", &f.event}, {"data: ", &f.data}} {
			text, found := strings.CutPrefix(lines[i], into.name)
			if !found {
				return f, fmt.Errorf("not an event: %q", lines)
			}
			*into.text = strings.TrimSuffix(text, "\n")
		}
		return f, nil
	}
}

// wants fails the test unless the next events are these, by their ids.
func (s *stream) wants(ids ...string) []frame {
	s.t.Helper()
	var frames []frame
	for i, id := range ids {
		f, err := s.next()
		if err != nil || f.id != id {
			s.t.Fatalf("event %d of the stream: %v, %v; want %s", i, f, err, id)
		}
		frames = append(frames, f)
	}
	return frames
}

// ends fails the test unless the stream ends now, in order and without another event.
func (s *stream) ends() {
	s.t.Helper()
	if f, err := s.next(); err != io.EOF {
		s.t.Errorf("not the end of the stream: %v, %v", f, err)
	}
}

func TestAStreamSendsEachEventAsTheListDoes(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		w.newSession(nil)
		listed := w.get(w.eventsPath(), access).is(200)
		for _, as := range []option{asKey(w.key), access} {
			s := w.streamOf(as, header("X-Request-Id", "my-stream"))
			if s.answer.ContentLength != -1 || !slices.Equal(s.answer.TransferEncoding, []string{"chunked"}) || !s.answer.Close {
				t.Errorf("Content-Length %d, Transfer-Encoding %v, close %t", s.answer.ContentLength, s.answer.TransferEncoding, s.answer.Close)
			}
			for name, want := range map[string]string{
				"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no",
				"X-Request-Id": "my-stream", "X-Content-Type-Options": "nosniff",
			} {
				if got := s.answer.Header[name]; !slices.Equal(got, []string{want}) && s.answer.Header.Get(name) != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			var told []string
			for i, f := range s.wants(listed.ids()...) {
				wantEqual[any](t, "event", f.event, listed.array()[i]["type"])
				told = append(told, f.data)
			}
			wantEqual(t, "the stream", "["+strings.Join(told, ",")+"]", string(listed.body))
		}
	})
}

func TestAStreamResumesBehindTheLastEventOfItsClient(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		for range 4 {
			w.change()
		}
		all := w.get(w.eventsPath(), asKey(w.key)).is(200).ids()
		key := asKey(w.key)
		w.streamOf(key, header("Last-Event-ID", all[1])).wants(all[2:]...)
		w.streamOf(key, header("Last-Event-ID", "")).wants(all...)
		w.stream(t, w.eventsPath()+"?after="+all[2], key).wants(all[3:]...)
		w.stream(t, w.eventsPath()+"?limit=1&wait=1", key).wants(all...) // which are for lists
		// A client that resumes by itself asks at the address that it was given first.
		w.stream(t, w.eventsPath()+"?after="+all[0], key, header("Last-Event-ID", all[3])).wants(all[4:]...)

		accepts := header("Accept", "text/event-stream")
		for _, malformed := range []string{"x", "1", "-", "1-0-0", "$", all[0] + "x", "18446744073709551615-18446744073709551615",
			strings.Repeat("0", 200) + "1-0", all[0] + ", " + all[1]} {
			w.get(w.eventsPath(), key, accepts, header("Last-Event-ID", malformed)).invalid("Last-Event-ID")
			w.get(w.eventsPath(), key, header("Last-Event-ID", malformed)).is(200) // it is nothing to a list
		}
	})
}

// Many changes during a stream: none is missed, sent twice or out of order, over pages and wakings.
func TestAStreamMissesNothing(t *testing.T) {
	t.Parallel()
	api := onOneRedis(t)
	w := api.newTenant()
	there := w.through(api.another(t))
	s := w.streamOf(asKey(w.key))
	const changes = 300
	var changing sync.WaitGroup
	defer changing.Wait()
	for _, at := range []tenant{w, there} {
		changing.Go(func() {
			for range changes / 2 {
				if r, err := at.try("POST", "/v1/agents/"+w.agent.id+"/secret/rotate", nil, asKey(w.key)); err != nil || r.status != 200 {
					t.Errorf("a change: %+v, %v", r, err)
					return
				}
			}
		})
	}
	var told []string
	for range changes + 1 {
		f, err := s.next()
		if err != nil {
			t.Fatalf("after %d events: %v", len(told), err)
		}
		told = append(told, f.id)
	}
	if listed := slices.Concat(w.pages(w.eventsPath()+"?limit=200", asKey(w.key))...); !slices.Equal(told, listed) {
		t.Errorf("told %d events, listed %d, or in another order", len(told), len(listed))
	}
}

func TestAStreamEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		for name, end := range map[string]func(w, there tenant, tokens pair){
			"the token is revoked": func(_, there tenant, tokens pair) {
				there.post("/v1/auth/revoke", fields{"refresh_token": tokens.refresh}, asAgent(tokens.access)).is(200)
			},
			"the refresh token is used again": func(_, there tenant, tokens pair) {
				there.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200)
				there.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(401)
			},
			"the agent is revoked": func(w, there tenant, _ pair) { w.through(there.client).revoke() },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := api.in(t).newTenant()
				there := w.through(api.another(t))
				tokens := w.exchange()
				newest := w.trail().newest
				agents := w.streamOf(asAgent(tokens.access), header("Last-Event-ID", newest))
				organizations := w.streamOf(asKey(w.key), header("Last-Event-ID", newest))
				end(w, there, tokens)
				told := w.get(w.eventsPath()+"?after="+newest, asKey(w.key)).is(200).ids()
				organizations.wants(told...)
				for f, err := agents.next(); err != io.EOF; f, err = agents.next() {
					if err != nil || f.id == told[len(told)-1] {
						t.Fatalf("the agent is told %v, %v", f, err)
					}
				}
			})
		}
	})
}

// A token's expiry is no event: only the timer wakes a stream and a wait.
func TestAStreamAndAWaitEndWhenTheirTokenExpires(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		newest := w.trail().newest
		access := must(w.on.keyring.SignAccess(token.Access{
			Agent: uuid.MustParse(w.agent.id), Organization: uuid.MustParse(w.org), Family: uuid.New(), Scopes: agentScopes,
			Issued: time.Now().Add(5*time.Second - token.AccessLifetime), Client: uuid.MustParse(w.agent.id), Audience: []string{w.on.keyring.Issuer()},
		}))(t)
		s := w.streamOf(asAgent(access), header("Last-Event-ID", newest))
		first := w.change()
		f, err := s.next()
		if err != nil || !strings.Contains(f.data, first.header.Get("X-Request-Id")) {
			t.Fatalf("while it lasts: %v, %v", f, err)
		}
		(<-w.getLater(w.eventsPath()+"?wait=30&after="+f.id, asAgent(access))).refused(401, "invalid_token")
		w.change()
		s.ends()
	})
}

func TestStreamsEndWithTheServer(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		there := w.through(w.another(t))
		access := asAgent(w.exchange().access)
		all := w.get(w.eventsPath(), asKey(w.key)).is(200).ids()
		var streams []*stream
		for range 5 {
			for _, as := range []option{asKey(w.key), access} {
				s := there.streamOf(as)
				s.wants(all...)
				streams = append(streams, s)
			}
		}
		streams = append(streams, there.streamOf(access)) // its client reads nothing
		shutDown(t, there.on)
		streams[len(streams)-1].wants(all...)
		for _, s := range streams {
			s.ends()
		}
		if _, err := net.Dial("tcp", there.on.address); err == nil {
			t.Error("it still listens")
		}
	})
}

// A stream lasts as long as its connection, so requests pipelined behind it get no response.
func TestARequestBehindAStreamIsNotAnswered(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	there := w.through(w.another(t))
	s, reader := there.rawStream(t, "GET "+w.eventsPath()+" HTTP/1.1\r\nHost: x\r\nX-API-Key: "+w.key+"\r\nAccept: text/event-stream\r\n\r\n"+
		"POST /v1/agents/"+w.agent.id+"/secret/rotate HTTP/1.1\r\nHost: x\r\nX-API-Key: "+w.key+"\r\nContent-Length: 0\r\n\r\n")
	s.wants(w.get(w.eventsPath(), asKey(w.key)).is(200).ids()...)
	shutDown(t, there.on)
	s.ends()
	if rest, err := io.ReadAll(reader); len(rest) > 0 || err != nil {
		t.Errorf("after the stream: %q, %v", rest, err)
	}
	wantEqual(t, "the trail after a request behind the stream", typesOf(w.get(w.eventsPath(), asKey(w.key)).is(200).array()), "agent.created")
}

func TestAStreamToAnHTTP10Client(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	there := w.through(w.another(t))
	s, _ := there.rawStream(t, "GET "+w.eventsPath()+" HTTP/1.0\r\nX-API-Key: "+w.key+"\r\nAccept: text/event-stream\r\n\r\n")
	s.wants(w.get(w.eventsPath(), asKey(w.key)).is(200).ids()...)
	shutDown(t, there.on)
	s.ends()
	if _, err := s.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is left open: %v", err)
	}
}

// In the long run this waits for the pulse that the server ships with, 15 s, and for a wait that is longer than its write
// timeout, 10 s.
func TestAStreamWithoutEventsShowsThatItLives(t *testing.T) {
	t.Parallel()
	wait, with := "3", setup{prepare: func(s *server.Server) {
		s.SetTimeouts(0, 2*time.Second, 0)
		s.SetPulse(2 * time.Second)
	}}
	if suite.Long {
		wait, with = "11", setup{}
	}
	api := onOneRedisWith(t, with)
	w, other := api.newTenant(), api.newTenant()
	idle := w.streamOf(asKey(w.key), header("Last-Event-ID", w.trail().newest))
	unkeyed := other.streamOf(asKey(other.key), header("Last-Event-ID", other.trail().newest))
	other.post("/v1/organizations/"+other.org+"/api-key/rotate", fields{"grace_seconds": 0}, asKey(other.key)).is(200)

	waited := w.getLater(w.eventsPath()+"?wait="+wait+"&after="+w.trail().newest, asKey(w.key)) // longer than the server lets an answer take
	for i := range 2 {
		lines, err := idle.block()
		if err != nil || !slices.Equal(lines, []string{":\n"}) {
			t.Fatalf("comment %d: %q, %v", i, lines, err)
		}
	}
	unkeyed.ends() // its key is looked at again with each pulse
	if r := (<-waited).is(200); string(r.body) != "[]" {
		t.Errorf("a wait of %s s is answered %s", wait, r.body)
	}
	changed := w.change()
	if f, err := idle.next(); err != nil || !strings.Contains(f.data, changed.header.Get("X-Request-Id")) {
		t.Errorf("after the pulse: %v, %v", f, err)
	}
}

package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// waiter is an agent as those see it who wait for its events.
type waiter struct {
	runningServer
	t                  *testing.T
	client             *http.Client
	organization, key  string
	agent, secret, url string
}

const acceptStream = "Accept: text/event-stream"

func (r runningServer) newWaiter(t *testing.T) *waiter {
	t.Helper()
	w := &waiter{runningServer: r, t: t, client: from(t, "")}
	organization := r.post(t, w.client, "/v1/organizations", `{"name":"acme"}`).is(t, 201, "")
	w.organization, w.key = organization.text(t, "id"), organization.text(t, "api_key")
	agent := w.asKey("/v1/agents", `{"name":"scout","scopes":["read"]}`).is(t, 201, "")
	w.agent, w.secret = agent.text(t, "id"), agent.text(t, "secret")
	w.url = "/v1/agents/" + w.agent + "/events"
	return w
}

func (w *waiter) asKey(path, body string, extra ...string) reply {
	w.t.Helper()
	return w.post(w.t, w.client, path, body, append(extra, "X-API-Key", w.key)...)
}

// change makes one event, of a request with this id.
func (w *waiter) change(request string) {
	w.t.Helper()
	w.asKey("/v1/agents/"+w.agent+"/secret/rotate", `{"grace_seconds":60}`, "X-Request-Id", request).is(w.t, 200, "")
}

// rotateKey rotates the organization's key and ends the old one.
func (w *waiter) rotateKey() {
	w.t.Helper()
	w.key = w.asKey("/v1/organizations/"+w.organization+"/api-key/rotate", `{"grace_seconds": 0}`).is(w.t, 200, "").text(w.t, "api_key")
}

// sinceNow requests the events after the newest one.
func (w *waiter) sinceNow() string {
	w.t.Helper()
	conn := w.dial(w.address)
	defer conn.Close()
	page := w.url + "?limit=200"
	for {
		answer := w.ask(conn, page)
		var events []struct {
			ID string `json:"id"`
		}
		if err := json.UnmarshalRead(answer.Body, &events); err != nil || len(events) == 0 {
			w.t.Fatalf("%s: %d, %v", page, answer.StatusCode, err)
		}
		page = w.url + "?after=" + events[len(events)-1].ID
		if answer.Header.Get("Link") == "" {
			return page
		}
		page += "&limit=200"
	}
}

func (w *waiter) dial(address string) net.Conn {
	w.t.Helper()
	return sendFrom(w.t, "", address, "")
}

// ask sends a request over a connection and returns the response before its body.
func (w *waiter) ask(conn net.Conn, url string, headers ...string) *http.Response {
	w.t.Helper()
	return must(w.try(conn, url, headers...))(w.t)
}

func (w *waiter) try(conn net.Conn, url string, headers ...string) (*http.Response, error) {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	lines := append([]string{"GET " + url + " HTTP/1.1", "Host: remit", "X-API-Key: " + w.key}, headers...)
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(conn), nil)
}

// wait requests the next event in the background; the channel gets the response.
func (w *waiter) wait(conn net.Conn) <-chan string { return w.waitFor(conn, w.sinceNow()+"&wait=20") }

func (w *waiter) waitFor(conn net.Conn, url string) <-chan string {
	answers := make(chan string, 1)
	go func() {
		answer, err := w.try(conn, url)
		if err != nil {
			answers <- err.Error()
			return
		}
		body, err := io.ReadAll(answer.Body)
		answers <- fmt.Sprint(answer.StatusCode, " ", string(body), " ", err)
	}()
	return answers
}

// waits returns when so many are counted as waiting.
func (w *waiter) waits(count int) {
	w.t.Helper()
	await(w.t, fmt.Sprintf("%d wait", count), func() bool { return w.front.Waiters.Len() == count })
}

// tells fails the test unless the stream's next event is of the request with this id.
func (w *waiter) tells(events *bufio.Scanner, request string) {
	w.t.Helper()
	for events.Scan() {
		if strings.HasPrefix(events.Text(), "data: ") {
			if !strings.Contains(events.Text(), `"request_id":"`+request+`"`) {
				w.t.Errorf("told %s, want the event of %s", events.Text(), request)
			}
			return
		}
	}
	w.t.Fatalf("the stream has ended before %s: %v", request, events.Err())
}

// newRequest makes a pending request for more, and returns its path with a wait.
func (w *waiter) newRequest() string {
	w.t.Helper()
	session := w.asKey("/v1/sessions", fmt.Sprintf(`{"agent_id":%q}`, w.agent)).is(w.t, 201, "").text(w.t, "id")
	access := w.exchange(w.t, w.client, w.agent, w.secret).is(w.t, 200, "").text(w.t, "access_token")
	path := "/v1/sessions/" + session + "/requests"
	asked := w.post(w.t, w.client, path, `{"add_actions":1,"reason":"more"}`, "Authorization", "Bearer "+access)
	return path + "/" + asked.is(w.t, 201, "").text(w.t, "id") + "?wait=60"
}

func TestWaitingRequestsAreAnsweredWhenTheServerStops(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	var events, decisions []<-chan string
	request := w.newRequest()
	for range 5 {
		events = append(events, w.wait(w.dial(w.address)))
		decisions = append(decisions, w.waitFor(w.dial(w.address), request))
	}
	w.waits(10)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	must(0, w.Shutdown(ctx))(t)
	for i := range events {
		wantEqual(t, "a wait for an event", <-events[i], "200 [] <nil>")
		if got := <-decisions[i]; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"status":"pending"`) {
			t.Errorf("a wait for a decision is answered %s", got)
		}
	}
	w.waits(0)
}

// Recheck authorization before delivering each event: access may have been revoked meanwhile.
func TestWaitingRequestsGetNothingAfterTheirKeyEnds(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	answer, stream := w.wait(w.dial(w.address)), w.ask(w.dial(w.address), w.sinceNow(), acceptStream)
	w.waits(2)
	w.rotateKey()
	w.change("unseen")
	if got := <-answer; !strings.HasPrefix(got, "401 ") || !strings.Contains(got, "invalid_api_key") {
		t.Errorf("answered %s", got)
	}
	if told, err := io.ReadAll(stream.Body); err != nil || strings.Contains(string(told), "data: ") {
		t.Errorf("the stream tells %s, %v", told, err)
	}
	w.waits(0)
}

func farAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }

func TestADisplacedStreamEndsAndADisplacedWaitIsAnswered(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{Limits: Limits{Off: true}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	large, small := r.newWaiter(t), r.newWaiter(t)
	r.front.Waiters.SetMost(8)
	for i := range 4 {
		must(r.front.Waiters.Acquire(uuid.New(), farAddress(i)))(t)
	}
	var streams []*http.Response
	for range 3 {
		streams = append(streams, large.ask(large.dial(large.address), large.sinceNow(), acceptStream, "X-Forwarded-For: 192.0.2.1"))
	}
	large.waits(7)
	polled := large.wait(large.dial(large.address))
	large.waits(8)
	first := bufio.NewScanner(small.ask(small.dial(small.address), small.sinceNow(), acceptStream, "X-Forwarded-For: 192.0.2.2").Body)
	wantEqual(t, "the displaced wait", <-polled, "200 [] <nil>")
	second := small.ask(small.dial(small.address), small.sinceNow(), acceptStream, "X-Forwarded-For: 192.0.2.2")
	if second.StatusCode != 503 && second.StatusCode != 200 {
		t.Errorf("a second stream: %d", second.StatusCode)
	}
	if _, err := io.ReadAll(streams[2].Body); second.StatusCode == 200 && err != nil {
		t.Errorf("the displaced stream ends with %v", err)
	}
	small.change("comes")
	small.tells(first, "comes")
}

func TestMoreThanMayWaitAreSentAwayWhileOthersAreServed(t *testing.T) {
	t.Parallel()
	const most = 8
	for name, test := range map[string]struct {
		held   int // places before the last that is free
		own    bool
		status int
		code   string
	}{
		"of all": {most - 1, false, 503, "unavailable"}, "of one organization": {most/2 - 1, true, 429, "rate_limited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runServer(t, "", Config{Limits: Limits{Off: true}})
			w := r.newWaiter(t)
			request := w.newRequest()
			w.front.Waiters.SetMost(most)
			for i := range test.held {
				holder := uuid.New()
				if test.own {
					holder = uuid.MustParse(w.organization)
				}
				must(w.front.Waiters.Acquire(holder, farAddress(i)))(t)
			}
			conn := w.dial(w.address)
			if last := w.ask(conn, w.sinceNow(), acceptStream); last.StatusCode != 200 {
				t.Fatalf("the last that may wait: %d", last.StatusCode)
			}
			for name, refused := range map[string]*http.Response{
				"a stream": w.ask(w.dial(w.address), w.url, acceptStream), "a wait": w.ask(w.dial(w.address), w.sinceNow()+"&wait=20"),
				"a wait for a decision": w.ask(w.dial(w.address), request),
			} {
				body, err := io.ReadAll(refused.Body)
				after := refused.Header.Get("Retry-After")
				if refused.StatusCode != test.status || after != "1" || !strings.Contains(string(body), `"code":"`+test.code+`"`) {
					t.Errorf("%s: %d, Retry-After %q, %s, %v", name, refused.StatusCode, after, body, err)
				}
			}
			for _, served := range []string{w.url + "?wait=20", w.sinceNow(), "/v1/agents", strings.TrimSuffix(request, "?wait=60")} {
				wantEqual(t, served, w.ask(w.dial(w.address), served).StatusCode, 200)
			}
			wantEqual(t, "waiters without those refused", w.front.Waiters.Len(), test.held+1)
			if test.own {
				other := r.newWaiter(t)
				streamed := bufio.NewScanner(other.ask(other.dial(other.address), other.sinceNow(), acceptStream).Body)
				polled := other.wait(other.dial(other.address))
				w.waits(test.held + 3)
				other.change("comes")
				other.tells(streamed, "comes")
				if got := <-polled; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"request_id":"comes"`) {
					t.Errorf("another organization's wait is answered %s", got)
				}
			}
			_ = conn.Close()
			await(t, "there is room again", func() bool {
				return w.ask(w.dial(w.address), w.url, acceptStream).StatusCode == 200
			})
		})
	}
}

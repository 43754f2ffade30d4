package server

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// newRequest makes a pending request for more, and returns its path with a wait.
func (w *waiter) newRequest() string {
	w.t.Helper()
	session := w.asKey("/v1/sessions", fmt.Sprintf(`{"agent_id":%q}`, w.agent)).is(w.t, 201, "").text(w.t, "id")
	pair := w.post(w.t, w.client, "/v1/auth/token", fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, w.agent, w.secret)).is(w.t, 200, "")
	path := "/v1/sessions/" + session + "/requests"
	asked := w.post(w.t, w.client, path, `{"add_actions":1,"reason":"more"}`, "Authorization", "Bearer "+pair.text(w.t, "access_token"))
	return path + "/" + asked.is(w.t, 201, "").text(w.t, "id") + "?wait=60"
}

func TestWaitingForADecisionSharesThePlacesOfWaiters(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	url := w.newRequest()
	w.front.Waiters.SetMost(8)
	for i := range 4 {
		must(w.front.Waiters.Acquire(uuid.MustParse(w.organization), farAddress(i)))(t)
	}
	refused := w.ask(w.dial(w.address), url)
	body, err := io.ReadAll(refused.Body)
	if refused.StatusCode != 429 || !strings.Contains(string(body), `"code":"rate_limited"`) {
		t.Errorf("%d, %s, %v", refused.StatusCode, body, err)
	}
	if at := w.ask(w.dial(w.address), strings.TrimSuffix(url, "?wait=60")); at.StatusCode != 200 {
		t.Errorf("without waiting: %d", at.StatusCode)
	}
}

func TestWaitingForADecisionIsAnsweredPendingWhenTheServerStops(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	url, answers := w.newRequest(), make(chan string, 4)
	for range cap(answers) {
		conn := w.dial(w.address)
		go func() {
			answer, err := w.try(conn, url)
			if err != nil {
				answers <- err.Error()
				return
			}
			body, err := io.ReadAll(answer.Body)
			answers <- fmt.Sprint(answer.StatusCode, " ", string(body), " ", err)
		}()
	}
	w.waits(cap(answers))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := w.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	for range cap(answers) {
		if got := <-answers; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"status":"pending"`) {
			t.Errorf("answered %s", got)
		}
	}
	w.waits(0)
}

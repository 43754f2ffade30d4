package fakeprovider_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"remit/test/fakeprovider"
)

const (
	chat      = "/v1/chat/completions"
	responses = "/v1/responses"
	messages  = "/v1/messages"
)

type fixture struct {
	*fakeprovider.Provider
	*httptest.Server
}

func start(t *testing.T) fixture {
	t.Helper()
	p := new(fakeprovider.Provider)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return fixture{p, server}
}

func (f fixture) call(t *testing.T, ctx context.Context, path, fake, more string) (*http.Response, error) {
	t.Helper()
	body := `{"model":"plain","max_tokens":40,"max_output_tokens":40,"messages":[{"role":"user","content":"hello"}]` + more + `}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Fake", fake)
	request.Header.Set("X-Call", t.Name())
	return http.DefaultClient.Do(request)
}

// answered returns status and body of a call, and its record. The error is that of reading.
func (f fixture) answered(t *testing.T, path, fake, more string) (status int, body []byte, record fakeprovider.Record, err error) {
	t.Helper()
	answer, err := f.call(t, t.Context(), path, fake, more)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, f.only(t), err
}

// only waits for the one record of the ledger.
func (f fixture) only(t *testing.T) fakeprovider.Record {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if ledger := f.Ledger(); len(ledger) == 1 {
			return ledger[0]
		}
	}
	t.Fatalf("the ledger has %d records", len(f.Ledger()))
	return fakeprovider.Record{}
}

const streamed = `,"stream":true,"stream_options":{"include_usage":true}`

func TestTheSameSeedAnswersTheSame(t *testing.T) {
	t.Parallel()
	var first []byte
	for range 2 {
		_, body, _, err := start(t).answered(t, chat, "seed=7,reasoning=1", streamed+`,"n":2`)
		if err != nil || first != nil && !bytes.Equal(body, first) {
			t.Errorf("%v: %s", err, body)
		}
		first = body
	}
	if _, other, _, _ := start(t).answered(t, chat, "seed=8,reasoning=1", streamed+`,"n":2`); bytes.Equal(other, first) {
		t.Error("another seed answers the same")
	}
}

func TestAStreamSaysItsUsageOnlyWhenAskedTo(t *testing.T) {
	t.Parallel()
	if _, body, _, _ := start(t).answered(t, chat, "", `,"stream":true`); bytes.Contains(body, []byte("usage")) {
		t.Errorf("a stream that does not ask for usage: %s", body)
	}
}

func TestACallThatMeansNothingIsRefused(t *testing.T) {
	t.Parallel()
	for _, call := range [][2]string{{"error=418", ""}, {"sees=1", ""}, {"", `,"n":0`}} {
		status, body, record, err := start(t).answered(t, chat, call[0], call[1])
		if err != nil || status != 400 || record.Status != 400 || !record.Ended || record.Usage != (fakeprovider.Usage{}) {
			t.Errorf("%q: %d, %+v, %v: %s", call, status, record, err, body)
		}
	}
}

func TestAClientThatHangsUpIsCountedUntilThen(t *testing.T) {
	t.Parallel()
	f := start(t)
	ctx, hangUp := context.WithCancel(t.Context())
	answer, err := f.call(t, ctx, chat, "seed=13,pace=20", streamed)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadFull(answer.Body, make([]byte, 600)); err != nil { // the first of many events
		t.Fatal(err)
	}
	hangUp()
	record := f.only(t)
	whole, _, all, err := start(t).answered(t, chat, "seed=13", streamed)
	if err != nil || whole != 200 || record.Ended || record.Usage.Output < 1 || record.Usage.Output >= all.Usage.Output || record.Usage.Input != all.Usage.Input {
		t.Errorf("%+v of %+v, %v", record, all, err)
	}
}

func TestTheLedgerIsReadAndEmptiedByHTTP(t *testing.T) {
	t.Parallel()
	f := start(t)
	_, _, _, _ = f.answered(t, messages, "seed=1", "")
	for _, row := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/ledger", 200, `"ended":true,"status":200,"usage":{"input":`}, {"DELETE", "/ledger", 204, ""}, {"GET", "/ledger", 200, "[]"},
		{"GET", "/v1/files", 404, ""},
	} {
		got := httptest.NewRecorder()
		f.ServeHTTP(got, httptest.NewRequest(row.method, row.path, nil))
		if got.Code != row.status || !strings.Contains(got.Body.String(), row.says) {
			t.Errorf("%s %s: %d %s", row.method, row.path, got.Code, got.Body)
		}
	}
}

func TestAResponseThatEndsAtItsMaximumIsIncompleteStreamedOrNot(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", `,"stream":true`} {
		_, body, _, err := start(t).answered(t, responses, "seed=1", `,"max_output_tokens":1`+more)
		if err != nil || !bytes.Contains(body, []byte(`"status":"incomplete"`)) || !bytes.Contains(body, []byte(`"reason":"max_output_tokens"`)) {
			t.Errorf("%v: %s", err, body)
		}
	}
}

// An answer that hangs or does not end is counted when the client hangs up.
func TestAnAnswerWithoutEndIsCountedWhenTheClientHangsUp(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		fake, more string
		bytes      int // that come at least
	}{
		{"hang=first", "", 0}, {"hang=first", streamed, 0}, {"hang=midway", "", 10}, {"hang=midway", streamed, 10}, {"seed=1,endless=1", streamed, 100_000},
	} {
		for _, path := range []string{chat, responses, messages} {
			f := start(t)
			ctx, hangUp := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				answer, err := f.call(t, ctx, path, row.fake, row.more)
				if err == nil {
					_, err = io.ReadFull(answer.Body, make([]byte, row.bytes))
					hangUp()
					answer.Body.Close()
				}
				done <- err
			}()
			if row.bytes == 0 { // nothing comes that could be waited for
				time.AfterFunc(50*time.Millisecond, hangUp)
			}
			err := <-done
			hangUp()
			if record := f.only(t); record.Ended || err != nil && row.bytes > 0 || record.Usage.Input < 1 || row.bytes > 10 && record.Usage.Output < 200 {
				t.Errorf("%s %s: %v, %+v", path, row.fake, err, record)
			}
		}
	}
}

func TestAnotherModelAnswers(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chat, responses, messages} {
		_, body, record, err := start(t).answered(t, path, "model=other", streamed)
		if err != nil || !bytes.Contains(body, []byte(`"model":"other"`)) || record.Model != "plain" {
			t.Errorf("%s: %v, %+v: %s", path, err, record, body)
		}
	}
}

// An agent offers its tools again with the result of a call, and expects an answer then.
func TestAToolIsCalledUntilItsResultComes(t *testing.T) {
	t.Parallel()
	for path, result := range map[string]string{chat: `"call_fake"`, responses: `"call_fake"`, messages: `"toolu_fake"`} {
		for _, streams := range []string{"", streamed} {
			offers := `,"tools":[{"name":"other"},{"function":{"name":"Run"},"name":"Run"}]` + streams
			for more, calls := range map[string]bool{offers: true, offers + `,"was":` + result: false, streams: false, `,"max_tokens":3,"max_output_tokens":3` + offers: false} {
				f := start(t)
				f.Tools = map[string]string{"Run": `{"it":1}`}
				_, body, record, err := f.answered(t, path, "", more)
				if err != nil || bytes.Contains(body, []byte(`"Run"`)) != calls || calls && record.Usage.Output != 8 || !record.Ended {
					t.Errorf("%s %s: %v, %+v: %s", path, more, err, record, body)
				}
			}
		}
	}
}

package fakeprovider_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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

// datas returns the data of each event, and fails when the stream does not have its form.
func datas(t *testing.T, body []byte, end string) (data []map[string]any) {
	t.Helper()
	if !utf8.Valid(body) || !bytes.HasSuffix(body, []byte(end+end)) {
		t.Fatalf("it is no stream of events: %q", body)
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	for lines.Scan() {
		text, isData := strings.CutPrefix(lines.Text(), "data: ")
		if !isData || text == "[DONE]" {
			continue
		}
		var o map[string]any
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		data = append(data, o)
	}
	return data
}

// counted reads the usage that an answer gives, from wherever the format has it.
func counted(path string, data []map[string]any) (u fakeprovider.Usage) {
	number := func(o any, name string) int64 {
		members, _ := o.(map[string]any)
		n, _ := members[name].(float64)
		return int64(n)
	}
	for _, o := range data {
		for _, holder := range []any{o, o["response"], o["message"]} {
			members, _ := holder.(map[string]any)
			usage, has := members["usage"].(map[string]any)
			if !has {
				continue
			}
			switch path {
			case chat:
				u.CachedInput = number(usage["prompt_tokens_details"], "cached_tokens")
				u.Input = number(usage, "prompt_tokens") - u.CachedInput
				u.Reasoning = number(usage["completion_tokens_details"], "reasoning_tokens")
				u.Output = number(usage, "completion_tokens") - u.Reasoning
			case responses:
				u.CachedInput = number(usage["input_tokens_details"], "cached_tokens")
				u.Input = number(usage, "input_tokens") - u.CachedInput
				u.Reasoning = number(usage["output_tokens_details"], "reasoning_tokens")
				u.Output = number(usage, "output_tokens") - u.Reasoning
			case messages:
				if _, has := usage["input_tokens"]; has {
					u.Input, u.CachedInput = number(usage, "input_tokens"), number(usage, "cache_read_input_tokens")
					u.HourCacheCreationInput = number(usage["cache_creation"], "ephemeral_1h_input_tokens")
					u.CacheCreationInput = number(usage, "cache_creation_input_tokens") - u.HourCacheCreationInput
				}
				u.Output = number(usage, "output_tokens")
			}
		}
	}
	return u
}

func TestTheLedgerHasTheUsageThatTheAnswerGives(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chat, responses, messages} {
		for _, fake := range []string{"seed=1", "seed=2,chunks=odd", "seed=3,tools=1", "seed=4,tools=1,chunks=odd", "seed=5,reasoning=1,cached=1", "seed=6,pace=1", "seed=7,cached=hour", "seed=8,usage=choices"} {
			t.Run(path+" "+fake, func(t *testing.T) {
				t.Parallel()
				for _, more := range []string{"", streamed} {
					f := start(t)
					status, body, record, err := f.answered(t, path, fake, more)
					var data []map[string]any
					if more == "" {
						data = make([]map[string]any, 1)
						if err := json.Unmarshal(body, &data[0]); err != nil {
							t.Fatalf("%v: %s", err, body)
						}
					} else {
						end := map[bool]string{false: "\n", true: "\r\n"}[strings.Contains(fake, "odd")]
						data = datas(t, body, end)
					}
					u := record.Usage
					if err != nil || status != 200 || !record.Ended || record.Status != 200 || record.Path != path || record.Model != "plain" ||
						record.ID != t.Name() || u.Input < 1 || u.Output < 1 || u.Output+u.Reasoning > 40 || u.Input+u.CachedInput+u.CacheCreationInput > 200 {
						t.Errorf("%d, %+v, %v", status, record, err)
					}
					if got := counted(path, data); got != u {
						t.Errorf("%s\n%+v, and the ledger %+v", body, got, u)
					}
				}
			})
		}
	}
}

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

func TestUsageIsMissingOrNegativeWhenAskedFor(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chat, responses, messages} {
		for _, more := range []string{"", streamed} {
			_, body, record, err := start(t).answered(t, path, "usage=missing", more)
			if err != nil || bytes.Contains(body, []byte("_tokens\":")) || !record.Ended || record.Usage.Output < 1 {
				t.Errorf("%s%s: %v, %+v: %s", path, more, err, record, body)
			}
			_, body, record, err = start(t).answered(t, path, "usage=negative", more)
			if err != nil || !bytes.Contains(body, []byte("_tokens\":-")) || !record.Ended {
				t.Errorf("%s%s: %v, %+v: %s", path, more, err, record, body)
			}
		}
	}
	if _, body, _, _ := start(t).answered(t, chat, "", `,"stream":true`); bytes.Contains(body, []byte("usage")) {
		t.Errorf("a stream that does not ask for usage: %s", body)
	}
}

func TestRefusalsCostNothing(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chat, responses, messages} {
		for fake, want := range map[string]int{"error=429,retry=3": 429, "error=500": 500, "error=529": 529, "error=first": 500, "error=400": 400, "error=midway": 500, "error=418": 400, "sees=1": 400} {
			status, body, record, err := start(t).answered(t, path, fake, "")
			if err != nil || status != want || record.Status != want || !record.Ended || record.Usage != (fakeprovider.Usage{}) || !bytes.Contains(body, []byte(`"message"`)) {
				t.Errorf("%s %s: %d, %+v, %v: %s", path, fake, status, record, err, body)
			}
		}
	}
	if status, _, _, _ := start(t).answered(t, chat, "", `,"n":0`); status != 400 {
		t.Errorf("n of 0: %d", status)
	}
}

func TestAnAnswerThatEndsMidwayCountsWhatWasGenerated(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chat, responses, messages} {
		_, body, record, err := start(t).answered(t, path, "seed=9,error=midway,chunks=odd", streamed)
		if err != nil || record.Ended || record.Usage.Input < 1 || !bytes.Contains(body, []byte(`"error"`)) {
			t.Errorf("%s, an error: %+v, %v: %s", path, record, err, body)
		}
		_, body, record, err = start(t).answered(t, path, "seed=9,error=first", streamed)
		if err != nil || record.Ended || record.Usage.Output != 0 || !bytes.Contains(body, []byte(`"error"`)) || bytes.Count(body, []byte("data:")) != 1 {
			t.Errorf("%s, an error before all else: %+v, %v: %s", path, record, err, body)
		}
		_, body, record, err = start(t).answered(t, path, "seed=9,cut=midway", streamed)
		if err == nil || record.Ended || len(body) == 0 {
			t.Errorf("%s, cut: %+v, %v: %s", path, record, err, body)
		}
		_, body, record, err = start(t).answered(t, path, "seed=9,cut=midway", "")
		if err == nil || record.Ended || len(body) == 0 || record.Usage.Output < 1 {
			t.Errorf("%s, cut and not streamed: %+v, %v: %s", path, record, err, body)
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
	if _, _, _, err := f.answered(t, messages, "seed=1", ""); err != nil {
		t.Fatal(err)
	}
	read := func() (records []map[string]any) {
		answer, err := http.Get(f.URL + "/ledger")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(&records); err != nil || records == nil {
			t.Fatalf("%v, %v", records, err)
		}
		return records
	}
	if records := read(); len(records) != 1 || records[0]["ended"] != true || records[0]["usage"].(map[string]any)["cache_creation_input"] == nil {
		t.Errorf("%v", records)
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, f.URL+"/ledger", http.NoBody)
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != http.StatusNoContent {
		t.Fatal(answer, err)
	}
	answer.Body.Close()
	if records := read(); len(records) != 0 {
		t.Errorf("%v", records)
	}
	if answer, err := http.Get(f.URL + "/v1/files"); err != nil || answer.StatusCode != http.StatusNotFound {
		t.Error(answer, err)
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

func TestEmbeddingsModelsAndCountsOfTokens(t *testing.T) {
	t.Parallel()
	f := start(t)
	_, body, record, err := f.answered(t, "/v1/embeddings", "", `,"input":["a","b"]`)
	var answer struct {
		Data  []struct{ Embedding []float64 }
		Usage struct {
			Prompt int64 `json:"prompt_tokens"`
		}
	}
	if err := errors.Join(err, json.Unmarshal(body, &answer)); err != nil || len(answer.Data) != 2 || len(answer.Data[1].Embedding) == 0 ||
		answer.Usage.Prompt != record.Usage.Input || record.Usage.Input < 1 || record.Usage.Output != 0 || !record.Ended {
		t.Errorf("%v, %+v: %s", err, record, body)
	}
	for path, says := range map[string]string{"/v1/models": `"plain"`, "/v1/messages/count_tokens": `"input_tokens":`, "/v1/responses/input_tokens": `"input_tokens":`} {
		answer, err := f.call(t, t.Context(), path, "", "")
		if path == "/v1/models" {
			answer, err = http.Get(f.URL + path)
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(says)) {
			t.Errorf("%s: %d, %v: %s", path, answer.StatusCode, err, body)
		}
	}
	if len(f.Ledger()) != 1 {
		t.Errorf("what costs nothing is counted: %+v", f.Ledger())
	}
}

func TestAnotherModelAnswersAndARefusalSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chat, responses, messages} {
		_, body, record, err := start(t).answered(t, path, "model=other", streamed)
		if err != nil || !bytes.Contains(body, []byte(`"model":"other"`)) || record.Model != "plain" {
			t.Errorf("%s: %v, %+v: %s", path, err, record, body)
		}
	}
	answer, err := start(t).call(t, t.Context(), chat, "error=429,retry=3", "")
	if err != nil || answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "3" || answer.Header.Get("Retry-After-Ms") != "" {
		t.Errorf("%v, %+v", err, answer)
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

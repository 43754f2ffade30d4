package server

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore"
)

func TestAChargesAnswerIsWrittenAsTheEncoderWouldWriteIt(t *testing.T) {
	t.Parallel()
	for _, usage := range []redisstore.Usage{
		{Expires: time.UnixMilli(0)},
		{MaxActions: 1, ActionCount: 1, MaxValue: 1, ValueUsed: 1, Expires: time.UnixMilli(1_732_185_600_001)},
		{MaxActions: 1e9, ActionCount: 7, MaxValue: money.Max, ValueUsed: 12_300_000, ValueHeld: 100_001,
			Expires: time.Date(2026, 2, 28, 23, 59, 59, 999e6, time.FixedZone("", 3600))},
	} {
		answer := chargeAnswer{uuid.New(), usageOf(usage)}
		want, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.append(nil); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestASessionIsWrittenAsTheEncoderWouldWriteIt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 28, 23, 59, 59, 999e6, time.FixedZone("", 3600))
	usage := redisstore.Usage{
		MaxActions: 1e9, ActionCount: 7, MaxValue: money.Max, ValueUsed: 12_300_000, ValueHeld: 100_001, Expires: at,
	}
	for name, session := range map[string]redisstore.Session{
		"active":          {ID: uuid.New(), Agent: uuid.New(), Usage: usage, Status: redisstore.Active, Created: at},
		"completed":       {Usage: usage, ValueOverage: 5, Status: redisstore.Completed, Created: at, Ended: at.Add(time.Millisecond)},
		"no scopes":       {Scopes: []string{}},
		"with scopes":     {Scopes: []string{"read", "tools:<a>&'b'/c", "!#[]~"}},
		"with metadata":   {Metadata: "{ \"a\" : [ 1, 2.50, \"<\\u00e9\u00e9\u2028>\" ] ,\"\":null}"},
		"with much of it": {Metadata: `{"a":"` + strings.Repeat("x", 2*answerSize) + `"}`},
	} {
		answer := sessionOf(session)
		want, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := answer.append(nil); string(got) != string(want) || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
}

func TestATokenPairIsWrittenAsTheEncoderWouldWriteIt(t *testing.T) {
	t.Parallel()
	for _, pair := range []tokenPair{{}, {"eyJ-_09.a.b", "rmr_A-_z09", "bearer", 3600}} {
		want, err := json.Marshal(pair)
		if err != nil {
			t.Fatal(err)
		}
		if got := pair.append(nil); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

package server

import (
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

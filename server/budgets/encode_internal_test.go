package budgets

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/web"
	"remit/test/suite"
)

// hostile has what encoders treat differently.
const hostile = "\"\\/\b\f\n\r\t\x00\x1f\x7f<b>&'\u00e9\u2028\u2029\uFFFD\U0001F600"

func TestAChargesAnswerIsWrittenAsTheEncoderWouldWriteIt(t *testing.T) {
	t.Parallel()
	for _, usage := range []redisstore.Usage{
		{Expires: time.UnixMilli(0)},
		{MaxActions: 1, ActionCount: 1, MaxValue: 1, ValueUsed: 1, Expires: time.UnixMilli(1_732_185_600_001)},
		{MaxActions: 1, ActionCount: 9, MaxValue: 1, ValueUsed: 2, Expires: time.UnixMilli(1), WouldRefuse: "max_actions"},
		{MaxActions: 1e9, ActionCount: 7, MaxValue: money.Max, ValueUsed: 12_300_000, ValueHeld: 100_001,
			Expires: time.Date(2026, 2, 28, 23, 59, 59, 999e6, time.FixedZone("", 3600))},
	} {
		answer := ChargeAnswer{Session: uuid.New(), LimitUsage: web.UsageOf(usage), WouldRefuse: usage.WouldRefuse}
		want := suite.Must(json.Marshal(answer))(t)
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
		"with much of it": {Metadata: `{"a":"` + strings.Repeat("x", 2*web.AnswerSize) + `"}`},
	} {
		answer := SessionOf(session)
		want := suite.Must(json.Marshal(answer))(t)
		if got, err := answer.append(nil); string(got) != string(want) || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
}

func TestAListIsWrittenAsTheEncoderWouldWriteIt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 28, 23, 59, 59, 999e6, time.FixedZone("", 3600))
	sessions := []redisstore.SessionSummary{
		{}, {ID: uuid.New(), Agent: uuid.New(), Status: redisstore.Revoked, ActionCount: 1e9, MaxActions: 7, ValueUsed: 1, MaxValue: money.Max, Expires: at},
		{Status: redisstore.Active, Expires: time.UnixMilli(0)},
	}
	transactions := []redisstore.Transaction{
		{}, {
			ID: uuid.New(), Agent: uuid.New(), Session: uuid.New(), Sequence: 7, Status: redisstore.RolledBack, ActionType: hostile,
			Hold: 1, Held: 12_300_000, Value: money.Max, Overage: 100_001, Reversible: true, Reason: hostile,
			Created: at, Expires: at, Committed: at, Late: true, RolledBack: at,
		}, {Status: redisstore.Pending, ActionType: "edit", Hold: 5, Created: at, Expires: at},
	}
	for n := range len(sessions) + 1 {
		written := []SessionSummary{}
		for _, v := range sessions[:n] {
			written = append(written, summaryOfSession(v))
		}
		wantList(t, written, sessions[:n], func(o web.Object, v redisstore.SessionSummary) (web.Object, error) {
			return summaryOfSession(v).append(o), nil
		})
		begun := []TransactionAnswer{}
		for _, one := range transactions[:n] {
			begun = append(begun, summaryOf(one))
		}
		wantList(t, begun, transactions[:n], func(o web.Object, one redisstore.Transaction) (web.Object, error) {
			return summaryOf(one).appendSummary(o)
		})
	}
}

// wantList compares the body of a list with that of the encoder.
func wantList[T any](t *testing.T, answers any, items []T, write func(web.Object, T) (web.Object, error)) {
	t.Helper()
	want := suite.Must(json.Marshal(answers))(t)
	var ctx fasthttp.RequestCtx
	if err := web.AnswerList(&ctx, items, write); string(ctx.Response.Body()) != string(want) || err != nil {
		t.Errorf("%s, %v, want %s", ctx.Response.Body(), err, want)
	}
}

func TestAListThatIsNoJSONHasNoBody(t *testing.T) {
	t.Parallel()
	for _, broken := range []redisstore.Transaction{{ActionType: "\xff"}, {Reason: "\xff"}} {
		var ctx fasthttp.RequestCtx
		err := web.AnswerList(&ctx, []redisstore.Transaction{{}, broken, {}}, func(o web.Object, one redisstore.Transaction) (web.Object, error) {
			return summaryOf(one).appendSummary(o)
		})
		if err == nil || len(ctx.Response.Body()) > 0 {
			t.Errorf("%v, %s", err, ctx.Response.Body())
		}
	}
}

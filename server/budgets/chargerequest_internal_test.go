package budgets

import (
	"slices"
	"testing"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// commonCharges are bodies of charges that are written as nearly all are, otherCharges those that are not, or are none.
var (
	commonCharges = []string{
		`{}`, ` { } `, `{"action_type":"llm.call"}`, `{"value_usd":0.37}`, `{"value_usd": 1e3, "count": 12}`,
		"{\n\t\"scope\" : \"tools:read\",\r\n\"action_type\":\"\" }", `{"value_usd":-0}`, `{"value_usd":1000000000}`, `{"count":9999999}`,
		`{"action_type":"with / and ' and {} in it"}`,
	}
	otherCharges = []string{
		``, ` `, `{`, `{"count":1`, `{"count":1}}`, `{"count":1} x`, `{"count":1}{"count":1}`, `[{"count":1}]`, `null`, `{,}`,
		`{"count":1,}`, `{"count":1 "scope":"a"}`, `{"count":1,"count":1}`, `{"scope":"a","scope":"a"}`, `{"value_usd":1,"value_usd":1}`,
		`{"action_type":"a","action_type":""}`, `{"Count":1}`, `{"counts":1}`, `{"co\u0075nt":1}`, `{"count":0}`, `{"count":-1}`,
		`{"count":01}`, `{"count":1.0}`, `{"count":1e2}`, `{"count":10000000}`, `{"count":9223372036854775808}`, `{"count":}`,
		`{"count":"1"}`, `{"count":null}`, `{"count":[1]}`, `{"value_usd":"1"}`, `{"value_usd":null}`, `{"value_usd":.5}`,
		`{"value_usd":1.}`, `{"value_usd":+1}`, `{"value_usd":-1}`, `{"value_usd":1.0000001}`, `{"value_usd":1000000001}`,
		`{"value_usd":1-1}`, `{"value_usd":}`, `{"scope":null}`, `{"scope":7}`, `{"scope":"a}`, `{"scope":"\u0061"}`, `{"action_type":"é"}`,
		"{\"action_type\":\"\xff\"}", "{\"action_type\":\"\x00\"}", "{\"action_type\":\"\n\"}", "{\"action_type\":\"\x7f\"}",
		"\xef\xbb\xbf{}", "{\x0b}", `{'count':1}`, `{count:1}`,
	}
)

func TestChargesInTheCommonFormTakeTheFastPath(t *testing.T) {
	t.Parallel()
	for i, body := range slices.Concat(commonCharges, otherCharges) {
		if fast, want := decodeFast([]byte(body), &chargeRequest{}), i < len(commonCharges); fast != want {
			t.Errorf("%q: %t", body, fast)
		}
		wantReadAlike(t, []byte(body))
	}
}

// wantReadAlike checks that the fast path reads the same as decode.
func wantReadAlike(t *testing.T, body []byte) {
	t.Helper()
	var fast, slow chargeRequest
	if !decodeFast(body, &fast) {
		return
	}
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetContentType("application/json")
	ctx.Request.SetBody(body)
	if err := web.Decode(&ctx, &slow); err != nil || slow != fast {
		t.Errorf("%q is %+v, and by decode %+v, %v", body, fast, slow, err)
	}
}

func FuzzFastCharge(f *testing.F) {
	for _, body := range slices.Concat(commonCharges, otherCharges) {
		f.Add([]byte(body))
	}
	f.Fuzz(wantReadAlike)
}

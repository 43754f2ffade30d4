package budgets

import (
	"testing"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// chargeBodies are bodies of charges, and whether they are written as nearly all are.
var chargeBodies = map[string]bool{
	`{}`:                              true,
	` { } `:                           true,
	`{"action_type":"llm.call"}`:      true,
	`{"value_usd":0.37}`:              true,
	`{"value_usd": 1e3, "count": 12}`: true,
	"{\n\t\"scope\" : \"tools:read\",\r\n\"action_type\":\"\" }": true,
	`{"value_usd":-0}`:                            true,
	`{"value_usd":1000000000}`:                    true,
	`{"count":9999999}`:                           true,
	`{"action_type":"with / and ' and {} in it"}`: true,

	``:                                     false,
	` `:                                    false,
	`{`:                                    false,
	`{"count":1`:                           false,
	`{"count":1}}`:                         false,
	`{"count":1} x`:                        false,
	`{"count":1}{"count":1}`:               false,
	`[{"count":1}]`:                        false,
	`null`:                                 false,
	`{,}`:                                  false,
	`{"count":1,}`:                         false,
	`{"count":1 "scope":"a"}`:              false,
	`{"count":1,"count":1}`:                false,
	`{"scope":"a","scope":"a"}`:            false,
	`{"value_usd":1,"value_usd":1}`:        false,
	`{"action_type":"a","action_type":""}`: false,
	`{"Count":1}`:                          false,
	`{"counts":1}`:                         false,
	`{"co\u0075nt":1}`:                     false,
	`{"count":0}`:                          false,
	`{"count":-1}`:                         false,
	`{"count":01}`:                         false,
	`{"count":1.0}`:                        false,
	`{"count":1e2}`:                        false,
	`{"count":10000000}`:                   false,
	`{"count":9223372036854775808}`:        false,
	`{"count":}`:                           false,
	`{"count":"1"}`:                        false,
	`{"count":null}`:                       false,
	`{"count":[1]}`:                        false,
	`{"value_usd":"1"}`:                    false,
	`{"value_usd":null}`:                   false,
	`{"value_usd":.5}`:                     false,
	`{"value_usd":1.}`:                     false,
	`{"value_usd":+1}`:                     false,
	`{"value_usd":-1}`:                     false,
	`{"value_usd":1.0000001}`:              false,
	`{"value_usd":1000000001}`:             false,
	`{"value_usd":1-1}`:                    false,
	`{"value_usd":}`:                       false,
	`{"scope":null}`:                       false,
	`{"scope":7}`:                          false,
	`{"scope":"a}`:                         false,
	`{"scope":"\u0061"}`:                   false,
	`{"action_type":"é"}`:                  false,
	"{\"action_type\":\"\xff\"}":           false,
	"{\"action_type\":\"\x00\"}":           false,
	"{\"action_type\":\"\n\"}":             false,
	"{\"action_type\":\"\x7f\"}":           false,
	"\xef\xbb\xbf{}":                       false,
	"{\x0b}":                               false,
	`{'count':1}`:                          false,
	`{count:1}`:                            false,
}

func TestChargesInTheCommonFormTakeTheFastPath(t *testing.T) {
	t.Parallel()
	for body, want := range chargeBodies {
		if got := decodeFast([]byte(body), &chargeRequest{}); got != want {
			t.Errorf("%q: %t", body, got)
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
	for body := range chargeBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(wantReadAlike)
}

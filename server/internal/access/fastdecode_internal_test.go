package access

import (
	"reflect"
	"testing"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// credentialBodies are bodies of exchanges and refreshes, and whether they are written as nearly all are.
var credentialBodies = map[string]bool{
	`{}`:                                     true,
	`{"agent_id":"0198","secret":"rms_x"}`:   true,
	` { "secret" : "" , "agent_id" : "~" } `: true,
	`{"refresh_token":"rmr_x"}`:              true,
	"\r\n{\t\"refresh_token\":\"a/b+c=\"}\n": true,

	``:                         false,
	`null`:                     false,
	`["rmr_x"]`:                false,
	`{"refresh_token":"a"} {}`: false,
	`{"refresh_token":"a",}`:   false,
	`{"refresh_token":"a","refresh_token":"a"}`: false,
	`{"secret":"a","secret":"a"}`:               false,
	`{"agent_id":"a","agent_id":""}`:            false,
	`{"agent_id":"a","refresh_token":"b"}`:      false,
	`{"refresh_token":null}`:                    false,
	`{"refresh_token":7}`:                       false,
	`{"refresh_token":"\u0061"}`:                false,
	`{"refresh_token":"é"}`:                     false,
	`{"Refresh_token":"a"}`:                     false,
	`{"refresh_token":"a","scope":"b"}`:         false,
	"\xef\xbb\xbf{\"refresh_token\":\"a\"}":     false,
	"{\"secret\":\"\xff\"}":                     false,
}

func TestCredentialsInTheCommonFormTakeTheFastPath(t *testing.T) {
	t.Parallel()
	for body, want := range credentialBodies {
		var exchange exchangeRequest
		var refresh refreshRequest
		if got := exchange.decodeFast([]byte(body)) || refresh.decodeFast([]byte(body)); got != want {
			t.Errorf("%q: %t", body, got)
		}
		wantCredentialsReadAlike(t, []byte(body))
	}
}

// wantCredentialsReadAlike checks that the fast path reads the same as decode.
func wantCredentialsReadAlike(t *testing.T, body []byte) {
	t.Helper()
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetContentType("application/json")
	ctx.Request.SetBody(body)
	var exchange, slowExchange exchangeRequest
	if exchange.decodeFast(body) {
		if err := web.Decode(&ctx, &slowExchange); err != nil || !reflect.DeepEqual(slowExchange, exchange) {
			t.Errorf("%q is %+v, and by decode %+v, %v", body, exchange, slowExchange, err)
		}
	}
	var refresh, slowRefresh refreshRequest
	if refresh.decodeFast(body) {
		if err := web.Decode(&ctx, &slowRefresh); err != nil || !reflect.DeepEqual(slowRefresh, refresh) {
			t.Errorf("%q is %+v, and by decode %+v, %v", body, refresh, slowRefresh, err)
		}
	}
}

func FuzzFastCredentials(f *testing.F) {
	for body := range credentialBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(wantCredentialsReadAlike)
}

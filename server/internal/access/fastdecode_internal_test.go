package access

import (
	"reflect"
	"slices"
	"testing"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// commonCredentials are bodies of exchanges and refreshes that are written as nearly all are, otherCredentials those that are not.
var (
	commonCredentials = []string{
		`{}`, `{"agent_id":"0198","secret":"rms_x"}`, ` { "secret" : "" , "agent_id" : "~" } `, `{"refresh_token":"rmr_x"}`,
		"\r\n{\t\"refresh_token\":\"a/b+c=\"}\n",
	}
	otherCredentials = []string{
		``, `null`, `["rmr_x"]`, `{"refresh_token":"a"} {}`, `{"refresh_token":"a",}`, `{"refresh_token":"a","refresh_token":"a"}`,
		`{"secret":"a","secret":"a"}`, `{"agent_id":"a","agent_id":""}`, `{"agent_id":"a","refresh_token":"b"}`, `{"refresh_token":null}`,
		`{"refresh_token":7}`, `{"refresh_token":"\u0061"}`, `{"refresh_token":"é"}`, `{"Refresh_token":"a"}`,
		`{"refresh_token":"a","scope":"b"}`, "\xef\xbb\xbf{\"refresh_token\":\"a\"}", "{\"secret\":\"\xff\"}",
	}
)

func TestCredentialsInTheCommonFormTakeTheFastPath(t *testing.T) {
	t.Parallel()
	for i, body := range slices.Concat(commonCredentials, otherCredentials) {
		var exchange exchangeRequest
		var refresh refreshRequest
		if fast, want := exchange.decodeFast([]byte(body)) || refresh.decodeFast([]byte(body)), i < len(commonCredentials); fast != want {
			t.Errorf("%q: %t", body, fast)
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
	for _, body := range slices.Concat(commonCredentials, otherCredentials) {
		f.Add([]byte(body))
	}
	f.Fuzz(wantCredentialsReadAlike)
}

package client_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"remit/client"
)

// What a lost attempt has deleted is not there any more: that is what was asked for. What never was there is an error.
func TestADeletionWhoseResponseIsLostSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := refusal(404, "not_found")
		for name, test := range map[string]struct {
			answers []reaction
			want    error
		}{
			"lost":          {[]reaction{fails(errReset), gone}, nil},
			"unknown":       {[]reaction{refusal(503, "outcome_unknown"), gone}, nil},
			"never there":   {[]reaction{gone}, client.ErrNotFound},
			"not sent":      {[]reaction{fails(errRefused), gone}, client.ErrNotFound},
			"another's 404": {[]reaction{fails(errReset), {status: 404, body: "<html>"}}, client.ErrOutcomeUnknown},
		} {
			for _, remove := range []func(*client.Organization) error{
				func(o *client.Organization) error { return o.DeleteAPIKey(t.Context(), "k1") },
				func(o *client.Organization) error { return o.DeleteWebhook(t.Context(), "w1") },
				func(o *client.Organization) error { return o.DeleteBudget(t.Context()) },
			} {
				f := &fake{react: inTurn(test.answers...)}
				if err := remove(newClient(t, f, client.Options{}).Organization("k")); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

func TestUsageIsReadExactly(t *testing.T) {
	t.Parallel()
	const lines = `[{"day":"2026-11-01","session_id":null,"action_count":-2,"value_usd":-0.000001},{"day":"2026-11-02","session_id":"s1",` +
		`"action_count":3,"value_usd":9007199254.740993,"of_tomorrow":{}}]`
	f := &fake{react: inTurn(ok(lines), ok(`[{"action_count":1,"value_usd":1.0000001}]`), ok(`[{"value_usd":"1"}]`), ok("day,value_usd\r\n2026-11-01,-1\r\n"))}
	o := newClient(t, f, client.Options{MaxAttempts: 1}).Organization("k")
	wanted := client.UsageParams{FirstDay: "2026-11-01", LastDay: "2026-11-02", GroupBy: []string{"day", "session"}, AgentID: "a1"}
	got, err := o.Usage(t.Context(), wanted)
	if err != nil || len(got) != 2 || got[0].Value != -1 || got[0].ActionCount != -2 || got[0].SessionID != nil || got[0].Day != "2026-11-01" ||
		got[1].Value != 9_007_199_254_740_993 || *got[1].SessionID != "s1" || got[1].ActionType != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if query := f.requests[0].query; query != "agent_id=a1&format=json&from=2026-11-01&group_by=day%2Csession&to=2026-11-02" {
		t.Errorf("asks for %s", query)
	}
	for range 2 {
		if got, err := o.Usage(t.Context(), client.UsageParams{}); err == nil {
			t.Errorf("an amount that is none is read as %+v", got)
		}
	}
	if table, err := o.UsageCSV(t.Context(), client.UsageParams{}); err != nil || table != "day,value_usd\r\n2026-11-01,-1\r\n" {
		t.Errorf("%q, %v", table, err)
	}
}

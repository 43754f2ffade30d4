package server_test

import (
	"strings"
	"testing"
)

// What JSON does not take for a number (RFC 8259 §6) is malformed; the place is where the number goes wrong.
var notNumbers = map[raw]int{
	"NaN": 0, "Infinity": 0, "-Infinity": 1, "01": 1, "-01": 2, ".5": 0, "5.": 2, "+5": 0, "0x10": 1, "5e": 2, "5e+": 3, "1_000": 1,
	"--1": 1, "٣": 0, "5usd": 1,
}

func TestWhatIsNoNumberIsRefusedByItsByte(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for field, kind := range e.kinds {
			if kind != anAmount && kind != anInteger {
				continue
			}
			for text, wrong := range notNumbers {
				body := member(e.valid.without(field), field, "@")
				at := strings.LastIndex(string(body), `"@"`)
				c.send(e, raw(string(body[:at])+string(text)+string(body[at+3:]))).malformedAt(at + wrong)
			}
		}
	})
}

func TestAmountsAreReadExactly(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for sent, answered := range map[string]string{
			"0": "0", "-0": "0", "-0.0": "0", "0.000000": "0", "0e999999999": "0", "1e2": "100", "1E+2": "100", "100.000000": "100",
			"0.1": "0.1", "0.10": "0.1", "1e-6": "0.000001", "0.000001": "0.000001", "0.0000010": "0.000001", "12.3": "12.3",
			"1000000000": "1000000000", "1e9": "1000000000", "999999999.999999": "999999999.999999",
			"123456789.123456": "123456789.123456", "4503599.627370": "4503599.62737", "0.3": "0.3", "16777217": "16777217",
		} {
			created := w.post("/sessions", fields{"agent_id": w.agent.id, "max_value_usd": num(sent)}, asKey(w.key)).is(201)
			id := created.text("id")
			charged := w.post("/sessions/"+id+"/actions", fields{"value_usd": num(sent)}, asKey(w.key)).is(200)
			for what, got := range map[string]any{
				"max_value_usd on creation": created.object()["max_value_usd"],
				"max_value_usd on reading":  w.session(id)["max_value_usd"],
				"value_used_usd on charge":  charged.object()["value_used_usd"],
				"value_used_usd on reading": w.session(id)["value_used_usd"],
			} {
				if got != num(answered) {
					t.Errorf("%s for %s: %v, want %s", what, sent, got, answered)
				}
			}
			if got := charged.object()["remaining_value_usd"]; got != num(0) {
				t.Errorf("remaining_value_usd for %s: %v, want 0", sent, got)
			}
		}
	})
}

func TestAmountsOutOfTheirBoundsAreRefused(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	id := w.newSession(fields{"max_value_usd": 1_000_000_000})
	wantNothingWritten(t, api, func() {
		for _, amount := range []string{
			"-1", "-0.000001", "0.0000001", "1.0000001", "1e-7", "1000000000.000001", "1000000001", "1e10", "1e400", "1e-400", "-1e400",
			"9007199254740993", "9223372036854775808", "18446744073709551617", "1" + strings.Repeat("0", 400), "1e99999999999999999999",
			"0." + strings.Repeat("0", 400) + "1",
		} {
			w.post("/sessions", fields{"agent_id": w.agent.id, "max_value_usd": num(amount)}, asKey(w.key)).invalid("max_value_usd")
			w.post("/sessions/"+id+"/actions", fields{"value_usd": num(amount)}, asKey(w.key)).invalid("value_usd")
		}
	})
}

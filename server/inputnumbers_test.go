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

// TestParseReadsExactDecimals and TestParseRefusesOtherTexts of package money have many more.
func TestAmountsAreReadAndAnsweredExactly(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for sent, answered := range map[string]string{
			"-0.0": "0", "1E+2": "100", "100.000000": "100", "0.0000010": "0.000001", "1e9": "1000000000", "999999999.999999": "999999999.999999",
			"123456789.123456": "123456789.123456", "4503599.627370": "4503599.62737", "0.3": "0.3", "16777217": "16777217",
		} {
			limit, used := fields{"max_value_usd": num(answered)}, fields{"value_used_usd": num(answered), "remaining_value_usd": 0}
			created := w.post("/sessions", fields{"agent_id": w.agent.id, "max_value_usd": num(sent)}, asKey(w.key)).is(201).has(limit)
			path := "/sessions/" + created.text("id")
			w.post(path+"/actions", fields{"value_usd": num(sent)}, asKey(w.key)).is(200).has(used)
			w.get(path, asKey(w.key)).is(200).has(limit.with(fields{"value_used_usd": num(answered)}))
		}
	})
}

package server_test

import (
	"strings"
	"testing"
)

const maxState = 64 << 10

// stateOf returns an object of exactly this many bytes without white space, with some white space that does not count.
func stateOf(size int) raw {
	return raw(`{ "k" :` + "\n" + `"` + long(size-len(`{"k":""}`)) + `" }`)
}

func TestStatesAreHeldTo64KiB(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		full := fields{"k": long(maxState - len(`{"k":""}`))}
		valid := fields{"action_type": "call"}

		w.post("/v1/transactions", member(valid, "pre_state", stateOf(maxState+1)), access).invalid("pre_state")
		begun := w.post("/v1/transactions", member(valid, "pre_state", stateOf(maxState)), access).is(201)
		begun.exactly(newTransactionFields(w).with(fields{"pre_state": full}))
		path := "/v1/transactions/" + begun.text("id")
		w.post(path+"/commit", member(fields{}, "post_state", stateOf(maxState+1)), access).invalid("post_state")
		deep := member(fields{}, "post_state", nested(33))
		w.post(path+"/commit", deep, access).malformedAt(strings.LastIndex(string(deep), "["))
		w.get(path, access).is(200).exactly(begun.object())
		committed := w.post(path+"/commit", member(fields{}, "post_state", stateOf(maxState)), access).is(200)
		committed.exactly(begun.object().with(fields{"status": "committed", "post_state": full, "committed_at": aboutNow}))
		w.get(path, access).is(200).exactly(committed.object())
	})
}

// Bytes count, not characters; escapes count as they are written.
func TestTheSizesOfAStateAndOfMetadataAreThoseOfTheirBytes(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	access := asAgent(w.exchange().access)
	for _, letter := range []string{"é", "🤖", `\n`, `\u0041`} {
		fits := (maxState - len(`{"k":""}`)) / len(letter)
		begin := func(count int) *response {
			return w.post("/v1/transactions", member(fields{"action_type": "call"}, "pre_state", raw(`{"k":"`+strings.Repeat(letter, count)+`"}`)), access)
		}
		begin(fits).is(201)
		begin(fits + 1).invalid("pre_state")
	}
	w.beginAs(access, fields{"metadata": fields{"k": long(16 << 10)}}).invalid("metadata")
	w.beginAs(access, fields{"metadata": fields{"k": long(16<<10 - len(`{"k":""}`))}}).is(201)
}

// The response has what was sent, to the digits and the order, except white space and escapes.
func TestStatesComeBackAsTheyWereSent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		sent := `{ "z" : 1.50 , "a":[9007199254740993,1e400, -0],"é\u00e9":"\u0041\/ü\n","":null,"o":{ }}`
		state := `{"z":1.50,"a":[9007199254740993,1e400,-0],"éé":"A/ü\n","":null,"o":{}}`
		begun := w.post("/v1/transactions", raw(`{"action_type":"call", "pre_state": `+sent+`}`), access).is(201)
		path := "/v1/transactions/" + begun.text("id")
		committed := w.post(path+"/commit", raw(`{"post_state":`+sent+`}`), access).is(200)
		for _, r := range []*response{begun, committed, w.get(path, access).is(200)} {
			if !strings.Contains(string(r.body), `"pre_state":`+state) {
				t.Errorf("%s: %s lacks %s", r.what, r.body, state)
			}
			if r != begun && !strings.Contains(string(r.body), `"post_state":`+state) {
				t.Errorf("%s: %s lacks the post_state %s", r.what, r.body, state)
			}
		}
	})
}

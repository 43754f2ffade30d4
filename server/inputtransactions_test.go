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
		w.get(path, access).is(200).exactly(begun.object())
		committed := w.post(path+"/commit", member(fields{}, "post_state", stateOf(maxState)), access).is(200)
		committed.exactly(begun.object().with(fields{"status": "committed", "post_state": full, "committed_at": aboutNow}))
		w.get(path, access).is(200).exactly(committed.object())
	})
}

// Bytes count, not characters; escapes count as they are written.
func TestTheSizeOfAStateIsThatOfItsBytes(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	access, valid := asAgent(w.exchange().access), fields{"action_type": "call"}
	frame := len(`{"k":""}`)
	for _, letter := range []string{"é", "🤖", `\n`, `\u0041`} {
		fits := (maxState - frame) / len(letter)
		for count, ok := range map[int]bool{fits: true, fits + 1: false} {
			r := w.post("/v1/transactions", member(valid, "pre_state", raw(`{"k":"`+strings.Repeat(letter, count)+`"}`)), access)
			if ok {
				r.is(201)
			} else {
				r.invalid("pre_state")
			}
		}
	}
}

// What each field holds at the least and at the most is in TestAFieldBeyondItsBoundsIsRefusedByItsName.
func TestTheFieldsOfTransactionsMayHaveTheirBounds(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	access, begun := asAgent(w.exchange().access), w.begin(nil)
	wantNothingWritten(t, api, func() {
		w.beginAs(access, fields{"metadata": fields{"k": long(16 << 10)}}).invalid("metadata")
		for _, form := range append(otherForms(w.agent.id), "", "00000000-0000-0000-0000-000000000000") {
			w.beginAs(access, fields{"session_id": form}).invalid("session_id")
		}
	})
	for _, most := range []fields{
		{"action_type": strings.Repeat("🤖", 200)}, {"metadata": fields{"k": long(16<<10 - len(`{"k":""}`))}}, {"expires_in_seconds": 1},
		{"value_usd": num("1000000000")},
	} {
		w.beginAs(access, most).is(201)
	}
	reason := strings.Repeat("🤖", 1000)
	if got := w.post("/v1/transactions/"+begun+"/rollback", fields{"reason": reason}, asKey(w.key)).is(200).text("reason"); got != reason {
		t.Errorf("the reason came back as %.40s", got)
	}
}

func TestAStateIsNestedAtMost31Deep(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	access := asAgent(w.exchange().access)
	valid := fields{"action_type": "call"}
	begun := w.post("/v1/transactions", member(valid, "pre_state", nested(32)), access).is(201).text("id")
	wantNothingWritten(t, api, func() {
		body := member(valid, "pre_state", nested(33))
		w.post("/v1/transactions", body, access).malformedAt(strings.LastIndex(string(body), "["))
		body = member(fields{}, "post_state", nested(33))
		w.post("/v1/transactions/"+begun+"/commit", body, access).malformedAt(strings.LastIndex(string(body), "["))
	})
	w.post("/v1/transactions/"+begun+"/commit", member(fields{}, "post_state", nested(32)), access).is(200)
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

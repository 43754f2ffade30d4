package webhook

import "testing"

func TestAPreStateIsAddedToTheDataOfItsEvent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ event, state, want string }{
		{`{"type":"transaction.expired"}`, `{"seats": 3}`, `{"data":{"pre_state":{"seats":3}},"type":"transaction.expired"}`},
		{`{"seq":7,"data":{"value_usd":1.25}}`, `{}`, `{"data":{"pre_state":{},"value_usd":1.25},"seq":7}`},
		{`{"seq":7,"data":{"value_usd":1.25}}`, ``, `{"seq":7,"data":{"value_usd":1.25}}`},
	} {
		if got, err := withPreState([]byte(test.event), test.state); err != nil || string(got) != test.want {
			t.Errorf("%s with %q: %s, %v; want %s", test.event, test.state, got, err, test.want)
		}
	}
}

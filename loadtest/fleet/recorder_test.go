package fleet

import (
	"errors"
	"fmt"
	"testing"

	"remit/client"
)

func TestRecorderReportsTheOutcome(t *testing.T) {
	t.Parallel()
	gone, path := errors.New("gone"), "/v1/sessions/s/actions"
	doubt := fmt.Errorf("%w: %w", client.ErrOutcomeUnknown, gone)
	refusal := &client.Problem{Status: 403}
	sent := func(r reply) exchange { return exchange{path: path, reply: r} }
	token := exchange{path: tokenPath, reply: reply{status: 200}}
	// In a storm the tokens of many calls are invalidated. The refusals of these are not the outcome of the calls.
	invalidated := func(status int) exchange {
		return exchange{path: path, reply: reply{status: status}, invalidated: true}
	}
	for _, test := range []struct {
		name      string
		op        operation
		exchanges []exchange
		err       error
		outcome   outcome
		broken    []rule
	}{
		{"done", opAction, []exchange{sent(done())}, nil, acknowledged, nil},
		{"refused", opAction, []exchange{sent(overLimit(limitValue))}, refusal, refused, nil},
		{"lost", opAction, []exchange{sent(reply{err: gone})}, doubt, unknown, nil},
		{"lost, and done when repeated", opAction, []exchange{sent(reply{err: gone}), sent(done())}, nil, acknowledged, nil},
		{"lost, and refused before the key is looked up", opAction,
			[]exchange{sent(reply{err: gone}), sent(reply{status: 429})}, doubt, unknown, nil},
		{"with a token got for it", opAction, []exchange{token, sent(done())}, nil, acknowledged, nil},
		{"no token", opAction, []exchange{{path: tokenPath, reply: reply{err: gone}}}, gone, unknown, nil},
		{"with an invalidated token first", opAction, []exchange{invalidated(401), token, sent(done())}, nil, acknowledged, nil},
		{"a refresh that shares the answer of another", opRefresh, nil, nil, acknowledged, nil},
		{"all about tokens", opRefresh, []exchange{{path: refreshPath, reply: reply{status: 401}}, token}, nil, acknowledged, nil},

		{"done, and the SDK fails", opAction, []exchange{sent(done())}, gone, acknowledged, []rule{ruleClient}},
		{"refused, and the SDK says done", opAction, []exchange{sent(reply{status: 409})}, nil, refused, []rule{ruleClient}},
		{"lost, and the SDK says done", opAction, []exchange{sent(reply{err: gone})}, nil, unknown, []rule{ruleClient}},
		{"lost, and the SDK says refused", opAction, []exchange{sent(reply{err: gone})}, refusal, unknown, []rule{ruleClient}},
		{"nothing sent, and the SDK says done", opAction, nil, nil, unknown, []rule{ruleClient}},
		{"an invalidated token accepted", opAction, []exchange{invalidated(200)}, nil, unknown, []rule{ruleClient, ruleInvalidToken}},
		{"token refused once", opAction, []exchange{sent(reply{status: 401}), token, sent(done())}, nil, acknowledged, []rule{ruleToken}},
	} {
		recorded := &recorder{op: test.op, err: test.err, exchanges: test.exchanges}
		if got := recorded.reply().outcome(); got != test.outcome {
			t.Errorf("%s: outcome %d, want %d", test.name, got, test.outcome)
		}
		wantRules(t, test.name, checkRecorder(recorded), test.broken)
	}
}

func TestRecorderFindsExchangesByTheirPath(t *testing.T) {
	t.Parallel()
	recorded := &recorder{op: opAction, exchanges: []exchange{
		{path: "/v1/sessions/s/actions"}, {path: refreshPath, reply: reply{status: 503}}, {path: refreshPath, reply: reply{status: 401}}, {path: tokenPath, reply: reply{status: 200}},
	}}
	if e, ok := recorded.last(refreshPath); !ok || e.reply.status != 401 {
		t.Errorf("%+v, %t", e, ok)
	}
	if _, ok := recorded.last("/v1/elsewhere"); ok {
		t.Error("found what was not there")
	}
	if n := len(recorded.renewals()); n != 3 {
		t.Errorf("%d renewals", n)
	}
}

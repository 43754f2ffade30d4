package fleet

import (
	"errors"
	"net/http"
	"remit/client"
)

// sdkOutcome returns the outcome that an SDK error implies.
func sdkOutcome(err error) outcome {
	var p *client.Problem
	switch {
	case err == nil:
		return acknowledged
	case !errors.Is(err, client.ErrOutcomeUnknown) && errors.As(err, &p) && p.Status < 500:
		return refused
	}
	return unknown
}

// checkSDK compares the SDK's result with the wire.
func checkSDK(t *recorder) []violation {
	if r := t.reply(); sdkOutcome(t.err) != r.outcome() {
		return []violation{found(ruleClient, t.op.String(), "on the wire: %s; from the SDK: %v", r, t.err)}
	}
	return nil
}

// checkRecorder compares the SDK's result with the wire, and finds refused access tokens, which the SDK replaces without an
// error.
func checkRecorder(t *recorder) []violation {
	out := checkSDK(t)
	for _, e := range t.own() {
		if e.reply.status == http.StatusUnauthorized && !t.op.forTokens() {
			out = append(out, found(ruleToken, t.op.String(), "%s answered %s", e.path, e.reply))
		}
	}
	for _, e := range t.which(func(e exchange) bool { return e.invalidated }) {
		if e.reply.outcome() == acknowledged {
			out = append(out, found(ruleInvalidToken, t.op.String(), "%s answered %s", e.path, e.reply))
		}
	}
	return out
}

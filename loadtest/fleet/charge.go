package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"remit/client"
)

// charge charges the session for an action, and checks the answer.
func (f *fleet) charge(ctx context.Context, s *session, a action, due time.Time) *recorder {
	known := s.send(effect{charge: a.requested})
	t := f.call(ctx, opAction, due, s.does(a))
	check := checkAction
	if f.cfg.session != "" {
		check = checkGiven
	}
	f.audit.add(check(s.finish(known, known.requested, t.reply())))
	return t
}

// chargeBatch charges sessions of one agent in one request, and checks the answer to each charge.
func (f *fleet) chargeBatch(ctx context.Context, a *agent, of action, due time.Time) *recorder {
	actions := make([]client.SessionCharge, len(of.batch))
	known := make([]sent, len(of.batch))
	for i, item := range of.batch {
		s := f.sessions[item.session]
		actions[i] = client.SessionCharge{SessionID: s.sdk.ID(), Charge: client.Charge{
			ActionType: of.kind, Value: item.requested.value, Count: item.requested.count,
		}}
		known[i] = s.send(effect{charge: item.requested})
	}
	t := f.call(ctx, opBatch, due, func(ctx context.Context) error {
		_, err := a.sdk.ChargeMany(ctx, actions, client.BatchOptions{})
		return err
	})
	replies, err := readBatch(t.reply(), len(known))
	if err != nil {
		f.audit.add([]violation{found(ruleUnreadable, a.sdk.ID(), "batch: %v", err)})
	}
	for i, item := range of.batch {
		f.audit.add(checkAction(f.sessions[item.session].finish(known[i], known[i].requested, replies[i])))
	}
	return t
}

// readBatch returns the reply to each of n charges: its own answer if the batch was executed, else that to the whole batch. If
// the answer is unreadable, the outcome of each is unknown.
func readBatch(whole reply, n int) ([]reply, error) {
	replies := make([]reply, n)
	for i := range replies {
		replies[i] = whole
	}
	if whole.outcome() != acknowledged {
		return replies, nil
	}
	var answers []struct {
		Status int             `json:"status"`
		Body   json.RawMessage `json:"body"`
	}
	err := json.Unmarshal(whole.body, &answers)
	if err == nil && (len(answers) != n || whole.status != http.StatusOK) {
		err = fmt.Errorf("%d answers to %d charges, with status %d", len(answers), n, whole.status)
	}
	for i := range replies {
		if err != nil {
			replies[i] = reply{err: err}
		} else {
			replies[i] = reply{status: answers[i].Status, body: answers[i].Body}
		}
	}
	return replies, err
}

package server_test

import "testing"

func TestBothCredentialsAtOnceAreRefusedWhereEitherWouldDo(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		session, transaction := w.newSession(nil), w.begin(nil)
		beside := both(asKey(w.key), asAgent(w.exchange().access))
		for _, e := range append(endpointsOfBoth(w, session, transaction), rollbackOf(transaction)) {
			w.ask(e.method, e.path, e.body, beside).refused(400, "invalid_request")
		}
		if s := w.session(session); s["status"] != "active" || s["action_count"] != num(0) {
			t.Errorf("a refused request was carried out: %v", s)
		}
		if got := w.transaction(transaction)["status"]; got != "pending" {
			t.Errorf("a refused request was carried out: the transaction is %v", got)
		}
	})
}

package server_test

import (
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

// heldBy begins a transaction with this token as the gateway does, inside the process, and returns the answer too.
func (w tenant) heldBy(access string, settings fields, headers ...string) (redisstore.Transaction, *fasthttp.RequestCtx, error) {
	w.t.Helper()
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.Header.SetRequestURI("/v1/transactions")
	ctx.Request.Header.SetContentType("application/json")
	ctx.Request.Header.Set("Authorization", "Bearer "+access)
	for i := 0; i < len(headers); i += 2 {
		ctx.Request.Header.Set(headers[i], headers[i+1])
	}
	all := fields{"action_type": "llm.gpt-5", "on_expiry": "commit", "reversible": false, "value_usd": 1}.with(settings)
	ctx.Request.SetBody(must(json.Marshal(all))(w.t))
	begun, err := w.on.server.Gateway().Begin(&ctx)
	return begun, &ctx, err
}

func TestNoAgentSettlesWhatTheGatewayHolds(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		worker := d.tenant
		worker.agent = d.worker
		for _, access := range []string{d.workers.access, d.token} {
			held, ctx, err := d.heldBy(access, fields{"session_id": d.child})
			path, l := "/v1/transactions/"+held.ID.String(), worker.trail()
			if err != nil || ctx.Response.StatusCode() != 201 || string(ctx.Response.Header.Peek("Location")) != path {
				t.Fatalf("%d %s, %v", ctx.Response.StatusCode(), ctx.Response.Body(), err)
			}
			shown := d.get(path, asKey(d.key)).is(200).has(fields{"held_by": "gateway", "on_expiry": "commit", "reversible": false, "value_held_usd": 1})
			if string(shown.body) != string(ctx.Response.Body()) {
				t.Errorf("it was begun as %s, and is %s", ctx.Response.Body(), shown.body)
			}
			for _, as := range []option{asKey(d.key), asAgent(access)} {
				for _, one := range d.get("/v1/transactions?session_id="+d.child, as).is(200).array() {
					if own := one["id"] == d.transaction; own == (one["held_by"] == "gateway") {
						t.Errorf("the list shows %v", one)
					}
				}
			}
			before := d.holdings()
			for _, token := range []string{d.workers.access, d.token} {
				for how, body := range map[string]fields{"/commit": {"value_usd": 0}, "/rollback": {}, "": {"expires_in_seconds": 3600}} {
					method := "POST"
					if how == "" {
						method = "PATCH"
					}
					d.ask(method, path+how, body, asAgent(token)).refused(403, "held_by_gateway").exactly(problemFields(403, "held_by_gateway", nil))
					key := keyed(uuid.NewString())
					first := d.ask(method, path+how, body, asAgent(token), key).refused(403, "held_by_gateway").fresh()
					d.ask(method, path+how, body, asAgent(token), key).replays(first)
				}
			}
			if after, events := d.holdings(), l.unread(); after != before || len(events) > 0 {
				t.Errorf("a refusal has changed something:\n%s\n%s\n%v", before, after, events)
			}
		}
	})
}

func TestOnlyTheGatewayBeginsWhatItHolds(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, session := w.exchange().access, w.newSession(fields{"max_value_usd": 5})
		for _, body := range []fields{{"held_by": "gateway"}, {"held_by": nil}} {
			w.beginAs(asAgent(access), body.with(fields{"session_id": session})).refused(400, "invalid_request").invalid("held_by")
		}
		refused := map[int][]fields{
			400: {{"on_expiry": "release"}, {"reversible": true}, {"held_by": "gateway"}},
			403: {{"value_usd": 6}},
			404: {{"session_id": uuid.NewString()}},
		}
		for status, all := range refused {
			for _, settings := range all {
				if _, ctx, err := w.heldBy(access, fields{"session_id": session}.with(settings)); err == nil || ctx.Response.StatusCode() != status {
					t.Errorf("%v: %d %s, %v", settings, ctx.Response.StatusCode(), ctx.Response.Body(), err)
				}
			}
		}
		if _, ctx, err := w.heldBy(access, fields{"on_expiry": "release"}); !errors.Is(err, redisstore.ErrNotHeldSo) {
			t.Errorf("without a session: %d %v", ctx.Response.StatusCode(), err)
		}
		if _, ctx, err := w.heldBy("none", fields{"session_id": session}); err == nil || ctx.Response.StatusCode() != 401 {
			t.Errorf("without a token: %d %v", ctx.Response.StatusCode(), err)
		}
		// An agent's own begin under the same key is no begin of the gateway's.
		own := fields{"action_type": "llm.gpt-5", "on_expiry": "commit", "reversible": false, "value_usd": 1, "session_id": session}
		w.post("/v1/transactions", own, asAgent(access), keyed("k")).is(201).lacks("held_by")
		_, ctx, err := w.heldBy(access, own, "Idempotency-Key", "k")
		if !errors.Is(err, redisstore.ErrIdempotencyKeyReused) || ctx.Response.StatusCode() != 422 {
			t.Errorf("under an agent's key: %d %v", ctx.Response.StatusCode(), err)
		}
	})
}

func TestTheGatewaySettlesWhateverBecameOfTheCaller(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		session, gateway, key := w.newSession(fields{"max_value_usd": 9}), w.on.server.Gateway(), asKey(w.key)
		var held []redisstore.HeldTransaction
		for range 4 {
			begun, _, err := w.heldBy(w.exchange().access, fields{"session_id": session})
			held = append(held, redisstore.HeldTransaction{Organization: uuid.MustParse(w.org), Agent: begun.Agent, ID: must(begun.ID, err)(t)})
		}
		path := func(i int) string { return "/v1/transactions/" + held[i].ID.String() }
		w.post("/v1/transactions/"+held[3].ID.String()+"/rollback", nil, asKey(w.newKey("viewer").text)).refused(403, "insufficient_role")
		w.post("/v1/transactions/"+held[3].ID.String()+"/rollback", nil, asKey(w.newKey("operator").text)).is(200).
			has(fields{"status": "rolled_back", "held_by": "gateway"})
		w.post("/v1/sessions/"+session+"/end", nil, key).is(200)
		w.revoke()
		l := w.trail()
		if renewed := must(gateway.Renew(t.Context(), held[0], time.Hour))(t); time.Until(renewed.Expires) < 50*time.Minute || renewed.Hold != 1_000_000 {
			t.Errorf("renewed: %+v", renewed)
		}
		for range 2 {
			must(gateway.Commit(t.Context(), held[0], new(money.MicroUSD(400_000))))(t)
			must(gateway.Rollback(t.Context(), held[1], "nothing was sent"))(t)
			must(gateway.Commit(t.Context(), held[2], nil))(t)
		}
		w.get(path(0), key).is(200).has(fields{"status": "committed", "value_usd": num("0.4"), "held_by": "gateway"})
		w.get(path(1), key).is(200).has(fields{"status": "rolled_back", "reason": "nothing was sent"})
		w.get(path(2), key).is(200).has(fields{"status": "committed", "value_usd": 1})
		events := l.unread()
		types := []string{"transaction.hold_changed", "transaction.committed", "transaction.rolled_back", "transaction.committed"}
		if !slices.EqualFunc(events, types, func(e fields, name string) bool {
			actor, _ := e["actor"].(map[string]any)
			return e["type"] == name && len(actor) == 1 && actor["type"] == "gateway"
		}) {
			t.Errorf("the events are %v, want %v", events, types)
		}
		_, body := scraped(t, w.on.address, "GET", "/metrics")
		for _, line := range []string{`remit_transactions_total{event="committed"} 2`, `remit_transactions_total{event="rolled_back"} 2`} {
			if !strings.Contains(body, "\n"+line+"\n") {
				t.Errorf("the metrics lack %s", line)
			}
		}
	})
}

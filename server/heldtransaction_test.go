package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
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

// Who settles what the gateway holds, and when, redisstore shows.
func TestNoAgentSettlesWhatTheGatewayHolds(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		for _, access := range []string{d.workers.access, d.token} {
			held, ctx, err := d.heldBy(access, fields{"session_id": d.child})
			path := "/v1/transactions/" + held.ID.String()
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
			for _, r := range []*response{
				d.post(path+"/commit", fields{"value_usd": 0}, asAgent(access)), d.post(path+"/rollback", nil, asAgent(access)),
				d.patch(path, fields{"expires_in_seconds": 3600}, asAgent(access)),
			} {
				r.refused(403, "held_by_gateway").exactly(problemFields(403, "held_by_gateway", nil))
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
		for status, settings := range map[int]fields{400: {"held_by": "gateway"}, 403: {"value_usd": 6}, 404: {"session_id": uuid.NewString()}} {
			if _, ctx, err := w.heldBy(access, fields{"session_id": session}.with(settings)); err == nil || ctx.Response.StatusCode() != status {
				t.Errorf("%v: %d %s, %v", settings, ctx.Response.StatusCode(), ctx.Response.Body(), err)
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
		w.post(path(3)+"/rollback", nil, asKey(w.newKey("operator").text)).is(200).has(fields{"status": "rolled_back", "held_by": "gateway"})
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
		wantEqual(t, "the events", typesOf(events), "transaction.hold_changed transaction.committed transaction.rolled_back transaction.committed")
		for _, e := range events {
			wantFields(t, fmt.Sprint(e["type"]), fields{"actor": e["actor"]}, fields{"actor": fields{"type": "gateway"}})
		}
		w.wantMetrics(`remit_transactions_total{event="committed"} 2`, `remit_transactions_total{event="rolled_back"} 2`)
	})
}

package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	writers        = 10
	roundsOfWriter = 7
)

// written is what one round of a writer has sent and been answered.
type written struct {
	org, key, name string
	metadata       fields
	agent          agent
	agentName      string
	scope          string
	session        string
	transaction    string
	tokens         pair
}

// fasthttp lends a handler the bytes of its request and uses them again for the next. Were any of them kept, one
// tenant's would turn up in another's: so many tenants write texts of many lengths over few connections at once, and
// each reads its own again, while the others go on.
func TestNothingOfARequestIsKeptBeyondItsAnswer(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		var wait sync.WaitGroup
		var all [writers][]written
		for writer := range writers {
			wait.Go(func() {
				for round := range roundsOfWriter {
					w, err := api.writeOne(writer, round)
					if err != nil {
						t.Error(err)
						return
					}
					all[writer] = append(all[writer], w)
				}
			})
		}
		wait.Wait()
		for writer := range writers {
			for _, w := range all[writer] {
				api.readBack(w)
			}
		}
	})
}

// text returns a text that names its writer and round, of any length.
func text(writer, round int) string {
	return fmt.Sprintf("w%d-r%d-", writer, round) + strings.Repeat(string(rune('a'+(writer+round)%26)), rand.IntN(150))
}

// writeOne makes an organization with an agent and a session, and checks each answer on the way.
func (c *client) writeOne(writer, round int) (written, error) {
	w := written{
		name: text(writer, round), agentName: text(writer, round), scope: fmt.Sprintf("s%d:%d", writer, round),
		metadata: fields{"of": text(writer, round), "k" + text(writer, round): num(rand.IntN(1000))},
	}
	post := func(path string, body fields, want fields, options ...option) (fields, error) {
		id := fmt.Sprintf("w%d-r%d-%d", writer, round, rand.IntN(1_000_000))
		r, err := c.try("POST", path, body, append(options, header("X-Request-Id", id))...)
		if err != nil {
			return nil, err
		}
		var got fields
		if err := decodeInto(r.body, &got); err != nil || r.status >= 300 {
			return nil, fmt.Errorf("%s: %d %s: %v", path, r.status, r.body, err)
		}
		if r.header.Get("X-Request-Id") != id {
			return nil, fmt.Errorf("%s: request id %s, want %s", path, r.header.Get("X-Request-Id"), id)
		}
		for name, value := range want {
			if found := differences(fields{name: got[name]}, fields{name: value}); found != "" {
				return nil, fmt.Errorf("%s: %s", path, found)
			}
		}
		return got, nil
	}
	body := fields{"name": w.name, "metadata": w.metadata}
	got, err := post("/v1/organizations", body, body)
	if err != nil {
		return w, err
	}
	w.org, w.key = got["id"].(string), got["api_key"].(string)

	body = fields{"name": w.agentName, "scopes": list(w.scope), "metadata": w.metadata}
	if got, err = post("/v1/agents", body, body.with(fields{"org_id": w.org}), asKey(w.key)); err != nil {
		return w, err
	}
	w.agent = agent{got["id"].(string), got["secret"].(string)}

	body = fields{"agent_id": w.agent.id, "metadata": w.metadata}
	if got, err = post("/sessions", body, body.with(fields{"scopes": list(w.scope)}), asKey(w.key)); err != nil {
		return w, err
	}
	w.session = got["id"].(string)

	if got, err = post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}, nil); err != nil {
		return w, err
	}
	w.tokens = pair{got["access_token"].(string), got["refresh_token"].(string)}

	_, err = post("/sessions/"+w.session+"/actions", fields{"scope": w.scope, "action_type": w.name},
		fields{"session_id": w.session, "action_count": num(1)}, asAgent(w.tokens.access))
	if err != nil {
		return w, err
	}

	body = fields{"action_type": w.name, "pre_state": w.metadata, "metadata": w.metadata, "session_id": w.session}
	if got, err = post("/v1/transactions", body, body, asAgent(w.tokens.access), keyed(w.scope+w.session)); err != nil {
		return w, err
	}
	w.transaction = got["id"].(string)
	body = fields{"post_state": w.metadata}
	if _, err = post("/v1/transactions/"+w.transaction+"/commit", body, body, asAgent(w.tokens.access), keyed("c"+w.scope)); err != nil {
		return w, err
	}
	body = fields{"reason": w.name}
	_, err = post("/v1/transactions/"+w.transaction+"/rollback", body, body, asKey(w.key), keyed("r"+w.scope))
	return w, err
}

func (c *client) readBack(w written) {
	c.t.Helper()
	key := asKey(w.key)
	c.get("/v1/organizations/"+w.org, key).is(200).
		exactly(fields{"id": w.org, "name": w.name, "metadata": w.metadata, "created_at": aboutNow, "quotas": someResources, "usage": someResources})
	c.get("/v1/agents/"+w.agent.id, key).is(200).exactly(fields{
		"id": w.agent.id, "org_id": w.org, "name": w.agentName, "scopes": list(w.scope), "status": "active",
		"metadata": w.metadata, "created_at": aboutNow,
	}.with(unlimited))
	for _, as := range []option{key, asAgent(w.tokens.access)} {
		session := c.get("/sessions/"+w.session, as).is(200).object()
		want := fields{"id": w.session, "agent_id": w.agent.id, "scopes": list(w.scope), "metadata": w.metadata, "action_count": 2}
		got := fields{}
		for name := range want {
			got[name] = session[name]
		}
		if found := differences(got, want); found != "" {
			c.t.Errorf("session: %s", found)
		}
	}
	c.get("/v1/transactions/"+w.transaction, key).is(200).exactly(fields{
		"id": w.transaction, "agent_id": w.agent.id, "session_id": w.session, "sequence_number": 1, "status": "rolled_back",
		"action_type": w.name, "value_usd": 0, "value_held_usd": 0, "overage_usd": 0, "reversible": true, "reason": w.name,
		"pre_state": w.metadata, "post_state": w.metadata, "metadata": w.metadata, "expires_at": aboutIn(5 * time.Minute),
		"created_at": aboutNow, "committed_at": aboutNow, "rolled_back_at": aboutNow,
	})
	_, claims := verify(c.t, c, w.tokens.access)
	if claims["agent_id"] != w.agent.id || claims["org_id"] != w.org || fmt.Sprint(claims["scopes"]) != fmt.Sprint(list(w.scope)) {
		c.t.Errorf("claims %v of agent %s", claims, w.agent.id)
	}
	c.post("/v1/auth/refresh", fields{"refresh_token": w.tokens.refresh}).is(200)
}

package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
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
func (c *client) writeOne(writer, round int) (w written, err error) {
	w = written{
		name: text(writer, round), agentName: text(writer, round), scope: fmt.Sprintf("s%d:%d", writer, round),
		metadata: fields{"of": text(writer, round), "k" + text(writer, round): num(rand.IntN(1000))},
	}
	// post returns the texts of an answer: none once something was wrong.
	post := func(path string, body, want fields, options ...option) (texts map[string]string) {
		if err != nil {
			return nil
		}
		id := fmt.Sprintf("w%d-r%d-%d", writer, round, rand.IntN(1_000_000))
		var r *response
		if r, err = c.try("POST", path, body, append(options, header("X-Request-Id", id))...); err != nil {
			return nil
		}
		var got fields
		if err = decodeInto(r.body, &got); err != nil || r.status >= 300 || r.header.Get("X-Request-Id") != id {
			err = fmt.Errorf("%s as %s: %d %v %s: %v", path, id, r.status, r.header, r.body, err)
			return nil
		}
		texts = map[string]string{}
		for name, value := range got {
			texts[name], _ = value.(string)
			if wanted, is := want[name]; is && differences(fields{name: value}, fields{name: wanted}) != "" {
				err = fmt.Errorf("%s: %s is %v, want %v", path, name, value, wanted)
			}
		}
		return texts
	}
	body := fields{"name": w.name, "metadata": w.metadata}
	made := post("/v1/organizations", body, body)
	w.org, w.key = made["id"], made["api_key"]
	byKey := asKey(w.key)
	body = fields{"name": w.agentName, "scopes": list(w.scope), "metadata": w.metadata}
	made = post("/v1/agents", body, body.with(fields{"org_id": w.org}), byKey)
	w.agent = agent{made["id"], made["secret"]}
	body = fields{"agent_id": w.agent.id, "metadata": w.metadata}
	w.session = post("/sessions", body, body.with(fields{"scopes": list(w.scope)}), byKey)["id"]
	made = post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}, nil)
	w.tokens = pair{made["access_token"], made["refresh_token"]}
	byAgent := asAgent(w.tokens.access)
	post("/sessions/"+w.session+"/actions", fields{"scope": w.scope, "action_type": w.name},
		fields{"session_id": w.session, "action_count": 1}, byAgent)
	body = fields{"action_type": w.name, "pre_state": w.metadata, "metadata": w.metadata, "session_id": w.session}
	w.transaction = post("/v1/transactions", body, body, byAgent, keyed(w.scope+w.session))["id"]
	body = fields{"post_state": w.metadata}
	post("/v1/transactions/"+w.transaction+"/commit", body, body, byAgent, keyed("c"+w.scope))
	body = fields{"reason": w.name}
	post("/v1/transactions/"+w.transaction+"/rollback", body, body, byKey, keyed("r"+w.scope))
	return w, err
}

func (c *client) readBack(w written) {
	c.t.Helper()
	key := asKey(w.key)
	named := func(id, name string) fields { return fields{"id": id, "name": name, "metadata": w.metadata} }
	c.get("/v1/organizations/"+w.org, key).is(200).has(named(w.org, w.name))
	c.get("/v1/agents/"+w.agent.id, key).is(200).has(named(w.agent.id, w.agentName).with(fields{"org_id": w.org, "scopes": list(w.scope)}))
	for _, as := range []option{key, asAgent(w.tokens.access)} {
		c.get("/sessions/"+w.session, as).is(200).has(fields{
			"id": w.session, "agent_id": w.agent.id, "scopes": list(w.scope), "metadata": w.metadata, "action_count": 2,
		})
	}
	c.get("/v1/transactions/"+w.transaction, key).is(200).has(fields{
		"id": w.transaction, "agent_id": w.agent.id, "session_id": w.session, "status": "rolled_back", "action_type": w.name, "reason": w.name,
		"pre_state": w.metadata, "post_state": w.metadata, "metadata": w.metadata,
	})
	_, claims := verify(c.t, c, w.tokens.access)
	if claims["agent_id"] != w.agent.id || claims["org_id"] != w.org || fmt.Sprint(claims["scopes"]) != fmt.Sprint(list(w.scope)) {
		c.t.Errorf("claims %v of agent %s", claims, w.agent.id)
	}
	c.post("/v1/auth/refresh", fields{"refresh_token": w.tokens.refresh}).is(200)
}

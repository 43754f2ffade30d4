package server_test

import (
	"sync"
	"testing"

	"remit/money"
)

const (
	racers  = 64
	perRace = 5 // charges that each racer tries
)

// TestARaceOverTwoInstancesChargesExactlyTheLimit is the promise of the whole service: whatever many callers try at the
// same time, by whichever instance, a session is used up to its limit and not beyond, and the totals reconcile.
//
// It is not parallel, and on one Redis: a crowd on a busy machine meets the store's timeouts, and then the outcome of a
// charge is unknown by right.
func TestARaceOverTwoInstancesChargesExactlyTheLimit(t *testing.T) {
	api := onOneRedis(t)
	for _, test := range []struct {
		name     string
		settings fields
		charge   func(racer int) fields
		admitted tally // exactly this; zero for what depends on who comes first
		limit    string
	}{
		{
			name:     "actions",
			settings: fields{"max_actions": 201, "max_value_usd": 1_000_000_000},
			charge:   func(int) fields { return fields{"value_usd": num("0.000003")} },
			admitted: tally{charges: 201, actions: 201, value: 603},
			limit:    "max_actions",
		},
		{
			name:     "value to the micro-dollar",
			settings: fields{"max_actions": 1_000_000_000, "max_value_usd": num("0.001407")},
			charge:   func(int) fields { return fields{"value_usd": num("0.000007")} },
			admitted: tally{charges: 201, actions: 201, value: 1407},
			limit:    "max_value_usd",
		},
		{
			name:     "charges of all sizes",
			settings: fields{"max_actions": 1_000_000_000, "max_value_usd": num("0.0008")},
			charge: func(racer int) fields {
				return fields{"count": 1 + racer%3, "value_usd": money.MicroUSD(1 + racer%7)}
			},
			limit: "max_value_usd",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := api.in(t).newTenant()
			there := w.through(api.another(t))
			id := w.newSession(test.settings)

			got := race(t, []tenant{w, there}, id, test.charge, test.limit)

			if test.admitted.charges != 0 && got != test.admitted {
				t.Errorf("admitted %+v, want exactly %+v", got, test.admitted)
			}
			if got.charges == racers*perRace {
				t.Error("nothing was refused: the test proves nothing")
			}
			stored := w.session(id)
			if stored["action_count"] != num(got.actions) || stored["value_used_usd"] != num(got.value) {
				t.Errorf("stored are %v actions and %v USD, acknowledged %d and %s",
					stored["action_count"], stored["value_used_usd"], got.actions, got.value)
			}
			if limit := must(money.Parse(must(encode(stored["max_value_usd"]))(t)))(t); got.value > limit {
				t.Errorf("%s USD were admitted, more than %s", got.value, limit)
			}
		})
	}
}

// tally is what was acknowledged.
type tally struct {
	charges, actions int64
	value            money.MicroUSD
}

// race lets all racers charge the session at once, half of them at each instance by API key and by access token in
// turn, and returns what was acknowledged. Every other answer must be a refusal for that limit.
func race(t *testing.T, instances []tenant, session string, charge func(racer int) fields, limit string) tally {
	t.Helper()
	as := []option{asKey(instances[0].key), asAgent(instances[0].exchange().access)}
	var answers [racers][]*response
	var wait sync.WaitGroup
	start := make(chan struct{})
	for racer := range racers {
		wait.Go(func() {
			<-start
			for range perRace {
				r, err := instances[racer%2].try("POST", "/sessions/"+session+"/actions", charge(racer), as[racer/2%2])
				if err != nil {
					t.Error(err)
					return
				}
				answers[racer] = append(answers[racer], r)
			}
		})
	}
	close(start)
	wait.Wait()

	var total tally
	for racer := range racers {
		for _, r := range answers[racer] {
			r.t = t
			if r.status == 200 {
				total.add(t, charge(racer))
			} else if got := r.refused(403, "session_limit_reached").text("limit"); got != limit {
				t.Errorf("refused for %s, want %s", got, limit)
			}
		}
	}
	return total
}

func (s *tally) add(t *testing.T, charge fields) {
	t.Helper()
	count, given := charge["count"].(int)
	if !given {
		count = 1
	}
	s.charges++
	s.actions += int64(count)
	s.value += must(money.Parse(must(encode(charge["value_usd"]))(t)))(t)
}

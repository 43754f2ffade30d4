package faults

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"remit/money"
	"remit/redisproc"
)

// What an instance was at when it was killed is asked again of the other one, by the same key, and happens once.
func TestAKilledInstanceLeavesNothingDoneTwice(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	for n := range rounds(3) {
		s.Acknowledged(20 + rand.IntN(100))
		s.Instances[n%2].Kill()
		s.FaultOver() // the other one goes on
		s.Acknowledged(50)
		s.Restart(n % 2)
	}
	s.Acknowledged(100)
	s.Finish()
}

// Here the instance certainly is killed between its command and the answer: Redis does not answer before.
func TestAChargeUnderWayWhenItsInstanceIsKilledHappensOnce(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}, Workers: 1})
	s.Rest()
	agent := s.World.Agents[0]
	var charges []Request
	for n := range 8 {
		r := ChargeSession(agent, agent.Roomy, 1, money.USD)
		r.Key = "under-way-" + string(rune('a'+n))
		charges = append(charges, r)
	}
	var warm, calls sync.WaitGroup
	for n := range charges {
		warm.Go(func() { s.acknowledges(s.Instances[0], n) }) // so that it has connections to send them on
	}
	warm.Wait()
	redis.Freeze()
	for _, r := range charges {
		calls.Go(func() { s.Caller.Do(s.Instances[0].URL, r) })
	}
	time.Sleep(time.Second) // the commands are on their way: nothing tells when, and after two seconds they are given up
	s.Instances[0].Kill()
	calls.Wait()
	redis.Thaw()
	s.FaultOver()
	for _, r := range charges {
		if call, body := s.Caller.Do(s.Instances[1].URL, r); call.Outcome != OK {
			t.Errorf("asked again: %d %s", call.Status, body)
		}
	}
	carriedOut := s.History.Count(func(c Call) bool { return c.Replayed })
	t.Logf("%d of %d charges were carried out for the instance that was killed", carriedOut, len(charges))
	if carriedOut == 0 {
		t.Error("no charge was under way")
	}
	s.Restart(0)
	s.Finish()
}

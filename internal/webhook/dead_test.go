package webhook

import (
	"testing"
	"time"
)

// Ten of an organization's receivers never answer. A request may take an hour here, so theirs do not end while the test runs, and the
// others can have every event only if nothing that is theirs waits for such a request.
func TestTenDeadReceiversDelayNoOther(t *testing.T) {
	t.Parallel()
	dead := newCounter(t, always(time.Hour))
	var urls []string
	for range 10 {
		urls = append(urls, dead.URL)
	}
	var healthy []*receiver
	for range 32 - len(urls) {
		r := newReceiver(t)
		healthy, urls = append(healthy, r), append(urls, r.URL)
	}
	o := newOrganizationWithHooks(t, urls...)
	d := o.newDeliverer(unpaced, machineClock{})
	d.sender.most = time.Hour
	run(t, d)
	for round := int64(1); round <= 4; round++ {
		o.happen(t, 25)
		for _, r := range healthy {
			eventually(t, "a healthy receiver is told of everything", func() bool { return r.has(numbers(1, 25*round)...) })
		}
	}
	eventually(t, "the dead were asked too", func() bool { return dead.has(10) })
	for _, r := range healthy {
		wantEqual(t, "requests to a healthy receiver for 100 events", r.attempts(), 100)
	}
}

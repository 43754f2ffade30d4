package server

import "testing"

// In a full pool an answer that is not read is cut for the answer of an organization that holds less.
func TestUnreadResponsesAreEvictedForAnotherOrganization(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{Limits: Limits{Off: true}})
	client := from(t, "127.0.0.9")
	first, second, third := r.newLargeTenant(t, client), r.newLargeTenant(t, client), r.newLargeTenant(t, client)
	awaitReserved(t, r.front.Unwritten, 0)
	r.front.Unwritten.SetMost(listOfLarge * 9 / 2) // two lists for each of two organizations, and a little
	for i, slow := range []largeTenant{first, first, second, second} {
		r.readNothing(t, []string{"127.0.0.2", "127.0.0.3"}[i/2], slow)
	}
	awaitStuck(t, r.front.Unwritten, 4)
	if status, body := r.list(t, client, third); status != 200 {
		t.Errorf("a third organization: %d %.100s", status, body)
	}
}

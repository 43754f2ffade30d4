package redisstore

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/webhooks"
)

// hook creates a webhook when an event is the newest of the organization's feed.
func (w tenant) hook(t *testing.T, s *Store, position int64) webhooks.Webhook {
	t.Helper()
	must(peek(t, s).HSet(t.Context(), s.keys.FeedHead(w.key.Organization), "n", position).Result())(t)
	settings := webhooks.Settings{URL: "https://example.com/hook", Secrets: []webhooks.Secret{{Sealed: "plain:AA=="}}}
	return must(s.CreateWebhook(t.Context(), w.key, NewID(w.key.Organization), settings, nil))(t)
}

// claimHooks claims the tenant's webhooks for a holder.
func (w tenant) claimHooks(t *testing.T, s *Store, holder uuid.UUID) webhooks.Claim {
	t.Helper()
	return must(s.ClaimWebhooks(t.Context(), w.key.Organization, holder, time.Minute))(t)
}

// note reports outcomes of a webhook's deliveries, which do not move its position, and returns how far it is then.
func note(t *testing.T, s *Store, c webhooks.Claim, hook uuid.UUID, at webhooks.Progress, outcomes ...webhooks.Delivery) webhooks.Progress {
	t.Helper()
	return must(s.NoteDeliveries(t.Context(), c, webhooks.DeliveryReport{Webhook: hook, Found: at, Reached: at, Outcomes: outcomes}))(t)
}

// delivery is a delivery of the webhook that was attempted, at this time.
func delivery(hook webhooks.Webhook, number int64, status Status, at time.Time) webhooks.Delivery {
	return webhooks.Delivery{ID: webhooks.DeliveryID(hook.ID, number), Event: number, Type: "session.ended", Status: status, Attempts: 1,
		Created: at, First: at, Last: at, Next: at}
}

// dueOf are the deliveries of the webhook that are due.
func (w tenant) dueOf(t *testing.T, s *Store, hook uuid.UUID, limit int) webhooks.DueDeliveries {
	t.Helper()
	return must(s.DueDeliveries(t.Context(), w.key.Organization, hook, limit))(t)
}

func TestAWebhookIsReadAsItWasCreatedAndChanged(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		first, second := w.hook(t, s, 7), w.hook(t, s, 8)
		wantEqual(t, "the list", must(s.Webhooks(t.Context(), w.key))(t), []webhooks.Webhook{first, second})
		changed := must(s.ChangeWebhook(t.Context(), w.key, first.ID, nil, func(settings *webhooks.Settings) error {
			settings.Types, settings.Description = []string{"session.ended"}, "a \"line\"\nbreak"
			return nil
		}))(t)
		if got := must(s.Webhook(t.Context(), w.key, first.ID))(t); !reflect.DeepEqual(got, changed) || got.Progress.Position != 7 {
			t.Errorf("read %+v, want %+v", got, changed)
		}
		if !changed.Settings.Wants("session.ended") || changed.Settings.Wants("session.created") || !second.Settings.Wants("session.created") {
			t.Error("a webhook wants other types than it was given")
		}
		mustDo(t, s.DeleteWebhook(t.Context(), w.key, first.ID))
		wantError(t, "the second deletion", s.DeleteWebhook(t.Context(), w.key, first.ID), ErrUnknownWebhook)
		wantEqual(t, "what is left over", must(s.Webhooks(t.Context(), w.key))(t), []webhooks.Webhook{second})
	})
}

func TestAnOrganizationHas32Webhooks(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		var last webhooks.Webhook
		for range webhooks.MostWebhooks {
			last = w.hook(t, s, 0)
		}
		_, err := s.CreateWebhook(t.Context(), w.key, NewID(w.key.Organization), last.Settings, nil)
		wantError(t, "one more", err, &QuotaError{Quota: "webhooks", Used: webhooks.MostWebhooks, Max: webhooks.MostWebhooks})
		mustDo(t, s.DeleteWebhook(t.Context(), w.key, last.ID))
		w.hook(t, s, 0)
	})
}

// An instance that stores a new URL may die before it wakes a deliverer. The webhook is due all the same, and again with each change
// until it is confirmed.
func TestANewURLIsLookedAt(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		o := w.key.Organization
		due := func() bool { return slices.Contains(must(s.DueWebhooks(t.Context(), 10))(t), o) }
		hook := w.hook(t, s, 0)
		if !due() || hook.Settings.URLVersion != 1 || !hook.Confirmed().IsZero() {
			t.Errorf("looked at: %t; created %+v", due(), hook)
		}
		for _, row := range []struct {
			url     string
			version int64
		}{{hook.Settings.URL, 1}, {"https://example.com/other", 2}, {"https://example.com/other", 2}, {hook.Settings.URL, 3}} {
			mustDo(t, s.ForgetWebhooks(t.Context(), o, time.Time{}))
			hook = must(s.ChangeWebhook(t.Context(), w.key, hook.ID, nil, func(settings *webhooks.Settings) error {
				settings.URL = row.url
				return nil
			}))(t)
			if hook.Settings.URLVersion != row.version || !due() {
				t.Errorf("%s is version %d, want %d; looked at: %t", row.url, hook.Settings.URLVersion, row.version, due())
			}
		}
		mustDo(t, s.ForgetWebhooks(t.Context(), o, time.Time{}))
		dies := errors.New("dies")
		wantError(t, "an instance that dies", s.WakeFor(t.Context(), o, func() error { return dies }), dies)
		if at := must(peek(t, s).ZScore(t.Context(), s.keys.WebhookQueue(), string(o[:])).Result())(t); at == 0 {
			t.Error("no look is due later")
		}
	})
}

func TestAChangeThatWakesNoDelivererIsInDoubt(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t, false)
	w := newTenant(t, s, NewSession{MaxActions: 1})
	err := s.WakeFor(t.Context(), w.key.Organization, func() error {
		proxy.GoDown()
		return nil
	})
	wantError(t, "a change without its wake", err, ErrOutcomeUnknown)
}

func TestTwoChangesAtOnceBothCount(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		hook, runs := w.hook(t, s, 0), 0
		describe := func(settings *webhooks.Settings) error { settings.Description = "inner"; return nil }
		got := must(s.ChangeWebhook(t.Context(), w.key, hook.ID, nil, func(settings *webhooks.Settings) error {
			if runs++; runs == 1 {
				must(s.ChangeWebhook(t.Context(), w.key, hook.ID, nil, describe))(t)
			}
			settings.URL = "https://example.com/other"
			return nil
		}))(t)
		if runs != 2 || got.Settings.Description != "inner" || got.Settings.URL != "https://example.com/other" {
			t.Errorf("after %d runs %+v", runs, got.Settings)
		}
		own := errors.New("own")
		fail := func(*webhooks.Settings) error { return own }
		wantError(t, "a change that fails", errOf(s.ChangeWebhook(t.Context(), w.key, hook.ID, nil, fail)), own)
	})
}

func TestOneInstanceAtATimeDelivers(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		one, two := NewRootID(), NewRootID()
		wantError(t, "a claim without webhooks", errOf(s.ClaimWebhooks(t.Context(), w.key.Organization, one, time.Minute)), ErrUnknownWebhook)
		hook := w.hook(t, s, 0)
		first := w.claimHooks(t, s, one)
		wantEqual(t, "what is renewed", w.claimHooks(t, s, one), first)
		wantError(t, "another's claim", errOf(s.ClaimWebhooks(t.Context(), w.key.Organization, two, time.Minute)), ErrWebhooksClaimed)
		mustDo(t, s.ReleaseWebhooks(t.Context(), first))
		second := w.claimHooks(t, s, two)
		if second.Term != first.Term+1 || len(second.Webhooks) != 1 {
			t.Errorf("claimed %+v after %+v", second, first)
		}
		report := webhooks.DeliveryReport{Webhook: hook.ID, Found: hook.Progress, Reached: webhooks.Progress{Position: 5}}
		wantError(t, "a report of the term before", errOf(s.NoteDeliveries(t.Context(), first, report)), ErrChangedMeanwhile)
		mustDo(t, s.ReleaseWebhooks(t.Context(), first))
		_, err := s.ClaimWebhooks(t.Context(), w.key.Organization, one, time.Minute)
		wantError(t, "a claim after a late release", err, ErrWebhooksClaimed)
		ahead := time.Now().Add(time.Hour).UnixMilli() // before the clock of Redis went back
		must(peek(t, s).HSet(t.Context(), s.keys.WebhookProgress(w.key.Organization), "u", ahead).Result())(t)
		if third := w.claimHooks(t, s, one); third.Term <= second.Term {
			t.Errorf("claimed %+v after %+v", third, second)
		}
	})
}

func TestAReportCountsOnce(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		hook, at := w.hook(t, s, 3), time.UnixMilli(1_700_000_000_000)
		claim := w.claimHooks(t, s, NewRootID())
		d := delivery(hook, 4, webhooks.DeliveryPending, at)
		d.Next, d.Took, d.Answer, d.Error = at.Add(time.Second), time.Millisecond, 500, "a \"cause\"\n"
		report := webhooks.DeliveryReport{Webhook: hook.ID, Found: hook.Progress, Outcomes: []webhooks.Delivery{d},
			Reached: webhooks.Progress{Position: 4, Failing: at, Missed: 2, Tested: 1, Confirmed: at}}
		reached := must(s.NoteDeliveries(t.Context(), claim, report))(t)
		wantEqual(t, "what is reached", reached, webhooks.Progress{Position: 4, Version: 2, Failing: at, Missed: 2, Tested: 1, Confirmed: at})
		wantError(t, "the same report again", errOf(s.NoteDeliveries(t.Context(), claim, report)), ErrChangedMeanwhile)
		wantEqual(t, "what is stored", must(s.Webhook(t.Context(), w.key, hook.ID))(t).Progress, reached)
		due := w.dueOf(t, s, hook.ID, 10)
		if len(due.Due) != 1 || due.Waiting != 1 || !due.Later.IsZero() {
			t.Fatalf("due are %+v", due)
		}
		got := due.Due[0]
		got.Stored = ""
		wantEqual(t, "how it is stored", got, d)
		d.Status, d.Next = webhooks.DeliveryDelivered, time.Time{}
		note(t, s, claim, hook.ID, reached, d)
		wantEqual(t, "how many wait after it was delivered", w.dueOf(t, s, hook.ID, 10).Waiting, 0)
		mustDo(t, s.DeleteWebhook(t.Context(), w.key, hook.ID))
		wantError(t, "a report about a webhook that is deleted", errOf(s.NoteDeliveries(t.Context(), claim, report)), ErrUnknownWebhook)
		wantGone(t, s, s.DeliveryKeys(w.key.Organization, hook.ID)...)
	})
}

func TestOnlyTheLastDeliveriesAreKept(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		hook, claim := w.hook(t, s, 0), w.claimHooks(t, s, NewRootID())
		progress, number := hook.Progress, int64(0)
		report := func(status Status, count int) {
			outcomes := make([]webhooks.Delivery, count)
			for i := range outcomes {
				number++
				outcomes[i] = delivery(hook, number, status, time.UnixMilli(1_700_000_000_000+number))
			}
			progress = note(t, s, claim, hook.ID, progress, outcomes...)
		}
		report(webhooks.DeliveryDelivered, 90)
		report(webhooks.DeliveryDelivered, 90)
		report(webhooks.DeliveryDead, 300)
		report(webhooks.DeliveryPending, 200)
		kept := map[Status]int{}
		all := must(s.Deliveries(t.Context(), w.key, hook.ID))(t)
		for i, d := range all {
			kept[d.Status]++
			if i > 0 && d.Created.After(all[i-1].Created) {
				t.Fatalf("%+v is listed after %+v", d, all[i-1])
			}
		}
		wantEqual(t, "what is kept", kept, map[Status]int{webhooks.DeliveryDelivered: 100, webhooks.DeliveryDead: 256, webhooks.DeliveryPending: 200})
		wantEqual(t, "the oldest that is kept", all[len(all)-1].Event, 81)
	})
}

func TestADeliveryIsSentAgainByHand(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		now := time.Now()
		hook, claim := w.hook(t, s, 0), w.claimHooks(t, s, NewRootID())
		dead := delivery(hook, 1, webhooks.DeliveryDead, now)
		note(t, s, claim, hook.ID, hook.Progress, dead)
		wantError(t, "one that does not exist", errOf(s.SendAgain(t.Context(), w.key, hook.ID, NewRootID(), now)), ErrUnknownDelivery)
		again := must(s.SendAgain(t.Context(), w.key, hook.ID, dead.ID, now))(t)
		if again.Status != webhooks.DeliveryPending || again.Attempts != 0 || !again.First.IsZero() {
			t.Errorf("sent again as %+v", again)
		}
		due := w.dueOf(t, s, hook.ID, 10)
		if len(due.Due) != 1 || due.Due[0].ID != dead.ID {
			t.Errorf("due are %+v", due)
		}
		wantEqual(t, "who is woken", must(s.DueWebhooks(t.Context(), 10))(t), []uuid.UUID{w.key.Organization})
	})
}

// Retries that were set before Redis's clock went back by hours would wait for hours more.
func TestADeliveryIsDueThoughRedissClockWentBack(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		now := time.Now()
		hook, claim := w.hook(t, s, 0), w.claimHooks(t, s, NewRootID())
		var outcomes []webhooks.Delivery
		for event, ahead := range []time.Duration{time.Hour, 3 * time.Hour, -time.Minute} {
			d := delivery(hook, int64(event), webhooks.DeliveryPending, now)
			d.Next = now.Add(ahead)
			outcomes = append(outcomes, d)
		}
		note(t, s, claim, hook.ID, hook.Progress, outcomes...)
		for _, row := range []struct {
			limit int
			want  []int64
		}{{10, []int64{2, 1}}, {1, []int64{2}}} {
			var got []int64
			due := w.dueOf(t, s, hook.ID, row.limit)
			for _, d := range due.Due {
				got = append(got, d.Event)
			}
			if !slices.Equal(got, row.want) || due.Later.Sub(now).Round(time.Second) != time.Hour {
				t.Errorf("due are %v, and one at %s; want %v, and one in an hour of %s", got, due.Later, row.want, now)
			}
		}
		must(s.PostponeWebhooks(t.Context(), w.key.Organization, time.Time{}, time.Hour))(t)
		wantEqual(t, "how many are to be looked at before their time", len(must(s.DueWebhooks(t.Context(), 10))(t)), 0)
		must(s.PostponeWebhooks(t.Context(), w.key.Organization, time.Time{}, 3*time.Hour))(t)
		wantEqual(t, "what is to be looked at", must(s.DueWebhooks(t.Context(), 10))(t), []uuid.UUID{w.key.Organization})
	})
}

func TestATestIsSentOnceForAnIdempotencyKey(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		now := time.Now()
		hook, claim := w.hook(t, s, 0), w.claimHooks(t, s, NewRootID())
		once := func(request byte, at time.Time) (webhooks.Delivery, bool, error) {
			idem := &Idempotency{Key: "once", Fingerprint: [32]byte{request}}
			sent, err := s.SendTest(t.Context(), w.key, hook.ID, idem, at)
			return sent, idem.Outcome.Replayed, err
		}
		first, replayed, err := once(1, now)
		if err != nil || replayed || first.Type != webhooks.TestEvent {
			t.Fatalf("sent %+v, %t, %v", first, replayed, err)
		}
		delivered := []webhooks.Delivery{first}
		for event := range int64(101) { // so that the first is forgotten
			delivered = append(delivered, delivery(hook, event+1, webhooks.DeliveryDelivered, now))
		}
		for i := range delivered {
			delivered[i].Status, delivered[i].Created, delivered[i].Last = webhooks.DeliveryDelivered, now, now.Add(time.Duration(i)*time.Millisecond)
		}
		note(t, s, claim, hook.ID, hook.Progress, delivered...)
		second, replayed, err := once(1, now.Add(time.Hour))
		if second.ID != first.ID || must(second.Record())(t) != must(first.Record())(t) || !replayed || err != nil {
			t.Errorf("sent %+v and %+v, %t, %v", first, second, replayed, err)
		}
		for _, d := range must(s.Deliveries(t.Context(), w.key, hook.ID))(t) {
			if d.ID == first.ID || d.Status == webhooks.DeliveryPending {
				t.Errorf("it is sent again: %+v", d)
			}
		}
		_, replayed, err = once(2, now)
		wantError(t, "another request", err, ErrIdempotencyKeyReused)
		wantEqual(t, "another request is replayed", replayed, false)
	})
}

func TestNewsThatComesMeanwhileStaysInTheQueue(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		organization := NewRootID()
		due := func() bool { return len(must(s.DueWebhooks(t.Context(), 10))(t)) == 1 }
		postpone := func(found time.Time, after time.Duration) time.Time {
			return must(s.PostponeWebhooks(t.Context(), organization, found, after))(t)
		}
		wake := func(within time.Duration) { mustDo(t, s.WakeWebhooks(t.Context(), organization, within)) }
		forget := func(found time.Time) { mustDo(t, s.ForgetWebhooks(t.Context(), organization, found)) }
		wake(0)
		wantEqual(t, "due after it was woken", due(), true)
		mine := postpone(time.Time{}, time.Hour)
		wantEqual(t, "due after it was postponed", due(), false)
		wake(2 * time.Hour)
		if got := postpone(mine, time.Hour); got.Before(mine) {
			t.Errorf("postponed to %s, before %s", got, mine)
		}
		mine = postpone(time.Time{}, time.Hour)
		wake(0)
		forget(mine)
		wantEqual(t, "due after news was forgotten", due(), true)
		mine = postpone(time.Time{}, time.Hour)
		forget(mine)
		wake(0)
		wantEqual(t, "due after it was forgotten and woken", due(), true)
		mine = postpone(time.Time{}, time.Millisecond)
		eventually(t, "its time comes", due)
		wake(0)
		forget(mine)
		wantEqual(t, "due after news that came late was forgotten", due(), true)
	})
}

func TestThePreStateOfATransactionIsReadForItsOwnAgentOnly(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		other := newTenant(t, s, NewSession{MaxActions: 1})
		begun := must(s.Begin(t.Context(), w.exchange(t, s).AccessToken, NewTransaction{ActionType: "book", PreState: `{"seats": 3}`, Lifetime: time.Hour}))(t)
		for _, test := range []struct {
			agent, transaction uuid.UUID
			want               string
		}{{w.agent.ID, begun.ID, `{"seats": 3}`}, {other.agent.ID, begun.ID, ""}, {w.agent.ID, NewID(w.agent.ID), ""}} {
			wantEqual(t, "what is read", must(s.PreState(t.Context(), w.key.Organization, test.agent, test.transaction))(t), test.want)
		}
	})
}

// The leader of a feed that dies after it has appended an event, and before it has woken the webhooks, leaves that to the next.
func TestWebhooksAreWokenForALeaderThatDied(t *testing.T) {
	onTenant(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		o := w.key.Organization
		must(s.CreateWebhook(t.Context(), w.key, NewID(o), webhooks.Settings{URL: "https://example.com/hook"}, nil))(t)
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
		wantFed(t, s, w.key, w.agent.ID)
		isWoken := func() bool {
			return peek(t, s).ZScore(t.Context(), s.keys.WebhookQueue(), string(o[:])).Err() == nil &&
				!must(peek(t, s).HExists(t.Context(), s.keys.FeedHead(o), "w").Result())(t)
		}
		eventually(t, "the leader wakes them", isWoken)
		must(peek(t, s).ZRem(t.Context(), s.keys.WebhookQueue(), string(o[:])).Result())(t)
		must(peek(t, s).HSet(t.Context(), s.keys.FeedHead(o), "w", 1).Result())(t)
		eventually(t, "another one wakes them", isWoken)
	})
}

package redisstore

import (
	"errors"
	"fmt"
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

func TestAWebhookIsReadAsItWasCreatedAndChanged(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		first, second := w.hook(t, s, 7), w.hook(t, s, 8)
		if got := must(s.Webhooks(t.Context(), w.key))(t); !reflect.DeepEqual(got, []webhooks.Webhook{first, second}) {
			t.Errorf("listed %+v, want %+v and %+v", got, first, second)
		}
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
		if err := s.DeleteWebhook(t.Context(), w.key, first.ID); err != nil {
			t.Fatal(err)
		}
		wantError(t, "the second deletion", s.DeleteWebhook(t.Context(), w.key, first.ID), ErrUnknownWebhook)
		if got := must(s.Webhooks(t.Context(), w.key))(t); !reflect.DeepEqual(got, []webhooks.Webhook{second}) {
			t.Errorf("left over are %+v", got)
		}
	})
}

func TestAnOrganizationHas32WebhooksOfItsOwn(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		var last webhooks.Webhook
		for range webhooks.MostWebhooks {
			last = w.hook(t, s, 0)
		}
		_, err := s.CreateWebhook(t.Context(), w.key, NewID(w.key.Organization), last.Settings, nil)
		wantError(t, "one more", err, &QuotaError{Quota: "webhooks", Used: webhooks.MostWebhooks, Max: webhooks.MostWebhooks})
		_, err = s.Webhook(t.Context(), other.key, last.ID)
		wantError(t, "a stranger's read", err, ErrUnknownWebhook)
		wantError(t, "a stranger's deletion", s.DeleteWebhook(t.Context(), other.key, last.ID), ErrUnknownWebhook)
		_, err = s.Deliveries(t.Context(), other.key, last.ID)
		wantError(t, "a stranger's read of deliveries", err, ErrUnknownWebhook)
		_, err = s.SendTest(t.Context(), other.key, last.ID, nil, time.Now())
		wantError(t, "a stranger's test", err, ErrUnknownWebhook)
		forged := APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}
		wantError(t, "a forged key", s.DeleteWebhook(t.Context(), forged, last.ID), ErrInvalidAPIKey)
		if err := s.DeleteWebhook(t.Context(), w.key, last.ID); err != nil {
			t.Fatal(err)
		}
		w.hook(t, s, 0)
	})
}

// An instance that stores a new URL may die before it wakes a deliverer. The webhook is due all the same, and again with each change
// until it is confirmed.
func TestANewURLIsLookedAt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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
			if err := s.ForgetWebhooks(t.Context(), o, time.Time{}); err != nil {
				t.Fatal(err)
			}
			hook = must(s.ChangeWebhook(t.Context(), w.key, hook.ID, nil, func(settings *webhooks.Settings) error {
				settings.URL = row.url
				return nil
			}))(t)
			if hook.Settings.URLVersion != row.version || !due() {
				t.Errorf("%s is version %d, want %d; looked at: %t", row.url, hook.Settings.URLVersion, row.version, due())
			}
		}
		if err := s.ForgetWebhooks(t.Context(), o, time.Time{}); err != nil {
			t.Fatal(err)
		}
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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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
		_, err := s.ChangeWebhook(t.Context(), w.key, hook.ID, nil, func(*webhooks.Settings) error { return own })
		wantError(t, "a change that fails", err, own)
	})
}

func TestOneInstanceAtATimeDelivers(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, one, two := newTenant(t, s, NewSession{MaxActions: 1}), NewRootID(), NewRootID()
		_, err := s.ClaimWebhooks(t.Context(), w.key.Organization, one, time.Minute)
		wantError(t, "a claim without webhooks", err, ErrUnknownWebhook)
		hook := w.hook(t, s, 0)
		first := w.claimHooks(t, s, one)
		if again := w.claimHooks(t, s, one); !reflect.DeepEqual(again, first) {
			t.Errorf("renewed as %+v, want %+v", again, first)
		}
		_, err = s.ClaimWebhooks(t.Context(), w.key.Organization, two, time.Minute)
		wantError(t, "another's claim", err, ErrWebhooksClaimed)
		if err := s.ReleaseWebhooks(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		second := w.claimHooks(t, s, two)
		if second.Term != first.Term+1 || len(second.Webhooks) != 1 {
			t.Errorf("claimed %+v after %+v", second, first)
		}
		report := webhooks.DeliveryReport{Webhook: hook.ID, Found: hook.Progress, Reached: webhooks.Progress{Position: 5}}
		_, err = s.NoteDeliveries(t.Context(), first, report)
		wantError(t, "a report of the term before", err, ErrChangedMeanwhile)
		if err := s.ReleaseWebhooks(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		_, err = s.ClaimWebhooks(t.Context(), w.key.Organization, one, time.Minute)
		wantError(t, "a claim after a late release", err, ErrWebhooksClaimed)
		ahead := time.Now().Add(time.Hour).UnixMilli() // before the clock of Redis went back
		must(peek(t, s).HSet(t.Context(), s.keys.WebhookProgress(w.key.Organization), "u", ahead).Result())(t)
		if third := w.claimHooks(t, s, one); third.Term <= second.Term {
			t.Errorf("claimed %+v after %+v", third, second)
		}
	})
}

func TestAReportCountsOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		hook, at := w.hook(t, s, 3), time.UnixMilli(1_700_000_000_000)
		claim := w.claimHooks(t, s, NewRootID())
		d := webhooks.Delivery{ID: webhooks.DeliveryID(hook.ID, 4), Event: 4, Type: "session.ended", Status: webhooks.DeliveryPending, Attempts: 1, Created: at, First: at,
			Next: at.Add(time.Second), Last: at, Took: time.Millisecond, Answer: 500, Error: "a \"cause\"\n"}
		report := webhooks.DeliveryReport{Webhook: hook.ID, Found: hook.Progress, Outcomes: []webhooks.Delivery{d},
			Reached: webhooks.Progress{Position: 4, Failing: at, Missed: 2, Tested: 1, Confirmed: at}}
		reached := must(s.NoteDeliveries(t.Context(), claim, report))(t)
		if want := (webhooks.Progress{Position: 4, Version: 2, Failing: at, Missed: 2, Tested: 1, Confirmed: at}); reached != want {
			t.Errorf("reached %+v, want %+v", reached, want)
		}
		_, err := s.NoteDeliveries(t.Context(), claim, report)
		wantError(t, "the same report again", err, ErrChangedMeanwhile)
		if got := must(s.Webhook(t.Context(), w.key, hook.ID))(t).Progress; got != reached {
			t.Errorf("stored is %+v, want %+v", got, reached)
		}
		due := must(s.DueDeliveries(t.Context(), w.key.Organization, hook.ID, 10))(t)
		if len(due.Due) != 1 || due.Waiting != 1 || !due.Later.IsZero() {
			t.Fatalf("due are %+v", due)
		}
		got := due.Due[0]
		got.Stored = ""
		if !reflect.DeepEqual(got, d) {
			t.Errorf("stored as %+v, want %+v", got, d)
		}
		d.Status, d.Next = webhooks.DeliveryDelivered, time.Time{}
		must(s.NoteDeliveries(t.Context(), claim, webhooks.DeliveryReport{Webhook: hook.ID, Found: reached, Reached: reached, Outcomes: []webhooks.Delivery{d}}))(t)
		if due := must(s.DueDeliveries(t.Context(), w.key.Organization, hook.ID, 10))(t); due.Waiting != 0 {
			t.Errorf("after it was delivered, due are %+v", due)
		}
		if err := s.DeleteWebhook(t.Context(), w.key, hook.ID); err != nil {
			t.Fatal(err)
		}
		_, err = s.NoteDeliveries(t.Context(), claim, report)
		wantError(t, "a report about a webhook that is deleted", err, ErrUnknownWebhook)
		if left := must(peek(t, s).Exists(t.Context(), s.DeliveryKeys(w.key.Organization, hook.ID)...).Result())(t); left != 0 {
			t.Errorf("%d keys of the webhook are left", left)
		}
	})
}

func TestOnlyTheLastDeliveriesAreKept(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		hook, claim := w.hook(t, s, 0), w.claimHooks(t, s, NewRootID())
		progress, number := hook.Progress, int64(0)
		report := func(status Status, count int) {
			outcomes := make([]webhooks.Delivery, count)
			for i := range outcomes {
				number++
				at := time.UnixMilli(1_700_000_000_000 + number)
				outcomes[i] = webhooks.Delivery{ID: webhooks.DeliveryID(hook.ID, number), Event: number, Type: "session.ended", Status: status, Created: at, Last: at, Next: at}
			}
			next := webhooks.DeliveryReport{Webhook: hook.ID, Found: progress, Reached: progress, Outcomes: outcomes}
			progress = must(s.NoteDeliveries(t.Context(), claim, next))(t)
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
		if want := (map[Status]int{webhooks.DeliveryDelivered: 100, webhooks.DeliveryDead: 256, webhooks.DeliveryPending: 200}); !reflect.DeepEqual(kept, want) {
			t.Errorf("kept %v, want %v", kept, want)
		}
		if all[len(all)-1].Event != 81 {
			t.Errorf("the oldest that is kept is %d", all[len(all)-1].Event)
		}
	})
}

func TestADeliveryIsSentAgainByHand(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, now := newTenant(t, s, NewSession{MaxActions: 1}), time.Now()
		hook, claim := w.hook(t, s, 0), w.claimHooks(t, s, NewRootID())
		dead := webhooks.Delivery{ID: webhooks.DeliveryID(hook.ID, 1), Event: 1, Type: "session.ended", Status: webhooks.DeliveryDead, Attempts: 30, Created: now, First: now, Last: now}
		must(s.NoteDeliveries(t.Context(), claim, webhooks.DeliveryReport{Webhook: hook.ID, Found: hook.Progress, Reached: hook.Progress, Outcomes: []webhooks.Delivery{dead}}))(t)
		_, err := s.SendAgain(t.Context(), w.key, hook.ID, NewRootID(), now)
		wantError(t, "one that does not exist", err, ErrUnknownDelivery)
		again := must(s.SendAgain(t.Context(), w.key, hook.ID, dead.ID, now))(t)
		if again.Status != webhooks.DeliveryPending || again.Attempts != 0 || !again.First.IsZero() {
			t.Errorf("sent again as %+v", again)
		}
		due := must(s.DueDeliveries(t.Context(), w.key.Organization, hook.ID, 10))(t)
		if len(due.Due) != 1 || due.Due[0].ID != dead.ID {
			t.Errorf("due are %+v", due)
		}
		if got := must(s.DueWebhooks(t.Context(), 10))(t); !reflect.DeepEqual(got, []uuid.UUID{w.key.Organization}) {
			t.Errorf("woken are %v", got)
		}
	})
}

// Retries that were set before Redis's clock went back by hours would wait for hours more.
func TestADeliveryIsDueThoughRedissClockWentBack(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, now := newTenant(t, s, NewSession{MaxActions: 1}), time.Now()
		hook, claim := w.hook(t, s, 0), w.claimHooks(t, s, NewRootID())
		var outcomes []webhooks.Delivery
		for event, ahead := range []time.Duration{time.Hour, 3 * time.Hour, -time.Minute} {
			outcomes = append(outcomes, webhooks.Delivery{ID: webhooks.DeliveryID(hook.ID, int64(event)), Event: int64(event), Type: "session.ended",
				Status: webhooks.DeliveryPending, Attempts: 1, Created: now, First: now, Last: now, Next: now.Add(ahead)})
		}
		must(s.NoteDeliveries(t.Context(), claim, webhooks.DeliveryReport{Webhook: hook.ID, Found: hook.Progress, Reached: hook.Progress, Outcomes: outcomes}))(t)
		for _, row := range []struct {
			limit int
			want  []int64
		}{{10, []int64{2, 1}}, {1, []int64{2}}} {
			var got []int64
			due := must(s.DueDeliveries(t.Context(), w.key.Organization, hook.ID, row.limit))(t)
			for _, d := range due.Due {
				got = append(got, d.Event)
			}
			if !slices.Equal(got, row.want) || due.Later.Sub(now).Round(time.Second) != time.Hour {
				t.Errorf("due are %v, and one at %s; want %v, and one in an hour of %s", got, due.Later, row.want, now)
			}
		}
		must(s.PostponeWebhooks(t.Context(), w.key.Organization, time.Time{}, time.Hour))(t)
		if due := must(s.DueWebhooks(t.Context(), 10))(t); len(due) != 0 {
			t.Errorf("those of %v are to be looked at before their time", due)
		}
		must(s.PostponeWebhooks(t.Context(), w.key.Organization, time.Time{}, 3*time.Hour))(t)
		if due := must(s.DueWebhooks(t.Context(), 10))(t); !slices.Equal(due, []uuid.UUID{w.key.Organization}) {
			t.Errorf("those of %v are to be looked at", due)
		}
	})
}

func TestATestIsSentOnceForAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, now := newTenant(t, s, NewSession{MaxActions: 1}), time.Now()
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
			delivered = append(delivered, webhooks.Delivery{ID: webhooks.DeliveryID(hook.ID, event+1), Event: event + 1, Type: "session.ended"})
		}
		for i := range delivered {
			delivered[i].Status, delivered[i].Created, delivered[i].Last = webhooks.DeliveryDelivered, now, now.Add(time.Duration(i)*time.Millisecond)
		}
		must(s.NoteDeliveries(t.Context(), claim, webhooks.DeliveryReport{Webhook: hook.ID, Found: hook.Progress, Reached: hook.Progress, Outcomes: delivered}))(t)
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
		if replayed {
			t.Error("another request is replayed")
		}
	})
}

func TestDeliveriesSentByHandAreBounded(t *testing.T) {
	t.Parallel()
	onMiniredis(t, Config{}, func(t *testing.T, s *Store) {
		w, now := newTenant(t, s, NewSession{MaxActions: 1}), time.Now()
		hook := w.hook(t, s, 0)
		for i := range webhooks.MostByHand {
			must(s.SendTest(t.Context(), w.key, hook.ID, &Idempotency{Key: fmt.Sprint(i)}, now))(t)
		}
		_, err := s.SendTest(t.Context(), w.key, hook.ID, nil, now)
		wantError(t, "one more", err, &QuotaError{Quota: "webhook_deliveries", Used: webhooks.MostByHand, Max: webhooks.MostByHand})
	})
}

func TestNewsThatComesMeanwhileStaysInTheQueue(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		organization := NewRootID()
		due := func() bool { return len(must(s.DueWebhooks(t.Context(), 10))(t)) == 1 }
		postpone := func(found time.Time, after time.Duration) time.Time {
			return must(s.PostponeWebhooks(t.Context(), organization, found, after))(t)
		}
		wake := func(within time.Duration) {
			if err := s.WakeWebhooks(t.Context(), organization, within); err != nil {
				t.Fatal(err)
			}
		}
		forget := func(found time.Time) {
			if err := s.ForgetWebhooks(t.Context(), organization, found); err != nil {
				t.Fatal(err)
			}
		}
		wake(0)
		if !due() {
			t.Fatal("it is not due after it was woken")
		}
		mine := postpone(time.Time{}, time.Hour)
		if due() {
			t.Fatal("it is due after it was postponed")
		}
		wake(2 * time.Hour)
		if got := postpone(mine, time.Hour); got.Before(mine) {
			t.Errorf("postponed to %s, before %s", got, mine)
		}
		mine = postpone(time.Time{}, time.Hour)
		wake(0)
		forget(mine)
		if !due() {
			t.Error("news was forgotten")
		}
		mine = postpone(time.Time{}, time.Hour)
		forget(mine)
		wake(0)
		if !due() {
			t.Error("it is not due after it was forgotten and woken")
		}
		mine = postpone(time.Time{}, time.Millisecond)
		eventually(t, "its time comes", due)
		wake(0)
		forget(mine)
		if !due() {
			t.Error("news that came late was forgotten")
		}
	})
}

func TestADeletionRemovesWebhooks(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		hook, kept := w.hook(t, s, 0), other.hook(t, s, 0)
		for _, one := range []struct {
			key  APIKey
			hook uuid.UUID
		}{{w.key, hook.ID}, {other.key, kept.ID}} {
			must(s.SendTest(t.Context(), one.key, one.hook, nil, time.Now()))(t)
		}
		if err := asOperator(t, s).deleteOrganization(t.Context(), w.key.Organization, 0, func(DeletionProgress) {}); err != nil {
			t.Fatal(err)
		}
		keys := append(s.WebhookKeys(w.key.Organization), s.DeliveryKeys(w.key.Organization, hook.ID)...)
		for _, key := range keys {
			if must(peek(t, s).Exists(t.Context(), key).Result())(t) != 0 {
				t.Errorf("%s is left", key)
			}
		}
		if got := must(s.Deliveries(t.Context(), other.key, kept.ID))(t); len(got) != 1 {
			t.Errorf("the other organization's deliveries are %+v", got)
		}
	})
}

func TestThePreStateOfATransactionIsReadForItsOwnAgentOnly(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		begun := must(s.Begin(t.Context(), w.exchange(t, s).AccessToken, NewTransaction{ActionType: "book", PreState: `{"seats": 3}`, Lifetime: time.Hour}))(t)
		for _, test := range []struct {
			agent, transaction uuid.UUID
			want               string
		}{{w.agent.ID, begun.ID, `{"seats": 3}`}, {other.agent.ID, begun.ID, ""}, {w.agent.ID, NewID(w.agent.ID), ""}} {
			if got := must(s.PreState(t.Context(), w.key.Organization, test.agent, test.transaction))(t); got != test.want {
				t.Errorf("read %q, want %q", got, test.want)
			}
		}
	})
}

// The leader of a feed that dies after it has appended an event, and before it has woken the webhooks, leaves that to the next.
func TestWebhooksAreWokenForALeaderThatDied(t *testing.T) {
	t.Parallel()
	onEachRedis(t, withFeeds, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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

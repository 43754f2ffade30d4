package redisstore

import (
	"bytes"
	"context"
	"slices"

	"github.com/google/uuid"
)

var (
	putWebhook     = newSealedScript("webhooks/put_webhook")
	replaceWebhook = newScript("webhooks/replace_webhook", writes)
	rotateWebhook  = newSealedScript("webhooks/replace_webhook")
	listWebhooks   = newScript("webhooks/list_webhooks", reads)
	deleteWebhook  = newScript("webhooks/delete_webhook", writes)
)

// CreateWebhook creates a webhook that receives a test, and once it is confirmed the events numbered from now on. Its id is
// in the cell of the organization. idem is nil for no idempotency key.
// Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended, *QuotaError;
// with an idempotency key ErrIdempotencyKeyReused and ErrSealed.
func (s *Store) CreateWebhook(ctx context.Context, key APIKey, id uuid.UUID, settings WebhookSettings, idem *Idempotency) (Webhook, error) {
	settings.URLVersion = 1
	text, err := webhookSettingsText(settings)
	if err != nil {
		return Webhook{}, err
	}
	if _, err := s.authenticate(ctx, s.proven.flow(key), key); err != nil { // before anything is woken
		return Webhook{}, err
	}
	var r *reply
	err = s.wakeFor(ctx, key.Organization, func() error {
		keys := append(s.webhookKeys(key.Organization), s.keys.feedHead(key.Organization))
		r, err = s.runSealedByKey(ctx, key, putWebhook, idem, webhookSize+int64(len(text)), keys, key.credential(), id, text, MostWebhooks)
		return err
	})
	if err != nil {
		return Webhook{}, err
	}
	progress := WebhookProgress{Position: r.Number(1), Version: 1}
	return Webhook{ID: r.ID(0), Settings: settings, Progress: progress, Reader: Admin, stored: text}, r.Err
}

// runSealedByKey runs a script that checks an API key, whose answer has a credential, and that counts so many bytes more.
func (s *Store) runSealedByKey(ctx context.Context, key APIKey, sc keyedScript, idem *Idempotency, counted int64, keys []string, args ...any) (*reply, error) {
	f := s.proven.flow(key)
	if err := s.refuseSuspended(ctx, key, f); err != nil {
		return nil, err
	}
	if idem == nil {
		return s.runCounted(ctx, key, f, sc.script, counted, keys, args...)
	}
	if _, err := s.authenticate(ctx, f, key); err != nil { // a repetition runs no script that checks the key
		return nil, err
	}
	place, held, err := s.reserveSealed(ctx, key, f, idem, counted)
	if err != nil {
		return nil, err
	}
	r, err := s.performSealed(ctx, sc, f, idem, place, key.Organization, keys, args...)
	held.finish(err, idem.Replayed)
	s.proven.note(key, err)
	return r, err
}

// runCounted is runByKey for a script that counts so many bytes more. Errors: also *QuotaError.
func (s *Store) runCounted(ctx context.Context, key APIKey, f flow, sc *script, counted int64, keys []string, args ...any) (*reply, error) {
	held, err := s.reserveCounted(f, key.Organization, counted)
	if err != nil {
		return nil, err
	}
	r, err := s.runByKey(ctx, key, f, sc, keys, args...)
	held.finish(err, false)
	return r, err
}

// Webhooks returns all webhooks of the key's organization, the oldest first. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended.
func (s *Store) Webhooks(ctx context.Context, key APIKey) ([]Webhook, error) {
	r, err := s.runByKey(ctx, key, s.proven.flow(key), listWebhooks, s.webhookKeys(key.Organization), key.credential())
	if err != nil {
		return nil, err
	}
	all, err := webhooksAt(r, 1)
	if err != nil {
		return nil, err
	}
	reader := roleAt(r, 3)
	for i := range all {
		all[i].Reader = reader
	}
	return all, r.Err
}

// Webhook returns one webhook. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrUnknownWebhook.
func (s *Store) Webhook(ctx context.Context, key APIKey, id uuid.UUID) (Webhook, error) {
	all, err := s.Webhooks(ctx, key)
	if err != nil {
		return Webhook{}, err
	}
	at := slices.IndexFunc(all, func(w Webhook) bool { return w.ID == id })
	if at < 0 {
		return Webhook{}, ErrUnknownWebhook
	}
	return all[at], nil
}

// ChangeWebhook stores what change makes of the settings of a webhook, whose URL gets a test if it is another. It
// runs change again when another request has changed them meanwhile.
// Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrUnknownWebhook, ErrChangedMeanwhile after a few times; with an
// idempotency key ErrIdempotencyKeyReused and ErrSealed; and those of change.
func (s *Store) ChangeWebhook(ctx context.Context, key APIKey, id uuid.UUID, idem *Idempotency, change func(*WebhookSettings) error) (Webhook, error) {
	for attempt := 0; ; attempt++ {
		w, err := s.Webhook(ctx, key, id)
		if err != nil {
			return Webhook{}, err
		}
		url, secrets := w.Settings.URL, len(w.Settings.Secrets)
		if err := change(&w.Settings); err != nil {
			return Webhook{}, err
		}
		rotates := secrets != len(w.Settings.Secrets)
		store := func() error { return s.replaceWebhook(ctx, key, idem, &w, rotates) }
		if w.Settings.URL != url {
			w.Settings.URLVersion++
		}
		if w.Confirmed().IsZero() { // a repeated change wakes what the first may have left asleep
			err = s.wakeFor(ctx, key.Organization, store)
		} else {
			err = store()
		}
		if err == nil && idem != nil && idem.Replayed {
			return s.Webhook(ctx, key, id) // as the first request, and what came after it, left it
		}
		if err != ErrChangedMeanwhile || attempt == maxSettingsAttempts {
			return w, err
		}
	}
}

const maxSettingsAttempts = 5

// replaceWebhook stores the settings of a webhook, if those that it was read with are still stored. A quota of memory refuses longer
// ones unless they rotate the secret.
func (s *Store) replaceWebhook(ctx context.Context, key APIKey, idem *Idempotency, w *Webhook, rotates bool) error {
	text, err := webhookSettingsText(w.Settings)
	if err != nil {
		return err
	}
	found, counted := w.stored, int64(len(text)-len(w.stored))
	if rotates {
		counted = 0
	}
	w.stored = text
	keys := s.webhookKeys(key.Organization)[:2] // without the progress
	if idem == nil {
		_, err := s.runCounted(ctx, key, s.proven.flow(key), replaceWebhook, counted, keys, key.credential(), w.ID, found, text)
		return err
	}
	_, err = s.runSealedByKey(ctx, key, rotateWebhook, idem, counted, keys, key.credential(), w.ID, found, text)
	return err
}

// DeleteWebhook removes a webhook. A request that is under way still ends. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended,
// ErrUnknownWebhook.
func (s *Store) DeleteWebhook(ctx context.Context, key APIKey, id uuid.UUID) error {
	keys := append(s.webhookKeys(key.Organization), s.deliveryKeys(key.Organization, id)...)
	_, err := s.runByKey(ctx, key, s.proven.urgent(key), deleteWebhook, keys, key.credential(), id)
	s.noteFreed(key.Organization, err)
	return err
}

// webhookKeys are the organization, its webhooks and their progress.
func (s *Store) webhookKeys(organization uuid.UUID) []string {
	return []string{s.keys.organization(organization), s.keys.webhooks(organization), s.keys.webhookProgress(organization)}
}

// deliveryKeys are a webhook's deliveries: those that wait, that succeeded, that were given up, and the records. Another
// organization's webhook gives keys that do not exist, in the organization's slot.
func (s *Store) deliveryKeys(organization, webhook uuid.UUID) []string {
	return []string{s.keys.pendingDeliveries(organization, webhook), s.keys.finishedDeliveries(organization, webhook),
		s.keys.deadDeliveries(organization, webhook), s.keys.deliveries(organization, webhook)}
}

func sortByID(webhooks []Webhook) {
	slices.SortFunc(webhooks, func(a, b Webhook) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}

// Package webhooks stores webhooks, the queue of those that have something to do, and their deliveries.
package webhooks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// MostWebhooks is how many webhooks an organization may have.
const MostWebhooks = 32

// Webhook is a receiver of an organization's events.
type Webhook struct {
	ID       uuid.UUID
	Settings Settings
	Progress Progress
	Reader   kernel.Role // of the API key that read it; "" when the service did

	stored string // the settings as they are stored
}

// Confirmed returns when the receiver at its URL first answered 2xx; zero if it has yet to.
func (w Webhook) Confirmed() time.Time {
	if w.Progress.Tested != w.Settings.URLVersion {
		return time.Time{}
	}
	return w.Progress.Confirmed
}

// Created returns when the webhook was created, by the clock of the instance that did.
func (w Webhook) Created() time.Time { return kernel.MadeAt(w.ID) }

// Settings are what an organization decides about a webhook.
type Settings struct {
	URL         string   `json:"url"`
	URLVersion  int64    `json:"url_version"`    // counts the URLs that it has had; the store sets it
	Types       []string `json:"types,omitzero"` // of events; none for all
	Description string   `json:"description,omitzero"`
	Secrets     []Secret `json:"secrets"` // the current one first
}

// Secret is a secret that signs a webhook's requests.
type Secret struct {
	Sealed string `json:"sealed"`         // as token.KeyEncryptionKey.Seal returns it
	Until  int64  `json:"until,omitzero"` // ms since 1970; 0 for the current one
}

// Wants reports whether the webhook receives events of the type.
func (s Settings) Wants(eventType string) bool {
	return len(s.Types) == 0 || slices.Contains(s.Types, eventType)
}

// Progress is how far a webhook has come. The version changes with each report.
type Progress struct {
	Position int64     // number of the last event that needs no first attempt any more
	Version  int64     // of the progress
	Failing  time.Time // since when every attempt fails; zero when the last pass had a success
	Missed   int64     // events that were no longer kept when the webhook came to them

	Tested    int64     // version of the URL that the last test by itself went to; 0 for none
	Confirmed time.Time // when the receiver at that URL first answered 2xx; zero if it has yet to
}

func (p Progress) text() string {
	return fmt.Sprintf("%d %d %d %d %d %d", p.Position, p.Version, msOf(p.Failing), p.Missed, p.Tested, msOf(p.Confirmed))
}

func parseWebhookProgress(r *redisclient.Reply, text string) Progress {
	words := strings.Fields(text)
	if len(words) != 6 {
		r.Err = fmt.Errorf("%w: %q is no progress of a webhook", redisclient.ErrReply, text)
		return Progress{}
	}
	return Progress{
		Position: r.Parse(words[0]), Version: r.Parse(words[1]), Failing: r.ParseTimeOrZero(words[2]), Missed: r.Parse(words[3]),
		Tested: r.Parse(words[4]), Confirmed: r.ParseTimeOrZero(words[5]),
	}
}

func webhookSettingsText(s Settings) (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

func parseWebhookSettings(text string) (s Settings, err error) {
	if err = json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("%w: settings of a webhook: %v", redisclient.ErrReply, err)
	}
	return s, nil
}

// webhooksAt reads the webhooks from the names and values of their settings, at i of a reply, and of their progress, behind it.
// The oldest is the first.
func webhooksAt(r *redisclient.Reply, i int) ([]Webhook, error) {
	stored, reached := r.List(i), r.List(i+1)
	progress := map[string]string{}
	for j := 0; j+1 < len(reached.Values); j += 2 {
		progress[reached.Text(j)] = reached.Text(j + 1)
	}
	webhooks := make([]Webhook, 0, len(stored.Values)/2)
	for j := 0; j+1 < len(stored.Values); j += 2 {
		w := Webhook{ID: stored.ID(j), stored: stored.Text(j + 1)}
		w.Progress = parseWebhookProgress(stored, progress[stored.Text(j)])
		var err error
		if w.Settings, err = parseWebhookSettings(w.stored); err != nil {
			return nil, err
		}
		webhooks = append(webhooks, w)
	}
	slices.SortFunc(webhooks, func(a, b Webhook) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return webhooks, cmp.Or(r.Err, stored.Err, reached.Err)
}

var (
	PutWebhook     = kernel.NewSealedScript("webhooks/put_webhook")
	replaceWebhook = kernel.NewScript("webhooks/replace_webhook", redisclient.Writes)
	rotateWebhook  = kernel.NewSealedScript("webhooks/replace_webhook")
	ListWebhooks   = kernel.NewScript("webhooks/list_webhooks", redisclient.Reads)
	deleteWebhook  = kernel.NewScript("webhooks/delete_webhook", redisclient.Writes)
)

// Registry stores webhooks and their deliveries.
type Registry struct{ core *kernel.Core }

// New returns a registry.
func New(core *kernel.Core) *Registry { return &Registry{core} }

// CreateWebhook creates a webhook that receives a test, and once it is confirmed the events numbered from now on. Its id is
// in the cell of the organization. idem is nil for no idempotency key.
// Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended, *QuotaError;
// with an idempotency key ErrIdempotencyKeyReused and ErrSealed.
func (s *Registry) CreateWebhook(ctx context.Context, key kernel.APIKey, id uuid.UUID, settings Settings, idem *kernel.Idempotency) (Webhook, error) {
	settings.URLVersion = 1
	text, err := webhookSettingsText(settings)
	if err != nil {
		return Webhook{}, err
	}
	if _, err := s.core.Authenticate(ctx, s.core.Proven.Flow(key), key); err != nil { // before anything is woken
		return Webhook{}, err
	}
	var r *redisclient.Reply
	err = s.WakeFor(ctx, key.Organization, func() error {
		keys := append(s.WebhookKeys(key.Organization), s.core.Keys.FeedHead(key.Organization))
		r, err = s.core.RunSealedByKey(ctx, key, PutWebhook, idem, kernel.WebhookSize+int64(len(text)), keys, key.Credential(), id, text, MostWebhooks)
		return err
	})
	if err != nil {
		return Webhook{}, err
	}
	progress := Progress{Position: r.Number(1), Version: 1}
	return Webhook{ID: r.ID(0), Settings: settings, Progress: progress, Reader: kernel.Admin, stored: text}, r.Err
}

// Webhooks returns all webhooks of the key's organization, the oldest first. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended.
func (s *Registry) Webhooks(ctx context.Context, key kernel.APIKey) ([]Webhook, error) {
	r, err := s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), ListWebhooks, s.WebhookKeys(key.Organization), key.Credential())
	if err != nil {
		return nil, err
	}
	all, err := webhooksAt(r, 1)
	if err != nil {
		return nil, err
	}
	reader := kernel.RoleAt(r, 3)
	for i := range all {
		all[i].Reader = reader
	}
	return all, r.Err
}

// Webhook returns one webhook. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrUnknownWebhook.
func (s *Registry) Webhook(ctx context.Context, key kernel.APIKey, id uuid.UUID) (Webhook, error) {
	all, err := s.Webhooks(ctx, key)
	if err != nil {
		return Webhook{}, err
	}
	at := slices.IndexFunc(all, func(w Webhook) bool { return w.ID == id })
	if at < 0 {
		return Webhook{}, kernel.ErrUnknownWebhook
	}
	return all[at], nil
}

// ChangeWebhook stores what change makes of the settings of a webhook, whose URL gets a test if it is another. It
// runs change again when another request has changed them meanwhile.
// Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrUnknownWebhook, ErrChangedMeanwhile after a few times; with an
// idempotency key ErrIdempotencyKeyReused and ErrSealed; and those of change.
func (s *Registry) ChangeWebhook(ctx context.Context, key kernel.APIKey, id uuid.UUID, idem *kernel.Idempotency, change func(*Settings) error) (Webhook, error) {
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
			err = s.WakeFor(ctx, key.Organization, store)
		} else {
			err = store()
		}
		if err == nil && idem.IsReplay() {
			return s.Webhook(ctx, key, id) // as the first request, and what came after it, left it
		}
		if err != kernel.ErrChangedMeanwhile || attempt == kernel.MaxChangeAttempts {
			return w, err
		}
	}
}

// replaceWebhook stores the settings of a webhook, if those that it was read with are still stored. A quota of memory refuses longer
// ones unless they rotate the secret.
func (s *Registry) replaceWebhook(ctx context.Context, key kernel.APIKey, idem *kernel.Idempotency, w *Webhook, rotates bool) error {
	text, err := webhookSettingsText(w.Settings)
	if err != nil {
		return err
	}
	found, counted := w.stored, int64(len(text)-len(w.stored))
	if rotates {
		counted = 0
	}
	w.stored = text
	keys := s.WebhookKeys(key.Organization)[:2] // without the progress
	if idem == nil {
		_, err := s.core.RunCounted(ctx, key, s.core.Proven.Flow(key), replaceWebhook, counted, keys, key.Credential(), w.ID, found, text)
		return err
	}
	_, err = s.core.RunSealedByKey(ctx, key, rotateWebhook, idem, counted, keys, key.Credential(), w.ID, found, text)
	return err
}

// DeleteWebhook removes a webhook. A request that is under way still ends. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended,
// ErrUnknownWebhook.
func (s *Registry) DeleteWebhook(ctx context.Context, key kernel.APIKey, id uuid.UUID) error {
	keys := append(s.WebhookKeys(key.Organization), s.DeliveryKeys(key.Organization, id)...)
	_, err := s.core.RunByKey(ctx, key, s.core.Proven.Urgent(key), deleteWebhook, keys, key.Credential(), id)
	s.core.NoteFreed(key.Organization, err)
	return err
}

// WebhookKeys are the organization, its webhooks and their progress.
func (s *Registry) WebhookKeys(organization uuid.UUID) []string {
	return []string{s.core.Keys.Organization(organization), s.core.Keys.Webhooks(organization), s.core.Keys.WebhookProgress(organization)}
}

// DeliveryKeys are a webhook's deliveries: those that wait, that succeeded, that were given up, and the records. Another
// organization's webhook gives keys that do not exist, in the organization's slot.
func (s *Registry) DeliveryKeys(organization, webhook uuid.UUID) []string {
	return []string{s.core.Keys.PendingDeliveries(organization, webhook), s.core.Keys.FinishedDeliveries(organization, webhook),
		s.core.Keys.DeadDeliveries(organization, webhook), s.core.Keys.Deliveries(organization, webhook)}
}

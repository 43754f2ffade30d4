package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// MostWebhooks is how many webhooks an organization may have.
const MostWebhooks = 32

// Webhook is a receiver of an organization's events.
type Webhook struct {
	ID       uuid.UUID
	Settings WebhookSettings
	Progress WebhookProgress
	Reader   Role // of the API key that read it; "" when the service did

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
func (w Webhook) Created() time.Time { return madeAt(w.ID) }

// WebhookSettings are what an organization decides about a webhook.
type WebhookSettings struct {
	URL         string          `json:"url"`
	URLVersion  int64           `json:"url_version"`    // counts the URLs that it has had; the store sets it
	Types       []string        `json:"types,omitzero"` // of events; none for all
	Description string          `json:"description,omitzero"`
	Secrets     []WebhookSecret `json:"secrets"` // the current one first
}

// WebhookSecret is a secret that signs a webhook's requests.
type WebhookSecret struct {
	Sealed string `json:"sealed"`         // as token.KeyEncryptionKey.Seal returns it
	Until  int64  `json:"until,omitzero"` // ms since 1970; 0 for the current one
}

// Wants reports whether the webhook receives events of the type.
func (s WebhookSettings) Wants(eventType string) bool {
	for _, wanted := range s.Types {
		if wanted == eventType {
			return true
		}
	}
	return len(s.Types) == 0
}

// WebhookProgress is how far a webhook has come. The version changes with each report.
type WebhookProgress struct {
	Position int64     // number of the last event that needs no first attempt any more
	Version  int64     // of the progress
	Failing  time.Time // since when every attempt fails; zero when the last pass had a success
	Missed   int64     // events that were no longer kept when the webhook came to them

	Tested    int64     // version of the URL that the last test by itself went to; 0 for none
	Confirmed time.Time // when the receiver at that URL first answered 2xx; zero if it has yet to
}

func (p WebhookProgress) text() string {
	return fmt.Sprintf("%d %d %d %d %d %d", p.Position, p.Version, msOf(p.Failing), p.Missed, p.Tested, msOf(p.Confirmed))
}

func parseWebhookProgress(r *reply, text string) WebhookProgress {
	words := strings.Fields(text)
	if len(words) != 6 {
		r.Err = fmt.Errorf("%w: %q is no progress of a webhook", errReply, text)
		return WebhookProgress{}
	}
	return WebhookProgress{
		Position: r.Parse(words[0]), Version: r.Parse(words[1]), Failing: r.ParseTimeOrZero(words[2]), Missed: r.Parse(words[3]),
		Tested: r.Parse(words[4]), Confirmed: r.ParseTimeOrZero(words[5]),
	}
}

func webhookSettingsText(s WebhookSettings) (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

func parseWebhookSettings(text string) (s WebhookSettings, err error) {
	if err = json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("%w: settings of a webhook: %v", errReply, err)
	}
	return s, nil
}

// webhooksAt reads the webhooks from the names and values of their settings, at i of a reply, and of their progress, behind it.
// The oldest is the first.
func webhooksAt(r *reply, i int) ([]Webhook, error) {
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
	sortByID(webhooks)
	for _, part := range []*reply{r, stored, reached} {
		if part.Err != nil {
			return nil, part.Err
		}
	}
	return webhooks, nil
}

// millis returns a duration as scripts take it.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"
	"remit/money"
	"remit/redisstore"
)

// SessionDefaults are the limits of a session whose request names none, as the service is configured.
type SessionDefaults struct {
	MaxActions int64
	MaxValue   money.MicroUSD
	Lifetime   time.Duration
}

var createSession = call{post, "/v1/sessions", fields{
	"agent_id": asTyped, "parent_session_id": readText,
	"max_actions": readCount, "max_value_usd": readAmount, "expires_in_seconds": readLifetime, "enforcement": readText,
	"max_value_usd_per_action": readAmount, "max_committed_usd": readAmount, "max_lease_seconds": readCount,
	"scopes": readSomeWords, "thresholds": readPercents, "metadata": readObject,
}, session, "The session is created. Its agent charges it from now on."}

// readLifetime reads seconds, or a duration as the command line has it. It returns nil for an empty text.
func readLifetime(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return seconds, nil
	}
	lifetime, err := time.ParseDuration(text)
	if err != nil || lifetime%time.Second != 0 {
		return nil, invalid("a lifetime is a number of seconds such as 900, or a time such as 90m or 24h")
	}
	return int64(lifetime / time.Second), nil
}

// Lives writes the default lifetime as readLifetime reads it.
func (d SessionDefaults) Lives() string {
	text := d.Lifetime.String()
	if minutes, whole := strings.CutSuffix(text, "m0s"); whole {
		text = minutes + "m"
	}
	if hours, whole := strings.CutSuffix(text, "h0m"); whole {
		text = hours + "h"
	}
	return text
}

// Percents writes the thresholds of a session that names none.
func (SessionDefaults) Percents() string {
	return strings.Trim(fmt.Sprint(redisstore.DefaultThresholds), "[]")
}

// readPercents reads whole numbers. It returns nil for an empty text.
func readPercents(text string) (any, error) {
	words, err := readSomeWords(text)
	if words == nil || err != nil {
		return nil, err
	}
	percents := []int64{}
	for _, word := range words.([]string) {
		n, err := strconv.ParseInt(strings.TrimSuffix(word, "%"), 10, 16)
		if err != nil {
			return nil, invalid("say percents such as 50 80 100")
		}
		percents = append(percents, n)
	}
	return percents, nil
}

// readObject reads a JSON object. It returns nil for an empty text.
func readObject(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil, invalid(`it is a JSON object such as {"ticket":"T-7"}`)
	}
	return json.RawMessage(text), nil
}

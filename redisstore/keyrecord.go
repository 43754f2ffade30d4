package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
)

// KeyRecord is one stored key.
type KeyRecord struct {
	ID        string
	Created   time.Time
	SignsFrom time.Time // in the future while it is only published
	Ends      time.Time // zero for a key without a successor
	Material  string    // as KeepFirstKey or RotateKey got it
}

// PendingKeyError refuses a rotation while the key of the previous rotation does not sign yet.
type PendingKeyError struct {
	ID        string
	SignsFrom time.Time
}

func (e *PendingKeyError) Error() string {
	return fmt.Sprintf("key %s is already waiting to sign, from %s on", e.ID, e.SignsFrom.UTC().Format(time.RFC3339))
}

var (
	keepFirstKey = kernel.NewScript("kernel/keep_first_key", writes)
	rotateKey    = kernel.NewScript("identity/rotate_key", writes)
	retireKey    = kernel.NewScript("identity/retire_key", writes)
)

// Keys returns the keys of a kind that have not ended, newest first, and Redis's time. Errors: ErrUnavailable.
func (s *Store) Keys(ctx context.Context, kind KeyKind) ([]KeyRecord, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var fields *redis.MapStringStringCmd
	var clock *redis.TimeCmd
	_, err := s.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		fields, clock = p.HGetAll(ctx, s.keys.KeyRecords(kind)), p.Time(ctx)
		return nil
	})
	if err != nil {
		return nil, time.Time{}, s.client.Classify(err, reads)
	}
	var records []KeyRecord
	for id, text := range fields.Val() {
		record, err := parseKeyRecord(id, text)
		if err != nil {
			continue // skip a record that cannot be read, so that the others can be read and retired
		}
		if record.Ends.IsZero() || record.Ends.After(clock.Val()) {
			records = append(records, record)
		}
	}
	slices.SortFunc(records, func(a, b KeyRecord) int {
		return cmp.Or(b.SignsFrom.Compare(a.SignsFrom), lastFirst(a, b), cmp.Compare(a.ID, b.ID))
	})
	return records, clock.Val(), nil
}

// lastFirst puts the key without a successor first: of two keys from the same millisecond on, it signs.
func lastFirst(a, b KeyRecord) int {
	switch {
	case a.Ends.IsZero() == b.Ends.IsZero():
		return 0
	case a.Ends.IsZero():
		return -1
	default:
		return 1
	}
}

// KeepFirstKey stores a key unless one of its kind is stored already. It is safe to repeat. Errors: ErrUnavailable,
// ErrOutcomeUnknown.
func (s *Store) KeepFirstKey(ctx context.Context, kind KeyKind, id, material string) error {
	_, err := s.client.Run(ctx, kernel.OwnFlow, keepFirstKey, []string{s.keys.KeyRecords(kind)}, id, material)
	return err
}

// RotateKey adds a key that every instance publishes now and signs with after publish, and returns the time from which it
// signs. The previous keys verify for outlive after that time. Errors: *PendingKeyError.
func (s *Store) RotateKey(ctx context.Context, kind KeyKind, id, material string,
	publish, outlive time.Duration) (time.Time, error) {
	return timeFrom(s.client.Run(ctx, kernel.OwnFlow, rotateKey, []string{s.keys.KeyRecords(kind)},
		id, material, publish.Milliseconds(), outlive.Milliseconds()))
}

// RetireKey ends a previous key at once, or withdraws one that does not sign yet. Errors: ErrUnknownKey, ErrKeyInUse.
func (s *Store) RetireKey(ctx context.Context, kind KeyKind, id string) error {
	_, err := s.client.Run(ctx, kernel.OwnFlow, retireKey, []string{s.keys.KeyRecords(kind)}, id)
	return err
}

// KeepIssuer stores the issuer for instances that are configured with none, unless one is stored already or issuer is "", and returns the
// stored one, "" for none. It reads first, so that an instance can start while Redis is read-only. Errors: ErrUnavailable.
func (s *Store) KeepIssuer(ctx context.Context, issuer string) (string, error) {
	kept, err := s.textAt(ctx, s.keys.Issuer())
	if err != nil || kept != "" || issuer == "" { // only the first instance writes
		return kept, err
	}
	if err := s.setText(ctx, s.keys.Issuer(), issuer, "nx"); err != nil {
		return "", err
	}
	return s.textAt(ctx, s.keys.Issuer())
}

// SetIssuer replaces the stored issuer. It writes nothing if the issuer is stored already. Errors: ErrUnavailable.
func (s *Store) SetIssuer(ctx context.Context, issuer string) error {
	if kept, err := s.textAt(ctx, s.keys.Issuer()); err != nil || kept == issuer {
		return err
	}
	return s.setText(ctx, s.keys.Issuer(), issuer)
}

// textAt returns the text at a key, "" for none.
func (s *Store) textAt(ctx context.Context, key string) (string, error) {
	answer, err := s.client.Call(ctx, kernel.OwnFlow, reads, "get", key)
	text, _ := answer.(string)
	return text, err
}

// setText stores a text at a key; with "nx" only where there is none.
func (s *Store) setText(ctx context.Context, key, text string, condition ...string) error {
	_, err := s.client.Call(ctx, kernel.OwnFlow, writes, "set", key, append([]string{text}, condition...)...)
	return kernel.NothingVisible(err) // repeating it is harmless
}

func parseKeyRecord(id, text string) (KeyRecord, error) {
	parts := strings.SplitN(text, " ", 4)
	if len(parts) != 4 {
		return KeyRecord{}, fmt.Errorf("%w: key %s", errReply, id)
	}
	r := &reply{}
	record := KeyRecord{
		ID: id, Created: r.ParseTimeOrZero(parts[0]), SignsFrom: r.ParseTimeOrZero(parts[1]), Ends: r.ParseTimeOrZero(parts[2]), Material: parts[3],
	}
	return record, r.Err
}

package redisstore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// States of a delivery.
const (
	DeliveryPending   Status = "pending"   // an attempt failed, and there will be another
	DeliveryDelivered Status = "delivered" // the receiver has answered 2xx
	DeliveryDead      Status = "dead"      // every attempt failed, and there will be none unless somebody sends it again
)

// TestEvent is the type of a webhook's test event, which is in no feed.
const TestEvent = "webhook.test"

// Delivery is the telling of one event to one webhook.
type Delivery struct {
	ID       uuid.UUID
	Event    int64 // its number in the feed; 0 for a test
	Type     string
	Status   Status
	Attempts int
	Created  time.Time // when the first attempt began, or the test was made
	First    time.Time // of the attempts that count for giving up: Created, or when somebody sent it again
	Next     time.Time // when the next attempt is due; zero unless it is pending
	Last     time.Time // when the last attempt ended; zero before the first
	Took     time.Duration
	Answer   int    // HTTP status of the last answer; 0 for none
	Error    string // why the last attempt failed, "" if it did not

	stored string
}

// DeliveryID returns the id of the delivery of an event: the same whoever sends it, however often. Receivers know a repetition
// by it. It is a UUIDv8 (RFC 9562).
func DeliveryID(webhook uuid.UUID, event int64) uuid.UUID {
	return hashedID(webhook, "event", binary.BigEndian.AppendUint64(nil, uint64(event)))
}

// URLTestID returns the id of the test that a version of a webhook's URL gets by itself.
func URLTestID(webhook uuid.UUID, version int64) uuid.UUID {
	return hashedID(webhook, "url", binary.BigEndian.AppendUint64(nil, uint64(version)))
}

func hashedID(webhook uuid.UUID, kind string, of []byte) (id uuid.UUID) {
	hash := sha256.New()
	hash.Write(webhook[:])
	hash.Write([]byte(kind))
	hash.Write(of)
	copy(id[:], hash.Sum(nil))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}

// deliveryRecord is a delivery as Redis stores it. The names are short because there are many. Times are ms since 1970.
type deliveryRecord struct {
	Event    int64  `json:"n,omitzero"`
	Type     string `json:"y"`
	Status   Status `json:"s"`
	Attempts int    `json:"a,omitzero"`
	Created  int64  `json:"c"`
	First    int64  `json:"f"`
	Next     int64  `json:"x,omitzero"`
	Last     int64  `json:"l,omitzero"`
	Took     int64  `json:"d,omitzero"` // ms
	Answer   int    `json:"h,omitzero"`
	Error    string `json:"e,omitzero"`
}

func (d Delivery) record() (string, error) {
	text, err := json.Marshal(deliveryRecord{
		d.Event, d.Type, d.Status, d.Attempts, msOf(d.Created), msOf(d.First), msOf(d.Next), msOf(d.Last), d.Took.Milliseconds(), d.Answer, d.Error,
	})
	return string(text), err
}

func parseDelivery(id, text string) (Delivery, error) {
	var r deliveryRecord
	parsed, err := uuid.Parse(id)
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	if err != nil {
		return Delivery{}, fmt.Errorf("%w: record of a delivery: %v", errReply, err)
	}
	return Delivery{
		ID: parsed, Event: r.Event, Type: r.Type, Status: r.Status, Attempts: r.Attempts, Created: timeOf(r.Created),
		First: timeOf(r.First), Next: timeOf(r.Next), Last: timeOf(r.Last), Took: time.Duration(r.Took) * time.Millisecond,
		Answer: r.Answer, Error: r.Error, stored: text,
	}, nil
}

// msOf and timeOf convert times that may be zero.
func msOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

package redisstore

import (
	"time"

	"github.com/google/uuid"
)

// Organization is a tenant.
type Organization struct {
	ID       uuid.UUID
	Name     string
	Metadata string // JSON object, "" for none
	Created  time.Time
}

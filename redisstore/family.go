package redisstore

import (
	"time"

	"github.com/google/uuid"
)

// Family is a refresh-token family: all refresh tokens that descend from one exchange.
type Family struct {
	ID       uuid.UUID
	Created  time.Time
	LastUsed time.Time // when its latest generation was issued
	Expires  time.Time // a refresh postpones it, up to Config.FamilyLifetime after Created
}

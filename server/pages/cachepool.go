package pages

import (
	"errors"
	"time"

	"github.com/google/uuid"
	"remit/server/conn"
)

// CachePool bounds the bytes that pages keep between requests, and shares them fairly among organizations, as Pool does.
type CachePool struct{ pool *conn.Pool }

// CacheMemory is memory of a CachePool. Nil is none.
type CacheMemory struct{ held *conn.Reservation }

var errCacheFull = errors.New("the pool of the pages' caches is full")

// NewCachePool returns a pool of this many bytes. An organization gets at most half of them.
func NewCachePool(most int) *CachePool {
	return &CachePool{conn.NewPool(most, errCacheFull, errCacheFull)}
}

// Reserve reserves memory for what a page keeps of an organization, and returns nil when there is no room. The caller releases it.
// Another organization may displace it later: then drop is called, which must neither wait nor call the pool.
func (c *CachePool) Reserve(organization uuid.UUID, bytes int, drop func()) *CacheMemory {
	held, err := c.pool.Reserve(bytes, time.Now(), drop, conn.Tenant{Organization: organization})
	if err != nil {
		return nil
	}
	return &CacheMemory{held}
}

// Resize changes how much is reserved. Without room, or once it was displaced, it changes nothing and returns false.
func (m *CacheMemory) Resize(bytes int) bool {
	return m != nil && m.held.Resize(bytes, time.Now()) == nil
}

// Release may be called again.
func (m *CacheMemory) Release() {
	if m != nil {
		m.held.Release()
	}
}

// Reserved returns how many bytes are reserved in all.
func (c *CachePool) Reserved() int { return c.pool.Reserved() }

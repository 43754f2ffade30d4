package conn

import (
	"context"
	"time"
)

const (
	// EventBytes is nearly the most that an event takes: it has up to 4 KiB of pre-state.
	EventBytes = 6 << 10
	// StreamPage is how many events are read at once for who waits for them. Thousands may be woken by the same event.
	StreamPage = 20
	// RoomPause is how long a stream waits before it tries again to reserve memory for its next page.
	RoomPause = 100 * time.Millisecond
)

// PageMemory reserves memory for the pages of a stream, from before a page is read until it is written. While a stream waits for
// events, it reserves nothing.
type PageMemory struct {
	pool    *Pool
	cut     func()
	Tenants []Tenant
	page    *Reservation
}

// NewPageMemory returns memory of a pool for tenants; cut aborts the stream.
func NewPageMemory(pool *Pool, cut func(), tenants []Tenant) *PageMemory {
	return &PageMemory{pool: pool, Tenants: tenants, cut: cut}
}

// Reserve reserves the most that a page takes.
func (m *PageMemory) Reserve() (err error) {
	m.page, err = m.pool.Reserve(StreamPage*EventBytes, time.Now(), m.cut, m.Tenants...)
	return err
}

// Await reserves as reserve does, and tries again for so long, or until ctx ends.
func (m *PageMemory) Await(ctx context.Context, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := m.Reserve()
		if err == nil {
			return nil
		}
		select {
		case <-bounded.Done():
			return err
		case <-time.After(RoomPause):
		}
	}
}

// Keep keeps so many bytes of what is reserved. It fails when the page was displaced.
func (m *PageMemory) Keep(bytes int) error { return m.page.Resize(bytes, time.Now()) }

// Release may be called again.
func (m *PageMemory) Release() {
	m.page.Release()
	m.page = nil
}

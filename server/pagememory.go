package server

import (
	"context"
	"time"
)

const (
	// eventBytes is nearly the most that an event takes: it has up to 4 KiB of pre-state.
	eventBytes = 6 << 10
	// streamPage is how many events are read at once for who waits for them. Thousands may be woken by the same event.
	streamPage = 20
	// roomPause is how long a stream waits before it tries again to reserve memory for its next page.
	roomPause = 100 * time.Millisecond
)

// pageMemory reserves memory for the pages of a stream, from before a page is read until it is written. While a stream waits for
// events, it reserves nothing.
type pageMemory struct {
	pool    *memoryPool
	cut     func()
	tenants []tenantKey
	page    *reservation
}

// openPageMemory returns memory of a pool for tenants; cut aborts the stream.
func openPageMemory(pool *memoryPool, cut func(), tenants []tenantKey) *pageMemory {
	return &pageMemory{pool: pool, tenants: tenants, cut: cut}
}

// reserve reserves the most that a page takes.
func (m *pageMemory) reserve() (err error) {
	m.page, err = m.pool.reserve(streamPage*eventBytes, time.Now(), m.cut, m.tenants...)
	return err
}

// await reserves as reserve does, and tries again for so long, or until ctx ends.
func (m *pageMemory) await(ctx context.Context, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := m.reserve()
		if err == nil {
			return nil
		}
		select {
		case <-bounded.Done():
			return err
		case <-time.After(roomPause):
		}
	}
}

// keep keeps so many bytes of what is reserved. It fails when the page was displaced.
func (m *pageMemory) keep(bytes int) error { return m.page.resize(bytes, time.Now()) }

// release may be called again.
func (m *pageMemory) release() {
	m.page.release()
	m.page = nil
}

package web

import (
	"bytes"
	"compress/gzip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

const MaxScrapers = 64 // connections to the metrics alone

var MetricsFormat = expfmt.NewFormat(expfmt.TypeTextPlain)

// Scrapes gathers the metrics once for all concurrent scrapes: a scrape needs no credential, and gathering takes a
// millisecond or more. So only one gathering runs at a time, and a scrape waits for at most two.
type Scrapes struct {
	mu       sync.Mutex
	gathered time.Time // when the gathering of the text began
	plain    []byte    // the text; never changed, because responses share it
	packed   []byte    // the text compressed; nil until a scrape needs it
}

// Text returns metrics that were gathered after a request arrived.
func (s *Scrapes) Text(arrived time.Time, from prometheus.Gatherer, packed bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gathered.Before(arrived) {
		began := time.Now()
		plain, err := gather(from)
		if err != nil {
			return nil, err
		}
		s.gathered, s.plain, s.packed = began, plain, nil
	}
	if !packed {
		return s.plain, nil
	}
	if s.packed == nil {
		var err error
		if s.packed, err = pack(s.plain); err != nil {
			return nil, err
		}
	}
	return s.packed, nil
}

func gather(from prometheus.Gatherer) ([]byte, error) {
	families, err := from.Gather()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, MetricsFormat)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func pack(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	if _, err := to.Write(text); err != nil {
		return nil, err
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

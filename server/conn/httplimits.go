package conn

import "time"

const (
	MaxBody    = 256 << 10 // bytes; more is 413
	MaxHeaders = 16 << 10  // bytes of request line and headers; more is 431

	MaxConnections = 1 << 15 // half a gigabyte of buffers at the most

	ReadTimeout  = 10 * time.Second // for a whole request
	WriteTimeout = 10 * time.Second
	IdleTimeout  = 2 * time.Minute // between two requests of a connection
)

package server

import "time"

const (
	maxBody    = 256 << 10 // bytes; more is 413
	maxHeaders = 16 << 10  // bytes of request line and headers; more is 431

	maxConnections = 1 << 15 // half a gigabyte of buffers at the most

	readTimeout  = 10 * time.Second // for a whole request
	writeTimeout = 10 * time.Second
	idleTimeout  = 2 * time.Minute // between two requests of a connection
)

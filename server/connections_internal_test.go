package server

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"remit/server/conn"
)

func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(8 * time.Second)) // less than the read timeout
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("read %d bytes, %v", n, err)
	} else if timed, ok := err.(net.Error); ok && timed.Timeout() {
		t.Error("it is left waiting")
	}
}

// An answer would have to wait for a client that may never speak, and with TLS it does.
func TestConnectionsBeyondTheLimitAreClosedWithoutAResponseAndPlacesAreReused(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"plain": false, "over TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 2
			config := spoken(t, secure)
			config.Connections, config.TrustedProxies = most, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} // not counted by address
			r := runServer(t, "", config)
			var held []net.Conn
			for range most {
				held = append(held, sendFrom(t, "", r.address, ""))
			}
			for range 3 {
				wantClosed(t, sendFrom(t, "", r.address, ""))
			}
			_ = held[0].Close()
			client, scheme := from(t, ""), map[bool]string{false: "http://", true: "https://"}[secure]
			client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // any certificate serves
			await(t, "a free place is given again", func() bool {
				answer, err := client.Get(scheme + r.address + "/healthz")
				if err == nil {
					_ = answer.Body.Close()
				}
				return err == nil
			})
			if most := r.front.HTTP.Concurrency; most <= conn.MaxConnections {
				t.Errorf("fasthttp refuses the connection after %d, in words", most)
			}
		})
	}
}

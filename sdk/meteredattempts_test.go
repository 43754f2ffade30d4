package sdk

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/http2"

	"remit/client/metered"
	"remit/money"
	"remit/test/serviceproc"
)

// dying is a server that answers its first request, takes the next ones whole and ends their connection, and answers again at last: a
// client that repeats a request ends too.
type dying struct {
	arrived atomic.Int64 // whole requests
	url     string
}

func startDying(t *testing.T, serve func(*dying, net.Conn)) *dying {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	d := &dying{url: "http://" + listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				defer conn.Close()
				serve(d, conn)
			}()
		}
	}()
	return d
}

// meter returns a meter whose calls go to the server over this transport. The first is answered.
func (d *dying) meter(t *testing.T, service string, base *http.Transport) *meter {
	t.Helper()
	t.Cleanup(base.CloseIdleConnections)
	m := newMeter(t, service, money.USD, func(transport *metered.Transport) { transport.Base = base })
	m.url = d.url
	noError(t, m.callWith(t, ""))
	return m
}

// callWith makes a call with such a header, "" for none.
func (m *meter) callWith(t *testing.T, header string) error {
	r := m.request(t.Context(), chatPath, "", "")
	if header != "" {
		r.Header.Set(header, "once")
	}
	_, _, err := m.do(r)
	return err
}

// arrive counts a request that has arrived whole, and reports whether it is answered.
func (d *dying) arrive() bool {
	n := d.arrived.Add(1)
	return n == 1 || n > 3
}

func serveHTTP1(d *dying, conn net.Conn) {
	for in := bufio.NewReader(conn); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil || !d.arrive() {
			return
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(wholeUsage), wholeUsage)
	}
}

// serveHTTP2 speaks HTTP/2 without TLS. refuse ends the stream of a request that is not the first.
func serveHTTP2(refuse func(*http2.Framer, uint32) error) func(*dying, net.Conn) {
	return func(d *dying, conn net.Conn) {
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(conn, conn)
		err := f.WriteSettings()
		for err == nil {
			var frame http2.Frame
			if frame, err = f.ReadFrame(); err != nil {
				return
			}
			data, is := frame.(*http2.DataFrame)
			switch {
			case !is || !data.StreamEnded():
			case d.arrive():
				// HPACK: the indexed field ":status: 200"
				err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: data.StreamID, BlockFragment: []byte{0x88}, EndHeaders: true})
				if err == nil {
					err = f.WriteData(data.StreamID, true, []byte(wholeUsage))
				}
			default:
				err = refuse(f, data.StreamID)
			}
		}
	}
}

// faulty is a connection that takes nothing more once it has ended.
type faulty struct {
	net.Conn
	ended *atomic.Bool
}

func (f *faulty) Write(p []byte) (int, error) {
	if f.ended.Load() {
		return 0, syscall.EPIPE
	}
	return f.Conn.Write(p)
}

// A call on a connection that ended while it was idle is sent on another one, unless a byte of it was written. If there is none, it costs
// nothing.
func TestAMeteredCallThatWasNotWrittenIsSent(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t).URL
	for _, row := range []struct {
		name, header string
		isGone       bool  // the provider takes no other connection
		arrived      int64 // of the second call
	}{
		{"nothing was written", "", false, 1},
		{"nothing was written, Idempotency-Key", "Idempotency-Key", false, 1},
		{"nothing was written, no other connection", "", true, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := startDying(t, serveHTTP1)
			var ended atomic.Bool
			base := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if ended.Load() && row.isGone {
					conn.Close()
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				if ended.Load() {
					return conn, err
				}
				return &faulty{conn, &ended}, err
			}}
			m := d.meter(t, service, base)
			before := m.usage(t)
			ended.Store(true)
			d.arrived.Store(3) // what comes is answered
			err := m.callWith(t, row.header)
			info := m.usage(t)
			if (err != nil) != row.isGone || info.ValueUsed != before.ValueUsed*money.MicroUSD(1+row.arrived) || d.arrived.Load() != 3+row.arrived {
				t.Errorf("%v, %s used, %d have arrived", err, info.ValueUsed, d.arrived.Load()-3)
			}
		})
	}
}

// A call whose connection ends after it was sent is not sent again: the provider could be paid twice for one hold.
func TestAMeteredCallIsSentOnce(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t).URL
	reset := func(code http2.ErrCode) func(*dying, net.Conn) {
		return serveHTTP2(func(f *http2.Framer, stream uint32) error { return f.WriteRSTStream(stream, code) })
	}
	goAway := serveHTTP2(func(f *http2.Framer, _ uint32) error { return f.WriteGoAway(0, http2.ErrCodeNo, nil) })
	for _, row := range []struct {
		name, header string
		serve        func(*dying, net.Conn)
	}{
		{"HTTP/1", "", serveHTTP1},
		{"HTTP/1, Idempotency-Key", "Idempotency-Key", serveHTTP1},
		{"HTTP/1, X-Idempotency-Key", "X-Idempotency-Key", serveHTTP1},
		{"HTTP/2, REFUSED_STREAM", "", reset(http2.ErrCodeRefusedStream)},
		{"HTTP/2, PROTOCOL_ERROR", "Idempotency-Key", reset(http2.ErrCodeProtocol)},
		{"HTTP/2, GOAWAY", "Idempotency-Key", goAway},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := startDying(t, row.serve)
			base := &http.Transport{Protocols: new(http.Protocols)}
			base.Protocols.SetHTTP1(strings.HasPrefix(row.name, "HTTP/1"))
			base.Protocols.SetUnencryptedHTTP2(strings.HasPrefix(row.name, "HTTP/2"))
			m := d.meter(t, service, base)
			err := m.callWith(t, row.header)
			if arrived := d.arrived.Load(); err == nil || arrived != 2 {
				t.Errorf("%d requests have arrived after two calls: %v", arrived, err)
			}
			if info := m.usage(t); info.ActionCount != 2 {
				t.Errorf("%+v", info)
			}
		})
	}
}

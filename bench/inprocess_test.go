package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// allocated is the number of operations for counting allocations.
const allocated = 1000

// BenchmarkInProcess measures the paths without client sockets: it calls the handler as fasthttp does, one request after the
// other. The floor is the script alone. It reports the allocations per operation by owner, and with -v lists the functions.
func BenchmarkInProcess(b *testing.B) {
	for _, p := range paths {
		b.Run(p.name, func(b *testing.B) {
			s := startService(b)
			direct, floors := inProcess(b, s, p)
			b.ReportAllocs()
			compare(b, timed(p.name, direct.run), floors...)
			if b.N > 1 { // the first run of a benchmark only estimates the duration
				counted := countAllocations(b, allocated, direct.run)
				b.ReportMetric(counted.own(), "own-allocs/op")
				b.ReportMetric(counted.per(counted.shared), "tiny-allocs/op")
				if testing.Verbose() {
					b.Log(counted)
				}
			}
		})
	}
}

func inProcess(tb testing.TB, s *service, p path) (direct *directClient, floors []contender) {
	tb.Helper()
	a := s.newAgent(tb)
	each := p.prepare(tb, s, a)
	if p.scripts != nil {
		floors = append(floors, plainRedis(s.redis, p.scripts(tb, s, a, each(), 1)))
	}
	direct = &directClient{handler: s.handler, next: each(), in: bufio.NewReaderSize(nil, 16<<10)}
	direct.ctx.Init2(loopback{}, nil, false)
	return direct, floors
}

// directClient calls a handler as fasthttp does for one connection: it parses each request into the same RequestCtx.
type directClient struct {
	handler fasthttp.RequestHandler
	next    turns
	ctx     fasthttp.RequestCtx
	bytes   bytes.Reader
	in      *bufio.Reader
}

func (d *directClient) run(n int) ([]time.Duration, error) {
	return spread(1, n, func(int) error { return d.take() })
}

func (d *directClient) take() error {
	q := d.next(d.ctx.Response.Body())
	d.ctx.Request.Reset()
	d.ctx.Response.Reset()
	d.ctx.ResetUserValues()
	d.bytes.Reset(q.request)
	d.in.Reset(&d.bytes)
	if err := d.ctx.Request.Read(d.in); err != nil {
		return err
	}
	d.handler(&d.ctx)
	if status := d.ctx.Response.StatusCode(); status/100 != 2 {
		return fmt.Errorf("%q is answered with %d %s", q.request, status, d.ctx.Response.Body())
	}
	return nil
}

// loopback is a connection that only has addresses.
type loopback struct{ net.Conn }

func (loopback) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (loopback) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

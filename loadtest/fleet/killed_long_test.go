//go:build long

package fleet

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Two instances serve the mix, and one of them is killed half-way through. What a lost response leaves open is repeated with its key.
func TestTotalsReconcileThoughAnInstanceIsKilled(t *testing.T) {
	first := &service{dir: t.TempDir(), output: &lastOutput{}}
	if err := first.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.stop() }) // it was killed
	second := secondInstance(t, first)
	balanced := balance(t, first.addr, second.addr)
	cfg := config{scenario: mixed, agents: 20, sessions: 2, rate: 300, duration: 10 * time.Second, keys: true, patience: closePatience, addr: balanced.addr}
	killed := time.AfterFunc(cfg.duration/2, func() {
		if err := first.cmd.Process.Kill(); err != nil {
			t.Errorf("killing an instance: %v", err)
		}
	})
	defer killed.Stop()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), cfg, &stdout, &stderr)
	t.Logf("%s\n%s", &stdout, &stderr)
	if code != exitReconciled {
		t.Errorf("exit code %d, want %d", code, exitReconciled)
	}
	select {
	case <-first.done:
	default:
		t.Error("the instance was not killed")
	}
	if broken := balanced.broken.Load(); broken == 0 {
		t.Error("no connection was broken")
	}
}

// secondInstance starts another instance on the Redis of the first.
func secondInstance(t *testing.T, first *service) *service {
	t.Helper()
	listen := must(freeAddress())(t)
	s := &service{addr: "http://" + listen, dir: first.dir, output: &lastOutput{}}
	s.redis = first.redis
	if err := s.launch(filepath.Join(first.dir, "remit"), listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.stopProcess() })
	if err := s.waitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// balancer forwards connections to the instances in turn, and to the others when one does not answer.
type balancer struct {
	addr    string
	targets []string
	next    atomic.Uint64
	broken  atomic.Int64 // connections that an instance ended
}

func balance(t *testing.T, bases ...string) *balancer {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	b := &balancer{addr: "http://" + listener.Addr().String()}
	for _, base := range bases {
		target := must(hostPort(base))(t)
		b.targets = append(b.targets, target)
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go b.forward(client)
		}
	}()
	return b
}

func (b *balancer) forward(client net.Conn) {
	defer client.Close()
	for range b.targets {
		server, err := dialLoopback(b.targets[b.next.Add(1)%uint64(len(b.targets))])
		if err != nil {
			continue
		}
		defer server.Close()
		var clientLeft atomic.Bool
		var one sync.WaitGroup
		one.Go(func() {
			_, _ = io.Copy(server, client)
			clientLeft.Store(true)
			_ = server.Close()
		})
		_, _ = io.Copy(client, server)
		if !clientLeft.Load() {
			b.broken.Add(1)
		}
		_ = client.Close()
		one.Wait()
		return
	}
}

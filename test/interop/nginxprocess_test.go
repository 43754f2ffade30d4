package interop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/tool"
)

// mainConfig is the part of nginx.conf that users of deploy/nginx/remit.conf write. Its arguments are: the user, the directory
// for everything that nginx writes, the addresses of Remit and of the backend, the path of remit.conf, and additions of a test
// to the server block.
const mainConfig = `
daemon off;
user %[1]s;
worker_processes 2;
pid %[2]s/nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path %[2]s/body;
    proxy_temp_path %[2]s/proxy;
    fastcgi_temp_path %[2]s/fastcgi;
    uwsgi_temp_path %[2]s/uwsgi;
    scgi_temp_path %[2]s/scgi;
    # Two instances to nginx, so that it could retry on the other one.
    upstream remit { server %[3]s; server %[3]s; keepalive 32; }
    upstream backend { server %[4]s; keepalive 32; }
    server {
        listen unix:%[2]s/nginx.sock;
        include %[5]s;
        %[6]s
    }
}
`

// proxy is an nginx with deploy/nginx/remit.conf in front of its own backend.
type proxy struct {
	client  *http.Client // connects to nginx for every host
	dial    func(context.Context, string, string) (net.Conn, error)
	backend *recorder
}

// startNginx runs nginx until the test ends, with the service at remitURL, and with additions to the server block.
func startNginx(t *testing.T, remitURL string, more ...string) *proxy {
	t.Helper()
	nginx := tool.Path(t, "nginx")
	dir, err := os.MkdirTemp("", "nginx-") // not t.TempDir, because the path of a socket must be short
	noError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	shipped := must(filepath.Abs("../../deploy/nginx/remit.conf"))(t)
	g := &proxy{backend: startBackend(t)}
	config := fmt.Sprintf(mainConfig, must(user.Current())(t).Username, dir,
		strings.TrimPrefix(remitURL, "http://"), strings.TrimPrefix(g.backend.server.URL, "http://"), shipped, strings.Join(more, ""))
	noError(t, os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600))
	p := must(serviceproc.StartProcess(exec.Command(nginx, "-e", "stderr", "-p", dir, "-c", "nginx.conf")))(t)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "nginx.sock"))
	}
	err = p.Await(func() bool {
		conn, err := dial(t.Context(), "", "")
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	noError(t, err)
	g.dial = dial
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	g.client = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	return g
}

type recorder struct {
	server *httptest.Server
	mu     sync.Mutex
	seen   []seenRequest
}

type seenRequest struct {
	Method, Target string
	Header         http.Header
	BodySize       int64
	BodySum        string // hex SHA-256
}

// startRecorder runs a recorder that calls answer for each recorded request.
func startRecorder(t *testing.T, answer func(http.ResponseWriter, *http.Request, seenRequest)) *recorder {
	rec := new(recorder)
	rec.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		size, err := io.Copy(sum, r.Body)
		if err != nil {
			t.Error(err)
		}
		request := seenRequest{r.Method, r.RequestURI, r.Header.Clone(), size, hex.EncodeToString(sum.Sum(nil))}
		rec.mu.Lock()
		rec.seen = append(rec.seen, request)
		rec.mu.Unlock()
		answer(w, r, request)
	}))
	t.Cleanup(rec.server.Close)
	return rec
}

func (rec *recorder) requests() []seenRequest {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.Clone(rec.seen)
}

func (rec *recorder) wantRequests(t *testing.T, count int) {
	t.Helper()
	if got := len(rec.requests()); got != count {
		t.Errorf("%d requests arrived, want %d", got, count)
	}
}

// startBackend runs the backend of a proxy. Its responses contain the request.
func startBackend(t *testing.T) *recorder {
	return startRecorder(t, func(w http.ResponseWriter, _ *http.Request, request seenRequest) {
		if err := json.NewEncoder(w).Encode(request); err != nil {
			t.Error(err)
		}
	})
}

// recordingProxy runs a recorder that forwards the requests of a proxy to the service.
func recordingProxy(t *testing.T, s *service) *recorder {
	proxy := proxyTo(t, s)
	return startRecorder(t, func(w http.ResponseWriter, r *http.Request, _ seenRequest) { proxy.ServeHTTP(w, r) })
}

func proxyTo(t *testing.T, s *service) http.Handler {
	t.Helper()
	return httputil.NewSingleHostReverseProxy(must(url.Parse(s.URL))(t))
}

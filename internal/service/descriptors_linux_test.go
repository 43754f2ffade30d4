package service

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// One address with the maximum number of connections must leave descriptors for other clients and for Redis.
func TestOneAddressCannotTakeAllDescriptors(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"REMIT_REDIS_URL=" + startRedis(t), "RUN_REMIT_OPEN_FILES=300"}).ready(t)
	if line := "open_files=300 connections=113 per_address=84 webhook_sockets=37"; !strings.Contains(p.Stderr(), line) {
		t.Errorf("the log lacks %q:\n%s", line, p.Stderr())
	}
	address := strings.TrimPrefix(p.url, "http://")
	from := func(source string) *net.Dialer {
		return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 5 * time.Second}
	}
	for range 400 {
		if conn, err := from("127.0.0.2").DialContext(t.Context(), "tcp", address); err == nil {
			defer conn.Close()
		}
	}
	for i := range 8 {
		client := &http.Client{
			Transport: &http.Transport{DialContext: from("127.0.0.3").DialContext, DisableKeepAlives: true}, Timeout: 10 * time.Second,
		}
		answer := must(client.Post(p.url+"/v1/organizations", "application/json", strings.NewReader(`{"name":"acme"}`)))(t)
		if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusCreated {
			t.Errorf("request %d from another address: %d %s", i, answer.StatusCode, body)
		}
		_ = answer.Body.Close()
	}
}

package service

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

type healthcheck struct {
	Listen string `default:"127.0.0.1:8080" help:"Address that the service listens on."`
	tlsFlags
}

// Validate is called by the flag parser.
func (c *healthcheck) Validate() error { return c.check() }

// Run requests /readyz from the service on this machine, for containers without a shell. With mutual TLS it presents the
// service's own certificate.
func (c *healthcheck) Run() error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	tls, err := c.clientConfig()
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{TLSClientConfig: tls}}
	response, err := client.Get(c.scheme() + "://" + net.JoinHostPort(host, port) + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", response.Status)
	}
	return nil
}

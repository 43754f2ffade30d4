package cli_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// console is a browser that is signed in to the service's console with the API key of a terminal.
type console struct {
	*terminal
	http *http.Client
}

func newConsole(of *terminal) *console {
	of.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		of.t.Fatal(err)
	}
	connections := new(http.Transport)
	of.t.Cleanup(connections.CloseIdleConnections)
	c := &console{of, &http.Client{Jar: jar, Transport: connections}}
	c.page(c.http.PostForm(serviceURL(of.t)+"/console", url.Values{"api_key": {of.env["REMIT_API_KEY"]}}))
	return c
}

// page parses an answer, which must be a page.
func (c *console) page(answer *http.Response, err error) *html.Node {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := html.Parse(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s, %v", answer.Request.URL, answer.Status, err)
	}
	return page
}

// send opens a page, fills in its form that is sent to action, and sends it.
func (c *console) send(page, action string, pairs ...string) {
	c.t.Helper()
	base := serviceURL(c.t)
	form := url.Values{}
	found := false
	for node := range c.page(c.http.Get(base + page)).Descendants() {
		if node.Type == html.ElementNode && node.Data == "form" && attribute(node, "action") == action {
			found = true
			for field := range node.Descendants() {
				if name := attribute(field, "name"); name != "" {
					form.Set(name, attribute(field, "value"))
				}
			}
		}
	}
	if !found {
		c.t.Fatalf("%s has no form for %s", page, action)
	}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	c.page(c.http.Post(base+action, "application/x-www-form-urlencoded", strings.NewReader(form.Encode())))
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
